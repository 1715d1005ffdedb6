"""Expectations that travel between the parts of the model, and how biases and kernel weights vary together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.special import ndtr, ndtri

from bemkl._numerics.special import truncated_quantile
from bemkl.arrays import Array
from bemkl.inference.matrices import Dense, LowRank, Solver, Symmetric


class Marginals(Protocol):
    """Distributions of the kernel weights of a block, one by one, independent of each other."""

    def quantile(self, probability: Array) -> Array:
        """Return quantiles at probabilities between 0 and 1, shape (..., n_kernels)."""

    @property
    def inclusion(self) -> Array | None:
        """Probabilities of not being zero, shape (n_kernels,); None if weights never are."""


@dataclass(frozen=True, slots=True, eq=False)
class TruncatedNormals:
    r"""Normal distributions that are kept on :math:`e_m \ge 0`."""

    location: Array  # (n_kernels,): means before truncation
    deviation: Array  # (n_kernels,): standard deviations before truncation

    @property
    def inclusion(self) -> None:
        """None: weights are never zero."""
        return None

    def quantile(self, probability: Array) -> Array:
        """Return quantiles. Shapes: probability (..., n_kernels); returns (..., n_kernels)."""
        return self.deviation * truncated_quantile(self.location / self.deviation, probability)


@dataclass(frozen=True, slots=True, eq=False)
class SpikesAndSlabs:
    r"""
    Mixtures of a point mass at zero and a normal distribution.

    .. math:: (1 - \pi_m)\,\delta_0 + \pi_m\,\mathcal{N}(\mu_m, \sigma_m^2)
    """

    inclusion: Array  # (n_kernels,): probability π_m that a kernel is on
    mean: Array  # (n_kernels,): means of the weights of kernels that are on
    deviation: Array  # (n_kernels,): their standard deviations

    def quantile(self, probability: Array) -> Array:
        """Return quantiles. Shapes: probability (..., n_kernels); returns (..., n_kernels)."""
        on = np.maximum(self.inclusion, np.finfo(np.float64).tiny)
        below = on * ndtr(-self.mean / self.deviation)
        above = on - below
        # Each side of zero is measured from its own end, where no digits are lost.
        low = ndtri(np.minimum(probability, below) / on)
        high = -ndtri(np.minimum(1.0 - probability, above) / on)
        standard = np.where(probability < below, low, high)
        off = (probability >= below) & (1.0 - probability >= above)
        quantile: Array = np.where(off, 0.0, self.mean + self.deviation * standard)
        return quantile


_DRAWS = 10_000


@dataclass(frozen=True, slots=True, eq=False)
class WeightMoments:
    """
    First two moments of the biases and kernel weights, as one block sees them.

    Parameters
    ----------
    mean : ndarray of shape (n_kernels,)
        Mean of the kernel weights e.
    covariance : Symmetric of size n_kernels
        Covariance of e.
    bias : ndarray of shape (n_outputs,)
        Means of the block's biases b.
    bias_variance : ndarray of shape (n_outputs,)
        Variances of b.
    cross : ndarray of shape (n_kernels, n_outputs)
        Covariances of e with each b.
    marginals : Marginals, optional
        Distributions of the kernel weights where they are independent and not normal.
    """

    mean: Array
    covariance: Symmetric
    bias: Array
    bias_variance: Array
    cross: Array
    marginals: Marginals | None = None

    @property
    def second(self) -> Symmetric:
        """Second moment E[e eᵀ], of size n_kernels."""
        return self.covariance + LowRank.product(self.mean[:, None])

    @property
    def bias_product(self) -> Array:
        """Mixed moment E[e b], shape (n_kernels, n_outputs): not the product of the means (derivation, erratum 1)."""
        return self.cross + np.outer(self.mean, self.bias)

    def interval(self, coverage: float) -> tuple[Array, Array]:
        """
        Return central intervals of the kernel weights: as much probability below as above.

        Parameters
        ----------
        coverage : float
            Probability of the intervals.

        Returns
        -------
        low : ndarray of shape (n_kernels,)
            Their lower ends.
        high : ndarray of shape (n_kernels,)
            Their upper ends.
        """
        below, above = 0.5 - 0.5 * coverage, 0.5 + 0.5 * coverage
        if self.marginals is None:
            half = ndtri(above) * np.sqrt(self.covariance.diagonal())
            return self.mean - half, self.mean + half
        low, high = (self.marginals.quantile(np.full_like(self.mean, p)) for p in (below, above))
        return low, high

    def sum_interval(self, groups: Array, coverage: float) -> tuple[Array, Array]:
        """
        Return central intervals of sums of kernel weights.

        Sums of weights that are not normal are drawn ten thousand times, always the same ones.

        Parameters
        ----------
        groups : ndarray of shape (n_kernels, n_groups)
            Ones where a kernel belongs to a group, zeros elsewhere.
        coverage : float
            Probability of the intervals.

        Returns
        -------
        low : ndarray of shape (n_groups,)
            Their lower ends.
        high : ndarray of shape (n_groups,)
            Their upper ends.
        """
        below, above = 0.5 - 0.5 * coverage, 0.5 + 0.5 * coverage
        if self.marginals is None:
            mean, half = self.mean @ groups, ndtri(above) * np.sqrt((groups * (self.covariance @ groups)).sum(axis=0))
            return mean - half, mean + half
        uniform = np.random.default_rng(0).random((_DRAWS, len(self.mean)))
        drawn = np.quantile(self.marginals.quantile(uniform) @ groups, (below, above), axis=0)
        # A group of one kernel has that kernel's own interval, which is exact.
        alone = groups.sum(axis=0) == 1.0
        low, high = (np.where(alone, e @ groups, d) for e, d in zip(self.interval(coverage), drawn, strict=True))
        return low, high


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """
    What the bound keeps of a likelihood, as a function of the predictor's means, once its targets are at their optimum.

    Parameters
    ----------
    gradient : ndarray of shape (n_outputs, n_samples)
        First derivatives.
    curvature : ndarray of shape (n_outputs, n_samples)
        Negative second derivatives; themselves negative where the function is convex, which `rows.profile_of` sees to.
        At most the precision of the targets: with the targets fixed, the same function has that curvature, and the same
        gradient where they are at their optimum.
    """

    gradient: Array
    curvature: Array


@dataclass(frozen=True, slots=True, eq=False)
class PairContext:
    """
    The expectations that the pair (a, G) of a block depends on, apart from those of its samples.

    Parameters
    ----------
    sample_precision : ndarray of shape (n_outputs, n_basis)
        Expected precisions of the sample weights.
    intermediate_precision : ndarray of shape (n_outputs,)
        Expected precisions of the intermediate outputs around their projections.
    output_precision : ndarray of shape (n_outputs,)
        Expected precisions of the targets around the predictor.
    weights : WeightMoments
        Moments of biases and kernel weights.
    """

    sample_precision: Array
    intermediate_precision: Array
    output_precision: Array
    weights: WeightMoments


@dataclass(frozen=True, slots=True, eq=False)
class OutputPrediction:
    """
    What a likelihood makes of the predictor at new samples.

    Parameters
    ----------
    mean : ndarray of shape (n_outputs, n_samples)
        Mean of the score (classification) or of the response (regression).
    variance : ndarray of shape (n_outputs, n_samples)
        Its variance, noise included.
    probability : ndarray of shape (n_outputs, n_samples) or None
        Probability of the positive label; None where there are no labels.
    """

    mean: Array
    variance: Array
    probability: Array | None


_NAME = "biases and kernel weights"


@dataclass(frozen=True, slots=True, eq=False)
class JointCovariance:
    """Covariance of biases and kernel weights, biases first."""

    biases: Array  # (n_biases, n_biases): covariance of the biases
    cross: Array  # (n_kernels, n_biases): covariances of the kernel weights with each bias
    kernels: Symmetric  # size n_kernels: covariance of the kernel weights

    @classmethod
    def independent(cls, variance: Array, n_biases: int) -> JointCovariance:
        """Return the covariance of independent biases and weights. Shapes: variance (n_biases + n_kernels,)."""
        n_kernels = len(variance) - n_biases
        return cls(
            np.diag(variance[:n_biases]), np.zeros((n_kernels, n_biases)), LowRank.of_diagonal(variance[n_biases:])
        )

    def diagonal(self) -> Array:
        """Return the variances. Shapes: returns (n_biases + n_kernels,)."""
        return np.concatenate([self.biases.diagonal(), self.kernels.diagonal()])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return all numbers, shape (n_biases + n_kernels, n_biases + n_kernels)."""
        values = np.block([[self.biases, self.cross.T], [self.cross, np.asarray(self.kernels)]])
        return values if dtype is None else values.astype(dtype)

    def __matmul__(self, right: Array) -> Array:
        """Multiply with a vector, shape (n_biases + n_kernels,)."""
        b, e = right[: len(self.biases)], right[len(self.biases) :]
        return np.concatenate([self.biases @ b + self.cross.T @ e, self.cross @ b + self.kernels @ e])

    def scaled(self, factor: float) -> JointCovariance:
        """Return the covariance of kernel weights that are multiplied by a factor."""
        return JointCovariance(self.biases, factor * self.cross, self.kernels.times(factor**2))


@dataclass(frozen=True, slots=True, eq=False)
class JointPrecision:
    r"""
    Precision of biases and kernel weights, in which the biases do not meet each other.

    .. math:: \begin{pmatrix} \operatorname{diag}(c) & L \\ L^\top & A \end{pmatrix}
    """

    corner: Array  # (n_biases,): the diagonal c, positive
    link: Array  # (n_biases, n_kernels): the border L
    kernels: Symmetric  # size n_kernels: the matrix A

    def __matmul__(self, right: Array) -> Array:
        """Multiply with a vector, shape (n_biases + n_kernels,)."""
        b, e = right[: len(self.corner)], right[len(self.corner) :]
        return np.concatenate([self.corner * b + self.link @ e, b @ self.link + self.kernels @ e])

    def diagonal(self) -> Array:
        """Return the diagonal. Shapes: returns (n_biases + n_kernels,)."""
        return np.concatenate([self.corner, self.kernels.diagonal()])

    def _without_biases(self, overwrite: bool) -> Symmetric:
        """Eliminate the biases, in a new matrix unless this one may be lost."""
        biases = LowRank(np.zeros(self.kernels.size), self.link.T, -1.0 / self.corner)
        if not (overwrite and isinstance(self.kernels, Dense)):
            return self.kernels + biases
        biases.add_to(self.kernels.values)
        return self.kernels

    def inverse_and_logdet(self, *, overwrite: bool = False) -> tuple[JointCovariance, float]:
        """Invert a positive definite matrix."""
        kernels, logdet = self._without_biases(overwrite).inverse_and_logdet(_NAME, overwrite=True)
        shares = self.link.T / self.corner
        cross = -(kernels @ shares)
        biases = np.diag(1.0 / self.corner) - shares.T @ cross
        return JointCovariance(0.5 * (biases + biases.T), cross, kernels), logdet - float(np.log(self.corner).sum())

    def solver(self, *, overwrite: bool = False) -> JointSolver:
        """Return what solves systems with a positive definite matrix."""
        return JointSolver(self.corner, self.link, self._without_biases(overwrite).solver(_NAME, overwrite=True))


@dataclass(frozen=True, slots=True, eq=False)
class JointSolver:
    """Solver of systems with the matrix of a `JointPrecision`."""

    corner: Array  # (n_biases,): the diagonal of the biases
    link: Array  # (n_biases, n_kernels): the border
    kernels: Solver  # solver of systems with what is left of the matrix where the biases are eliminated

    def solve(self, right: Array) -> Array:
        """Solve a system with the matrix. Shapes: right (n_biases + n_kernels,); returns (n_biases + n_kernels,)."""
        corner, link = self.corner, self.link
        b, e = right[: len(corner)], right[len(corner) :]
        weights = self.kernels.solve(e - (b / corner) @ link)
        return np.concatenate([(b - link @ weights) / corner, weights])

    def kernel_variances(self, *, overwrite: bool = False) -> Array:
        """Return the diagonal of the inverse, where it belongs to kernel weights. Shapes: returns (n_kernels,)."""
        return self.kernels.inverse_diagonal(overwrite=overwrite)
