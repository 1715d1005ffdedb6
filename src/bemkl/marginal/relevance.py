r"""
What views and kernels are worth: evidence, predictions and a test of each one against being left out.

The test asks whether the slope of the evidence in the variance of a view, at zero, is more than chance would make it.
Without the view, with :math:`\mathbf{S} = \mathbf{A}^{-1}` the covariance of the pseudo-observations, that slope is the
quadratic form of a normal vector,

.. math:: U = \tfrac12\big(\boldsymbol\alpha^\top\mathbf{D}\boldsymbol\alpha
          - \operatorname{tr}\mathbf{A}\mathbf{D}\big), \qquad \boldsymbol\alpha \sim \mathcal{N}(0, \mathbf{A})

with **D** the sum of the view's kernels, less what the other views, bias and noise could do instead. Its first three
moments are matched by a gamma distribution (docs/marginal.md).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.special import gammaincc, ndtr

from bemkl.arrays import Array
from bemkl.marginal.approximation import Approximation
from bemkl.marginal.climb import Place, search
from bemkl.marginal.criteria import directions
from bemkl.marginal.information import Information
from bemkl.marginal.model import AMPLITUDE, BIAS, Look, Model, Unit
from bemkl.marginal.observed import Observed
from bemkl.marginal.outputs import Output

MOST_GROUPS = 60
"""Views, and kernels with them, up to which each is left out: a look or two each, together about as many as a fit."""
_MUCH = 0.5
"""Loss of evidence, in nats, below which the first answer of the others is as good as their best one."""
_FLAT = 0.1
"""Gain, in nats, that the others' answer may leave."""
_SETTLED = 1e-5
"""Change of the bound, a sample, at which inner steps end: some thousandths of a nat do not change a test."""
_RATIOS = np.linspace(-4.0, 3.0, 8)
"""Logarithms of factors of the covariance that are tried where the noise is given."""
_RIDGE = 1e-8
"""Share of the largest variance below which outputs do not vary."""
_WIDEST_ANSWER = 2.0
"""Largest change of a parameter, all of which are logarithms, that is taken without a look."""


@dataclass(frozen=True, slots=True, eq=False)
class Losses:
    """What each of several groups of kernels is worth, where the others may answer for it."""

    evidence: Array  # (n_groups,): evidence that is lost without the group
    loss: Array  # (n_groups,): log density of a sample, predicted by the others, that is lost without it, on average
    loss_deviation: Array  # (n_groups,): standard error of that average
    probability: Array  # (n_groups,): of a slope as large, or larger, if the group does not matter


@dataclass(frozen=True, slots=True, eq=False)
class Relevance:
    """What was found out by leaving views and kernels out; None where there is one of them, or too many."""

    views: Losses | None = None
    kernels: Losses | None = None


def relevance(model: Model, place: Place, views: Sequence[Hashable], observed: Observed, output: Output) -> Relevance:
    """
    Leave each view out in turn, then each kernel; nothing for priors that kernels cannot be taken from, or one sample.

    Shapes: views (n_kernels,), the view of each kernel.
    """
    names, n_kernels = list(dict.fromkeys(views)), len(views)
    several, alike = 2 <= len(names) <= MOST_GROUPS, len(names) == n_kernels
    apart = not alike and n_kernels >= 2 and len(names) + n_kernels <= MOST_GROUPS
    divisible = all(unit.prior.additive and unit.likelihood.n_samples > 1 for unit in model.units)
    if not (several or apart) or not divisible:
        return Relevance()
    experiment = _Experiment(model, place, observed, output, Information.of(model, place))
    # Kernels that are alone in their views are these views.
    of_views = experiment.losses(np.array([[view == name for view in views] for name in names])) if several else None
    of_kernels = experiment.losses(np.eye(n_kernels, dtype=bool)) if apart else of_views if alike else None
    return Relevance(of_views, of_kernels)


@dataclass(frozen=True, slots=True, eq=False)
class _Experiment:
    """A fit from which groups of kernels are taken away."""

    model: Model
    place: Place
    observed: Observed
    output: Output
    information: Information

    def losses(self, inside: npt.NDArray[np.bool_]) -> Losses:
        """Leave each group out in turn. Shapes: inside (n_groups, n_kernels)."""
        model, place, observed, information = self.model, self.place, self.observed, self.information
        whole = observed.log_density(place.look.posteriors, self.output)
        found = np.empty((4, len(inside)))
        for g, out in enumerate(inside):
            others = replace(model, shown=np.where(out, 0.0, 1.0), settled=_SETTLED)
            look = _without(others, place, *information.answer(model, place, out))
            lost = whole - observed.log_density(look.posteriors, self.output)
            # The prior of the parameters belongs to what they are worth.
            prior = [model.log_prior(at, place.spreads) for at in (place.parameters, look.parameters)]
            found[:, g] = (
                place.look.value + prior[0] - look.value - prior[1],
                lost.mean(),
                lost.std(ddof=1) / np.sqrt(len(lost)),
                _probability(look, information.alone(inside / model.sizes, g)),
            )
        return Losses(*found)


def _without(model: Model, place: Place, answer: Array, curvature: Array) -> Look:
    """
    Let the parameters answer to what is left out, and look on from there where much is lost.

    Shapes: answer (n_parameters,), curvature (n_parameters, n_parameters).
    """
    parameters = place.parameters + answer * min(1.0, _WIDEST_ANSWER / max(np.abs(answer).max(), _WIDEST_ANSWER))
    look = model.look(parameters, place.look.sites)
    if place.look.value - look.value < _MUCH:
        return look
    start = replace(place, parameters=parameters, look=look, curvature=curvature)
    return search(model, start, place.spreads, _FLAT)[1]


def _probability(look: Look, change: Array) -> float:
    """
    Return how likely a slope along a change of the variances is by chance, that is as large.

    Shapes: change (n_variances,).
    """
    look, model = _best_ratio(look), look.model
    slope, variance, third = 0.0, 0.0, 0.0
    shared = model.units[0].prior.kernels.combine(change[: model.n_kernels]) + change[model.n_kernels]
    for unit, posterior, noise in zip(model.units, look.posteriors, change[model.n_kernels + 1 :], strict=True):
        matrix = shared + noise * np.eye(len(shared))
        condition, variances = posterior.condition, _variances(unit, posterior)
        slope += 0.5 * float(np.vdot(condition.alpha, matrix @ condition.alpha))
        slope -= 0.5 * float(variances.sum()) * condition.residual_inner(matrix)
        drawn = condition.residual_draws(directions(len(shared)))
        along = matrix @ drawn
        back = condition.residual_times(along)
        variance += 0.5 * float(np.sum(variances**2)) * float(np.vdot(back, along)) / drawn.shape[1]
        third += float(np.sum(variances**3)) * float(np.vdot(back, matrix @ back)) / drawn.shape[1]
    return _upper_tail(slope / np.sqrt(variance), third / variance**1.5) if variance > 0.0 else 1.0


def _best_ratio(look: Look) -> Look:
    """
    Return a look with the best ratio of covariance and noise by evidence, where the noise is given.

    Weights of classes are judged by other things; the test asks what normal responses would do by chance.
    """
    model = look.model
    if not any(_given(unit) for unit in model.units):
        return look
    step = np.zeros(len(look.parameters))
    step[[AMPLITUDE, BIAS]] = 1.0
    tried = [model.look(look.parameters + log * step, look.sites) for log in _RATIOS]
    return max(tried, key=_evidence_of_responses)


def _evidence_of_responses(look: Look) -> float:
    """Return the evidence of several responses at their best covariance with each other, but for a constant."""
    total = 0.0
    for unit, posterior in zip(look.model.units, look.posteriors, strict=True):
        variances = _variances(unit, posterior)
        held = variances[variances > _RIDGE * variances.max()]
        total -= 0.5 * float(posterior.condition.alpha.shape[0] * np.log(held).sum())
        total -= 0.5 * len(held) * posterior.condition.logdet
    return total


def _given(unit: Unit) -> bool:
    """Tell whether responses have a given noise."""
    return unit.likelihood.gaussian and not len(unit.likelihood.start)


def _variances(unit: Unit, posterior: Approximation) -> Array:
    """
    Return variances of outputs in units of the covariance, in directions in which they are independent.

    They are ones where noise is learned with the covariance. Indicators of classes have a given noise, and tell of each
    other: they sum to nothing.

    Shapes: returns (n_outputs,).
    """
    if not _given(unit):
        return np.ones(unit.likelihood.n_outputs)
    responses, alpha = posterior.sites.pull / posterior.sites.precision[:, None], posterior.condition.alpha
    variances: Array = np.maximum(np.linalg.eigvalsh(alpha.T @ responses / len(alpha)), 0.0)
    return variances


def _upper_tail(depth: float, skewness: float) -> float:
    """Return the upper tail of a standardised gamma distribution with some skewness, which is normal without any."""
    if skewness < 1e-3:
        return float(ndtr(-depth))
    shape = 4.0 / skewness**2
    return float(gammaincc(shape, max(shape + depth * np.sqrt(shape), 0.0)))
