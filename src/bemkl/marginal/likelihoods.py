"""Likelihoods as the marginal posterior sees them: expectations of a log density under a normal predictor."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr

from bemkl._numerics.special import inverse_mills
from bemkl.arrays import Array

NODES, MASSES = np.polynomial.hermite_e.hermegauss(20)
"""Gauss–Hermite nodes and masses for standard normal variables."""
MASSES = MASSES / MASSES.sum()
_BENDS = 0.5 * (NODES**2 - 1.0) * MASSES
"""Masses that turn values at the nodes into the variance times the derivative of their mean in the variance."""


class Expected(NamedTuple):
    """Expected log densities, with their derivatives in the mean of the predictor."""

    value: float  # sum over all samples and outputs
    gradient: Array  # (n_samples, n_outputs): first derivatives
    curvature: Array  # (n_samples,): negative second derivatives, the same for each output, not negative
    parameters: Array  # (n_parameters,): derivatives in the likelihood's own parameters
    bend: Array | float = 0.0  # (n_samples,): derivatives of the curvatures in the predictor's variances


class Likelihood(Protocol):
    """
    The link between a predictor and what was observed.

    A log-concave one gives an objective with one maximum for each covariance. Its own parameters (a noise variance, a
    dispersion) are real numbers, which the evidence chooses.
    """

    @property
    def n_samples(self) -> int:
        """Number of samples."""

    @property
    def n_outputs(self) -> int:
        """Number of outputs, which have the same curvature."""

    @property
    def gaussian(self) -> bool:
        """Whether curvatures do not depend on the predictor, so that one step is all there is to do."""

    @property
    def start(self) -> Array:
        """First values of the parameters, shape (n_parameters,)."""

    def expected(self, parameters: Array, mean: Array, variance: Array) -> Expected:
        """Return expectations for means (n_samples, n_outputs) and variances (n_samples,) of the predictor."""


class Gaussian:
    r"""
    Responses with noise of one variance, :math:`y_i \sim \mathcal{N}(\eta_i, \sigma^2)`; its parameter is log σ².

    With several outputs, they have the noise in common.

    Parameters
    ----------
    y : array_like of shape (n_samples, n_outputs)
        Responses.
    noise : float, optional
        The variance, if it is not to be learned.
    """

    gaussian = True

    def __init__(self, y: npt.ArrayLike, noise: float | None = None) -> None:
        self.y = np.asarray(y, dtype=np.float64)
        self._known = None if noise is None else np.log(noise)

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.y)

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return int(self.y.shape[1])

    @property
    def start(self) -> Array:
        """A tenth of the variance of standardised responses; nothing where the variance is known."""
        return np.array([np.log(0.1)]) if self._known is None else np.empty(0)

    def expected(self, parameters: Array, mean: Array, variance: Array) -> Expected:
        """Return expectations. Shapes: parameters (1,) or (0,), mean (n_samples, n_outputs), variance (n_samples,)."""
        log_noise = float(parameters[0]) if self._known is None else self._known
        precision = np.exp(-log_noise)
        error = self.y - mean
        squares = precision * (float(np.vdot(error, error)) + self.n_outputs * float(variance.sum()))
        value = -0.5 * (squares + self.y.size * (np.log(2.0 * np.pi) + log_noise))
        slope = np.full(len(parameters), 0.5 * (squares - self.y.size))
        return Expected(value, precision * error, np.full(self.n_samples, precision), slope)


class Probit:
    r"""
    Labels of two classes, :math:`P(y_i = \pm 1) = \Phi(\pm\eta_i)`.

    Parameters
    ----------
    sign : array_like of shape (n_samples,)
        Labels, -1 or +1.
    """

    gaussian = False
    n_outputs = 1
    start = np.empty(0)

    def __init__(self, sign: npt.ArrayLike) -> None:
        self.sign = np.asarray(sign, dtype=np.float64)

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.sign)

    def expected(self, parameters: Array, mean: Array, variance: Array) -> Expected:
        """Return expectations by quadrature. Shapes: mean (n_samples, 1), variance (n_samples,)."""
        depth = self.sign[:, None] * (mean + np.sqrt(variance)[:, None] * NODES)
        slope = inverse_mills(depth)
        gradient = self.sign * (slope @ MASSES)
        curvature = (slope * (slope + depth)) @ MASSES
        value = float((log_ndtr(depth) @ MASSES).sum())
        # The derivative of an expectation in the variance, by that of the normal density (Price's theorem).
        bend = (slope * (slope + depth)) @ _BENDS / np.maximum(variance, np.finfo(np.float64).tiny)
        return Expected(value, gradient[:, None], np.maximum(curvature, 0.0), np.empty(0), bend)
