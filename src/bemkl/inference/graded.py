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

from bemkl.arrays import Array
from bemkl.linalg import Cholesky

NEEDS_ROOT = 1e9
"""`scale_ratio` from which the sum of squared kernels and precisions does not keep enough digits of both."""
FEW_DIGITS = 1e7
"""`scale_ratio` from which the bound has not all the digits that a fall is told from rounding by."""


def scale_ratio(gram: Array, diagonal: Array, scale: float, n_kernels: int) -> float:
    """
    Return how large squared kernels are beside the precisions of the sample weights.

    Parameters
    ----------
    gram : ndarray of shape (n_basis, n_basis)
        C, the sum of squared kernels.
    diagonal : ndarray of shape (n_basis,)
        Expected precisions of the sample weights.
    scale : float
        Expected precision of the intermediate outputs.
    n_kernels : int
        Number of kernels.

    Returns
    -------
    float
        The largest ratio, a kernel: what a sum of both loses of the smaller one, in units of its last digit.
    """
    with np.errstate(over="ignore"):
        return float(scale * (gram.diagonal() / diagonal).max() / n_kernels)


def graded_qr(matrix: Array) -> tuple[Array, npt.NDArray[np.intp]]:
    """
    Return the triangular factor of a matrix, with the order of its columns.

    With rows from the largest to the smallest, and pivoting of columns, every row keeps its own digits (Cox and Higham,
    Stability of Householder QR factorization for weighted least squares problems, 1998).

    Parameters
    ----------
    matrix : ndarray of shape (n_rows, n_columns)
        The matrix.

    Returns
    -------
    triangle : ndarray of shape (min(n_rows, n_columns), n_columns)
        Its triangular factor.
    order : ndarray of int of shape (n_columns,)
        Which columns of the matrix the columns of the factor stand for.
    """
    largest_first = np.argsort(-np.abs(matrix).max(axis=1), kind="stable")
    triangle, order = qr(matrix[largest_first], mode="r", pivoting=True, overwrite_a=True, check_finite=False)
    return triangle[: min(matrix.shape)], order


@dataclass(frozen=True, slots=True, eq=False)
class GradedFactor:
    r"""
    Root of the precision of the sample weights, by the stacked roots of its two parts; no `Cholesky` of their sum.

    Parameters
    ----------
    triangle : ndarray of shape (n_basis, n_basis)
        Upper triangular factor of :math:`[\sqrt\upsilon\,\mathbf{S}\Lambda^{-1/2};\ \mathbf{I}]`, columns in order.
    order : ndarray of int of shape (n_basis,)
        The order of the columns.
    deviation : ndarray of shape (n_basis,)
        Prior deviations :math:`\lambda^{-1/2}`.

    Examples
    --------
    >>> import numpy as np
    >>> factor = GradedFactor.of(np.array([[1e12, 1e12]]), np.ones(2), 1.0)
    >>> factor.inverse_diagonal().round(6)
    array([0.5, 0.5])
    """

    triangle: Array
    order: npt.NDArray[np.intp]
    deviation: Array

    @classmethod
    def of(cls, root: Array, diagonal: Array, scale: float) -> GradedFactor:
        """
        Factor a precision.

        Parameters
        ----------
        root : ndarray of shape (n_rows, n_basis)
            Root of the sum of squared kernels.
        diagonal : ndarray of shape (n_basis,)
            Expected precisions of the sample weights.
        scale : float
            Expected precision of the intermediate outputs.

        Returns
        -------
        GradedFactor
            The factor.
        """
        deviation = 1.0 / np.sqrt(diagonal)
        triangle, order = graded_qr(np.concatenate([np.sqrt(scale) * root * deviation, np.eye(len(diagonal))]))
        return cls(triangle, order, deviation)

    @property
    def inverse_logdet(self) -> float:
        """Log-determinant of the inverse."""
        return 2.0 * float(np.log(self.deviation).sum() - np.log(np.abs(self.triangle.diagonal())).sum())

    def solve(self, right: Array) -> Array:
        """
        Solve a system with the precision.

        Parameters
        ----------
        right : ndarray of shape (n_basis,)
            Right-hand side.

        Returns
        -------
        ndarray of shape (n_basis,)
            The solution.
        """
        half = solve_triangular(self.triangle, (self.deviation * right)[self.order], trans=1, check_finite=False)
        solution = np.empty_like(right)
        solution[self.order] = solve_triangular(self.triangle, half, check_finite=False)
        return self.deviation * solution

    def whitener(self) -> Callable[[Array], Array]:
        """
        Return what multiplies rows with a root of the inverse: their squared lengths become quadratic forms of it.

        Returns
        -------
        callable
            Maps rows of shape (..., n_basis) to products of the same shape.
        """

        def whiten(rows: Array) -> Array:
            columns = (rows.reshape(-1, len(self.order)) * self.deviation)[:, self.order].T
            white: Array = solve_triangular(self.triangle, columns, trans=1, check_finite=False).T
            return white.reshape(rows.shape)

        return whiten

    def inverse_diagonal(self, *, overwrite: bool = False) -> Array:
        """
        Return the diagonal of the inverse.

        Parameters
        ----------
        overwrite : bool
            Not used: the factor stays as it is.

        Returns
        -------
        ndarray of shape (n_basis,)
            The diagonal.
        """
        inverse = solve_triangular(self.triangle, np.eye(len(self.triangle)), check_finite=False)
        diagonal = np.empty(len(inverse))
        diagonal[self.order] = np.vecdot(inverse, inverse)
        return self.deviation**2 * diagonal


PrecisionFactor = Cholesky | GradedFactor
"""Factor of the inverse covariance of the sample weights."""
