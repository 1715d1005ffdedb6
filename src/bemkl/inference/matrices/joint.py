"""Matrices over biases and kernel weights together: few biases, many kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bemkl.arrays import Array
from bemkl.inference.matrices.low_rank import LowRank
from bemkl.inference.matrices.symmetric import Dense, Solver, Symmetric

_NAME = "biases and kernel weights"


@dataclass(frozen=True, slots=True, eq=False)
class JointCovariance:
    """Covariance of biases and kernel weights, biases first."""

    biases: Array  # (n_biases, n_biases): covariance of the biases
    cross: Array  # (n_kernels, n_biases): covariances of the kernel weights with each bias
    kernels: Symmetric  # size n_kernels: covariance of the kernel weights

    @classmethod
    def independent(cls, variance: Array, n_biases: int) -> JointCovariance:
        """Return the covariance of independent biases and weights. Shapes: variance (n_biases + n_kernels,)."""
        n_kernels = len(variance) - n_biases
        return cls(
            np.diag(variance[:n_biases]), np.zeros((n_kernels, n_biases)), LowRank.of_diagonal(variance[n_biases:])
        )

    def diagonal(self) -> Array:
        """Return the variances. Shapes: returns (n_biases + n_kernels,)."""
        return np.concatenate([self.biases.diagonal(), self.kernels.diagonal()])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return all numbers, shape (n_biases + n_kernels, n_biases + n_kernels)."""
        values = np.block([[self.biases, self.cross.T], [self.cross, np.asarray(self.kernels)]])
        return values if dtype is None else values.astype(dtype)

    def __matmul__(self, right: Array) -> Array:
        """Multiply with a vector, shape (n_biases + n_kernels,)."""
        b, e = right[: len(self.biases)], right[len(self.biases) :]
        return np.concatenate([self.biases @ b + self.cross.T @ e, self.cross @ b + self.kernels @ e])

    def scaled(self, factor: float) -> JointCovariance:
        """Return the covariance of kernel weights that are multiplied by a factor."""
        return JointCovariance(self.biases, factor * self.cross, self.kernels.times(factor**2))


@dataclass(frozen=True, slots=True, eq=False)
class JointPrecision:
    r"""
    Precision of biases and kernel weights, in which the biases do not meet each other.

    .. math:: \begin{pmatrix} \operatorname{diag}(c) & L \\ L^\top & A \end{pmatrix}
    """

    corner: Array  # (n_biases,): the diagonal c, positive
    link: Array  # (n_biases, n_kernels): the border L
    kernels: Symmetric  # size n_kernels: the matrix A

    def __matmul__(self, right: Array) -> Array:
        """Multiply with a vector, shape (n_biases + n_kernels,)."""
        b, e = right[: len(self.corner)], right[len(self.corner) :]
        return np.concatenate([self.corner * b + self.link @ e, b @ self.link + self.kernels @ e])

    def diagonal(self) -> Array:
        """Return the diagonal. Shapes: returns (n_biases + n_kernels,)."""
        return np.concatenate([self.corner, self.kernels.diagonal()])

    def _without_biases(self, overwrite: bool) -> Symmetric:
        """Eliminate the biases, in a new matrix unless this one may be lost."""
        biases = LowRank(np.zeros(self.kernels.size), self.link.T, -1.0 / self.corner)
        if not (overwrite and isinstance(self.kernels, Dense)):
            return self.kernels + biases
        biases.add_to(self.kernels.values)
        return self.kernels

    def inverse_and_logdet(self, *, overwrite: bool = False) -> tuple[JointCovariance, float]:
        """Invert a positive definite matrix."""
        kernels, logdet = self._without_biases(overwrite).inverse_and_logdet(_NAME, overwrite=True)
        shares = self.link.T / self.corner
        cross = -(kernels @ shares)
        biases = np.diag(1.0 / self.corner) - shares.T @ cross
        return JointCovariance(0.5 * (biases + biases.T), cross, kernels), logdet - float(np.log(self.corner).sum())

    def solver(self, *, overwrite: bool = False) -> JointSolver:
        """Return what solves systems with a positive definite matrix."""
        return JointSolver(self.corner, self.link, self._without_biases(overwrite).solver(_NAME, overwrite=True))


@dataclass(frozen=True, slots=True, eq=False)
class JointSolver:
    """Solver of systems with a bordered matrix."""

    corner: Array  # (n_biases,): the diagonal of the biases
    link: Array  # (n_biases, n_kernels): the border
    kernels: Solver  # solver of systems with what is left of the matrix where the biases are eliminated

    def solve(self, right: Array) -> Array:
        """Solve a system with the matrix. Shapes: right (n_biases + n_kernels,); returns (n_biases + n_kernels,)."""
        corner, link = self.corner, self.link
        b, e = right[: len(corner)], right[len(corner) :]
        weights = self.kernels.solve(e - (b / corner) @ link)
        return np.concatenate([(b - link @ weights) / corner, weights])

    def kernel_variances(self, *, overwrite: bool = False) -> Array:
        """Return the diagonal of the inverse, where it belongs to kernel weights. Shapes: returns (n_kernels,)."""
        return self.kernels.inverse_diagonal(overwrite=overwrite)
