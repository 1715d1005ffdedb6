"""Contenders on precomputed kernels: support vector machines on a mean, or on kernel weights learned before."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from scipy.special import expit
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

from bemkl.arrays import Array, finite_array
from experiments.easy_mkl import easy_mkl_weights, solve_easy_mkl, training_kernels
from experiments.norm_mkl import norm_mkl_weights, solve_norm_mkl

__all__ = ["CombinedKernelSVC", "easy_mkl_weights", "norm_mkl_weights"]

PRICES = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
"""Values of C to choose from."""
_NORMS = {"l1": 1.0, "l2": 2.0}
_RULES = ("mean", "l1", "l2", "easy")
_FOLDS, _FOLDS_OF_NORMS = 5, 3
_LAMBDA = 0.1
_TOLERANCE, _MAX_ITER = 1e-4, 200
# Accuracies of folds do not need more.
_FOLD_TOLERANCE, _FOLD_MAX_ITER = 1e-2, 50
# Platt's sigmoid has no penalty.
_NO_PENALTY = 1e10

Folds = list[tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]]
"""Pairs of training and test positions."""


class CombinedKernelSVC:
    """
    Support vector machine on a weighted sum of kernels.

    The rule says where the weights come from:

    - "mean": all kernels have the same.
    - "l1", "l2": multiple kernel learning with that norm (`norm_mkl_weights`), with the machine's own C.
    - "easy": EasyMKL (`easy_mkl_weights`) with λ = 0.1.

    C is the smallest of those with the best accuracy in stratified cross-validation of the whole procedure, weights
    included, on the training samples: five folds, or three for the norms, which take longest. Probabilities are
    Platt's sigmoids of the same held-out decision values, divided by their sum where there are more than two classes.
    More than two classes are as many problems of one class against the rest, each with its own weights unless the rule
    is "mean", and with the same C. There are fewer folds where the smallest class has fewer samples. Everything is
    deterministic.

    Shapes: classes_ (n_classes,), weights_ (n_kernels,) or (n_classes, n_kernels).
    """

    classes_: npt.NDArray[np.generic]
    weights_: Array
    C_: float

    def __init__(self, rule: str) -> None:
        if rule not in _RULES:
            raise ValueError(f"rule: expected one of {', '.join(_RULES)}, got {rule!r}.")
        self.rule = rule

    def fit(self, K: npt.ArrayLike, y: npt.ArrayLike) -> CombinedKernelSVC:
        """Learn weights, C, machines and sigmoids. Shapes: K (n_kernels, n_samples, n_samples), y (n_samples,)."""
        kernels = np.ascontiguousarray(training_kernels(K))
        self.classes_, signs = _problems(y, kernels.shape[1])
        folds = _folds(np.asarray(y), _FOLDS_OF_NORMS if self.rule in _NORMS else _FOLDS)
        decisions = _held_out(kernels, signs, folds, self.rule)
        best = int(np.argmax([_n_right(decision, signs) for decision in decisions]))
        self.C_ = PRICES[best]
        weights = _weights(kernels, signs, self.rule, self.C_, _TOLERANCE, _MAX_ITER)
        self.weights_ = weights[0] if len(weights) == 1 else weights
        self._machines = []
        for position, sign in enumerate(signs.T):
            if position < len(weights):
                kernel = np.tensordot(weights[position], kernels, axes=1)
            machine = SVC(C=self.C_, kernel="precomputed").fit(kernel, sign)
            self._machines.append((machine, platt_sigmoid(decisions[best, :, position], sign)))
        self._n_samples = kernels.shape[1]
        return self

    def decision(self, K_test: npt.ArrayLike) -> Array:
        """
        Return decision values: the larger, the surer.

        Shapes: K_test (n_kernels, n_test, n_samples); returns (n_test,) or (n_test, n_classes).
        """
        values = [
            machine.decision_function(kernel)
            for (machine, _), kernel in zip(self._fitted(), self._combined(K_test), strict=True)
        ]
        return values[0] if len(values) == 1 else np.stack(values, axis=1)

    def probability(self, K_test: npt.ArrayLike) -> Array:
        """
        Return probabilities of the classes.

        Shapes: K_test (n_kernels, n_test, n_samples); returns (n_test, n_classes).
        """
        values = [
            expit(slope * machine.decision_function(kernel) + offset)
            for (machine, (slope, offset)), kernel in zip(self._fitted(), self._combined(K_test), strict=True)
        ]
        if len(values) == 1:
            return np.column_stack([1.0 - values[0], values[0]])
        # A sample that no class wants at all is shared by all of them.
        against_rest = np.column_stack(values) + np.finfo(np.float64).tiny
        normalised: Array = against_rest / against_rest.sum(axis=1, keepdims=True)
        return normalised

    def _fitted(self) -> list[tuple[SVC, tuple[float, float]]]:
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


def platt_sigmoid(decisions: Array, signs: Array) -> tuple[float, float]:
    r"""
    Fit Platt's sigmoid, the probability :math:`1 / (1 + \exp(-a d - b))` of the label +1 at the decision value d [1]_.

    Its targets are not 0 and 1 but the Bayesian estimates :math:`1 / (n_- + 2)` and :math:`(n_+ + 1) / (n_+ + 2)`.

    Shapes: decisions (n_samples,), signs (n_samples,).
    """
    positive = signs > 0.0
    targets = np.where(positive, (positive.sum() + 1.0) / (positive.sum() + 2.0), 1.0 / ((~positive).sum() + 2.0))
    # A target between 0 and 1 is two samples with weights.
    twice, labels = np.concatenate([decisions, decisions])[:, None], np.repeat([1, 0], len(decisions))
    sigmoid = LogisticRegression(C=_NO_PENALTY, tol=1e-8, max_iter=1000)
    sigmoid.fit(twice, labels, sample_weight=np.concatenate([targets, 1.0 - targets]))
    return float(sigmoid.coef_[0, 0]), float(sigmoid.intercept_[0])


def _folds(labels: npt.NDArray[np.generic], most: int) -> Folds:
    smallest = int(np.unique(labels, return_counts=True)[1].min())
    splitter = StratifiedKFold(min(most, smallest), shuffle=True, random_state=0)
    return list(splitter.split(np.zeros(len(labels)), labels))


def _n_right(decisions: Array, signs: Array) -> int:
    """Return how many samples have the right class, from decision values of the shape of the signs."""
    if signs.shape[1] == 1:
        return int(np.sum((decisions > 0.0) == (signs > 0.0)))
    return int(np.sum(decisions.argmax(axis=1) == signs.argmax(axis=1)))


def _weights(kernels: Array, signs: Array, rule: str, C: float, tol: float, max_iter: int) -> Array:
    """Return the kernel weights of each problem, or one row for all."""
    if rule == "mean":
        return np.full((1, len(kernels)), 1.0 / len(kernels))
    if rule == "easy":
        return solve_easy_mkl(kernels, signs, _LAMBDA)
    return np.stack([solve_norm_mkl(kernels, sign, C, _NORMS[rule], tol, max_iter)[0] for sign in signs.T])


def _held_out(kernels: Array, signs: Array, folds: Folds, rule: str) -> Array:
    """Return decision values of samples left out, for every C, shape (n_prices, n_samples, n_problems)."""
    decisions = np.empty((len(PRICES), *signs.shape))
    for train, test in folds:
        inside, across = kernels[:, train[:, None], train], kernels[:, test[:, None], train]
        if rule in _NORMS:
            ways = (_norm_path(inside, sign, _NORMS[rule]) for sign in signs[train].T)
        else:
            weights = _weights(inside, signs[train], rule, 1.0, _FOLD_TOLERANCE, _FOLD_MAX_ITER)
            ways = (itertools.repeat(weights[min(k, len(weights) - 1)], len(PRICES)) for k in range(signs.shape[1]))
        for position, way in enumerate(ways):
            last = None
            for choice, (C, here) in enumerate(zip(PRICES, way, strict=True)):
                if here is not last:
                    kernel, new = np.tensordot(here, inside, axes=1), np.tensordot(here, across, axes=1)
                    last = here
                svc = SVC(C=C, kernel="precomputed").fit(kernel, signs[train, position])
                decisions[choice, test, position] = svc.decision_function(new)
    return decisions


def _norm_path(kernels: Array, signs: Array, norm: float) -> Iterator[Array]:
    """Yield the weights of each C; those of the last one are a good start."""
    weights = None
    for C in PRICES:
        weights, _ = solve_norm_mkl(kernels, signs, C, norm, _FOLD_TOLERANCE, _FOLD_MAX_ITER, weights)
        yield weights
