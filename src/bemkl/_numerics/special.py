r"""
Functions that stay accurate where their textbook forms underflow or cancel.

Those of the normal tail take the *depth-signed* argument t of :math:`\Phi(t)`; a truncation that cuts away almost all
of a normal distribution has a very negative t.
"""

from __future__ import annotations

import numpy as np
from scipy.special import digamma, erfcx, gammaln, log_ndtr, ndtri_exp

from bemkl.arrays import Array

__all__ = [
    "gamma_divergence",
    "inverse_mills",
    "log_ndtr",
    "truncated_entropy",
    "truncated_excess",
    "truncated_quantile",
    "truncated_variance",
]

_CONTINUED_FRACTION_FROM = 4.0
_CONTINUED_FRACTION_TERMS = 80
_NEWTON_FROM, _NEWTON_STEPS = 5.0, 4
_STIRLING_FROM = 20.0
_STIRLING = (1.0 / 12.0, -1.0 / 360.0, 1.0 / 1260.0, -1.0 / 1680.0)
"""Coefficients of 1/x, 1/x³, ... in the logarithm of the gamma function; from 20 on, the next term is below 1e-14."""


def inverse_mills(t: Array) -> Array:
    r"""
    Slope of the log normal distribution function, the inverse Mills ratio.

    .. math:: h(t) = \frac{d}{dt} \log \Phi(t) = \frac{\phi(t)}{\Phi(t)}

    The scaled complementary error function keeps full relative accuracy at any depth, where the quotient
    itself is 0/0 from t = -39 on.
    """
    ratio: Array = np.sqrt(2.0 / np.pi) / erfcx(-t / np.sqrt(2.0))
    return ratio


def _tail_fraction(t: Array) -> tuple[Array, Array]:
    r"""
    Return r and s of Laplace's continued fraction, for arguments far below zero.

    .. math:: h(-x) = x + r, \qquad r = \frac{1}{x + s}, \qquad s = \frac{2}{x + \frac{3}{x + \dots}}
    """
    x, s = -t, np.zeros_like(t)
    for term in range(_CONTINUED_FRACTION_TERMS, 1, -1):
        s = term / (x + s)
    return 1.0 / (x + s), s


def truncated_excess(t: Array) -> Array:
    """
    Mean of a standard normal variable that is kept above -t, measured from that threshold.

    .. math:: r(t) = h(t) + t

    The sum cancels for very negative t, where the continued fraction gives r itself: the mean of a truncated variable
    is never on the wrong side of its threshold, whatever the depth.
    """
    excess, tail = np.asarray(inverse_mills(t) + t), t < -_CONTINUED_FRACTION_FROM
    if tail.any():
        excess[tail], _ = _tail_fraction(t[tail])
    return excess


def truncated_variance(t: Array) -> Array:
    r"""
    Variance of a standard normal variable that is kept above -t.

    .. math:: V(t) = 1 - h(t)\,(h(t) + t)

    In the tail the difference cancels; with r and s of the continued fraction it is :math:`r (s - r)`.
    """
    ratio, tail = inverse_mills(t), t < -_CONTINUED_FRACTION_FROM
    variance = np.asarray(1.0 - ratio * (ratio + t))
    if tail.any():
        r, s = _tail_fraction(t[tail])
        variance[tail] = r * (s - r)
    return variance


def truncated_entropy(t: Array) -> Array:
    r"""
    Entropy of a standard normal variable that is kept above -t.

    .. math:: H(t) = \tfrac12 (\log 2\pi + 1 - t\,h(t)) + \log \Phi(t)

    For negative t both ends grow like :math:`t^2/2` with opposite signs; there they are taken off before the sum.
    """
    constant = 0.5 * (np.log(2.0 * np.pi) + 1.0)
    tail = constant - 0.5 * t * truncated_excess(t) + np.log(0.5 * erfcx(np.maximum(-t, 0.0) / np.sqrt(2.0)))
    body = constant - 0.5 * t * inverse_mills(t) + log_ndtr(t)
    entropy: Array = np.where(t < 0.0, tail, body)
    return entropy


def truncated_quantile(t: Array, probability: Array) -> Array:
    r"""
    Quantiles of a standard normal variable that is kept above -t, measured from that threshold.

    .. math:: x = t - \Phi^{-1}\big((1 - p)\,\Phi(t)\big)

    The inverse takes the logarithm, which does not underflow. In the tail the difference cancels; there Newton steps
    solve :math:`a x + \tfrac12 x^2 + \log\frac{R(a)}{R(a + x)} = -\log(1 - p)` with a = -t and the Mills ratio R.
    """
    log_above = np.log1p(-probability)
    body = t - ndtri_exp(log_above + log_ndtr(np.maximum(t, -_NEWTON_FROM)))
    tail = _tail_quantile(np.maximum(-t, _NEWTON_FROM), -log_above)
    quantile: Array = np.where(t < -_NEWTON_FROM, tail, np.maximum(body, 0.0))
    return quantile


def _tail_quantile(a: Array, s: Array) -> Array:
    """Return how far above a, itself far out, a normal variable falls with probability exp(-s)."""
    x = 2.0 * s / (a + np.sqrt(a**2 + 2.0 * s))
    for _ in range(_NEWTON_STEPS):
        log_ratio = np.log(erfcx(a / np.sqrt(2.0)) / erfcx((a + x) / np.sqrt(2.0)))
        x = x - (a * x + 0.5 * x**2 + log_ratio - s) / inverse_mills(-(a + x))
    return x


def gamma_divergence(shape: Array, prior_shape: Array, mean_ratio: Array) -> Array:
    r"""
    Kullback-Leibler divergence between gamma distributions.

    With m the ratio of the means, it is the divergence at equal means and what the means add to it:

    .. math:: (\alpha - \alpha_0)\,\psi(\alpha) - \log\Gamma(\alpha) + \log\Gamma(\alpha_0) + \alpha_0 - \alpha
              + \alpha_0 \log\frac{\alpha}{\alpha_0} \;+\; \alpha_0 (m - 1 - \log m)

    Large shapes make the terms of the first part huge and their sum small, so Stirling's series takes their place.
    """
    difference, excess = shape - prior_shape, mean_ratio - 1.0
    direct = difference * (digamma(shape) - 1.0) - gammaln(shape) + gammaln(prior_shape)
    direct += prior_shape * np.log(shape / prior_shape)
    with np.errstate(divide="ignore", over="ignore"):
        series = 0.5 * np.log1p(difference / prior_shape) - 0.5 * difference / shape
        for power, coefficient in enumerate(_STIRLING):
            odd = 2 * power + 1
            series += coefficient * (prior_shape**-odd - shape**-odd - odd * difference * shape ** -(odd + 1.0))
    equal_means = np.where(np.minimum(shape, prior_shape) < _STIRLING_FROM, direct, series)
    small = np.where(np.abs(excess) < 0.5, excess, 0.0)
    of_means = np.where(np.abs(excess) < 0.5, small - np.log1p(small), excess - np.log(mean_ratio))
    divergence: Array = equal_means + prior_shape * of_means
    return divergence
