"""What classifier and regressor share: from samples to a fitted posterior, and what can be asked of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import assert_all_finite, check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from bemkl.arrays import Array, finite_number
from bemkl.estimators.fitting import Effort, fit_problems
from bemkl.estimators.parameters import gamma_prior, intermediate_prior
from bemkl.estimators.sources import Source, fit_source
from bemkl.estimators.summary import as_table, selected, weight_rows
from bemkl.inference import Block, FittedBlock, Prediction, Priors, Problem, State, fitted_block
from bemkl.inference.protocols import AnyLikelihood
from bemkl.kernels import KernelStack, stack_kernels
from bemkl.kernels.views import count_samples, is_views


class BEMKLEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A model that combines kernels; `BEMKLClassifier` and `BEMKLRegressor` say for which targets."""

    _source: Source
    _fitted: tuple[FittedBlock, ...]
    _single: bool
    posterior_: Any

    def contributions(self, X: Any) -> Array:
        """
        Return what each kernel contributes to the decisions: weight times intermediate output.

        Parameters
        ----------
        X : array_like, data frame, sparse matrix, dict of these, or kernels
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_kernels) or (n_samples, n_kernels, n_outputs)
            The contributions. With `intercept_` they sum to the decision (classification) or prediction (regression).
        """
        dense = self._stack(X).dense()
        parts = [(fitted.weights.mean[:, None] * fitted.project(dense)).transpose(2, 1, 0) for fitted in self._fitted]
        contributions: Array = np.concatenate(parts, axis=2) * self._scale
        return contributions[..., 0] if self._single else contributions

    def combined_kernel(self, X: Any) -> Array:
        """
        Return the combination of the kernels with the expected weights.

        Parameters
        ----------
        X : array_like, data frame, sparse matrix, dict of these, or kernels
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_basis) or (n_samples, n_basis, n_classes)
            The kernel between samples and basis points; one a class where each class has weights of its own.
            Times `dual_coef_`, plus `intercept_`, it gives the decision or prediction.
        """
        dense = self._stack(X).dense()
        kernels = np.zeros((len(self._fitted), *dense.shape[1:]))
        for out, fitted in zip(kernels, self._fitted, strict=True):
            for weight, kernel in zip(fitted.weights.mean, dense.values, strict=True):
                out += weight * kernel
        return kernels[0] if len(kernels) == 1 else np.moveaxis(kernels, 0, -1)

    def summary(self, coverage: float = 0.95) -> Any:
        """
        Return the kernel weights as a table, largest first.

        Parameters
        ----------
        coverage : float
            Probability of the intervals.

        Returns
        -------
        pandas.DataFrame or WeightTable
            Kernel, weight, standard deviation, interval, and share in how the decisions on the training samples vary;
            with the class first where each class has weights of its own. A data frame if pandas is installed.
            Numbers are rounded; `kernel_weights_` and `kernel_weights_std_` have them in full.
        """
        check_is_fitted(self)
        coverage = finite_number("coverage", coverage, least=0.0)
        if coverage >= 1.0:
            raise ValueError(f"coverage: expected a probability below 1, got {coverage!r}.")
        rows = []
        for label, fitted in zip(self._labels, self._fitted, strict=True):
            first = {} if len(self._fitted) == 1 else {"class": label}
            rows += [first | row for row in weight_rows(self.kernel_names_, fitted, coverage)]
        return as_table(rows)

    def __sklearn_tags__(self) -> Any:
        """Say what input is understood."""
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed
        tags.input_tags.three_d_array = self._precomputed
        tags.input_tags.sparse = not self._precomputed
        return tags

    def _learn(self, X: Any, likelihoods: Sequence[AnyLikelihood], labels: Sequence[str]) -> None:
        """Fit one posterior a likelihood, all on the same kernels."""
        effort = Effort(self.max_iter, self.tol, self.n_init, self.n_jobs, self.verbose)
        priors = self._priors()
        if self.predictive not in ("exact", "paper"):
            raise ValueError(f'predictive: expected "exact" or "paper", got {self.predictive!r}.')
        self._check_features(X, reset=True)
        if self._precomputed:
            X = stack_kernels(X)
        if count_samples(X) != likelihoods[0].n_samples:
            raise ValueError(
                f"y: expected a value for each of the {count_samples(X)} samples of X, got "
                f"{likelihoods[0].n_samples}. (Found input variables with inconsistent numbers of samples.)"
            )
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        source, stack, rows = fit_source(self.kernels, self.landmarks, X, rng)
        dense = stack.dense()
        problems = [Problem([Block(dense, like, landmarks=rows is not None)], priors) for like in likelihoods]
        results = fit_problems(problems, labels, self._starts(len(problems)), effort, rng)
        states = tuple(result.state for result in results)
        self._source, self._labels = source, tuple(labels)
        self._fitted = tuple(fitted_block(*pair) for pair in zip(problems, states, strict=True))
        self.landmarks_ = rows
        self.kernel_names_ = list(source.names)
        self.posterior_ = states[0] if len(states) == 1 else states
        self.n_iter_ = max(result.n_iter for result in results)
        self.converged_ = all(result.converged for result in results)
        # Separate runs are one model with independent parts: its bound is their sum, ended runs keep their last value.
        paths = [np.pad(r.lower_bounds, (0, self.n_iter_ - r.n_iter), mode="edge") for r in results]
        self.lower_bounds_ = np.sum(paths, axis=0)
        self.lower_bound_ = float(self.lower_bounds_[-1])
        self._describe()

    def _describe(self) -> None:
        """Set what can be read off the posteriors."""
        one = len(self._fitted) == 1
        weights = np.array([fitted.weights.mean for fitted in self._fitted])
        deviations = np.sqrt([fitted.weights.covariance.diagonal() for fitted in self._fitted])
        self.kernel_weights_ = weights[0] if one else weights
        self.kernel_weights_std_ = deviations[0] if one else deviations
        self.selected_kernels_ = np.flatnonzero(np.any([selected(row) for row in weights], axis=0))
        self.dual_coef_ = np.concatenate([f.state.pair.sample_mean for f in self._fitted]).T * self._scale
        self.intercept_ = np.concatenate([f.weights.bias for f in self._fitted]) * self._scale + self._offset

    @property
    def _precomputed(self) -> bool:
        """Whether X holds kernels."""
        return isinstance(self.kernels, str) and self.kernels == "precomputed"

    @property
    def _scale(self) -> Any:
        """What multiplies the model's outputs."""
        return 1.0

    @property
    def _offset(self) -> Any:
        """What is added to the model's outputs."""
        return 0.0

    def _priors(self) -> Priors:
        return Priors(
            sample=gamma_prior("sample_prior", self.sample_prior),
            bias=gamma_prior("bias_prior", self.bias_prior),
            kernel=gamma_prior("kernel_prior", self.kernel_prior),
            intermediate=intermediate_prior(self.intermediate_std),
        )

    def _starts(self, count: int) -> Sequence[State | None]:
        """Take the last posteriors for a warm start."""
        if not self.warm_start or not hasattr(self, "posterior_"):
            return [None] * count
        states = self.posterior_ if isinstance(self.posterior_, tuple) else (self.posterior_,)
        if len(states) != count:
            raise ValueError(
                f"warm_start: the last fit has {len(states)} posteriors, this one needs {count}. "
                "Set warm_start=False, or fit a clone."
            )
        return states

    def _stack(self, X: Any) -> KernelStack:
        """Return the kernels of new samples."""
        check_is_fitted(self)
        self._check_features(X, reset=False)
        return self._source.stack(X)

    def _scores(self, X: Any) -> Array:
        """Return the means of the outputs, shape (n_samples, n_outputs)."""
        dense = self._stack(X).dense()
        scores: Array = np.hstack([fitted.score(dense) for fitted in self._fitted]) * self._scale + self._offset
        return scores

    def _predictions(self, X: Any) -> list[Prediction]:
        """Return the predictive moments of each fit."""
        dense = self._stack(X).dense()
        return [fitted.predict(dense, self.predictive) for fitted in self._fitted]

    def _check_features(self, X: Any, *, reset: bool) -> None:
        """Hold tables to scikit-learn's rules for names and numbers of features."""
        if is_views(X) or (self._precomputed and isinstance(X, list | tuple)):
            if reset:
                self.n_features_in_ = len(X)
            return
        if not hasattr(X, "columns") and not isinstance(X, KernelStack):
            X = check_array(
                X,
                accept_sparse=not self._precomputed,
                dtype=None,
                allow_nd=True,
                ensure_all_finite=False,
                input_name="X",
            )
            if self._precomputed and X.ndim == 2:
                assert_all_finite(X, input_name="X")
        if len(X.shape) == 2:
            validate_data(self, X, reset=reset, skip_check_array=True)
        elif reset:
            self.n_features_in_ = X.shape[1]


def refuse_arguments(estimator: BEMKLEstimator, arguments: Mapping[str, Any]) -> None:
    """
    Refuse arguments of `fit` that the model has no use for, with a sentence.

    Parameters
    ----------
    estimator : BEMKLEstimator
        Whose `fit` it is.
    arguments : mapping of str to Any
        What the user passed beside X and y.

    Raises
    ------
    TypeError
        If there is any.
    """
    name = type(estimator).__name__
    if "sample_weight" in arguments:
        raise TypeError(
            f"sample_weight: {name}.fit takes no weights of samples, because its likelihoods have no weighted form. "
            "Leave them out; score does take them."
        )
    if arguments:
        raise TypeError(f"{name}.fit() got an unexpected keyword argument {next(iter(arguments))!r}.")
