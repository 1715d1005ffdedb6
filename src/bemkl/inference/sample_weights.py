"""The factor q(a) of the sample weights of one block (paper, section 4.1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.linalg import qr, solve_triangular

from bemkl._numerics.linalg import Cholesky
from bemkl._numerics.threads import lazy_property
from bemkl.arrays import Array
from bemkl.inference.rows import Part, Rows, blocks_of


@dataclass(frozen=True, slots=True, eq=False)
class SampleWeights:
    r"""
    Gaussian factor of the sample weights a, one an output.

    Covariances have the form :math:`(\operatorname{diag}(\boldsymbol r) + s\,\mathbf{C})^{-1}` with C the stack's gram
    matrix. Only r and s are kept, with what the fit needs of the matrix: the dense covariances of many outputs may
    not fit in memory.
    """

    mean: Array  # (n_outputs, n_basis): means
    variance: Array  # (n_outputs, n_basis): diagonals of the covariances
    logdet: Array  # (n_outputs,): log-determinants of the covariances
    trace: Array  # (n_outputs,): traces of gram matrix times covariance
    diagonal: Array  # (n_outputs, n_basis): the vectors r
    scale: Array  # (n_outputs,): the factors s

    @classmethod
    def unit(cls, mean: Array, gram: Array) -> SampleWeights:
        """
        Return a factor with the given means and identity covariances.

        Shapes: mean (n_outputs, n_basis), gram (n_basis, n_basis).
        """
        n_outputs = len(mean)
        ones, zeros = np.ones_like(mean), np.zeros(n_outputs)
        return cls(mean, ones, zeros, np.full(n_outputs, gram.trace()), ones, zeros)

    @property
    def second(self) -> Array:
        """Second moments E[a²], shape (n_outputs, n_basis)."""
        return self.mean**2 + self.variance

    def scaled(self, factor: float, *, spread: bool) -> SampleWeights:
        """Multiply the means by a factor, and with the spread also the deviations."""
        moved, square = replace(self, mean=factor * self.mean), factor**2
        if not spread:
            return moved
        return replace(
            moved,
            variance=square * self.variance,
            logdet=self.logdet + self.mean.shape[1] * np.log(square),
            trace=square * self.trace,
            diagonal=self.diagonal / square,
            scale=self.scale / square,
        )

    def scale_ratio(self, gram: Array, n_kernels: int) -> float:
        """
        Return how large squared kernels are beside the precisions: covariances have so much fewer digits.

        Shapes: gram (n_basis, n_basis).
        """
        parts = zip(self.diagonal, self.scale, strict=True)
        return max(scale_ratio(gram, diagonal, float(scale), n_kernels) for diagonal, scale in parts)

    def precision_factor(self, gram: Array, output: int, root: Array | None = None) -> PrecisionFactor:
        """
        Rebuild the factor of the inverse covariance of one output, by a root of the gram matrix where it is given.

        Shapes: gram (n_basis, n_basis), root (n_rows, n_basis).
        """
        diagonal, scale = self.diagonal[output], float(self.scale[output])
        if root is not None:
            return RootFactor.of(root, diagonal, scale)
        return precision_factor(gram, diagonal, scale)


def precision_factor(gram: Array, diagonal: Array, scale: float) -> Cholesky:
    r"""
    Factor the inverse covariance of the sample weights of one output, Eq. (3).

    .. math:: \Sigma(\boldsymbol a)^{-1} = \operatorname{diag}(\tilde{\boldsymbol\lambda}) + \tilde\upsilon\,\mathbf{C}

    Shapes: gram (n_basis, n_basis), diagonal (n_basis,).
    """
    precision = scale * gram
    precision[np.diag_indices_from(precision)] += diagonal
    return Cholesky.of(precision, "sample weights", overwrite=True)


def sum_gram(part: Part) -> tuple[Part, Array]:
    """Sum the squared kernels. Shapes: returns (n_basis, n_basis)."""
    return part, part.stack.gram()


def find_root(part: Part) -> tuple[Part, Root]:
    """Find a root of the sum of squared kernels, from some rows of all kernels at a time."""
    n_basis = part.stack.shape[2]
    root = Root(np.empty((0, n_basis)))
    for _, rows in blocks_of(part.stack):
        root = root + Root(rows.reshape(-1, n_basis))
    return part, root


@dataclass(frozen=True, slots=True, eq=False)
class Root:
    """A matrix S that stands for SᵀS: the sum of two stands for the sum of both products."""

    values: Array  # (n_rows, n_basis)

    def __add__(self, other: Root) -> Root:
        """Return a root of both products together."""
        triangle, order = qr_by_size(np.concatenate([self.values, other.values]))
        root = np.empty_like(triangle)
        root[:, order] = triangle
        return Root(root)


class Kernels:
    """What the sample weights need of all kernels of a block together, each computed once."""

    def __init__(self, rows: Rows, n_kernels: int) -> None:
        self.n_kernels, self._rows = n_kernels, rows

    @lazy_property
    def gram(self) -> Array:
        """Sum C of the squared kernels, shape (n_basis, n_basis)."""
        return self._rows.run(sum_gram)[1]

    @lazy_property
    def root(self) -> Array:
        """Matrix S with SᵀS = C, shape (n_rows, n_basis): it has digits that C has lost."""
        return self._rows.run(find_root)[1].values

    def precision_factor(self, diagonal: Array, scale: float) -> PrecisionFactor:
        """Factor the inverse covariance of one output, by the root where the sum of squares loses digits."""
        if scale_ratio(self.gram, diagonal, scale, self.n_kernels) > NEEDS_ROOT:
            return RootFactor.of(self.root, diagonal, scale)
        return precision_factor(self.gram, diagonal, scale)


def sample_factor(
    kernels: Kernels,
    lam: Array,
    upsilon: Array,
    mean_of: Callable[[int, PrecisionFactor | None], Array],
    previous: SampleWeights | None = None,
    staying: npt.NDArray[np.bool_] | None = None,
) -> SampleWeights:
    r"""
    Build q(a) with optimal covariances, Eq. (3), unless they stay, and means that the caller computes.

    The trace with the gram matrix follows from the diagonal, because the covariance times its inverse has the trace D:

    .. math:: \tilde\upsilon \operatorname{tr}(\mathbf{C}\,\Sigma(\boldsymbol a))
              = D - \tilde{\boldsymbol\lambda}^\top \operatorname{diag} \Sigma(\boldsymbol a)

    Shapes: lam (n_outputs, n_basis), upsilon (n_outputs,), staying (n_outputs,).
    """
    mean, variance, diagonal = np.empty((3, *lam.shape))
    logdet, trace, scale = np.empty((3, len(lam)))
    for o in range(len(lam)):
        factor: PrecisionFactor | None = None
        if previous is not None and staying is not None and staying[o]:
            variance[o], logdet[o], trace[o] = previous.variance[o], previous.logdet[o], previous.trace[o]
            diagonal[o], scale[o] = previous.diagonal[o], previous.scale[o]
        else:
            factor = kernels.precision_factor(lam[o], float(upsilon[o]))
            logdet[o], diagonal[o], scale[o] = factor.inverse_logdet, lam[o], upsilon[o]
        mean[o] = mean_of(o, factor)
        if factor is not None:
            variance[o] = factor.inverse_diagonal(overwrite=True)
            trace[o] = (lam.shape[1] - lam[o] @ variance[o]) / upsilon[o]
    return SampleWeights(mean, variance, logdet, trace, diagonal, scale)


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


PrecisionFactor = Cholesky | RootFactor
"""Factor of the inverse covariance of the sample weights."""
