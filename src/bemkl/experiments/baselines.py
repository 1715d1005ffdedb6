"""Contenders on precomputed kernels: support vector machines on a mean, or on kernel weights learned before."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

from bemkl.arrays import Array, finite_array
from bemkl.experiments.easy_mkl import easy_mkl_weights, solve_easy_mkl, training_kernels
from bemkl.experiments.norm_mkl import norm_mkl_weights, solve_norm_mkl

__all__ = ["CombinedKernelSVC", "easy_mkl_weights", "norm_mkl_weights"]

_PRICES = (0.1, 1.0, 10.0, 100.0, 1000.0)
_PRICES_OF_NORMS = (1.0, 10.0, 100.0)
_NORMS = {"l1": 1.0, "l2": 2.0}
_RULES = ("mean", "l1", "l2", "easy")
_FOLDS, _FOLDS_OF_NORMS = 5, 3
_LAMBDA = 0.1
_TOLERANCE, _MAX_ITER = 1e-4, 200
# Accuracies of folds do not need more.
_FOLD_TOLERANCE, _FOLD_MAX_ITER = 1e-2, 50

Folds = list[tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]]
"""Pairs of training and test positions."""


class CombinedKernelSVC:
    """
    Support vector machine on a weighted sum of kernels.

    The rule says where the weights come from:

    - "mean": all kernels have the same.
    - "l1", "l2": multiple kernel learning with that norm (`norm_mkl_weights`), with the machine's own C.
    - "easy": EasyMKL (`easy_mkl_weights`) with λ = 0.1.

    C is the smallest of those with the best accuracy in stratified cross-validation on the training samples. For
    "mean" and "easy" it is one of 0.1, 1, 10, 100 and 1000, by five folds on the combined kernel; for the norms one of
    1, 10 and 100, by three folds of the whole procedure, weights included.

    More than two classes are as many problems of one class against the rest, each with its own weights unless the rule
    is "mean", and with the same C. Probabilities are Platt's sigmoids of decision values of five folds on the combined
    kernel, divided by their sum where there are more than two classes. There are fewer folds where the smallest class
    has fewer samples. Everything is deterministic.

    Parameters
    ----------
    rule : {"mean", "l1", "l2", "easy"}
        Where the weights come from.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels in ascending order.
    weights_ : ndarray of shape (n_kernels,) or (n_classes, n_kernels)
        Kernel weights; one row for each class where there are more than two and the rule is not "mean".
    C_ : float
        Price of a margin error that was chosen.

    Examples
    --------
    >>> import numpy as np
    >>> generator = np.random.default_rng(0)
    >>> y = np.repeat(["no", "yes"], 15)
    >>> X = generator.normal(size=(30, 3)) + np.outer(y == "yes", [3.0, 0.0, 0.0])
    >>> K = np.exp(-0.5 * (X.T[:, :, None] - X.T[:, None, :]) ** 2)
    >>> svc = CombinedKernelSVC("l1").fit(K, y)
    >>> int(svc.weights_.argmax()), svc.C_
    (0, 10.0)
    >>> svc.decision(K[:, :2]).shape, svc.probability(K[:, :2]).shape
    ((2,), (2, 2))
    """

    classes_: npt.NDArray[np.generic]
    weights_: Array
    C_: float

    def __init__(self, rule: str) -> None:
        if rule not in _RULES:
            raise ValueError(f"rule: expected one of {', '.join(_RULES)}, got {rule!r}.")
        self.rule = rule

    def fit(self, K: npt.ArrayLike, y: npt.ArrayLike) -> CombinedKernelSVC:
        """
        Learn weights, C, machines and sigmoids.

        Parameters
        ----------
        K : array_like of shape (n_kernels, n_samples, n_samples)
            Kernel matrices of the training samples, symmetric. They are used as they come: scale them before.
        y : array_like of shape (n_samples,)
            Labels of two or more classes, each with two samples or more.

        Returns
        -------
        CombinedKernelSVC
            The object itself.
        """
        kernels = np.ascontiguousarray(training_kernels(K))
        self.classes_, signs = _problems(y, kernels.shape[1])
        labels = np.asarray(y)
        n_folds = min(_FOLDS, int(np.unique(labels, return_counts=True)[1].min()))
        folds = _folds(labels, n_folds)
        if self.rule in _NORMS:
            norm = _NORMS[self.rule]
            few_folds = _folds(labels, min(_FOLDS_OF_NORMS, n_folds))
            self.C_ = _best(_PRICES_OF_NORMS, _norm_hits(kernels, signs, few_folds, norm))
            solutions = [solve_norm_mkl(kernels, s, self.C_, norm, _TOLERANCE, _MAX_ITER) for s in signs.T]
            weights = np.stack([solution for solution, _ in solutions])
        else:
            weights = np.full((1, len(kernels)), 1.0 / len(kernels))
            if self.rule == "easy":
                weights = solve_easy_mkl(kernels, signs, _LAMBDA)
            self.C_ = _best(_PRICES, _hits(kernels, weights, signs, folds))
        self.weights_ = weights[0] if len(weights) == 1 else weights
        self._machines = []
        for position, sign in enumerate(signs.T):
            if position < len(weights):
                kernel = np.tensordot(weights[position], kernels, axes=1)
            machine = CalibratedClassifierCV(
                SVC(C=self.C_, kernel="precomputed"), method="sigmoid", ensemble=False, cv=folds
            )
            self._machines.append(machine.fit(kernel, sign))
        self._n_samples = kernels.shape[1]
        return self

    def decision(self, K_test: npt.ArrayLike) -> Array:
        """
        Return decision values: the larger, the surer.

        Parameters
        ----------
        K_test : array_like of shape (n_kernels, n_test, n_samples)
            Kernels of new samples with the training samples.

        Returns
        -------
        ndarray of shape (n_test,) or (n_test, n_classes)
            For two classes, positive values are the second class; for more, the largest is the class.
        """
        values = [
            machine.calibrated_classifiers_[0].estimator.decision_function(kernel)
            for machine, kernel in zip(self._fitted(), self._combined(K_test), strict=True)
        ]
        return values[0] if len(values) == 1 else np.stack(values, axis=1)

    def probability(self, K_test: npt.ArrayLike) -> Array:
        """
        Return probabilities of the classes.

        Parameters
        ----------
        K_test : array_like of shape (n_kernels, n_test, n_samples)
            Kernels of new samples with the training samples.

        Returns
        -------
        ndarray of shape (n_test, n_classes)
            Probabilities, which sum to 1 over the classes.
        """
        values = [
            machine.predict_proba(kernel)
            for machine, kernel in zip(self._fitted(), self._combined(K_test), strict=True)
        ]
        if len(values) == 1:
            both: Array = values[0]
            return both
        # A sample that no class wants at all is shared by all of them.
        against_rest = np.stack([value[:, 1] for value in values], axis=1) + np.finfo(np.float64).tiny
        normalised: Array = against_rest / against_rest.sum(axis=1, keepdims=True)
        return normalised

    def _fitted(self) -> list[CalibratedClassifierCV]:
        if not hasattr(self, "_machines"):
            raise NotFittedError("CombinedKernelSVC: not fitted yet. Call fit with the kernels of training samples.")
        return self._machines

    def _combined(self, K_test: npt.ArrayLike) -> Iterator[Array]:
        """Yield the combined kernel of each machine, one at a time: a hundred of them would not fit together."""
        kernels, n_machines = np.ascontiguousarray(finite_array("K_test", K_test)), len(self._fitted())
        weights = np.atleast_2d(self.weights_)
        if kernels.ndim != 3 or (kernels.shape[0], kernels.shape[2]) != (weights.shape[1], self._n_samples):
            raise ValueError(
                f"K_test: expected shape ({weights.shape[1]}, n_test, {self._n_samples}): kernels, new samples, "
                f"training samples, got {kernels.shape}."
            )
        for position in range(n_machines):
            if position < len(weights):
                kernel = np.tensordot(weights[position], kernels, axes=1)
            yield kernel


def _problems(y: npt.ArrayLike, n_samples: int) -> tuple[npt.NDArray[np.generic], Array]:
    """Return the classes, and the labels -1 and +1 of each problem, shape (n_samples, n_problems)."""
    labels = np.asarray(y)
    if labels.shape != (n_samples,):
        raise ValueError(f"y: expected a label for each of {n_samples} samples, got shape {labels.shape}.")
    classes, positions, counts = np.unique(labels, return_inverse=True, return_counts=True)
    if len(classes) < 2 or counts.min() < 2:
        raise ValueError(
            f"y: expected two or more classes of two or more samples, got {len(classes)} with a smallest of "
            f"{counts.min()}. Folds need samples of each class on both sides."
        )
    is_class = positions[:, None] == np.arange(len(classes))
    return classes, np.where(is_class if len(classes) > 2 else is_class[:, 1:], 1.0, -1.0)


def _folds(labels: npt.NDArray[np.generic], n_folds: int) -> Folds:
    splitter = StratifiedKFold(n_folds, shuffle=True, random_state=0)
    return list(splitter.split(np.zeros(len(labels)), labels))


def _best(prices: tuple[float, ...], hits: npt.NDArray[np.intp]) -> float:
    """Return the smallest of the prices with the most right answers."""
    return prices[int(hits.argmax())]


def _n_right(decisions: Array, signs: Array) -> int:
    """Return how many samples have the right class, from decision values of the shape of the signs."""
    if signs.shape[1] == 1:
        return int(np.sum((decisions > 0.0) == (signs > 0.0)))
    return int(np.sum(decisions.argmax(axis=1) == signs.argmax(axis=1)))


def _hits(kernels: Array, weights: Array, signs: Array, folds: Folds) -> npt.NDArray[np.intp]:
    """Return the number of right answers of each C in cross-validation, with the same weights in all folds."""
    decisions = np.empty((len(_PRICES), *signs.shape))
    for position, sign in enumerate(signs.T):
        # One kernel at a time: a hundred classes of their own would not fit together.
        if position < len(weights):
            kernel = np.tensordot(weights[position], kernels, axes=1)
        for train, test in folds:
            inside, across = kernel[np.ix_(train, train)], kernel[np.ix_(test, train)]
            for choice, C in enumerate(_PRICES):
                svc = SVC(C=C, kernel="precomputed").fit(inside, sign[train])
                decisions[choice, test, position] = svc.decision_function(across)
    return np.array([_n_right(decision, signs) for decision in decisions])


def _norm_hits(kernels: Array, signs: Array, folds: Folds, norm: float) -> npt.NDArray[np.intp]:
    """Return the number of right answers of each C in cross-validation, with weights of each fold and C."""
    decisions = np.empty((len(_PRICES_OF_NORMS), *signs.shape))
    for train, test in folds:
        inside = kernels[:, train[:, None], train]
        for position, sign in enumerate(signs.T):
            weights = None
            for choice, C in enumerate(_PRICES_OF_NORMS):
                # The weights of the last C are a good start.
                weights, _ = solve_norm_mkl(inside, sign[train], C, norm, _FOLD_TOLERANCE, _FOLD_MAX_ITER, weights)
                kernel = np.tensordot(weights, kernels, axes=1)
                svc = SVC(C=C, kernel="precomputed").fit(kernel[np.ix_(train, train)], sign[train])
                decisions[choice, test, position] = svc.decision_function(kernel[np.ix_(test, train)])
    return np.array([_n_right(decision, signs) for decision in decisions])
