"""The mean-field posterior q(a) q(G) of one block, by its expectations."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bemkl.arrays import Array
from bemkl.caching import lazy_property
from bemkl.inference.approximation import Approximation
from bemkl.inference.graded import GradedFactor, PrecisionFactor, scale_ratio
from bemkl.inference.per_output import PerOutput
from bemkl.inference.protocols import Stack
from bemkl.inference.symmetric import Symmetric
from bemkl.inference.thin import gram
from bemkl.linalg import Cholesky


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


@dataclass(frozen=True, eq=False)
class Intermediate:
    """Gaussian factor of the intermediate outputs G; all samples of an output have one covariance."""

    mean: Array  # (n_outputs, n_kernels, n_samples): means
    covariance: PerOutput  # covariances, of size n_kernels
    logdet: Array  # (n_outputs,): their log-determinants

    @lazy_property
    def scatter(self) -> list[Symmetric]:
        """Sums of the outer products of the means over the samples, one of size n_kernels an output."""
        return [gram([mean], self.covariance[o]) for o, mean in enumerate(self.mean)]

    @lazy_property
    def total(self) -> Array:
        """Sums of the means over the samples, shape (n_outputs, n_kernels)."""
        total: Array = self.mean.sum(axis=2)
        return total

    def forget_sums(self) -> None:
        """Drop sums that will not be asked for again, or can be had again: they are as large as those to come."""
        for name in ("scatter", "total"):
            vars(self).pop(name, None)


@dataclass(frozen=True, eq=False)
class MeanFieldPair:
    """The pair (a, G) with independent factors."""

    sample: SampleWeights  # factor of a
    intermediate: Intermediate  # factor of G
    projection: Array  # (n_outputs, n_kernels, n_samples): kernels times the mean of a
    approximation: Approximation | None = None  # what the last update was preconditioned by

    @property
    def sample_mean(self) -> Array:
        """Mean of a."""
        return self.sample.mean

    @property
    def sample_second(self) -> Array:
        """Second moments E[a²]."""
        return self.sample.mean**2 + self.sample.variance

    @property
    def intermediate_mean(self) -> Array:
        """Mean of G."""
        return self.intermediate.mean

    @property
    def intermediate_total(self) -> Array:
        """Mean of G, summed over the samples."""
        return self.intermediate.total

    @property
    def _n_samples(self) -> int:
        return int(self.projection.shape[2])

    @lazy_property
    def mean_residual(self) -> Array:
        """Squared distance of the mean of G from its projections, an output."""
        apart = self.intermediate.mean - self.projection
        distance: Array = np.vecdot(apart, apart).sum(axis=1)
        return distance

    @property
    def residual(self) -> Array:
        """Expected squared distance of G from its projections, an output."""
        spread = self.intermediate.covariance.each(lambda matrix: matrix.trace())
        residual: Array = self.mean_residual + self._n_samples * spread + self.sample.trace
        return residual

    @property
    def entropy(self) -> float:
        """Entropy of both factors."""
        logdet = self.sample.logdet + self._n_samples * self.intermediate.logdet
        size = self.sample.mean.size + self.projection.size
        return float(0.5 * logdet.sum() + 0.5 * size * (1.0 + np.log(2.0 * np.pi)))

    def second_moment(self, weights: Array) -> Symmetric:
        """Sum E[G Gᵀ] over the outputs. Shapes: weights (n_outputs,)."""
        total = self.spread(weights)
        for scatter, weight in zip(self.intermediate.scatter, weights, strict=True):
            total = scatter.times(float(weight)) + total
        return total

    def spread(self, weights: Array) -> Symmetric:
        """Sum the covariances of the intermediate outputs over samples and outputs. Shapes: weights (n_outputs,)."""
        return self.intermediate.covariance.weighted_sum(self._n_samples * weights)

    def quadratic(self, matrix: Symmetric) -> Array:
        """
        Sum the expected quadratic form of the intermediate outputs over the samples.

        Shapes: matrix size n_kernels; returns (n_outputs,).
        """
        spread = self.intermediate.covariance.each(matrix.inner)
        form: Array = self.quadratic_mean(matrix) + self._n_samples * spread
        return form

    def quadratic_mean(self, matrix: Symmetric) -> Array:
        """
        Sum the quadratic form of the means of the intermediate outputs over the samples.

        Shapes: matrix size n_kernels; returns (n_outputs,).
        """
        return np.array([matrix.inner(scatter) for scatter in self.intermediate.scatter])

    def scaled(self, factor: float, *, spread: bool) -> MeanFieldPair:
        """Multiply sample weights and intermediate outputs by a factor."""
        sample, intermediate, square = self.sample, self.intermediate, factor**2
        sample = replace(sample, mean=factor * sample.mean)
        intermediate = replace(intermediate, mean=factor * intermediate.mean)
        if spread:
            sample = replace(
                sample,
                variance=square * sample.variance,
                logdet=sample.logdet + sample.mean.shape[1] * np.log(square),
                trace=square * sample.trace,
                diagonal=sample.diagonal / square,
                scale=sample.scale / square,
            )
            intermediate = replace(
                intermediate,
                covariance=intermediate.covariance.times(square),
                logdet=intermediate.logdet + intermediate.mean.shape[1] * np.log(square),
            )
        # Sums over all samples need not be computed again.
        vars(intermediate)["scatter"] = [scatter.times(square) for scatter in self.intermediate.scatter]
        vars(intermediate)["total"] = factor * self.intermediate.total
        pair = MeanFieldPair(sample, intermediate, factor * self.projection, self.approximation)
        vars(pair)["mean_residual"] = square * self.mean_residual
        return pair

    def spread_along(self, direction: Array) -> Array:
        """
        Sum the variance of a linear combination of the intermediate outputs over the samples.

        Shapes: direction (n_kernels,); returns (n_outputs,).
        """
        spread: Array = self._n_samples * (self.intermediate.covariance @ direction) @ direction
        return spread

    def scale_ratio(self, gram: Array) -> float:
        """
        Return how large squared kernels are beside the precisions of the sample weights.

        Shapes: gram (n_basis, n_basis).
        """
        n_kernels = self.projection.shape[1]
        parts = zip(self.sample.diagonal, self.sample.scale, strict=True)
        return max(scale_ratio(gram, diagonal, float(scale), n_kernels) for diagonal, scale in parts)

    def sample_precision_factor(self, gram: Array, output: int, root: Array | None = None) -> PrecisionFactor:
        """
        Rebuild the factor of the inverse covariance of a for one output.

        Shapes: gram (n_basis, n_basis), root (n_rows, n_basis).
        """
        diagonal, scale = self.sample.diagonal[output], float(self.sample.scale[output])
        if root is not None:
            return GradedFactor.of(root, diagonal, scale)
        return sample_precision_factor(gram, diagonal, scale)


def sample_precision_factor(gram: Array, diagonal: Array, scale: float) -> Cholesky:
    r"""
    Factor the inverse covariance of the sample weights of one output, Eq. (3).

    .. math:: \Sigma(\boldsymbol a)^{-1} = \operatorname{diag}(\tilde{\boldsymbol\lambda}) + \tilde\upsilon\,\mathbf{C}

    Shapes: gram (n_basis, n_basis), diagonal (n_basis,).
    """
    precision = scale * gram
    precision[np.diag_indices_from(precision)] += diagonal
    return Cholesky.of(precision, "sample weights", overwrite=True)


def unit_pair(stack: Stack, sample_mean: Array, intermediate_mean: Array) -> MeanFieldPair:
    """
    Return a pair with given means and identity covariances.

    Shapes: sample_mean (n_outputs, n_basis), intermediate_mean (n_outputs, n_kernels, n_samples).
    """
    n_outputs, n_kernels, _ = intermediate_mean.shape
    return MeanFieldPair(
        SampleWeights.unit(sample_mean, stack.gram()),
        Intermediate(intermediate_mean, PerOutput.identity(n_outputs, n_kernels), np.zeros(n_outputs)),
        stack.project(sample_mean) if sample_mean.any() else np.zeros(intermediate_mean.shape),
    )
