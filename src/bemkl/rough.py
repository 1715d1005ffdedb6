"""Linear algebra in single precision, in little more than half the time: enough for a preconditioner."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg.lapack import spotrf, spotrs

from bemkl.arrays import Array
from bemkl.linalg import unit_scale

_BLOCK = 128
"""Rows that are scaled at a time, because a matrix in double precision is as large as all that is saved."""

_RELIABLE = 1e-5
"""Squared pivots of a matrix with unit diagonal that rounding leaves two digits of."""


def rough_gram(matrix: Array, weights: Array) -> Array:
    r"""
    Sum the weighted outer products of the rows of a matrix, :math:`\sum_i w_i \boldsymbol x_i \boldsymbol x_i^\top`.

    Parameters
    ----------
    matrix : ndarray of shape (n_rows, size)
        The matrix.
    weights : ndarray of shape (n_rows,)
        Weights of the rows, not negative.

    Returns
    -------
    ndarray of shape (size, size)
        The sum.

    Examples
    --------
    >>> import numpy as np
    >>> rough_gram(np.full((2, 200), 1e100), np.ones(2))[0, :2].round(-195)
    array([2.e+200, 2.e+200])
    """
    # Single precision has a small range: what is multiplied there is at most 1.
    largest, heaviest = max(float(matrix.max()), -float(matrix.min())) or 1.0, float(weights.max()) or 1.0
    roots = (np.sqrt(weights / heaviest) / largest)[:, None]
    scaled = np.multiply(matrix, roots, out=np.empty(matrix.shape, np.float32), casting="same_kind")
    total: Array = np.multiply(scaled.T @ scaled, heaviest * largest**2, dtype=np.float64)
    return total


def rough_solver(matrix: Array, name: str) -> Callable[[Array], Array] | None:
    """
    Factor a symmetric positive definite matrix.

    Parameters
    ----------
    matrix : ndarray of shape (size, size)
        The matrix.
    name : str
        What the matrix is the precision of, for the error.

    Returns
    -------
    callable or None
        Maps a right-hand side of shape (size,) to the solution; None where single precision has too few digits.

    Examples
    --------
    >>> import numpy as np
    >>> values = np.logspace(0, 40, 200)
    >>> rough_solver(np.diag(values), "weights")(values)[:3].round(6)
    array([1., 1., 1.])
    >>> rough_solver(np.eye(200) + 1e6, "weights") is None
    True
    """
    scale = unit_scale(matrix, name)
    scaled = np.empty(matrix.shape, np.float32)
    for first in range(0, len(matrix), _BLOCK):
        rows = slice(first, first + _BLOCK)
        scaled[rows] = matrix[rows] * scale * scale[rows, None]
    factor, failed = spotrf(scaled.T, lower=1, clean=0, overwrite_a=1)
    if failed or factor.diagonal().min() ** 2 < _RELIABLE:
        return None

    def solve(right: Array) -> Array:
        values = scale * right
        size = float(np.abs(values).max()) or 1.0
        solution, _ = spotrs(factor, (values / size).astype(np.float32), lower=1)
        scaled: Array = scale * (size * solution.astype(np.float64))
        return scaled

    return solve
