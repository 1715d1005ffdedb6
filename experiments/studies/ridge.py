"""Kernel ridge regression with everything chosen on folds of the training samples, and a deviation from these folds."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import KFold

from bemkl.arrays import Array, standard_moments

PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
"""Penalties to choose from, for kernels of unit diagonal and responses of unit variance."""
FOLDS = 5
"""Number of folds."""


class RidgeByFolds:
    """
    Kernel ridge regression on the best of some kernels.

    Kernel and penalty have the smallest squared error on folds of the training samples. The errors on these folds also
    give the deviation of a prediction, one for all samples.

    Shapes: kernels (n_train, n_train), y (n_train,) or (n_train, n_outputs).
    """

    def __init__(self, kernels: Sequence[Array], y: Array) -> None:
        self._single = y.ndim == 1
        table = y.reshape(len(y), -1)
        self._offset, self._scale = standard_moments(table)
        targets = (table - self._offset) / self._scale
        folds = list(KFold(min(FOLDS, len(y)), shuffle=True, random_state=0).split(targets))
        candidates = list(product(range(len(kernels)), PENALTIES))
        errors = np.zeros((len(candidates), table.shape[1]))
        for (train, test), (choice, (position, penalty)) in product(folds, enumerate(candidates)):
            inside, across = kernels[position][np.ix_(train, train)], kernels[position][np.ix_(test, train)]
            held_out = _fitted(inside, targets[train], penalty).predict(across)
            errors[choice] += ((held_out - targets[test]) ** 2).sum(axis=0)
        best = int(errors.sum(axis=1).argmin())
        self.chosen_, self.penalty_ = candidates[best]
        self._deviation = np.sqrt(errors[best] / len(y)) * self._scale
        self._model = _fitted(kernels[self.chosen_], targets, self.penalty_)

    def predict(self, K_test: Array) -> tuple[Array, Array]:
        """
        Return means and deviations.

        Shapes: K_test (n_test, n_train); returns mean (n_test,) or (n_test, n_outputs).
        """
        mean = self._model.predict(K_test) * self._scale + self._offset
        deviation = np.broadcast_to(self._deviation, mean.shape)
        return (mean[:, 0], deviation[:, 0]) if self._single else (mean, deviation)


def _fitted(kernel: Array, targets: Array, penalty: float) -> KernelRidge:
    # Responses are centred on all training samples, the offset within a fold is left to the kernel.
    return KernelRidge(alpha=penalty, kernel="precomputed").fit(kernel, targets)
