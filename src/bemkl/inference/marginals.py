"""Posteriors of single kernel weights that are not normal, by their quantiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import ndtr, ndtri

from bemkl.arrays import Array
from bemkl.special import truncated_quantile


class Marginals(Protocol):
    """Distributions of the kernel weights of a block, one by one, independent of each other."""

    def quantile(self, probability: Array) -> Array:
        """Return quantiles at probabilities between 0 and 1, shape (..., n_kernels)."""


@dataclass(frozen=True, slots=True, eq=False)
class TruncatedNormals:
    r"""
    Normal distributions that are kept on :math:`e_m \ge 0`.

    Parameters
    ----------
    location : ndarray of shape (n_kernels,)
        Means before truncation.
    deviation : ndarray of shape (n_kernels,)
        Standard deviations before truncation.

    Examples
    --------
    >>> import numpy as np
    >>> half = TruncatedNormals(np.zeros(1), np.ones(1))
    >>> half.quantile(np.array([0.5])).round(3)
    array([0.674])
    """

    location: Array
    deviation: Array

    def quantile(self, probability: Array) -> Array:
        """
        Return quantiles.

        Parameters
        ----------
        probability : ndarray of shape (..., n_kernels)
            Probabilities between 0 and 1.

        Returns
        -------
        ndarray of shape (..., n_kernels)
            The quantiles, none below zero.
        """
        return self.deviation * truncated_quantile(self.location / self.deviation, probability)


@dataclass(frozen=True, slots=True, eq=False)
class SpikesAndSlabs:
    r"""
    Mixtures of a point mass at zero and a normal distribution.

    .. math:: (1 - \pi_m)\,\delta_0 + \pi_m\,\mathcal{N}(\mu_m, \sigma_m^2)

    Parameters
    ----------
    inclusion : ndarray of shape (n_kernels,)
        Probability :math:`\pi_m` that a kernel is on.
    mean : ndarray of shape (n_kernels,)
        Means of the weights of kernels that are on.
    deviation : ndarray of shape (n_kernels,)
        Their standard deviations.

    Examples
    --------
    >>> import numpy as np
    >>> often = SpikesAndSlabs(np.full(1, 0.8), np.full(1, 2.0), np.full(1, 0.1))
    >>> often.quantile(np.array([[0.025], [0.5], [0.975]])).ravel().round(2)
    array([0.  , 1.97, 2.19])
    """

    inclusion: Array
    mean: Array
    deviation: Array

    def quantile(self, probability: Array) -> Array:
        """
        Return quantiles.

        Parameters
        ----------
        probability : ndarray of shape (..., n_kernels)
            Probabilities between 0 and 1.

        Returns
        -------
        ndarray of shape (..., n_kernels)
            The quantiles; zero for all probabilities that fall on the point mass.
        """
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
