"""What classifier and regressor share: from samples to a fitted posterior, and what can be asked of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import assert_all_finite, check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from bemkl.arrays import Array, explained
from bemkl.estimators.fitted import KEPT_BYTES, Fitted, Moments
from bemkl.estimators.fitting import Effort
from bemkl.estimators.leaving_out import LeftOut, left_out
from bemkl.estimators.parameters import by_kernel_or_view, factor_tolerance, generator, probability_of
from bemkl.estimators.parts import deviations, groups_of, refuse_indivisible, sums
from bemkl.estimators.posteriors import Learned, MakeWay, Samples, Targets, Tasks
from bemkl.estimators.sources import Source, check_kernels, fit_source, refuse_asymmetry, refuse_kernels_first
from bemkl.estimators.summary import as_table, used, view_rows, weight_intervals, weight_rows
from bemkl.kernels import DenseStack, KernelStack, stack_kernels
from bemkl.kernels.views import count_samples, is_views, read_samples
from bemkl.registry import POSTERIORS, find


class BEMKLEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A model that combines kernels; `BEMKLClassifier` and `BEMKLRegressor` say for which targets."""

    _source: Source
    _fitted: tuple[Fitted, ...]
    _single: bool
    _offset: Array
    _scale: Array
    posterior_: Any

    def contributions(self, X: Any, return_std: bool = False, *, by: str = "kernel") -> Any:
        """
        Return what each kernel contributes to the decisions: weight times intermediate output.

        Parameters
        ----------
        X : array_like, data frame, sparse matrix, dict of these, or kernels
            Samples.
        return_std : bool
            Whether to return the standard deviations of the contributions as well, which the marginal posterior with
            the prior "sum" has: those of each kernel's function, given the kernel weights.
        by : {"kernel", "view"}
            What contributes: each kernel, or all kernels on the same columns, or of the same view, together. Views have
            the order of `view_names_`.

        Returns
        -------
        contributions : ndarray of shape (n_samples, n_kernels) or (n_samples, n_kernels, n_outputs)
            The contributions. With `intercept_` they sum to the decision (classification) or prediction (regression).
        deviations : ndarray of the same shape
            Their standard deviations, if asked for.
        """
        check_is_fitted(self)
        single = by_kernel_or_view(by) == "kernel"
        groups = groups_of(range(len(self.kernel_names_)) if single else self._source.kinds()[0])
        if return_std:
            refuse_indivisible(self._fitted)
        means, stds = [], []
        for stack in self._blocks(X):
            means.append(sums(np.concatenate([fitted.contributions(stack) for fitted in self._fitted]), groups))
            if return_std:
                stds.append(deviations(self._fitted, stack, groups))
        return (self._by_sample(means), self._by_sample(stds)) if return_std else self._by_sample(means)

    @property
    def view_names_(self) -> list[str]:
        """Names of the views, or of the columns that kernels are on, in the order in which kernels come."""
        check_is_fitted(self)
        return list(dict.fromkeys(self._source.kinds()[0]))

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
        blocks = [[fitted.combine(stack) for fitted in self._fitted] for stack in self._blocks(X)]
        kernels = np.concatenate([np.stack(block, axis=-1) for block in blocks])
        return kernels[..., 0] if len(self._fitted) == 1 else kernels

    def summary(self, coverage: float = 0.95, *, by: str = "kernel", rounded: bool = True) -> Any:
        """
        Return the kernel weights as a table, largest first, or their sums by view.

        Parameters
        ----------
        coverage : float
            Probability of the intervals.
        by : {"kernel", "view"}
            A row for each kernel, or for all kernels on the same columns, or of the same view, together.
        rounded : bool
            Whether numbers have only the digits that are worth reading.

        Returns
        -------
        pandas.DataFrame or WeightTable
            Kernel, weight, standard deviation, interval, and share in how the decisions on the training samples vary;
            with the class first where each class has weights of its own, and the probability that a kernel is on
            last where there is one. By view: view, number of its kernels, sum of their weights with its interval, and
            sum of their shares. For the marginal posterior with the prior "sum", no landmarks and up to 60 views (of
            kernels: 60 of both together), also what is lost without the view or kernel: evidence, log density of a
            sample predicted by the others with the standard error of that mean, and the probability of as much by
            chance, p. A data frame if pandas is installed.

        Notes
        -----
        Standard deviations and intervals of the mean-field posterior have the sample weights integrated out. On planted
        problems, 95 % intervals are off zero for at most 7 % of irrelevant kernels; but for up to a
        quarter with a learned `intermediate_std`, with few landmarks, or where classes share weights (docs/reading.md).
        """
        check_is_fitted(self)
        by, probability = by_kernel_or_view(by), probability_of(coverage)
        names = self.kernel_names_ if by == "kernel" else self._source.kinds()[0]
        describe, rows = weight_rows if by == "kernel" else view_rows, []
        for label, fitted in zip(self._labels, self._fitted, strict=True):
            first = {} if len(self._fitted) == 1 else {"class": label}
            rows += [first | row for row in describe(names, fitted, probability, rounded=rounded)]
        if by == "kernel" and hasattr(self, "kernel_inclusion_"):
            parts = [dict(zip(self.kernel_names_, part, strict=True)) for part in np.atleast_2d(self.kernel_inclusion_)]
            by_row = [parts[position // len(self.kernel_names_)] for position in range(len(rows))]
            rows = [row | {"inclusion": round(float(p[row["kernel"]]), 4)} for row, p in zip(rows, by_row, strict=True)]
        return as_table(rows)

    def without(self, view: str) -> LeftOut:
        """
        Return what is lost without one view, where all other views may answer for it.

        The marginal posterior finds that out in each fit with the prior "sum", no landmarks, and 2 to 60 views.

        Parameters
        ----------
        view : str
            Name of the view, as in ``summary(by="view")``.

        Returns
        -------
        LeftOut
            Evidence and log density that are lost, and the probability of as much by chance.
        """
        check_is_fitted(self)
        return left_out(view, self._source.kinds()[0], self._fitted)

    def weight_intervals(self, coverage: float = 0.95) -> Array:
        """
        Return central intervals of the kernel weights: as much probability below as above.

        Parameters
        ----------
        coverage : float
            Probability of the intervals.

        Returns
        -------
        ndarray of shape (2, n_kernels) or (2, n_classes, n_kernels)
            Lower and upper ends, quantiles of the posterior whatever its family; a row a class where each has its own
            weights. Weights that are on or off have zero as an end where the probability reaches into being off.
        """
        check_is_fitted(self)
        return weight_intervals(self._fitted, probability_of(coverage), one=self.kernel_weights_.ndim == 1)

    def __sklearn_tags__(self) -> Any:
        """Say what input is understood."""
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed
        tags.input_tags.three_d_array = self._precomputed
        tags.input_tags.sparse = not self._precomputed
        return tags

    def _learn(self, X: Any, targets: Targets) -> tuple[Samples, Learned]:
        """Fit the chosen posterior; nothing of this estimator changes."""
        effort = Effort(self.max_iter, self.tol, self.n_init, self.n_jobs, self.verbose)
        make_way: MakeWay = find("posterior", self.posterior, POSTERIORS)
        way = make_way(self, Tasks([targets]), effort)
        tolerance = factor_tolerance(self.factor_tol)
        check_kernels(self.kernels)
        X = self._check_form(X)
        if self._precomputed:
            X = stack_kernels(X)
            if self.landmarks is None:
                refuse_kernels_first(X)
        if count_samples(X) != targets.n_samples:
            raise ValueError(
                f"y: expected a value for each of the {count_samples(X)} samples of X, got "
                f"{targets.n_samples}. (Found input variables with inconsistent numbers of samples.)"
            )
        rng = generator(self.random_state)
        source, stack, rows = fit_source(self.kernels, self.landmarks, X, rng, tolerance)
        if rows is None:
            refuse_asymmetry(source.names, stack)
        samples = Samples(source, stack, rows)
        return samples, way.learn([samples], rng)

    def _keep(self, X: Any, samples: Samples, learned: Learned, offset: Array, scale: Array) -> None:
        """Take over what was learned; decisions are the model's outputs times scale plus offset."""
        self._source, self._labels, self._fitted = samples.source, learned.names, learned.fitted
        self._offset, self._scale = offset, scale
        self.landmarks_ = samples.landmarks
        self.kernel_names_ = list(samples.source.names)
        self.posterior_ = learned.posterior
        self.n_iter_ = len(learned.lower_bounds)
        self.converged_ = learned.converged
        self.lower_bounds_ = learned.lower_bounds
        self.lower_bound_ = float(self.lower_bounds_[-1])
        self._describe()
        self._remember_features(X)

    def _describe(self) -> None:
        """Set what can be read off the posteriors."""
        one = len(self._fitted) == 1
        described = [(fitted.kernel_weights, fitted.weight_deviations) for fitted in self._fitted]
        weights, deviations = (np.array(values) for values in zip(*described, strict=True))
        self.kernel_weights_ = weights[0] if one else weights
        self.kernel_weights_std_ = deviations[0] if one else deviations
        self.selected_kernels_ = np.flatnonzero(np.any([used(self._source, fitted) for fitted in self._fitted], axis=0))
        inclusion = [fitted.inclusion for fitted in self._fitted if fitted.inclusion is not None]
        if inclusion:
            self.kernel_inclusion_ = inclusion[0] if one else np.array(inclusion)
        elif hasattr(self, "kernel_inclusion_"):
            del self.kernel_inclusion_
        lines = [(fitted.dual, fitted.intercept) for fitted in self._fitted]
        dual, intercept = (np.concatenate(values) for values in zip(*lines, strict=True))
        self.dual_coef_, self.intercept_ = dual.T * self._scale, intercept * self._scale + self._offset

    @property
    def _precomputed(self) -> bool:
        """Whether X holds kernels."""
        return isinstance(self.kernels, str) and self.kernels == "precomputed"

    def _check_rule(self) -> None:
        if self.predictive not in ("exact", "paper"):
            raise ValueError(f'predictive: expected "exact" or "paper", got {self.predictive!r}.')

    def _blocks(self, X: Any) -> Iterator[DenseStack]:
        """Yield the kernels of new samples, a bounded block of samples at a time."""
        check_is_fitted(self)
        X = self._check_form(X)
        if len(getattr(X, "shape", ())) == 2:
            validate_data(self, X, reset=False, skip_check_array=True)
        for stack in self._source.blocks(X):
            yield stack.dense()

    def _by_sample(self, blocks: Sequence[Array]) -> Array:
        """Join blocks, on the scale of the decisions. Shapes: blocks (n_outputs, n, n_block)."""
        joined: Array = np.concatenate([block.transpose(2, 1, 0) for block in blocks]) * self._scale
        return joined[..., 0] if self._single else joined

    def _scores(self, X: Any) -> Array:
        """Return the means of the outputs, shape (n_samples, n_outputs)."""
        blocks = [np.hstack([fitted.score(stack) for fitted in self._fitted]) for stack in self._blocks(X)]
        scores: Array = np.concatenate(blocks) * self._scale + self._offset
        return scores

    def _predictions(self, X: Any) -> Iterator[tuple[Moments, ...]]:
        """Yield the predictive moments of each fit, a block of samples at a time."""
        check_is_fitted(self)
        self._check_rule()
        max_bytes = KEPT_BYTES // len(self._fitted)
        predictors = [fitted.predictor(self.predictive, max_bytes) for fitted in self._fitted]
        for stack in self._blocks(X):
            yield tuple(predict(stack) for predict in predictors)

    def _check_form(self, X: Any) -> Any:
        """Hold arrays to scikit-learn's rules; data frames, dicts and lists of kernels are read elsewhere."""
        if is_views(X) or isinstance(X, KernelStack) or (self._precomputed and isinstance(X, list | tuple)):
            return X
        if self._precomputed and hasattr(X, "columns") and hasattr(X, "shape"):
            return stack_kernels(X)
        if hasattr(X, "collect") or hasattr(X, "columns"):
            read_samples(X)
            return X
        checks = {"accept_sparse": not self._precomputed, "allow_nd": self._precomputed, "ensure_all_finite": False}
        with explained("X", "Pass a table with a row for each sample, or kernels if they are precomputed."):
            X = check_array(X, dtype=None, input_name="X", **checks)
            if self._precomputed and X.ndim == 2:
                assert_all_finite(X, input_name="X")
        return X

    def _remember_features(self, X: Any) -> None:
        """Set numbers and names of features."""
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if self._precomputed:
            self.n_features_in_ = stack_kernels(X).shape[1]
        elif is_views(X):
            self.n_features_in_ = len(X)
        else:
            validate_data(self, X, skip_check_array=True)


def refuse_arguments(estimator: BEMKLEstimator, arguments: Mapping[str, Any]) -> None:
    """Refuse arguments of `fit` that the model has no use for, with a sentence."""
    name = type(estimator).__name__
    if "sample_weight" in arguments:
        raise TypeError(
            f"sample_weight: {name}.fit takes no weights of samples, because its likelihoods have no weighted form. "
            "Leave them out; score does take them."
        )
    if arguments:
        raise TypeError(f"{name}.fit() got an unexpected keyword argument {next(iter(arguments))!r}.")
