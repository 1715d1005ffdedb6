"""Symmetric positive definite inverses, with the one jitter policy of the package."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from bemkl.arrays import Array

_JITTERS = (0.0, 1e-14, 1e-12, 1e-10, 1e-8)
_REFINEMENTS = 2
_BLOCK = 128
WAY_OUT = "Look for extreme values in the kernels, the targets, the margin or the starting state."


def inverse_and_logdet(matrix: Array, name: str) -> tuple[Array, float]:
    """
    Invert a symmetric positive definite matrix through its Cholesky factor.

    The matrix is first scaled to a unit diagonal, so that precisions that differ by many orders of magnitude all keep
    their digits. Rounding alone can make such a matrix indefinite (duplicated kernels, a prior far weaker than the
    data); then 1e-14, 1e-12, 1e-10 or 1e-8 is added to the unit diagonal, the first that suffices.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
        Symmetric positive definite.
    name : str
        What the matrix is the precision of, for the error.

    Returns
    -------
    inverse : ndarray of shape (n, n)
        The symmetric inverse.
    logdet : float
        Log-determinant of the **inverse**, which is what an entropy needs.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the matrix is not finite, or not positive definite even with the largest jitter.

    Examples
    --------
    >>> import numpy as np
    >>> inverse, logdet = inverse_and_logdet(np.array([[4.0, 0.0], [0.0, 0.5]]), "weights")
    >>> inverse
    array([[0.25, 0.  ],
           [0.  , 2.  ]])
    >>> round(logdet, 6)
    -0.693147
    """
    diagonal = matrix.diagonal()
    if not (np.isfinite(matrix).all() and (diagonal > 0.0).all()):
        raise np.linalg.LinAlgError(f"the precision of the {name} is not finite or has no positive diagonal. {WAY_OUT}")
    scale = 1.0 / np.sqrt(diagonal)
    factor = _cholesky(matrix, scale, name)
    logdet = 2.0 * float(np.sum(np.log(scale) - np.log(factor.diagonal())))
    half, _ = dpotri(factor, lower=1, overwrite_c=1)
    inverse: Array = half.T
    inverse *= scale
    inverse *= scale[:, None]
    _mirror(inverse)
    return inverse, logdet


def positive_solver(matrix: Array, name: str) -> Callable[[Array], Array]:
    """
    Factor a symmetric positive definite matrix, and return what solves systems with it.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
        Symmetric positive definite.
    name : str
        What the matrix is the precision of, for the error.

    Returns
    -------
    callable
        Maps a right-hand side of shape (n,) to the solution.

    Examples
    --------
    >>> import numpy as np
    >>> positive_solver(np.array([[2.0, 0.0], [0.0, 1e20]]), "weights")(np.array([1.0, 1e20]))
    array([0.5, 1. ])
    """
    scale = 1.0 / np.sqrt(matrix.diagonal())
    factor = _cholesky(matrix, scale, name)

    def solve(right: Array) -> Array:
        solution, _ = dpotrs(factor, scale * right, lower=1)
        scaled: Array = scale * solution
        return scaled

    return solve


def _cholesky(matrix: Array, scale: Array, name: str) -> Array:
    """Factor a matrix, scaled to unit diagonal, with the smallest jitter that makes it possible."""
    for jitter in _JITTERS:
        scaled = matrix * scale
        scaled *= scale[:, None]
        scaled.flat[:: len(scaled) + 1] += jitter
        # The transpose of a symmetric matrix in C order is the matrix in LAPACK's order: nothing is copied.
        factor, failed = dpotrf(scaled.T, lower=1, clean=0, overwrite_a=1)
        if not failed:
            return np.asarray(factor, dtype=np.float64)
    smallest = float(np.linalg.eigvalsh(matrix * scale * scale[:, None])[0])
    raise np.linalg.LinAlgError(
        f"the precision of the {name} is not positive definite: scaled to unit diagonal, its smallest eigenvalue is "
        f"{smallest:.3g}. {WAY_OUT}"
    )


def _mirror(matrix: Array) -> None:
    """Copy what is above the diagonal below it, block by block."""
    for start in range(0, len(matrix), _BLOCK):
        rows = slice(start, start + _BLOCK)
        corner = np.triu(matrix[rows, rows])
        matrix[rows, rows] = corner + np.triu(corner, 1).T
        matrix[start + _BLOCK :, rows] = matrix[rows, start + _BLOCK :].T


def refined_solve(apply: Callable[[Array], Array], residual_of: Callable[[Array], Array], right: Array) -> Array:
    """
    Solve a system with a matrix whose inverse is known, and take out the rounding of that inverse.

    The explicit inverse of a matrix with condition number c has c times the rounding of a solve; two steps of iterative
    refinement, each as cheap as the product with the inverse, bring it back.

    Parameters
    ----------
    apply : callable
        Multiplies a vector with the inverse of the matrix.
    residual_of : callable
        Maps a trial solution x to right - matrix @ x.
    right : ndarray of shape (n,)
        Right-hand side.

    Returns
    -------
    ndarray of shape (n,)
        The solution.
    """
    solution = apply(right)
    for _ in range(_REFINEMENTS):
        solution = solution + apply(residual_of(solution))
    return solution
