"""The forms of a kernel in memory: a product of thin factors, all numbers, those not zero, or a power of others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
from scipy.linalg.blas import daxpy, dsymv, dtrmm
from scipy.linalg.lapack import dpotrf

from bemkl.arrays import Array
from bemkl.kernels.powers import Power
from bemkl.kernels.sparse import Sparse

RIDGE = 1e-15
"""
Share of a trace that is added to the diagonal before a root is taken, for each row: the last columns of a factor are as
small as its tolerance, and this keeps the rest of them.
"""


_BLOCK = 1024


@dataclass(frozen=True, slots=True, eq=False)
class LowRank:
    r"""A kernel matrix as a product, :math:`\mathbf{K} = \mathbf{L}^\top \mathbf{R}`."""

    left: Array  # (rank, n_samples): factor of the samples
    right: Array  # (rank, n_basis): factor of the basis points; the same object where these are the samples

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of samples and basis points."""
        return self.left.shape[1], self.right.shape[1]

    @property
    def n_values(self) -> int:
        """How many numbers there are in memory."""
        return self.left.size if self.left is self.right else self.left.size + self.right.size

    def multiply(self, rows: Array) -> Array:
        r"""
        Multiply vectors with the kernel, :math:`\mathbf{K} \boldsymbol a` for each row a.

        Shapes: rows (n_outputs, n_basis); returns (n_outputs, n_samples).
        """
        product: Array = (rows @ self.right.T) @ self.left
        return product

    def multiply_transposed(self, rows: Array) -> Array:
        r"""
        Multiply vectors with the transposed kernel, :math:`\mathbf{K}^\top \boldsymbol g` for each row g.

        Shapes: rows (n_outputs, n_samples); returns (n_outputs, n_basis).
        """
        product: Array = (rows @ self.left.T) @ self.right
        return product

    def write_root(self, out: Array) -> None:
        r"""
        Write a thin matrix W with :math:`\mathbf{W}^\top\mathbf{W} = \mathbf{K}^\top\mathbf{K}`.

        Shapes: out (rank, n_basis).
        """
        inner = self.left @ self.left.T
        trace = float(inner.trace())
        if trace == 0.0:
            out[:] = 0.0
            return
        inner.flat[:: len(inner) + 1] += RIDGE * len(inner) * trace
        factor, failed = dpotrf(inner.T, lower=1, clean=1, overwrite_a=1)
        if failed:
            refuse_root()
        out[:] = self.right
        # The transpose of an array in C order is in LAPACK's order: the product is made in place.
        product = dtrmm(1.0, factor, out.T, side=1, lower=1, overwrite_b=1).T
        if not np.may_share_memory(product, out):
            out[:] = product

    def rows(self, chosen: slice) -> Array:
        """Form some rows of the matrix. Shapes: returns (n_chosen, n_basis)."""
        rows: Array = self.left[:, chosen].T @ self.right
        return rows


def refuse_root() -> NoReturn:
    """Raise because a factor has no root."""
    raise np.linalg.LinAlgError(
        "kernels: a factor has numbers too far apart or too small to be squared. Scale the kernel."
    )


@dataclass(frozen=True, slots=True, eq=False)
class Full:
    """A kernel matrix as it is, with the operations of `LowRank`."""

    matrix: npt.NDArray[Any]  # (n_samples, n_basis): the matrix; float32 is kept, and converted when it is used
    # whether the matrix is known to be symmetric: then nobody needs to look, and half of it is read at a time
    symmetric: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of samples and basis points."""
        n_samples, n_basis = self.matrix.shape
        return n_samples, n_basis

    @property
    def n_values(self) -> int:
        """How many numbers there are in memory."""
        return self.matrix.size

    @property
    def size(self) -> float:
        """How large the matrix is: no less than its trace."""
        return float(max(self.matrix.max(), -self.matrix.min()) * min(self.matrix.shape))

    def multiply(self, rows: Array) -> Array:
        r"""
        Multiply vectors with the kernel, :math:`\mathbf{K} \boldsymbol a` for each row a.

        Shapes: rows (n_outputs, n_basis); returns (n_outputs, n_samples).
        """
        if self.symmetric:
            return self.multiply_transposed(rows)
        product: Array = rows @ self.values.T
        return product

    def multiply_transposed(self, rows: Array) -> Array:
        r"""
        Multiply vectors with the transposed kernel, :math:`\mathbf{K}^\top \boldsymbol g` for each row g.

        Shapes: rows (n_outputs, n_samples); returns (n_outputs, n_basis).
        """
        if self.symmetric and len(rows) == 1:
            half: Array = dsymv(1.0, self.values.T, rows[0], lower=1)[None]
            return half
        product: Array = rows @ self.values
        return product

    def add_to(self, total: Array, weight: float) -> None:
        """Add the matrix, times a weight, to a sum. Shapes: total (n_samples, n_basis)."""
        # Some rows at a time: BLAS counts numbers with 32 bits, and single precision is converted.
        for first in range(0, len(total) if weight != 0.0 else 0, _BLOCK):
            part = self.matrix[first : first + _BLOCK].astype(np.float64, copy=False)
            daxpy(part.ravel(), total[first : first + _BLOCK].ravel(), a=weight)

    def rows(self, chosen: slice) -> Array:
        """Return some rows of the matrix. Shapes: returns (n_chosen, n_basis)."""
        return self.matrix[chosen].astype(np.float64, copy=False)

    @property
    def values(self) -> Array:
        """The matrix in double precision."""
        return self.matrix.astype(np.float64, copy=False)


Kernel = LowRank | Full | Sparse | Power
