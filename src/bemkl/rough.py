"""Linear algebra in single precision, in little more than half the time: enough for a preconditioner."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt
from scipy.linalg.lapack import spotrf, spotrs

from bemkl.arrays import Array
from bemkl.linalg import checked_diagonal

Single = npt.NDArray[np.float32]

_BLOCK = 128
"""Rows that are scaled at a time, because a matrix in double precision is as large as all that is saved."""

_RIDGES = (1e-5, 1e-4)
"""Added to a unit diagonal, because rounding hides what is smaller: the second for several thousand rows."""


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
    Factor a symmetric positive definite matrix, scaled to a unit diagonal and with a ridge of 1e-5 or 1e-4.

    Parameters
    ----------
    matrix : ndarray of shape (size, size)
        The matrix.
    name : str
        What the matrix is the precision of, for the error.

    Returns
    -------
    callable or None
        Maps a right-hand side of shape (size,) to the solution; None where single precision finds the matrix
        indefinite.

    Examples
    --------
    >>> import numpy as np
    >>> values = np.logspace(0, 40, 200)
    >>> rough_solver(np.diag(values), "weights")(values)[:3].round(4)
    array([1., 1., 1.])
    """
    scale = 1.0 / np.sqrt(checked_diagonal(matrix, name))
    for ridge in _RIDGES:
        factor, failed = spotrf(_with_unit_diagonal(matrix, scale, ridge).T, lower=1, clean=0, overwrite_a=1)
        if not failed and np.isfinite(factor.diagonal()).all():
            return partial(_solve, factor, scale)
        checked_diagonal(matrix, name, wholly=True)
    return None


def _with_unit_diagonal(matrix: Array, scale: Array, ridge: float) -> Single:
    """Scale a matrix in single precision."""
    scaled = np.empty(matrix.shape, np.float32)
    for first in range(0, len(matrix), _BLOCK):
        rows = slice(first, first + _BLOCK)
        scaled[rows] = matrix[rows] * scale * scale[rows, None]
    scaled.flat[:: len(scaled) + 1] += ridge
    return scaled


def _solve(factor: Single, scale: Array, right: Array) -> Array:
    """Solve a system with the factor of a scaled matrix."""
    values = scale * right
    size = float(np.abs(values).max()) or 1.0
    solution, _ = spotrs(factor, (values / size).astype(np.float32), lower=1)
    scaled: Array = scale * (size * solution.astype(np.float64))
    return scaled
