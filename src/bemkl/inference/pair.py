"""The pair (a, G) of a block: the factors of sample weights and of intermediate outputs (paper, section 4.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from bemkl._numerics.linalg import Cholesky, RootFactor, qr_by_size
from bemkl._numerics.threads import lazy_property
from bemkl.arrays import Array
from bemkl.inference.matrices import LowRank, Symmetric, is_dense
from bemkl.inference.moments import PairContext
from bemkl.inference.rows import MeanSums, Part, Rows, blocks_of

PrecisionFactor = Cholesky | RootFactor
"""Factor of the inverse covariance of the sample weights."""


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


@dataclass(frozen=True, slots=True, eq=False)
class PerOutput:
    """Symmetric matrices of the outputs of a block."""

    distinct: Sequence[Symmetric]  # the matrices that differ, at least one
    which: npt.NDArray[np.intp]  # (n_outputs,): which of them each output has

    @classmethod
    def identity(cls, n_outputs: int, size: int) -> PerOutput:
        """Return identities."""
        return cls([LowRank.of_diagonal(np.ones(size))], np.zeros(n_outputs, dtype=np.intp))

    def __getitem__(self, output: int) -> Symmetric:
        """Return the matrix of one output."""
        return self.distinct[int(self.which[output])]

    def __len__(self) -> int:
        """Return the number of outputs."""
        return len(self.which)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return all numbers, shape (n_outputs, size, size)."""
        return np.stack([np.asarray(self[o], dtype=dtype) for o in range(len(self))])

    @property
    def dense(self) -> list[bool]:
        """Whether all numbers are there, an output."""
        return [is_dense(self.distinct[k]) for k in self.which]

    def some(self, outputs: slice) -> PerOutput:
        """Return the matrices of some outputs."""
        return replace(self, which=self.which[outputs])

    def __matmul__(self, right: Array) -> Array:
        """Multiply with one vector for all, shape (size,), or vectors of each output, (n_outputs, size, n_vectors)."""
        if right.ndim == 1:
            return np.stack([matrix @ right for matrix in self.distinct])[self.which]
        if len(self.distinct) == 1:
            return self.distinct[0] @ right
        return np.stack([self[o] @ vectors for o, vectors in enumerate(right)])

    def times_rows(self, rows: Array) -> Array:
        """Multiply with a vector of each output. Shapes: rows (n_outputs, size); returns (n_outputs, size)."""
        return (self @ rows[:, :, None])[:, :, 0]

    def each(self, function: Callable[[Symmetric], float]) -> Array:
        """Compute a number from each matrix. Shapes: returns (n_outputs,)."""
        return np.array([function(matrix) for matrix in self.distinct])[self.which]

    def times(self, factor: float) -> PerOutput:
        """Multiply all matrices by a number."""
        return replace(self, distinct=[matrix.times(factor) for matrix in self.distinct])

    def weighted_sum(self, weights: Array) -> Symmetric:
        """Sum the matrices of all outputs. Shapes: weights (n_outputs,)."""
        shares = np.bincount(self.which, weights, minlength=len(self.distinct))
        total = self.distinct[0].times(float(shares[0]))
        for matrix, share in zip(self.distinct[1:], shares[1:], strict=True):
            total = total + matrix.times(float(share))
        return total


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """Covariance of the intermediate outputs: all samples of an output have the same."""

    covariance: PerOutput  # covariances, of size n_kernels
    logdet: Array  # (n_outputs,): their log-determinants

    @classmethod
    def identity(cls, n_outputs: int, n_kernels: int) -> Spread:
        """Return identities."""
        return cls(PerOutput.identity(n_outputs, n_kernels), np.zeros(n_outputs))

    def times(self, factor: float) -> Spread:
        """Multiply the covariances by a number."""
        size = self.covariance[0].size
        return Spread(self.covariance.times(factor), self.logdet + size * np.log(factor))


@dataclass(frozen=True, slots=True, eq=False)
class Intermediate:
    """Gaussian factor of the intermediate outputs G, as sums over the samples."""

    spread: Spread  # covariance of each sample
    sums: MeanSums  # sums over the means
    n_samples: int

    def summed_spread(self, weights: Array) -> Symmetric:
        """Sum the covariances over the samples, and over the outputs with weights. Shapes: weights (n_outputs,)."""
        return self.spread.covariance.weighted_sum(self.n_samples * weights)

    def second_moment(self, weights: Array) -> Symmetric:
        """Sum E[G Gᵀ] over the outputs with weights, in a new matrix. Shapes: weights (n_outputs,)."""
        total = self.summed_spread(weights)
        for scatter, weight in zip(self.sums.scatter, weights, strict=True):
            total = scatter.times(float(weight)) + total
        return total

    def quadratic_mean(self, matrix: Symmetric) -> Array:
        """Sum gᵀMg over the samples, for the means. Shapes: returns (n_outputs,)."""
        return np.array([matrix.inner(scatter) for scatter in self.sums.scatter])

    def quadratic(self, matrix: Symmetric) -> Array:
        """Sum E[gᵀMg] over the samples. Shapes: returns (n_outputs,)."""
        form: Array = self.quadratic_mean(matrix) + self.n_samples * self.spread.covariance.each(matrix.inner)
        return form

    def spread_along(self, direction: Array) -> Array:
        """Sum the variances of dᵀg over the samples. Shapes: direction (n_kernels,); returns (n_outputs,)."""
        spread: Array = self.n_samples * (self.spread.covariance @ direction) @ direction
        return spread

    def scaled(self, factor: float, *, spread: bool) -> Intermediate:
        """Multiply the means by a factor, and with the spread also the deviations."""
        square = factor**2
        scatter = tuple(matrix.times(square) for matrix in self.sums.scatter)
        sums = MeanSums(factor * self.sums.total, scatter, square * self.sums.residual)
        return replace(self, spread=self.spread.times(square) if spread else self.spread, sums=sums)


def optimal_spread(context: PairContext) -> Spread:
    r"""
    Covariances of the intermediate outputs, after Eq. (3).

    .. math:: \Sigma(\boldsymbol g)
              = (\tilde\upsilon\,\mathbf{I} + \tilde\tau\,\widetilde{\boldsymbol e \boldsymbol e^\top})^{-1}

    Outputs that share both precisions, as in classification, share one matrix.
    """
    precisions = np.column_stack([context.intermediate_precision, context.output_precision])
    distinct, which = precisions[:1], np.zeros(len(precisions), dtype=np.intp)
    if (precisions != distinct).any():
        distinct, which = np.unique(precisions, axis=0, return_inverse=True)
        which = which.reshape(-1)  # NumPy 2.0 keeps an axis here
    precise = [
        context.weights.second.times(float(tau)).plus_diagonal(upsilon, overwrite=True) for upsilon, tau in distinct
    ]
    found = [precision.inverse_and_logdet("intermediate outputs", overwrite=True) for precision in precise]
    logdet = np.array([logdet for _, logdet in found])
    return Spread(PerOutput([covariance for covariance, _ in found], which), logdet[which])


def optimal_mean(projection: Array, target: Array, covariance: PerOutput, context: PairContext) -> Array:
    r"""
    Means of the intermediate outputs for given sample weights, after Eq. (3).

    .. math:: \mu(\boldsymbol g_i) = \Sigma(\boldsymbol g) \left(\tilde\upsilon\,\mathbf{K}^i \tilde{\boldsymbol a}
              + \tilde\tau\,(\tilde{\boldsymbol e} \tilde f_i - \widetilde{\boldsymbol e b})\right)

    The paper prints the product of the means of e and b; the optimum has the mean of the product (derivation,
    erratum 1).

    Shapes: projection, returns (n_outputs, n_kernels, n_samples); target (n_outputs, n_samples).
    """
    tau, upsilon = context.output_precision[:, None], context.intermediate_precision[:, None, None]
    slope = tau * (covariance @ context.weights.mean)
    offset = tau * covariance.times_rows(context.weights.bias_product.T)
    pull = slope[:, :, None] * target[:, None, :] - offset[:, :, None]
    mean: Array = covariance @ (upsilon * projection) + pull
    return mean
