"""Matrices from files become kernels, alone or beside those of tables; faults are refused or repaired."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone

from bemkl.alignment import Rows
from bemkl.arrays import Array
from bemkl.files.problems import InputError, listed
from bemkl.kernels import KernelBank, KernelStack, from_distances, mean_distance, stack_kernels

_ASYMMETRY = 1e-6
_NEGATIVE = 1e-6
"""Faults up to this size, relative to the largest entry or eigenvalue, are rounding: files may have six digits."""


class KernelRepair(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """
    Make matrices of training samples kernels, and do the same to those of new samples.

    Shapes: negative_ (n_train, n_negative).
    """

    def __init__(self, distances: bool = False, repair: bool = False) -> None:
        self.distances = distances
        self.repair = repair

    def fit_transform(self, X: KernelStack, y: Any = None) -> KernelStack:
        """Check and convert the matrices of training samples."""
        self.scales_: dict[str, float] = {}
        self.negative_: dict[str, Array] = {}
        kernels = {}
        for name, matrix in _matrices(X).items():
            symmetric = self._symmetric(name, matrix)
            if self.distances:
                self.scales_[name] = _scale(name, symmetric)
                symmetric = from_distances(symmetric, self.scales_[name])
            kernels[name] = self._definite(name, symmetric)
        return stack_kernels(kernels)

    def fit(self, X: KernelStack, y: Any = None) -> KernelRepair:
        """Learn scales and repairs."""
        self.fit_transform(X)
        return self

    def transform(self, X: KernelStack) -> KernelStack:
        """Convert matrices between new samples, in rows, and training samples, in columns."""
        kernels = {}
        for name, matrix in _matrices(X).items():
            values = from_distances(matrix, self.scales_[name]) if self.distances else matrix
            if name in self.negative_:
                negative = self.negative_[name]
                values = values - (values @ negative) @ negative.T
            kernels[name] = values
        return stack_kernels(kernels)

    def _symmetric(self, name: str, matrix: Array) -> Array:
        differences = np.abs(matrix - matrix.T)
        if differences.max() > _ASYMMETRY * np.abs(matrix).max() and not self.repair:
            row, column = np.unravel_index(differences.argmax(), matrix.shape)
            raise InputError(
                f"kernel {name!r}: not symmetric; rows and columns {row + 1} and {column + 1} have "
                f"{matrix[row, column]:.6g} and {matrix[column, row]:.6g}.",
                "Put rows and columns in the same order, or pass --repair to take the mean of both.",
            )
        symmetric: Array = 0.5 * (matrix + matrix.T)
        return symmetric

    def _definite(self, name: str, kernel: Array) -> Array:
        if _is_definite(kernel):
            return kernel
        values, vectors = np.linalg.eigh(kernel)
        below = values < -_NEGATIVE * values[-1]
        if not below.any():
            return kernel
        if below.all():
            raise InputError(f"kernel {name!r}: all eigenvalues are negative.", "Check the sign of the matrix.")
        if not self.repair:
            raise InputError(
                f"kernel {name!r}: not positive semidefinite; {int(below.sum())} of {len(values)} eigenvalues are "
                f"negative, the smallest is {values[0]:.3g} and the largest {values[-1]:.3g}.",
                "Pass --repair to set the negative ones to zero, or --distances if the file holds distances.",
            )
        self.negative_[name] = vectors[:, below]
        kept: Array = (vectors[:, ~below] * np.maximum(values[~below], 0.0)) @ vectors[:, ~below].T
        return 0.5 * (kept + kept.T)


def _matrices(stack: KernelStack) -> dict[str, Array]:
    values = np.asarray(stack.dense().values, dtype=np.float64)
    return dict(zip(stack.names, values, strict=True))


def _scale(name: str, matrix: Array) -> float:
    try:
        return mean_distance(matrix)
    except ValueError as error:
        raise InputError(f"{name!r}: no matrix of distances ({error!s:.150}).", "Leave out --distances.") from None


def _is_definite(kernel: Array) -> bool:
    """Tell by a Cholesky factor, which is much cheaper than eigenvalues, whether a kernel is surely fine."""
    largest = float(kernel.diagonal().max())
    if largest <= 0.0:
        return False
    try:
        np.linalg.cholesky(kernel + 0.1 * _NEGATIVE * largest * np.eye(len(kernel)))
    except np.linalg.LinAlgError:
        return False
    return True


@dataclass(frozen=True, slots=True, eq=False)
class Mixed:
    """Samples of which some views are tables and others are matrices."""

    tables: dict[str, Array] = field(repr=False)  # columns of a table, or matrices of views
    # matrices between the samples, in rows, and the training samples, in columns
    matrices: KernelStack = field(repr=False)

    def between(self, rows: Rows, columns: Rows) -> Mixed:
        """Take some samples, compared with some of the training samples."""
        return Mixed({name: values[rows] for name, values in self.tables.items()}, self.matrices[rows][:, columns])


class MixedKernels(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Kernels of a bank on tables, beside those of matrices."""

    def __init__(self, bank: KernelBank, repair: KernelRepair) -> None:
        self.bank = bank
        self.repair = repair

    def fit_transform(self, X: Mixed, y: Any = None) -> KernelStack:
        """Fit both parts, and return all kernels."""
        self.bank_, self.repair_ = clone(self.bank), clone(self.repair)
        return _joined(self.bank_.fit_transform(X.tables), self.repair_.fit_transform(X.matrices))

    def fit(self, X: Mixed, y: Any = None) -> MixedKernels:
        """Fit both parts."""
        self.fit_transform(X)
        return self

    def transform(self, X: Mixed) -> KernelStack:
        """Return the kernels of new samples."""
        return _joined(self.bank_.transform(X.tables), self.repair_.transform(X.matrices))


def _joined(*stacks: KernelStack) -> KernelStack:
    kernels = [
        (name, values) for stack in stacks for name, values in zip(stack.names, stack.dense().values, strict=True)
    ]
    twice = [name for name in dict(kernels) if [other for other, _ in kernels].count(name) > 1]
    if twice:
        raise InputError(f"There are two kernels called {listed(twice)}.", "Give the matrix another name.")
    return stack_kernels(dict(kernels))
