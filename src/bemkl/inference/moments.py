"""Expectations that travel between the parts of the model. None of them knows which plug-in it came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import ndtr, ndtri

from bemkl._numerics.special import truncated_quantile
from bemkl.arrays import Array
from bemkl.inference.matrices import LowRank, Symmetric


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
        Negative second derivatives, not negative. At most the precision of the targets: with the targets fixed, the
        same function has that curvature, and the same gradient where they are at their optimum.
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
