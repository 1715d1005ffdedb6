"""Pivoted Cholesky: a positive semidefinite kernel as a product of thin factors, from a few of its columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from bemkl.arrays import Array
from bemkl.kernels.shelf import Shelf

Column = Callable[[int], Array]
"""Maps the position of a point to its (n_points,) similarities to all points."""

Extend = Callable[[Array, Array, Array, int, int, float], int]
"""
Steps of pivoted Cholesky, in place: adds columns to a factor, from a rank to another one, unless the largest residual
is within the tolerance before. In: the (most, n_points) factor, the (n_points,) residuals and inverse lengths of the
points, the rank it has, the rank to stop at, the tolerance. Out: the rank reached.
"""

_PATIENCE = 4
_HOPELESS = 0.5


def from_columns(column: Column) -> Extend:
    """
    Return the steps of pivoted Cholesky for a kernel that is known by its columns.

    Parameters
    ----------
    column : callable
        Maps the position of a point to its (n_points,) similarities to all points.

    Returns
    -------
    callable
        The steps.
    """

    def extend(factor: Array, residual: Array, inverse: Array, rank: int, stop: int, tolerance: float) -> int:
        while rank < stop:
            pivot = int(residual.argmax())
            largest = float(residual[pivot])
            if largest <= tolerance:
                break
            new = factor[rank]
            new[:] = column(pivot) * (inverse * inverse[pivot])
            if rank:
                new -= factor[:rank, pivot] @ factor[:rank]
            new *= largest**-0.5
            residual -= new * new
            residual[pivot] = 0.0
            rank += 1
        return rank

    return extend


def pivoted_cholesky(
    extend: Extend, diagonal: Array, tolerance: float, most: int, shelf: Shelf | None = None
) -> Array | None:
    r"""
    Factor a positive semidefinite kernel matrix by columns chosen where the remainder is largest.

    .. math:: |k_{ij} - \boldsymbol z_i^\top \boldsymbol z_j| \le \varepsilon \sqrt{k_{ii}\,k_{jj}}

    holds for every entry, because the remainder is positive semidefinite too. The matrix is never formed: beside its
    diagonal, only one column for each column of the factor is asked for.

    Parameters
    ----------
    extend : callable
        The steps; `from_columns` makes them.
    diagonal : ndarray of shape (n_points,)
        Values k(x, x). A point where it is not positive is similar to nothing.
    tolerance : float
        The accuracy :math:`\varepsilon`.
    most : int
        Largest rank that is worth having.
    shelf : Shelf, optional
        Where to put the factor.

    Returns
    -------
    ndarray of shape (rank, n_points) or None
        The transposed factor; None where its rank would be too large, or where that is foreseeable: more than half
        of the trace left after a quarter of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(0.0, 1.0, 50)
    >>> kernel = np.exp(-np.subtract.outer(x, x) ** 2)
    >>> factor = pivoted_cholesky(from_columns(lambda i: kernel[i]), kernel.diagonal(), 1e-12, 25)
    >>> len(factor), bool(np.abs(factor.T @ factor - kernel).max() < 1e-12)
    (9, True)
    """
    if not np.isfinite(diagonal).all():
        return None
    length = np.sqrt(np.maximum(diagonal, 0.0))
    inverse = np.divide(1.0, length, out=np.zeros(len(diagonal)), where=length > 0.0)
    residual = (length > 0.0).astype(np.float64)
    hopeless = _HOPELESS * float(residual.sum())
    shelf = shelf or Shelf(len(diagonal))
    factor = shelf.room(most)
    rank, review = 0, max(1, most // _PATIENCE)
    while True:
        rank = extend(factor, residual, inverse, rank, min(len(factor), review if rank < review else most), tolerance)
        if residual.max() <= tolerance:
            found = shelf.take(rank)
            if not (length == 1.0).all():
                found *= length
            return found
        if rank >= most or (rank == review and residual.sum() > hopeless):
            return None
        if rank == len(factor):
            factor = shelf.more(factor, most)


def compressed(kernel: npt.NDArray[Any], tolerance: float) -> Array | None:
    """
    Factor a kernel matrix that is there already, if it is symmetric and positive semidefinite.

    Parameters
    ----------
    kernel : ndarray of shape (n_points, n_points)
        Any square matrix.
    tolerance : float
        Accuracy relative to the geometric mean of two diagonal entries.

    Returns
    -------
    ndarray of shape (rank, n_points) or None
        The transposed factor; None where it would not pay, or where the product is not the matrix.

    Examples
    --------
    >>> import numpy as np
    >>> compressed(np.ones((9, 9)), 1e-12)
    array([[1., 1., 1., 1., 1., 1., 1., 1., 1.]])
    >>> compressed(np.ones((9, 9)) - 2.0 * np.eye(9), 1e-12) is None
    True
    """
    diagonal = kernel.diagonal().astype(np.float64)
    factor = pivoted_cholesky(from_columns(lambda point: kernel[point]), diagonal, tolerance, len(kernel) // 2)
    if factor is None:
        return None
    length = np.sqrt(np.maximum(diagonal, 0.0))
    # Rounding of entries of size 1 adds to the tolerance; a matrix that is not semidefinite fails by far more.
    error = np.abs(factor.T @ factor - kernel) <= (tolerance + 1e-14) * np.multiply.outer(length, length)
    return factor if error.all() else None
