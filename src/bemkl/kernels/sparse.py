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

    Parameters
    ----------
    matrix : csr_array of shape (n_samples, n_basis)
        The matrix.
    symmetric : bool
        Whether the matrix is known to be symmetric.

    Examples
    --------
    >>> kernel = Sparse.of(np.eye(100) + 1e-20)
    >>> kernel.n_values, kernel.multiply(np.ones((1, 100)))[0, :3]
    (100, array([1., 1., 1.]))
    >>> Sparse.of(np.ones((100, 100))) is None
    True
    """

    matrix: Any
    symmetric: bool = False

    @classmethod
    def of(cls, matrix: npt.NDArray[Any], *, symmetric: bool = False) -> Sparse | None:
        """
        Leave out what is below the rounding of the largest numbers of its row and its column.

        Parameters
        ----------
        matrix : ndarray of shape (n_samples, n_basis)
            The matrix.
        symmetric : bool
            Whether it is known to be symmetric.

        Returns
        -------
        Sparse or None
            The kernel; None where too much is left, or not finite.
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

        Parameters
        ----------
        rows : ndarray of shape (n_outputs, n_basis)
            The vectors.

        Returns
        -------
        ndarray of shape (n_outputs, n_samples)
            The products.
        """
        product: Array = (self.matrix @ rows.T).T
        return product

    def multiply_transposed(self, rows: Array) -> Array:
        r"""
        Multiply vectors with the transposed kernel, :math:`\mathbf{K}^\top \boldsymbol g` for each row g.

        Parameters
        ----------
        rows : ndarray of shape (n_outputs, n_samples)
            The vectors.

        Returns
        -------
        ndarray of shape (n_outputs, n_basis)
            The products.
        """
        if self.symmetric:
            return self.multiply(rows)
        product: Array = (self.matrix.T @ rows.T).T
        return product

    def add_to(self, total: Array, weight: float) -> None:
        """
        Add the matrix, times a weight, to a sum.

        Parameters
        ----------
        total : ndarray of shape (n_samples, n_basis)
            The sum.
        weight : float
            The weight; where it is 0, nothing is added.
        """
        if weight != 0.0:
            total[self._places] += weight * self.matrix.data

    @lazy_property
    def _places(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Rows and columns of the numbers, in their order in the matrix."""
        return _places(self.matrix)

    def add_square_to(self, total: Array) -> None:
        r"""
        Add the squared kernel, :math:`\mathbf{K}^\top \mathbf{K}`, to a sum.

        Parameters
        ----------
        total : ndarray of shape (n_basis, n_basis)
            The sum.
        """
        square = self.matrix.T @ self.matrix
        total[_places(square)] += square.data

    def rows(self, chosen: slice) -> Array:
        """
        Form some rows of the matrix.

        Parameters
        ----------
        chosen : slice
            Which samples.

        Returns
        -------
        ndarray of shape (n_chosen, n_basis)
            The rows.
        """
        rows: Array = self.matrix[chosen].toarray()
        return rows


def some_rows(n_rows: int) -> slice:
    """
    Return a few rows, which tell that most matrices are full.

    Parameters
    ----------
    n_rows : int
        Number of rows of the matrix.

    Returns
    -------
    slice
        The rows.
    """
    return slice(None, None, max(1, n_rows // _LOOK))


def looks_sparse(rows: npt.NDArray[Any]) -> bool:
    """
    Say whether a matrix with such rows may have few numbers that are not zero.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_basis)
        Some rows of the matrix.

    Returns
    -------
    bool
        Whether it is worth a closer look.
    """
    sizes = np.abs(rows)
    return bool(rows.size) and np.mean(sizes > _ROUNDING * sizes.max(axis=1, keepdims=True)) <= 2.0 * _SPARSE


def _places(matrix: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return rows and columns of the numbers of a sparse matrix, in its own order."""
    coordinates = matrix.tocoo()
    return coordinates.row, coordinates.col
