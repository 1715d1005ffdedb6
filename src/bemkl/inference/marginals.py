"""Posteriors of single kernel weights that are not normal, by their quantiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import ndtr, ndtri

from bemkl._numerics.special import truncated_quantile
from bemkl.arrays import Array


class Marginals(Protocol):
    """Distributions of the kernel weights of a block, one by one, independent of each other."""

    def quantile(self, probability: Array) -> Array:
        """Return quantiles at probabilities between 0 and 1, shape (..., n_kernels)."""


@dataclass(frozen=True, slots=True, eq=False)
class TruncatedNormals:
    r"""Normal distributions that are kept on :math:`e_m \ge 0`."""

    location: Array  # (n_kernels,): means before truncation
    deviation: Array  # (n_kernels,): standard deviations before truncation

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
