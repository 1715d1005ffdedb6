r"""
The Gaussian posterior of a predictor with a given covariance.

Exact for Gaussian noise. For other log-concave likelihoods it is the normal distribution of mean
:math:`\mathbf{C}\boldsymbol\alpha` and covariance :math:`(\mathbf{C}^{-1} + \mathbf{R})^{-1}` with the highest lower
bound of the evidence,

.. math:: \sum_i E \log p(y_i \mid \eta_i) - \tfrac12 \big(\boldsymbol\alpha^\top\mathbf{C}\boldsymbol\alpha
          - \sum_i r_i V_{ii} + \log|\mathbf{I} + \mathbf{R}^{1/2}\mathbf{C}\mathbf{R}^{1/2}|\big)

where :math:`r_i = -E\,\partial^2 \log p` and :math:`\alpha_i = E\,\partial \log p` (docs/marginal.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bemkl.arrays import Array
from bemkl.marginal.covariance import Condition, Covariance, Positions
from bemkl.marginal.likelihoods import Expected, Likelihood

_MOST_STEPS = 100
SETTLED = 1e-9
"""Change of the bound, a sample, at which the inner steps end: its gradient is used as if they had ended."""
_SHORTEST = 1e-3
"""Share of a whole step below which no shorter one is tried."""
_SWINGING = 0.7
"""Share of the last gain from which on the next one means that steps swing about their goal."""
_STEEPEST = 0.5
"""Least divisor of a step of a precision: where curvatures fall with precisions, steps are at most twice as long."""
_LEAST_CURVATURE = 1e-10
_WEAK = 1e-8
"""Share of a prediction that a sample has in itself from which leaving it out makes no difference."""


@dataclass(frozen=True, slots=True, eq=False)
class Sites:
    """Gaussian pseudo-observations that stand for the likelihood."""

    precision: Array  # (n_samples,): their precisions r
    pull: Array  # (n_samples, n_outputs): precisions times locations


@dataclass(frozen=True, slots=True, eq=False)
class Approximation:
    """The posterior of a predictor."""

    sites: Sites
    condition: Condition
    expected: Expected
    bound: float  # evidence for Gaussian noise, else a lower bound of it
    steps: int  # conditions computed on the way

    def left_out(self) -> tuple[Array, Array]:
        r"""
        Return means and variances of the predictor at each sample given the other ones, in closed form.

        With the locations t of the pseudo-observations they are :math:`t_i - \alpha_i / A_{ii}` and
        :math:`1 / A_{ii} - 1 / r_i`.

        Shapes: returns mean (n_samples, n_outputs), variance (n_samples,).
        """
        condition, precision = self.condition, self.sites.precision
        diagonal = np.minimum(condition.residual_diagonal, precision)
        variance = np.maximum(1.0 / diagonal - 1.0 / precision, 0.0)
        # Where a sample hardly matters, so does leaving it out, and the two terms of each difference are large.
        weak = precision * condition.variance < _WEAK
        mean = (self.sites.pull / precision[:, None]) - condition.alpha / diagonal[:, None]
        mean[weak], variance[weak] = condition.mean[weak], condition.variance[weak]
        return mean, variance + condition.remainder

    def left_out_with(self, partners: Positions) -> tuple[Array, Array]:
        """
        Return the same for one output, with a partner of each sample left out as well; averages over several of them.

        Left out alone, a sample leaves fewer labels of its own kind behind, so that all predictions lean away from it:
        where signals are weak, that hides them. A partner with the other label keeps the balance.

        Shapes: partners (n_samples, n_partners); returns mean (n_samples, 1), variance (n_samples,).
        """
        condition, precision = self.condition, self.sites.precision
        alone, _ = self.left_out()
        alpha, diagonal = condition.alpha[:, 0], np.minimum(condition.residual_diagonal, precision)
        rows = np.repeat(np.arange(len(partners)), partners.shape[1])
        others = partners.ravel()
        link = condition.residual_at(rows, others)
        determinant = diagonal[rows] * diagonal[others] - link**2
        location = (self.sites.pull[:, 0] / precision)[rows]
        mean = location - (diagonal[others] * alpha[rows] - link * alpha[others]) / determinant
        variance = np.maximum(diagonal[others] / determinant - 1.0 / precision[rows], 0.0)
        weak = (precision * condition.variance < _WEAK)[rows]
        mean[weak], variance[weak] = alone[rows[weak], 0], condition.variance[rows[weak]]
        mean, variance = (values.reshape(partners.shape).mean(axis=1) for values in (mean, variance))
        return mean[:, None], variance + condition.remainder


def approximate(
    covariance: Covariance,
    likelihood: Likelihood,
    parameters: Array,
    start: Sites | None = None,
    settled: float = SETTLED,
) -> Approximation:
    """
    Find the best Gaussian posterior; every accepted step raises the bound.

    Shapes: parameters (n_parameters,).
    """
    if start is None:
        n_samples, n_outputs = likelihood.n_samples, likelihood.n_outputs
        start = _aimed_at(
            likelihood.expected(parameters, np.zeros((n_samples, n_outputs)), covariance.prior_variance), 0.0
        )
    elif likelihood.gaussian:
        start = _aimed_at(likelihood.expected(parameters, np.zeros_like(start.pull), start.precision), 0.0)
    here, steps, length = _look(covariance, likelihood, parameters, start, 1), 1, 1.0
    last = np.inf
    while not likelihood.gaussian and steps < _MOST_STEPS and length > _SHORTEST:
        sites = _next(here, length)
        steps += 1
        there = _look(covariance, likelihood, parameters, sites, steps)
        gain = there.bound - here.bound
        if gain < -settled * likelihood.n_samples or not np.isfinite(there.bound):
            length *= 0.5
            continue
        here = there if gain >= 0.0 else here
        if gain <= settled * likelihood.n_samples:
            break
        # Steps that swing to and fro gain little each: half of one lands between.
        length = 0.5 if _SWINGING * last < gain else min(1.0, 2.0 * length)
        last = gain
    return here


def _aimed_at(expected: Expected, mean: Array | float) -> Sites:
    """Return the sites that the derivatives of a likelihood ask for."""
    precision = np.maximum(expected.curvature, _LEAST_CURVATURE)
    return Sites(precision, precision[:, None] * mean + expected.gradient)


def _next(here: Approximation, length: float) -> Sites:
    r"""
    Move the sites towards what the derivatives ask for.

    A larger precision makes the variance smaller by :math:`V_{ii}^2`, and that changes the curvature: each precision
    takes the Newton step of its own equation :math:`r_i = c_i(V_{ii}(r_i))`, in which nothing swings.
    """
    condition, expected = here.condition, here.expected
    answer = np.maximum(1.0 + condition.variance**2 * expected.bend, _STEEPEST)
    goal = np.maximum(expected.curvature, _LEAST_CURVATURE)
    precision = here.sites.precision + length * (goal - here.sites.precision) / answer
    precision = np.maximum(precision, _LEAST_CURVATURE)
    alpha = condition.alpha + length * (expected.gradient - condition.alpha)
    return Sites(precision, precision[:, None] * condition.mean + alpha)


def _look(covariance: Covariance, likelihood: Likelihood, parameters: Array, sites: Sites, steps: int) -> Approximation:
    """Condition on sites, and compute the bound there."""
    condition = covariance.condition(sites.precision, sites.pull)
    expected = likelihood.expected(parameters, condition.mean, condition.variance + condition.remainder)
    outputs = likelihood.n_outputs
    energy = float(np.vdot(condition.alpha, condition.mean))
    energy += outputs * (condition.logdet - float(sites.precision @ condition.variance))
    return Approximation(sites, condition, expected, expected.value - 0.5 * energy, steps)
