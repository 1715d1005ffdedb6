"""Kernels that are zero but for a few numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from bemkl.arrays import Array
from bemkl.caching import lazy_property

_ROUNDING = 2.0**-54
"""Share of a number that is lost when it is added to it."""

_SPARSE = 1 / 32
"""Share of numbers that are not zero up to which products and squares of a sparse matrix cost less."""

_LOOK = 8


@dataclass(frozen=True, eq=False)
class Sparse:
    """
    A kernel matrix by its few numbers that are not zero, with the operations of `Full`.

    Narrow kernels on many features make nearly every sample similar to itself alone.
    """

    matrix: Any  # (n_samples, n_basis): the matrix
    symmetric: bool = False  # whether the matrix is known to be symmetric

    @classmethod
    def of(cls, matrix: npt.NDArray[Any], *, symmetric: bool = False) -> Sparse | None:
        """
        Leave out what is below the rounding of the largest numbers of its row and its column.

        Shapes: matrix (n_samples, n_basis).
        """
        if not looks_sparse(matrix[some_rows(len(matrix))]):
            return None
        sizes = np.abs(matrix)
        if not np.isfinite(sizes.max()):
            return None
        places = np.nonzero(sizes > _ROUNDING * np.minimum.outer(sizes.max(axis=1), sizes.max(axis=0)))
        if len(places[0]) > _SPARSE * matrix.size:
            return None
        values = matrix[places].astype(np.float64, copy=False)
        return cls(csr_array((values, places), shape=matrix.shape), symmetric)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of samples and basis points."""
        n_samples, n_basis = self.matrix.shape
        return n_samples, n_basis

    @property
    def n_values(self) -> int:
        """How many numbers are not zero."""
        return int(self.matrix.nnz)

    @property
    def size(self) -> float:
        """How large the matrix is: no less than its trace."""
        return float(np.abs(self.matrix.data).max(initial=0.0) * min(self.shape))

    def multiply(self, rows: Array) -> Array:
        r"""
        Multiply vectors with the kernel, :math:`\mathbf{K} \boldsymbol a` for each row a.

        Shapes: rows (n_outputs, n_basis); returns (n_outputs, n_samples).
        """
        product: Array = (self.matrix @ rows.T).T
        return product

    def multiply_transposed(self, rows: Array) -> Array:
        r"""
        Multiply vectors with the transposed kernel, :math:`\mathbf{K}^\top \boldsymbol g` for each row g.

        Shapes: rows (n_outputs, n_samples); returns (n_outputs, n_basis).
        """
        if self.symmetric:
            return self.multiply(rows)
        product: Array = (self.matrix.T @ rows.T).T
        return product

    def add_to(self, total: Array, weight: float) -> None:
        """Add the matrix, times a weight, to a sum. Shapes: total (n_samples, n_basis)."""
        if weight != 0.0:
            total[self._places] += weight * self.matrix.data

    @lazy_property
    def _places(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Rows and columns of the numbers, in their order in the matrix."""
        return _places(self.matrix)

    def add_square_to(self, total: Array) -> None:
        r"""Add the squared kernel, :math:`\mathbf{K}^\top \mathbf{K}`, to a sum. Shapes: total (n_basis, n_basis)."""
        square = self.matrix.T @ self.matrix
        total[_places(square)] += square.data

    def rows(self, chosen: slice) -> Array:
        """Form some rows of the matrix. Shapes: returns (n_chosen, n_basis)."""
        rows: Array = self.matrix[chosen].toarray()
        return rows


def some_rows(n_rows: int) -> slice:
    """Return a few rows, which tell that most matrices are full."""
    return slice(None, None, max(1, n_rows // _LOOK))


def looks_sparse(rows: npt.NDArray[Any]) -> bool:
    """Say whether a matrix with such rows may have few numbers that are not zero. Shapes: rows (n_rows, n_basis)."""
    sizes = np.abs(rows)
    return bool(rows.size) and np.mean(sizes > _ROUNDING * sizes.max(axis=1, keepdims=True)) <= 2.0 * _SPARSE


def _places(matrix: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return rows and columns of the numbers of a sparse matrix, in its own order."""
    coordinates = matrix.tocoo()
    return coordinates.row, coordinates.col
