r"""
What views are worth: evidence, predictions and a test of each one against being left out.

The test asks whether the slope of the evidence in the variance of a view, at zero, is more than chance would make it.
Without the view, with :math:`\mathbf{S} = \mathbf{A}^{-1}` the covariance of the pseudo-observations, that slope is the
quadratic form of a normal vector,

.. math:: U = \tfrac12\big(\boldsymbol\alpha^\top\mathbf{D}\boldsymbol\alpha
          - \operatorname{tr}\mathbf{A}\mathbf{D}\big), \qquad \boldsymbol\alpha \sim \mathcal{N}(0, \mathbf{A})

with **D** the sum of the view's kernels, less what the other views, bias and noise could do instead. Its first three
moments are matched by a gamma distribution (docs/marginal.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import gammaincc, ndtr

from bemkl.arrays import Array
from bemkl.marginal.approximation import Approximation
from bemkl.marginal.climb import Place, placed, search
from bemkl.marginal.criteria import directions
from bemkl.marginal.model import Look, Model, Unit
from bemkl.marginal.observed import Observed
from bemkl.marginal.outputs import Output

MOST_VIEWS = 12
"""Views up to which each is left out once, at some factors each."""
_FLAT = 0.1
"""Gain, in nats, that the others' answer may leave."""
_RIDGE = 1e-8
"""Share of the curvature of a nuisance that is added to it, so that copies of views do no harm."""


@dataclass(frozen=True, slots=True, eq=False)
class Relevance:
    """What each view is worth, where the others may answer for it."""

    views: tuple[str, ...]
    evidence: Array  # (n_views,): evidence that is lost without the view
    loss: Array  # (n_views,): log density of a sample, predicted by the others, that is lost without it, on average
    loss_deviation: Array  # (n_views,): standard error of that average
    probability: Array  # (n_views,): of a slope as large, or larger, if the view does not matter


def relevance(model: Model, place: Place, views: Sequence[str], observed: Observed, output: Output) -> Relevance | None:
    """
    Leave each view out in turn; None for one view, for many, or for priors that views cannot be taken from.

    Shapes: views (n_kernels,), the view of each kernel.
    """
    names = tuple(dict.fromkeys(views))
    if not 2 <= len(names) <= MOST_VIEWS or not all(unit.prior.additive for unit in model.units):
        return None
    inside = (np.array(names)[:, None] == np.array(views)).astype(np.float64)
    whole = observed.log_density(place.look.posteriors, output)
    found = np.empty((4, len(names)))
    for v in range(len(names)):
        look, parameters = _without(replace(model, shown=1.0 - inside[v]), place)
        lost = whole - observed.log_density(look.posteriors, output)
        # The prior of the parameters belongs to what they are worth.
        prior = [model.log_prior(at, place.spreads) for at in (place.parameters, parameters)]
        found[:, v] = (
            place.look.value + prior[0] - look.value - prior[1],
            lost.mean(),
            lost.std(ddof=1) / np.sqrt(len(lost)),
            _probability(model, look.posteriors, inside / model.sizes, v),
        )
    return Relevance(names, *found)


def _without(model: Model, place: Place) -> tuple[Look, Array]:
    """Let the parameters answer to what is left out; return what is found there. Shapes: returns (n_parameters,)."""
    start = placed(model, place.parameters, place.spreads, model.look(place.parameters, place.look.sites))
    parameters, look = search(model, start, place.spreads, _FLAT)
    return look, parameters


def _probability(model: Model, posteriors: Sequence[Approximation], weights: Array, view: int) -> float:
    """
    Return how likely a slope as large is by chance.

    Shapes: weights (n_views, n_kernels), what the variances of the views multiply.
    """
    n = len(weights) + 2
    slope, curvature = np.zeros(n), np.zeros((n, n))
    seen = [_slopes(unit, posterior, weights) for unit, posterior in zip(model.units, posteriors, strict=True)]
    for one, two, _ in seen:
        slope += one
        curvature += two
    others = np.delete(np.arange(n), view)
    inner = curvature[np.ix_(others, others)]
    inner = inner + _RIDGE * np.diag(np.maximum(inner.diagonal(), np.finfo(np.float64).tiny))
    instead = np.linalg.solve(inner, curvature[others, view])
    change = np.zeros(n)
    change[view], change[others] = 1.0, -instead
    variance = float(change @ curvature @ change)
    if not variance > 0.0:
        return 1.0
    third = float(sum(cube(change) for _, _, cube in seen))
    return _upper_tail(float(change @ slope) / np.sqrt(variance), third / variance**1.5)


Slopes = tuple[Array, Array, Callable[[Array], float]]


def _slopes(unit: Unit, posterior: Approximation, weights: Array) -> Slopes:
    """
    Return slopes of the evidence in the variances of the views, of the bias and of the noise, and their covariance.

    Last comes a function that returns the third central moment of a combination of them, from a (n,) array.

    Shapes: weights (n_views, n_kernels); returns (n,), (n, n).
    """
    condition, kernels, outputs = posterior.condition, unit.prior.kernels, unit.likelihood.n_outputs
    noise = 1.0 / posterior.sites.precision if unit.likelihood.gaussian else np.zeros(unit.likelihood.n_samples)

    def moved(combinations: Array, vectors: Array) -> Array:
        products = kernels.products(combinations[:, : len(weights)] @ weights, vectors)
        products += combinations[:, -2, None, None] * vectors.sum(axis=0)
        total: Array = products + combinations[:, -1, None, None] * (noise[:, None] * vectors)
        return total

    pulls = condition.alpha @ condition.alpha.T - outputs * condition.residual_times(np.eye(len(noise)))
    slope = 0.5 * np.array([*(weights @ kernels.inner(pulls)), pulls.sum(), pulls.diagonal() @ noise])
    drawn = condition.residual_draws(directions(len(noise)))
    along = moved(np.eye(len(slope)), drawn)
    back = np.stack([condition.residual_times(each) for each in along])
    count = drawn.shape[1] / outputs
    curvature = 0.5 * back.reshape(len(slope), -1) @ along.reshape(len(slope), -1).T / count

    def cube(change: Array) -> float:
        there = np.tensordot(change, back, 1)
        product = np.vdot(there, moved(change[None], there)[0])
        return float(product) / float(count)

    return slope, 0.5 * (curvature + curvature.T), cube


def _upper_tail(depth: float, skewness: float) -> float:
    """Return the upper tail of a standardised gamma distribution with some skewness, which is normal without any."""
    if skewness < 1e-3:
        return float(ndtr(-depth))
    shape = 4.0 / skewness**2
    return float(gammaincc(shape, max(shape + depth * np.sqrt(shape), 0.0)))
