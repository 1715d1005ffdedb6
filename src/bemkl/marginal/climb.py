r"""
The way to the best parameters: Laplace evidence by turns of spreads and effects.

At each place the bound of the evidence is known with its gradient and expected curvature, so that it is about a
quadratic. Its integral over the effects is a function of their spreads, which is maximised first; a quasi-Newton
search with that curvature as metric then finds the parameters that are best under the new spreads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from bemkl.arrays import Array
from bemkl.marginal.model import Look, Model

Watch = Callable[[int, Array, float], bool]
"""Looks on: number of the step, (n_kernels,) weights of the first task and evidence in; whether to stop out."""

_MOST_TRIES = 12
"""Steps that a search for parameters tries, those that are not taken included."""
_ENOUGH_GAIN = 1e-4
"""Share of the gain that the slope promises which a step has to bring."""
_FLAT = 0.3
"""Gain that a quadratic still promises where a search ends, as a share of what ends the climb."""
_CLOSE = 0.1
"""Change of the bound at which inner steps on the way end, as a share of that gain."""
_EXACT = 1e-3
"""The same in nats where nothing but the number of steps ends the climb."""
_WIDEST_STEP = 2.0
"""Largest change of a parameter, all of which are logarithms, in one step."""
_NARROW, _WIDE = 1e-2, 1e2
"""Ends of the spreads."""
_FARTHEST = 1.5
"""Largest change of the logarithm of a spread in one step."""
_ROUNDING = 1e-13
"""Share of the largest curvature that others have at least."""
_SAME = 0.02
"""Change of the logarithm of a spread that makes no difference."""


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """Parameters with what is known there."""

    parameters: Array  # (n_parameters,)
    spreads: Array  # (n_kinds,)
    look: Look
    curvature: Array  # (n_parameters, n_parameters): of the bound, without priors
    evidence: float  # Laplace evidence: parameters integrated out, but for constants

    def covariance(self, model: Model) -> Array:
        """Posterior covariance of the parameters. Shapes: returns (n_parameters, n_parameters)."""
        precision = self.curvature + np.diag(model.prior_precision(self.spreads))
        covariance: Array = cho_solve(cho_factor(precision), np.eye(len(precision)))
        return covariance


@dataclass(frozen=True, slots=True, eq=False)
class Climb:
    """The end of a climb."""

    place: Place
    evidences: tuple[float, ...]  # after each step; never falling
    converged: bool
    interrupted: bool


def climb(model: Model, *, max_iter: int, tol: float | None, watch: Watch | None = None) -> Climb:
    """
    Climb until a step brings less than the tolerance, relative to the evidence or to the number of samples.

    A step that lowers the Laplace evidence is not taken, and the next one moves the spreads less.
    """
    n_samples = sum(unit.likelihood.n_samples for unit in model.units)
    spreads = np.full(len(model.effects.names), model.reach.spread)
    look = model.look(model.start, [None] * len(model.units))
    flat = _EXACT if tol is None else max(_EXACT, _FLAT * tol * n_samples)
    here = _step(model, placed(model, model.start, spreads, look), 0.0, flat)
    evidences = [here.evidence]
    reach, converged = _FARTHEST, False
    interrupted = watch is not None and watch(1, model.weights(here.parameters)[model.units[0].places], here.evidence)
    while len(evidences) < max_iter and not (converged or interrupted):
        there = _step(model, here, reach, flat)
        gain, moved = there.evidence - here.evidence, np.abs(np.log(there.spreads / here.spreads)).max(initial=0.0)
        if gain >= 0.0:
            here = there
        evidences.append(here.evidence)
        enough = tol is None or abs(gain) > tol * max(abs(here.evidence), n_samples)
        converged = not enough or (gain < 0.0 and moved < _SAME)
        # A quadratic that promised too much holds less far away.
        reach = 0.3 * moved if gain < 0.0 else _FARTHEST
        seen = len(evidences), model.weights(here.parameters)[model.units[0].places], here.evidence
        interrupted = watch is not None and watch(*seen)
    here = _settled(model, here)
    return Climb(here, (*evidences[:-1], here.evidence), converged, interrupted and not converged)


def _settled(model: Model, here: Place) -> Place:
    """Let the inner steps, which ended early on the way, come to their end: the bound rises by little."""
    look = model.look(here.parameters, here.look.sites)
    return replace(here, look=look, evidence=here.evidence + look.value - here.look.value)


def _step(model: Model, here: Place, reach: float, flat: float) -> Place:
    """Move the logarithms of the spreads as far as the quadratic says, or may, and look for the best parameters."""
    spreads = here.spreads
    if reach and len(spreads):
        change = np.log(best_spreads(model, here) / spreads)
        spreads = spreads * np.exp(change * min(1.0, reach / max(np.abs(change).max(), reach)))
    parameters, look = search(model, here, spreads, flat)
    return placed(model, parameters, spreads, look)


def placed(model: Model, parameters: Array, spreads: Array, look: Look) -> Place:
    """Compute the curvature and the Laplace evidence of a place. Shapes: parameters (n_parameters,)."""
    curvature = never_negative(model.curvature(parameters, look))
    precision = curvature + np.diag(model.prior_precision(spreads))
    _, logdet = np.linalg.slogdet(precision)
    evidence = look.value + model.log_prior(parameters, spreads) - 0.5 * float(logdet)
    return Place(parameters, spreads, look, curvature, evidence)


def never_negative(curvature: Array) -> Array:
    """Take away what rounding of a large curvature leaves below zero, which no prior may outweigh. Shapes: (n, n)."""
    values, vectors = np.linalg.eigh(curvature)
    left: Array = (vectors * np.maximum(values, 0.0)) @ vectors.T
    left.flat[:: len(left) + 1] += _ROUNDING * max(values[-1], 0.0)
    return left


def best_spreads(model: Model, here: Place) -> Array:
    """
    Maximise the integral of the quadratic over the parameters, as a function of the spreads.

    Shapes: returns (n_kinds,).
    """

    def cost(logs: Array) -> float:
        return -quadratic(model, here, np.exp(logs))[0]

    ends = [(np.log(_NARROW), np.log(_WIDE))] * len(here.spreads)
    best: Array = np.exp(
        minimize(cost, np.log(here.spreads), method="L-BFGS-B", bounds=ends, options={"maxiter": 30}).x
    )
    return best


def quadratic(model: Model, here: Place, spreads: Array) -> tuple[float, Array, Array]:
    """
    Integrate the quadratic over the parameters under the prior of some spreads, on a logarithmic scale.

    Beside it are the step to the quadratic's maximum, and the lower Cholesky factor of its precision.

    Shapes: spreads (n_kinds,); returns (n_parameters,), (n_parameters, n_parameters).
    """
    prior = model.prior_precision(spreads)
    factor, _ = cho_factor(here.curvature + np.diag(prior), lower=True)
    slope = here.look.gradient - prior * (here.parameters - model.start)
    step: Array = cho_solve((factor, True), slope)
    logdet = 2.0 * float(np.log(np.diag(factor)).sum())
    # The prior is that of the place; the quadratic's maximum adds half its slope times the step there.
    value = model.log_prior(here.parameters, spreads) + 0.5 * (float(slope @ step) - logdet)
    return value, step, factor


def search(model: Model, here: Place, spreads: Array, flat: float) -> tuple[Array, Look]:
    """
    Find the parameters with the highest bound under the spreads' prior, by quasi-Newton steps.

    Shapes: spreads (n_kinds,); returns parameters (n_parameters,).
    """
    prior = model.prior_precision(spreads)
    inverse = cho_solve(cho_factor(here.curvature + np.diag(prior)), np.eye(len(prior)))

    settled = _CLOSE * flat / sum(unit.likelihood.n_samples for unit in model.units)
    looking = replace(model, settled=settled)

    def value_of(look: Look) -> float:
        return look.value - 0.5 * float(prior @ (look.parameters - model.start) ** 2)

    def gradient_of(look: Look) -> Array:
        slope: Array = look.gradient - prior * (look.parameters - model.start)
        return slope

    parameters, look = here.parameters, here.look
    value, gradient, length = value_of(look), gradient_of(look), 1.0
    for _ in range(_MOST_TRIES):
        step = inverse @ gradient
        promised = float(gradient @ step)
        if not promised > 2.0 * flat:
            break
        step *= min(1.0, _WIDEST_STEP / np.abs(step).max()) * length
        try:
            new_look = looking.look(parameters + step, look.sites)
            new_value = value_of(new_look)
        except np.linalg.LinAlgError:
            new_value = -np.inf
        if not new_value >= value + _ENOUGH_GAIN * float(gradient @ step):
            length *= 0.3
            continue
        new_gradient = gradient_of(new_look)
        inverse = _learned(inverse, step, gradient - new_gradient)
        parameters, value, gradient, look, length = parameters + step, new_value, new_gradient, new_look, 1.0
    return parameters, look


def _learned(inverse: Array, step: Array, change: Array) -> Array:
    """Bring what a step showed of the curvature into its inverse (BFGS). Shapes: inverse (n, n), step (n,)."""
    along = float(step @ change)
    if along <= 1e-12 * float(np.linalg.norm(step) * np.linalg.norm(change)):
        return inverse
    moved = inverse @ change
    cross = np.outer(step, moved)
    updated: Array = inverse - (cross + cross.T) / along + np.outer(step, step) * (1.0 + change @ moved / along) / along
    return updated
