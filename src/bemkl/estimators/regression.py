"""The regressor: one response or several."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from bemkl.alignment import aligned_to
from bemkl.arrays import Array
from bemkl.estimators.base import BEMKLEstimator, refuse_arguments
from bemkl.estimators.parameters import gamma_prior, interval_width
from bemkl.estimators.responses import ResponseTargets, explained_share, normalised, read_responses
from bemkl.kernels import KernelBank


class BEMKLRegressor(RegressorMixin, BEMKLEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """
    Bayesian efficient multiple kernel learning for one response or several.

    Parameters
    ----------
    kernels : KernelBank, "precomputed" or None
        Where kernels come from. None takes a small bank that suits the samples (`default_bank`). With
        "precomputed", X holds kernels: an array of shape (n_samples, n_train, n_kernels), a `KernelStack`, a list of
        matrices, or a dict of them.
    posterior : {"mean_field", "marginal"}
        The paper's posterior, factor by factor, for hundreds of kernels at once; or the one with the sample weights
        integrated out, whose probabilities and intervals hold on new samples, for some thousand samples or landmarks.
    function_prior : {"sum", "kernel", "samples", "evidence"}
        What the marginal posterior takes predictors for: a sum of Gaussian processes, one a kernel; functions of the
        mean kernel's space seen through the combined kernel; the paper's independent sample weights; or the one of
        these with the highest evidence.
    test_views : bool
        Whether the marginal posterior with the prior "sum" tests what is lost without each view and kernel; that takes
        about as long as the fit. Turn it off in searches.
    kernel_prior : {"dense", "sparse"} or (float, float)
        Prior of the kernel weights' precisions, a gamma distribution by shape and scale. "dense" is (1, 1) and keeps
        all kernels, "sparse" is (1e-10, 1e10) and drops those that do not help. The marginal posterior knows the two
        names: it draws weights of kernels that have something in common together, or lets each go by itself.
    weights : {"free", "nonnegative", "factorized", "spike_slab"}
        Family of posteriors of the kernel weights: one Gaussian (the paper's); none below zero; independent ones, for
        tens of thousands of kernels; or each kernel on or off, with the probability of it. Those of the marginal
        posterior are positive under either of the first two names.
    sample_prior : {"dense", "sparse"} or (float, float)
        Prior of the sample weights' precisions.
    bias_prior : {"dense", "sparse"} or (float, float)
        Prior of the biases' precisions.
    noise_prior : {"dense", "sparse"} or (float, float)
        Prior of the noise precisions.
    intermediate_std : float or "learn"
        Standard deviation of the intermediate outputs, 1e-6 to 1e6.
    normalize_y : bool
        Whether responses are standardised for the fit, so that the priors suit them; predictions are in their own
        units in any case.
    predictive : {"exact", "paper"}
        How variances are computed: exactly under the posterior, or as the paper prints it.
    landmarks : int, array_like of int, {"kmeans++", "pivoted"}, (str, int) or None
        Training samples that serve as basis points: how many, which rows, by which strategy, or both; None for all.
    acceleration : {"newton"} or None
        Bold steps that reach in a few iterations what coordinate ascent reaches in hundreds, with the lower bound as
        safeguard; None for the paper's plain iteration.
    factor_tol : float or None
        Kernels of low rank are kept as thin factors with at most this error, relative to a kernel of unit diagonal:
        the same answer for less memory and time. None keeps all kernels as matrices.
    max_iter : int
        Most iterations.
    tol : float or None
        Stop when the lower bound changes by less than this, relative to its size; None for exactly `max_iter`.
    n_init : int
        Number of starts. The first is deterministic, the others have random kernel weights; the highest bound wins.
    warm_start : bool
        Whether `fit` goes on from the last posterior.
    random_state : int, RandomState or None
        Draws for starts after the first, and for landmarks.
    verbose : int
        0 for silence, 1 for a progress bar or, in a log, some lines, 2 for a line an iteration in a log.
    n_jobs : int or None
        Number of starts to fit at the same time, in threads.

    Attributes
    ----------
    kernel_names_ : list of str
        Names of the kernels.
    kernel_weights_ : ndarray of shape (n_kernels,)
        Expected kernel weights.
    kernel_weights_std_ : ndarray of shape (n_kernels,)
        Their standard deviations.
    kernel_inclusion_ : ndarray of shape (n_kernels,)
        Probabilities that kernels are on; only with ``weights="spike_slab"``.
    selected_kernels_ : ndarray of int
        Kernels with a weight of more than 1 % of the largest, in absolute value; where views were tested, only
        those of views with p below 0.05.
    dual_coef_ : ndarray of shape (n_basis, n_outputs)
        Expected sample weights, in units of the responses.
    intercept_ : ndarray of shape (n_outputs,)
        Expected biases, in units of the responses.
    lower_bound_ : float
        Exact lower bound of the evidence of the responses as they came; Laplace's approximation of the evidence for the
        marginal posterior.
    lower_bounds_ : ndarray of shape (n_iter_,)
        The bound, or the evidence, after each iteration.
    n_iter_ : int
        Number of iterations.
    converged_ : bool
        Whether the bound settled.
    posterior_ : Posterior or MarginalPosterior
        The posterior; where the sample weights were integrated out, that of the kernel weights.
    landmarks_ : ndarray of int or None
        Rows that are landmarks.
    n_features_in_ : int
        Number of features, views or, for kernels, training samples.

    Examples
    --------
    >>> import numpy as np
    >>> from bemkl import BEMKLRegressor
    >>> x = np.linspace(0.0, 6.0, 40)[:, None]
    >>> model = BEMKLRegressor(intermediate_std=0.1).fit(x, 100.0 + 10.0 * np.sin(x[:, 0]))
    >>> model.predict([[1.5]]).round(0)
    array([110.])
    >>> lower, upper = model.predict_interval([[1.5]])
    >>> bool(lower[0] < 110.0 < upper[0])
    True
    """

    def __init__(
        self,
        kernels: KernelBank | str | None = None,
        *,
        posterior: str = "mean_field",
        function_prior: str = "sum",
        test_views: bool = True,
        kernel_prior: Any = "dense",
        weights: str = "free",
        sample_prior: Any = (1.0, 1.0),
        bias_prior: Any = (1.0, 1.0),
        noise_prior: Any = (1.0, 1.0),
        intermediate_std: float | str = 1.0,
        normalize_y: bool = True,
        predictive: str = "exact",
        landmarks: Any = None,
        acceleration: str | None = "newton",
        factor_tol: float | None = 1e-10,
        max_iter: int = 1000,
        tol: float | None = 1e-4,
        n_init: int = 1,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.kernels = kernels
        self.posterior = posterior
        self.function_prior = function_prior
        self.test_views = test_views
        self.kernel_prior = kernel_prior
        self.weights = weights
        self.sample_prior = sample_prior
        self.bias_prior = bias_prior
        self.noise_prior = noise_prior
        self.intermediate_std = intermediate_std
        self.normalize_y = normalize_y
        self.predictive = predictive
        self.landmarks = landmarks
        self.acceleration = acceleration
        self.factor_tol = factor_tol
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None, **unsupported: Any) -> BEMKLRegressor:
        """
        Learn from samples and their responses.

        Parameters
        ----------
        X : array_like, data frame, sparse matrix, dict of these, or kernels
            Training samples; rows of NaN in all columns of a group are samples without that view.
        y : array_like of shape (n_samples,) or (n_samples, n_outputs)
            Responses.
        **unsupported : Any
            Refused: there are no weights of samples.

        Returns
        -------
        BEMKLRegressor
            This regressor.
        """
        refuse_arguments(self, unsupported)
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        (y,) = aligned_to(X, {"y": y})
        responses = read_responses(y)
        table = responses.reshape(len(responses), -1)
        values, offset, scale = normalised(table, normalise=self.normalize_y)
        noise = gamma_prior("noise_prior", self.noise_prior)
        samples, learned = self._learn(X, ResponseTargets(values, noise))
        self._single = responses.ndim == 1
        self._keep(X, samples, learned, offset, scale)
        # The bound is of the responses as they came: dividing them by a scale adds its logarithm to their log density.
        self.lower_bounds_ = self.lower_bounds_ - len(table) * float(np.log(scale).sum())
        self.lower_bound_ = float(self.lower_bounds_[-1])
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """
        Return the expected responses.

        Parameters
        ----------
        X : array_like, data frame, sparse matrix, dict of these, or kernels
            Samples.
        return_std : bool
            Whether to return the standard deviations of the responses as well, noise included.

        Returns
        -------
        mean : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            The expected responses.
        std : ndarray of the same shape
            Their standard deviations, if asked for.
        """
        if not return_std:
            scores = self._scores(X)
            return scores[:, 0] if self._single else scores
        predictions = [prediction for (prediction,) in self._predictions(X)]
        mean = np.concatenate([prediction.mean for prediction in predictions]) * self._scale + self._offset
        std: Array = np.sqrt(np.concatenate([prediction.variance for prediction in predictions])) * self._scale
        return (mean[:, 0], std[:, 0]) if self._single else (mean, std)

    def predict_interval(self, X: Any, coverage: float = 0.95) -> tuple[Array, Array]:
        """
        Return central intervals for the responses, from their means and deviations.

        Parameters
        ----------
        X : array_like, data frame, sparse matrix, dict of these, or kernels
            Samples.
        coverage : float
            Probability of the intervals.

        Returns
        -------
        lower : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Lower ends.
        upper : ndarray of the same shape
            Upper ends.
        """
        width = interval_width(coverage)
        mean, std = self.predict(X, return_std=True)
        half = width * std
        return mean - half, mean + half

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """
        Return the share of the variance that is explained.

        Parameters
        ----------
        X : array_like, data frame, sparse matrix, dict of these, or kernels
            Samples.
        y : array_like of shape (n_samples,) or (n_samples, n_outputs)
            Their responses.
        sample_weight : array_like of shape (n_samples,), optional
            Weights of the samples.

        Returns
        -------
        float
            The coefficient of determination, averaged over the responses.
        """
        y, sample_weight = aligned_to(X, {"y": y, "sample_weight": sample_weight})
        return explained_share(y, self.predict(X), sample_weight)

    def __sklearn_tags__(self) -> Any:
        """Add that there may be several responses."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags
