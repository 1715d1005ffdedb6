r"""
Covariances of the sample weights where kernels are so large that squaring them costs the digits of the prior.

The precision is :math:`\Lambda + \upsilon\mathbf{C}` with :math:`\mathbf{C} = \sum_m \mathbf{K}_m^\top\mathbf{K}_m`.
Once :math:`\upsilon\mathbf{C}` is 1e16 times as large as :math:`\Lambda`, nothing of the prior is left in their sum,
although it alone decides in the directions that no kernel sees. Here C is known by a root, and the sum is never formed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import qr, solve_triangular

from bemkl._numerics.linalg import Cholesky
from bemkl.arrays import Array

NEEDS_ROOT = 1e9
"""`scale_ratio` from which the sum of squared kernels and precisions does not keep enough digits of both."""
FEW_DIGITS = 1e7
"""`scale_ratio` from which the bound has not all the digits that a fall is told from rounding by."""


def scale_ratio(gram: Array, diagonal: Array, scale: float, n_kernels: int) -> float:
    """
    Return how large squared kernels are beside the precisions of the sample weights.

    Shapes: gram (n_basis, n_basis), diagonal (n_basis,).
    """
    with np.errstate(over="ignore"):
        return float(scale * (gram.diagonal() / diagonal).max() / n_kernels)


def qr_by_size(matrix: Array) -> tuple[Array, npt.NDArray[np.intp]]:
    """
    Return the triangular factor of a matrix, with the order of its columns.

    With rows from the largest to the smallest, and pivoting of columns, every row keeps its own digits (Cox and Higham,
    Stability of Householder QR factorization for weighted least squares problems, 1998).

    Shapes: matrix (n_rows, n_columns); returns triangle (min(n_rows, n_columns), n_columns), order (n_columns,).
    """
    largest_first = np.argsort(-np.abs(matrix).max(axis=1), kind="stable")
    triangle, order = qr(matrix[largest_first], mode="r", pivoting=True, overwrite_a=True, check_finite=False)
    return triangle[: min(matrix.shape)], order


@dataclass(frozen=True, slots=True, eq=False)
class RootFactor:
    """Root of the precision of the sample weights from the stacked roots of its two parts, without their sum."""

    triangle: Array  # (n_basis, n_basis): upper triangular factor of [√υ S Λ^{-1/2}; I], columns in order
    order: npt.NDArray[np.intp]  # (n_basis,): the order of the columns
    deviation: Array  # (n_basis,): prior deviations λ^{-1/2}

    @classmethod
    def of(cls, root: Array, diagonal: Array, scale: float) -> RootFactor:
        """Factor a precision. Shapes: root (n_rows, n_basis), diagonal (n_basis,)."""
        deviation = 1.0 / np.sqrt(diagonal)
        triangle, order = qr_by_size(np.concatenate([np.sqrt(scale) * root * deviation, np.eye(len(diagonal))]))
        return cls(triangle, order, deviation)

    @property
    def inverse_logdet(self) -> float:
        """Log-determinant of the inverse."""
        return 2.0 * float(np.log(self.deviation).sum() - np.log(np.abs(self.triangle.diagonal())).sum())

    def solve(self, right: Array) -> Array:
        """Solve a system with the precision. Shapes: right (n_basis,); returns (n_basis,)."""
        half = solve_triangular(self.triangle, (self.deviation * right)[self.order], trans=1, check_finite=False)
        solution = np.empty_like(right)
        solution[self.order] = solve_triangular(self.triangle, half, check_finite=False)
        return self.deviation * solution

    def whitener(self) -> Callable[[Array], Array]:
        """Return what multiplies rows with a root of the inverse, so that squared lengths are quadratic forms of it."""

        def whiten(rows: Array) -> Array:
            columns = (rows.reshape(-1, len(self.order)) * self.deviation)[:, self.order].T
            white: Array = solve_triangular(self.triangle, columns, trans=1, check_finite=False).T
            return white.reshape(rows.shape)

        return whiten

    def inverse_diagonal(self, *, overwrite: bool = False) -> Array:
        """Return the diagonal of the inverse. Shapes: returns (n_basis,)."""
        inverse = solve_triangular(self.triangle, np.eye(len(self.triangle)), check_finite=False)
        diagonal = np.empty(len(inverse))
        diagonal[self.order] = np.vecdot(inverse, inverse)
        return self.deviation**2 * diagonal


PrecisionFactor = Cholesky | RootFactor
"""Factor of the inverse covariance of the sample weights."""
