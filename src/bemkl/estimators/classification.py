"""The classifier: binary, multiclass and multilabel."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin

from bemkl.alignment import aligned_to
from bemkl.arrays import Array
from bemkl.estimators.base import BEMKLEstimator, refuse_arguments
from bemkl.estimators.labels import class_probabilities, encode_labels, share_of_labels, share_of_rows
from bemkl.estimators.multiclass import Labels, LabelTargets
from bemkl.estimators.parameters import gamma_prior
from bemkl.kernels import KernelBank
from bemkl.registry import MULTICLASS, find


class BEMKLClassifier(ClassifierMixin, BEMKLEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """
    Bayesian efficient multiple kernel learning for labels of two or more classes, or several labels a sample.

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
    intermediate_std : float or "learn"
        Standard deviation of the intermediate outputs, 1e-6 to 1e6; the paper has 1, its program 0.1.
    margin : float
        Margin between the classes.
    multiclass : {"shared", "ovr", "pooled", "multinomial"}
        Whether classes, or labels of a sample, are told from the rest with shared kernel weights, each with its own, or
        each with its own around common ones; or compete for the largest score, with shared kernel weights.
    pool_prior : {"dense", "sparse"} or (float, float)
        Prior of the precisions of classes' weights around the common ones, for ``multiclass="pooled"``: the larger the
        scale, the more alike.
    unlabeled : Any
        What stands in y for a label that is not known: a number or string, None or NaN. Samples without a label keep
        the boundary between the classes away from themselves. False if there are none; a marker that no sample has
        is a warning.
    predictive : {"exact", "paper"}
        How probabilities are computed: exactly under the posterior, or as the paper prints it.
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
        Number of starts and classes with their own weights to fit at the same time, in threads.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes; numbers of the labels for several labels a sample.
    kernel_names_ : list of str
        Names of the kernels.
    kernel_weights_ : ndarray of shape (n_kernels,) or (n_classes, n_kernels)
        Expected kernel weights; a row a class where each has its own.
    kernel_weights_std_ : ndarray of shape (n_kernels,) or (n_classes, n_kernels)
        Their standard deviations.
    kernel_inclusion_ : ndarray of shape (n_kernels,) or (n_classes, n_kernels)
        Probabilities that kernels are on; only with ``weights="spike_slab"``.
    selected_kernels_ : ndarray of int
        Kernels with a weight of more than 1 % of the largest, in absolute value, for any class; where views were
        tested, only those of views with p below 0.05.
    dual_coef_ : ndarray of shape (n_basis, n_outputs)
        Expected sample weights.
    intercept_ : ndarray of shape (n_outputs,)
        Expected biases.
    lower_bound_ : float
        Exact lower bound of the evidence; Laplace's approximation of the evidence for the marginal posterior.
    lower_bounds_ : ndarray of shape (n_iter_,)
        The bound, or the evidence, after each iteration.
    n_iter_ : int
        Number of iterations.
    converged_ : bool
        Whether the bound settled.
    posterior_ : Posterior, tuple of Posterior or MarginalPosterior
        The posterior; one a class where each has its own weights. Where the sample weights were integrated out, that
        of the kernel weights.
    landmarks_ : ndarray of int or None
        Rows that are landmarks.
    n_features_in_ : int
        Number of features, views or, for kernels, training samples.

    Examples
    --------
    >>> import numpy as np
    >>> from bemkl import BEMKLClassifier, KernelBank, KernelSpec
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 3))
    >>> y = np.where(X[:, 0] * X[:, 2] > 0, "same", "different")
    >>> bank = KernelBank([KernelSpec("gaussian", on, {"width": 1.0}) for on in ([0, 1], [0, 2], [1, 2])])
    >>> model = BEMKLClassifier(bank, kernel_prior="sparse").fit(X[:80], y[:80])
    >>> [model.kernel_names_[m] for m in model.selected_kernels_]
    ['gaussian(w=1) on x0 + x2']
    >>> float(model.score(X[80:], y[80:]))
    0.8
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
        intermediate_std: float | str = 1.0,
        margin: float = 1.0,
        multiclass: str = "shared",
        pool_prior: Any = (1.0, 1.0),
        unlabeled: Any = False,
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
        self.intermediate_std = intermediate_std
        self.margin = margin
        self.multiclass = multiclass
        self.pool_prior = pool_prior
        self.unlabeled = unlabeled
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

    def fit(self, X: Any, y: Any = None, **unsupported: Any) -> BEMKLClassifier:
        """
        Learn from samples and their labels.

        Parameters
        ----------
        X : array_like, data frame, sparse matrix, dict of these, or kernels
            Training samples; rows of NaN in all columns of a group are samples without that view.
        y : array_like of shape (n_samples,) or (n_samples, n_labels)
            Labels of any kind, or zeros and ones for several labels a sample; `unlabeled` where it is not known.
        **unsupported : Any
            Refused: there are no weights of samples.

        Returns
        -------
        BEMKLClassifier
            This classifier.
        """
        refuse_arguments(self, unsupported)
        find("multiclass", self.multiclass, MULTICLASS)
        gamma_prior("pool_prior", self.pool_prior)
        (y,) = aligned_to(X, {"y": y})
        classes, signs, several = encode_labels(type(self).__name__, y, self.unlabeled)
        targets = LabelTargets(Labels(classes, signs, several, self.margin), self.multiclass)
        samples, learned = self._learn(X, targets)
        self.classes_, self._several = classes, several
        n_outputs = sum(fitted.n_outputs for fitted in learned.fitted)
        self._single = n_outputs == 1
        self._keep(X, samples, learned, np.zeros(n_outputs), np.ones(n_outputs))
        return self

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
        contributions : ndarray of shape (n_samples, n_kernels) or (n_samples, n_kernels, n_classes)
            The contributions. With `intercept_` they sum to what `decision_function` returns: one number a sample for
            two classes, also where the two compete.
        deviations : ndarray of the same shape
            Their standard deviations, if asked for.
        """
        parts = super().contributions(X, return_std, by=by)
        # Where two classes compete there are no deviations: that is a mean-field posterior.
        return parts[..., 1] - parts[..., 0] if self._duel else parts

    def _describe(self) -> None:
        """Set what can be read off the posteriors; of two classes that compete, the differences."""
        super()._describe()
        if self._duel:
            self.dual_coef_, self.intercept_ = np.diff(self.dual_coef_, axis=1), np.diff(self.intercept_)

    @property
    def _duel(self) -> bool:
        """Whether the decision is the difference between the scores of two classes that compete."""
        return not self._several and len(self._scale) == 2

    def decision_function(self, X: Any) -> Array:
        """
        Return the expected scores.

        Parameters
        ----------
        X : array_like, data frame, sparse matrix, dict of these, or kernels
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            The scores; for two classes, positive ones speak for ``classes_[1]``.
        """
        scores = self._scores(X)
        if self._several:
            return scores
        if self._duel:
            difference: Array = scores[:, 1] - scores[:, 0]
            return difference
        return scores[:, 0] if self._single else scores

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """
        Return the labels with the largest scores.

        Parameters
        ----------
        X : array_like, data frame, sparse matrix, dict of these, or kernels
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_labels)
            The classes, or zeros and ones for several labels a sample.
        """
        scores = self._scores(X)
        if self._several:
            return (scores > 0.0).astype(int)
        chosen = (scores[:, 0] > 0.0).astype(int) if self._single else scores.argmax(axis=1)
        labels: npt.NDArray[Any] = self.classes_[chosen]
        return labels

    def predict_proba(self, X: Any) -> Array:
        """
        Return the probabilities of the classes.

        The probability of a score is the normal one under its exact mean and variance. With more than two classes these
        are divided by their sum; where the variances of the scores differ much, the class with the largest
        probability may not be the one with the largest score, which `predict` returns.

        Parameters
        ----------
        X : array_like, data frame, sparse matrix, dict of these, or kernels
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes) or (n_samples, n_labels)
            The probabilities; of each label being 1 for several labels a sample.
        """
        blocks = [[fit.probability for fit in fits if fit.probability is not None] for fits in self._predictions(X)]
        positive: Array = np.concatenate([np.hstack(block) for block in blocks])
        return positive if self._several else class_probabilities(positive)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """
        Return the share of samples with the right label.

        Parameters
        ----------
        X : array_like, data frame, sparse matrix, dict of these, or kernels
            Samples.
        y : array_like of shape (n_samples,) or (n_samples, n_labels)
            Their labels.
        sample_weight : array_like of shape (n_samples,), optional
            Weights of the samples in the share.

        Returns
        -------
        float
            The share, of samples that have a label; for several labels a sample, all of them have to be right. A label
            that was not there in training counts as wrong, with a warning.
        """
        found = self.predict(X)
        y, sample_weight = aligned_to(X, {"y": y, "sample_weight": sample_weight})
        if self._several:
            return share_of_rows(y, found, sample_weight)
        return share_of_labels(y, found, self.classes_, self.unlabeled, sample_weight)

    def __sklearn_tags__(self) -> Any:
        """Add that samples may have several labels."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags
