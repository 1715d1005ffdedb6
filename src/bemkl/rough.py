"""Linear algebra in single precision, in little more than half the time: enough for a preconditioner."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg.lapack import spotrf, spotrs

from bemkl.arrays import Array
from bemkl.linalg import mirror

Single = npt.NDArray[np.float32]

_BLOCK = 128
"""Rows that are scaled at a time, because a matrix in double precision is as large as all that is saved."""

_RIDGES = (1e-5, 1e-4)
"""Added to a unit diagonal, because rounding hides what is smaller: the second for several thousand rows."""


def rough_solver(
    matrix: Array, weights: Array, rest: Array, share: float, diagonal: Array
) -> Callable[[Array], Array] | None:
    r"""
    Factor a matrix, scaled to a unit diagonal and with a ridge of 1e-5 or 1e-4.

    .. math:: \mathbf{X}^\top \operatorname{diag}(\boldsymbol w)\,\mathbf{X} + \kappa\,\mathbf{C} + \Lambda

    Shapes: matrix (n_rows, size), weights (n_rows,), rest (size, size), diagonal (size,).
    """
    roots, whole = np.sqrt(weights)[:, None], share * rest.diagonal() + diagonal
    for rows in _blocks(matrix):
        part = roots[rows] * matrix[rows]
        whole += np.einsum("ij,ij->j", part, part)
    if not ((whole > 0.0).all() and np.isfinite(whole).all()):
        return None
    scale = 1.0 / np.sqrt(whole)
    scaled = np.empty(matrix.shape, np.float32)
    for rows in _blocks(matrix):
        # Columns are no longer than 1 now: nothing leaves the small range of single precision.
        np.multiply(roots[rows] * matrix[rows], scale, out=scaled[rows], casting="same_kind")
    system: Single = scaled.T @ scaled
    for rows in _blocks(system):
        part = rest[rows] * (share * scale[rows, None])
        part *= scale
        system[rows] += part.astype(np.float32)
    for ridge in _RIDGES:
        system.flat[:: len(system) + 1] = 1.0 + ridge
        factor, failed = spotrf(system.T, lower=1, clean=0, overwrite_a=1)
        if not failed and np.isfinite(factor.diagonal()).all():
            return partial(_solve, factor, scale)
        # The other half of the matrix is still there.
        mirror(system.T)
    return None


def _blocks(matrix: npt.NDArray[Any]) -> Iterator[slice]:
    """Cut the rows of a matrix into blocks."""
    return (slice(first, first + _BLOCK) for first in range(0, len(matrix), _BLOCK))


def _solve(factor: Single, scale: Array, right: Array) -> Array:
    """Solve a system with the factor of a scaled matrix."""
    values = scale * right
    size = float(np.abs(values).max()) or 1.0
    solution, _ = spotrs(factor, (values / size).astype(np.float32), lower=1)
    scaled: Array = scale * (size * solution.astype(np.float64))
    return scaled
