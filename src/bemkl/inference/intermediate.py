"""The factor q(G) of the intermediate outputs of one block (paper, section 4.1). Its means are in the parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from bemkl.arrays import Array
from bemkl.inference.matrices import LowRank, Symmetric, is_dense
from bemkl.inference.moments import PairContext
from bemkl.inference.rows import MeanSums


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
