r"""
Draws of the logarithms of weights: the quadratic around the best place, under spreads that are not known either.

Laplace's approximation alone has intervals that are too short: spreads are learned from a few effects each, and a
curvature holds at one place. So spreads are drawn, each from its own density given the others at their maximum, and
effects have the tails of Student's distribution (docs/marginal.md).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular

from bemkl.arrays import Array
from bemkl.marginal.climb import Place, quadratic
from bemkl.marginal.model import AMPLITUDE, Model

_SETS, _EACH = 64, 8
"""Sets of spreads that are drawn, and draws of the effects under each."""
_FREEDOM = 4.0
"""Degrees of freedom of the tails."""
_REACH, _STEPS = 4.0, 17
"""Where the density of the logarithm of a spread is computed: how far from where spreads begin, at how many values."""


def log_weight_draws(model: Model, place: Place) -> Array:
    """
    Draw the logarithm of the common factor of the weights, and the effects, as steps from their best values.

    The draws are always the same. Shapes: returns (n_draws, 1 + n_effects).
    """
    rng = np.random.default_rng(0)
    spreads = _spreads(model, place, rng)
    steps = []
    for each in spreads:
        _, step, factor = quadratic(model, place, each)
        normal = rng.standard_normal((len(step), _EACH)) / np.sqrt(rng.chisquare(_FREEDOM, _EACH) / _FREEDOM)
        steps.append(step + solve_triangular(factor, normal, lower=True, trans=1, check_finite=False).T)
    drawn = np.concatenate(steps)
    common = drawn[:, [AMPLITUDE]] / model.units[0].prior.degree
    return np.hstack([common, drawn[:, model.n_common :]])


def _spreads(model: Model, place: Place, rng: np.random.Generator) -> Array:
    """Draw spreads. Shapes: returns (n_sets, n_kinds)."""
    logs = np.tile(np.log(place.spreads), (_SETS, 1))
    grid = np.log(model.reach.spread) + np.linspace(-_REACH, _REACH, _STEPS)
    for kind in range(logs.shape[1]):
        tried = np.tile(np.log(place.spreads), (_STEPS, 1))
        tried[:, kind] = grid
        values = np.array([quadratic(model, place, np.exp(each))[0] for each in tried])
        density = np.exp(values - values.max())
        below = np.concatenate([[0.0], np.cumsum(density[1:] + density[:-1])])
        even = (rng.permutation(_SETS) + 0.5) / _SETS
        logs[:, kind] = np.interp(even * below[-1], below, grid)
    drawn: Array = np.exp(logs)
    return drawn
