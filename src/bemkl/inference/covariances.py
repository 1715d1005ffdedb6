"""Matrices of several outputs, and over biases and kernel weights together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from bemkl.arrays import Array
from bemkl.inference.matrices import Dense, LowRank, Solver, Symmetric, is_dense


@dataclass(frozen=True, slots=True, eq=False)
class PerOutput:
    """Symmetric matrices of the outputs of a block."""

    distinct: Sequence[Symmetric]  # the matrices that differ, at least one
    which: npt.NDArray[np.intp]  # (n_outputs,): which of them each output has

    @classmethod
    def identity(cls, n_outputs: int, size: int) -> PerOutput:
        """Return identities."""
        return cls([LowRank.of_diagonal(np.ones(size))], np.zeros(n_outputs, dtype=np.intp))

    def __getitem__(self, output: int) -> Symmetric:
        """Return the matrix of one output."""
        return self.distinct[int(self.which[output])]

    def __len__(self) -> int:
        """Return the number of outputs."""
        return len(self.which)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return all numbers, shape (n_outputs, size, size)."""
        return np.stack([np.asarray(self[o], dtype=dtype) for o in range(len(self))])

    @property
    def dense(self) -> list[bool]:
        """Whether all numbers are there, an output."""
        return [is_dense(self.distinct[k]) for k in self.which]

    def some(self, outputs: slice) -> PerOutput:
        """Return the matrices of some outputs."""
        return replace(self, which=self.which[outputs])

    def __matmul__(self, right: Array) -> Array:
        """Multiply with one vector for all, shape (size,), or vectors of each output, (n_outputs, size, n_vectors)."""
        if right.ndim == 1:
            return np.stack([matrix @ right for matrix in self.distinct])[self.which]
        if len(self.distinct) == 1:
            return self.distinct[0] @ right
        return np.stack([self[o] @ vectors for o, vectors in enumerate(right)])

    def times_rows(self, rows: Array) -> Array:
        """Multiply with a vector of each output. Shapes: rows (n_outputs, size); returns (n_outputs, size)."""
        return (self @ rows[:, :, None])[:, :, 0]

    def each(self, function: Callable[[Symmetric], float]) -> Array:
        """Compute a number from each matrix. Shapes: returns (n_outputs,)."""
        return np.array([function(matrix) for matrix in self.distinct])[self.which]

    def times(self, factor: float) -> PerOutput:
        """Multiply all matrices by a number."""
        return replace(self, distinct=[matrix.times(factor) for matrix in self.distinct])

    def weighted_sum(self, weights: Array) -> Symmetric:
        """Sum the matrices of all outputs. Shapes: weights (n_outputs,)."""
        shares = np.bincount(self.which, weights, minlength=len(self.distinct))
        total = self.distinct[0].times(float(shares[0]))
        for matrix, share in zip(self.distinct[1:], shares[1:], strict=True):
            total = total + matrix.times(float(share))
        return total


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
