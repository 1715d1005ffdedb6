"""Symmetric positive definite inverses, with the one jitter policy of the package."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import qr, solve_triangular
from scipy.linalg.blas import daxpy, dger, dsyrk, dtrmm, dtrsm, strsm
from scipy.linalg.lapack import dlauum, dpotrf, dpotrs, dpstrf, dtrtri, spotrf, spotrs

from bemkl._numerics.threads import one_thread_is_enough
from bemkl.arrays import Array

_JITTERS = (0.0, 1e-14, 1e-12, 1e-10, 1e-8)
_RIDGES = (1e-5, 1e-4)
_REFINEMENTS = 2
_BLOCK = 128
_LEAF = 64
WAY_OUT = "Look for extreme values in the kernels, the targets, the margin or the starting state."


@dataclass(frozen=True, slots=True, eq=False)
class Cholesky:
    """
    Factor of a symmetric positive definite matrix, and what is had from it.

    Precisions that differ by many orders of magnitude all keep their digits: multiplying rows and columns by powers of
    two multiplies every number of the factor and of the inverse by one, and rounds nothing. Rounding alone can make a
    matrix indefinite (duplicated kernels, a prior far weaker than the data); then 1e-14, 1e-12, 1e-10 or 1e-8 of each
    diagonal entry is added to it, the first that suffices.
    """

    factor: Array  # (n, n): lower triangular factor, in LAPACK's order; what is above the diagonal is not part of it

    @classmethod
    def of(cls, matrix: Array, name: str, *, overwrite: bool = False) -> Cholesky:
        """Factor a matrix. Shapes: matrix (n, n)."""
        return cls(_factor(matrix if overwrite else matrix.copy(), name))

    @property
    def inverse_logdet(self) -> float:
        """Log-determinant of the **inverse**, which is what an entropy needs."""
        return -2.0 * float(np.sum(np.log(self.factor.diagonal())))

    def solve(self, right: Array) -> Array:
        """Solve a system with the matrix. Shapes: right (n,); returns (n,)."""
        solution: Array = dpotrs(self.factor, right, lower=1)[0]
        return solution

    def whitener(self) -> Callable[[Array], Array]:
        """Return what multiplies rows with a root of the inverse, so that squared lengths are quadratic forms of it."""

        def whiten(rows: Array) -> Array:
            # The transpose of an array in C order is in LAPACK's order: only the result is new.
            columns = rows.reshape(-1, len(self.factor)).T
            white: Array = dtrsm(1.0, self.factor, columns, lower=1).T
            return white.reshape(rows.shape)

        return whiten

    def single_whitener(self, diagonal: Array) -> Callable[[Array], Array]:
        """
        Return a whitener in single precision, in half the time; numbers too large for it become infinite, or none.

        The factor is scaled by a diagonal matrix that is no larger than the matrix itself: then what is on its own
        diagonal is at least one.

        Shapes: diagonal (n,).
        """
        scale = 1.0 / np.sqrt(diagonal)
        # What is above the diagonal may be of any size.
        with np.errstate(over="ignore"):
            factor = (self.factor.T * scale).astype(np.float32).T

        def whiten(rows: Array) -> Array:
            with np.errstate(over="ignore"):
                scaled = (rows * scale).astype(np.float32)
            white: Array = strsm(1.0, factor, scaled.reshape(-1, len(scale)).T, lower=1, overwrite_b=1).T
            return white.reshape(rows.shape)

        return whiten

    def root_times(self, columns: Array) -> Array:
        """
        Multiply columns with a root of the matrix: their squared lengths become quadratic forms of it.

        Shapes: columns (n, n_columns); returns (n, n_columns).
        """
        product: Array = dtrmm(1.0, self.factor, columns.T, side=1, lower=1).T
        return product

    def inverse(self, *, overwrite: bool = False) -> Array:
        """Return the inverse. Shapes: returns (n, n)."""
        return _gram(_inverted(self.factor, overwrite=overwrite))

    def inverse_triangle(self, *, overwrite: bool = False) -> InverseTriangle:
        """Return the inverse of the factor, for a third of the work of an inverse of the matrix."""
        inverse = _inverted(self.factor, overwrite=overwrite)
        _clear(inverse.T)
        return InverseTriangle(inverse)

    def inverse_diagonal(self, *, overwrite: bool = False) -> Array:
        """Return the diagonal of the inverse, for half the work of all of it. Shapes: returns (n,)."""
        return self.inverse_triangle(overwrite=overwrite).diagonal


@dataclass(frozen=True, slots=True, eq=False)
class InverseTriangle:
    """The inverse of a Cholesky factor: a root of the inverse matrix."""

    values: Array  # (n, n): lower triangular, in LAPACK's order, with zeros above

    @property
    def diagonal(self) -> Array:
        """Diagonal of the inverse matrix. Shapes: returns (n,)."""
        # Columns in LAPACK's order lie together, as the rows of the transpose do.
        diagonal: Array = np.vecdot(self.values.T, self.values.T)
        return diagonal

    def inverse(self) -> Array:
        """Return the inverse matrix. Shapes: returns (n, n)."""
        return _gram(self.values.copy(order="F"))


@dataclass(frozen=True, slots=True, eq=False)
class SingleCholesky:
    """
    Factor of a symmetric positive definite matrix in single precision, in half the time: enough for a preconditioner.

    The matrix is scaled to a unit diagonal, to which 1e-5 is added, or 1e-4 for several thousand rows: rounding hides
    what is smaller.
    """

    factor: npt.NDArray[np.float32]  # (n, n): lower triangular factor of the scaled matrix, in LAPACK's order
    scale: Array  # (n,): what rows and columns were multiplied with

    @classmethod
    def of(cls, matrix: Array, name: str) -> SingleCholesky:
        """Factor a matrix, or raise where single precision is not enough. Shapes: matrix (n, n)."""
        scale, scaled = 1.0 / np.sqrt(_checked_diagonal(matrix, name)), np.empty(matrix.shape, np.float32)
        for first in range(0, len(matrix), _BLOCK):
            rows = slice(first, first + _BLOCK)
            np.multiply(matrix[rows] * scale[rows, None], scale, out=scaled[rows], casting="same_kind")
        for ridge in _RIDGES:
            scaled.flat[:: len(scaled) + 1] = 1.0 + ridge
            factor, failed = spotrf(scaled.T, lower=1, clean=0, overwrite_a=1)
            if not failed and np.isfinite(factor.diagonal()).all():
                return cls(factor, scale)
            # The other half of the matrix is still there.
            mirror(scaled.T)
        raise np.linalg.LinAlgError(f"the precision of the {name} is not positive definite in single precision.")

    def solve(self, right: Array) -> Array:
        """Solve a system with the matrix. Shapes: right (n,); returns (n,)."""
        values = self.scale * right
        size = float(np.abs(values).max()) or 1.0
        solution, _ = spotrs(self.factor, (values / size).astype(np.float32), lower=1)
        solved: Array = self.scale * (size * solution.astype(np.float64))
        return solved


@dataclass(frozen=True, slots=True, eq=False)
class RootFactor:
    r"""
    Root of the precision of the sample weights from the stacked roots of its two parts, without their sum.

    The precision is :math:`\Lambda + \upsilon\mathbf{C}` with the sum of squared kernels C. Once kernels are so large
    that :math:`\upsilon\mathbf{C}` is 1e16 times as large as :math:`\Lambda`, nothing of the prior is left in their
    sum, although it alone decides in the directions that no kernel sees.
    """

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


def pivoted_factor(matrix: Array, tolerance: float) -> Array:
    """
    Factor a positive semidefinite matrix until nothing larger than a tolerance is left on its diagonal.

    Shapes: matrix (n, n), which is overwritten; returns (n, rank), times its transpose the matrix.
    """
    triangle, order, rank, _ = dpstrf(matrix.T, tol=tolerance, lower=1, overwrite_a=1)
    factor = np.empty((len(matrix), rank))
    factor[order - 1] = np.tril(triangle[:, :rank])
    return factor


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


def inverse_and_logdet(matrix: Array, name: str, *, overwrite: bool = False) -> tuple[Array, float]:
    """
    Invert a symmetric positive definite matrix through its Cholesky factor.

    Shapes: matrix (n, n); returns inverse (n, n).
    """
    factor = Cholesky.of(matrix, name, overwrite=overwrite)
    logdet = factor.inverse_logdet
    return factor.inverse(overwrite=True), logdet


def _checked_diagonal(matrix: Array, name: str, *, wholly: bool = False) -> Array:
    """
    Return the diagonal of a matrix that may be positive definite; refuse one that is not positive and finite.

    Numbers beside the diagonal that are not finite show in the diagonal of the Cholesky factor, or make it fail: only
    then need the matrix be looked at wholly.
    """
    diagonal: Array = matrix.diagonal()
    if not ((diagonal > 0.0).all() and np.isfinite(matrix if wholly else diagonal).all()):
        raise np.linalg.LinAlgError(f"the precision of the {name} is not finite or has no positive diagonal. {WAY_OUT}")
    return diagonal


def _factor(matrix: Array, name: str) -> Array:
    """Factor a matrix in its place, with the smallest jitter that makes it possible."""
    diagonal = _checked_diagonal(matrix, name).copy()
    for jitter in _JITTERS:
        matrix.flat[:: len(matrix) + 1] = (1.0 + jitter) * diagonal
        # The transpose of a symmetric matrix in C order is the matrix in LAPACK's order: nothing is copied.
        factor, failed = dpotrf(matrix.T, lower=1, clean=0, overwrite_a=1)
        if not failed and np.isfinite(factor.diagonal()).all():
            return np.asarray(factor, dtype=np.float64)
        # The other half of the matrix is still there.
        mirror(matrix.T)
        matrix.flat[:: len(matrix) + 1] = diagonal
        _checked_diagonal(matrix, name, wholly=True)
    scale = 1.0 / np.sqrt(diagonal)
    smallest = float(np.linalg.eigvalsh(matrix * scale * scale[:, None])[0])
    raise np.linalg.LinAlgError(
        f"the precision of the {name} is not positive definite: scaled to unit diagonal, its smallest eigenvalue is "
        f"{smallest:.3g}. {WAY_OUT}"
    )


def _gram(triangle: Array) -> Array:
    """Return the product of the transpose of a lower triangular matrix with it, in its place."""
    half, _ = dlauum(triangle, lower=1, overwrite_c=1)
    product: Array = half.T
    mirror(product)
    return product


def _inverted(factor: Array, *, overwrite: bool = False) -> Array:
    """Return the inverse of a lower triangular matrix, in its place if it may be lost."""
    inverse = factor if overwrite else factor.copy(order="F")
    _invert(inverse, 0, len(inverse))
    return inverse


def _invert(matrix: Array, first: int, last: int) -> None:
    """Invert a lower triangular block by halves: that is mostly products, and twice as fast as LAPACK's way."""
    if last - first <= _LEAF:
        matrix[first:last, first:last] = dtrtri(matrix[first:last, first:last], lower=1)[0]
        return
    upper, lower = slice(first, (first + last) // 2), slice((first + last) // 2, last)
    _invert(matrix, upper.start, upper.stop)
    _invert(matrix, lower.start, lower.stop)
    corner = dtrmm(-1.0, matrix[upper, upper], matrix[lower, upper], side=1, lower=1)
    matrix[lower, upper] = dtrmm(1.0, matrix[lower, lower], corner, lower=1, overwrite_b=1)


def mirror(matrix: npt.NDArray[np.floating[Any]]) -> None:
    """Copy what is above the diagonal below it, block by block. Shapes: matrix (n, n)."""
    for start in range(0, len(matrix), _BLOCK):
        rows = slice(start, start + _BLOCK)
        corner = matrix[rows, rows]
        np.copyto(corner, corner.T.copy(), where=_below(len(corner)))
        matrix[start + _BLOCK :, rows] = matrix[rows, start + _BLOCK :].T


def _clear(matrix: Array) -> None:
    """Set what is below the diagonal to zero, block by block."""
    for start in range(0, len(matrix), _BLOCK):
        rows = slice(start, start + _BLOCK)
        corner = matrix[rows, rows]
        np.copyto(corner, 0.0, where=_below(len(corner)))
        matrix[start + _BLOCK :, rows] = 0.0


@cache
def _below(size: int) -> npt.NDArray[np.bool_]:
    """Return a mask of what is below the diagonal of a small block."""
    return np.tri(size, k=-1, dtype=np.bool_)


def add_times(total: Array, factors: Array, part: Array) -> None:
    """
    Add an array times a number for each entry of the first axis, in place; if in C order, without another array.

    Shapes: total (n_outputs, ...), factors (n_outputs,), part (n_outputs, ...).
    """
    in_place = total.flags.c_contiguous and total.dtype == part.dtype == np.float64
    for here, factor, there in zip(total, factors, part, strict=True):
        if factor != 0.0 and in_place:
            daxpy(there.ravel(), here.ravel(), a=factor)
        elif factor != 0.0:
            here += factor * there


def add_products(total: Array, left: Array, right: Array) -> None:
    """
    Add the products of all entries of two vectors, in place; if in C order, without another array.

    Shapes: total (n_outputs, n_rows, n_columns), left (n_outputs, n_rows), right (n_outputs, n_columns).
    """
    for here, rows, columns in zip(total, left, right, strict=True):
        if here.flags.c_contiguous:
            dger(1.0, columns, rows, a=here.T, overwrite_a=1)
        else:
            here += np.multiply.outer(rows, columns)


def refined_solve(apply: Callable[[Array], Array], residual_of: Callable[[Array], Array], right: Array) -> Array:
    """
    Solve a system with a matrix whose inverse is known, and take out the rounding of that inverse.

    The explicit inverse of a matrix with condition number c has c times the rounding of a solve; two steps of iterative
    refinement, each as cheap as the product with the inverse, bring it back.

    Shapes: right (n,); returns (n,).
    """
    solution = apply(right)
    for _ in range(_REFINEMENTS):
        solution = solution + apply(residual_of(solution))
    return solution


def sum_of_squares(pieces: Iterable[Array], size: int) -> Array:
    r"""
    Sum the squares of matrices, :math:`\sum_k \mathbf{X}_k^\top \mathbf{X}_k`.

    Shapes: pieces (n_rows, size); returns (size, size).
    """
    total = np.zeros((size, size))
    if one_thread_is_enough(size):
        for piece in pieces:
            # One half, in place: NumPy fills both halves of a new matrix for each piece.
            dsyrk(1.0, piece.T, beta=1.0, c=total.T, lower=1, overwrite_c=1)
        mirror(total)
        return total
    # Only NumPy's library may have more threads than one.
    product = np.empty_like(total)
    for piece in pieces:
        total += np.matmul(piece.T, piece, out=product)
    return total
