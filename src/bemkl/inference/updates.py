"""The sweep: every factor's update, in order. Each is a pure function from state to state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import brentq

from bemkl.arrays import Array
from bemkl.distributions import Gamma, PointMass, Priors
from bemkl.inference.block import BlockState, PairStep, WeightStep
from bemkl.inference.problem import Problem
from bemkl.inference.state import State

_LARGEST = 8.0
"""Most that a step of the scale multiplies or divides by."""

Update = Callable[[Problem, State], State]


def sweep_updates(problem: Problem) -> dict[str, Update]:
    """
    Return the updates of one sweep by name, in order.

    The order is that of the author's program: precisions, sample weights, intermediate outputs, noise, kernel weights,
    targets.
    """
    updates = [
        ("sample_precision", update_sample_precision),
        ("intermediate_precision", update_intermediate_precision),
        *((name, _pair_update(step)) for name, step in problem.pair.steps.items()),
        ("output_precision", update_output_precision),
        *((name, _weight_update(step)) for name, step in problem.weights.steps.items()),
        *([("scale", update_scale)] if problem.weights.balanced else []),
        ("output_target", update_output_target),
    ]
    if len(dict(updates)) < len(updates):
        raise ValueError(f"pair, weights: expected steps with names of their own, got {[name for name, _ in updates]}.")
    return dict(updates)


def _each_block(state: State, update: Callable[[int, BlockState], BlockState]) -> State:
    return replace(state, blocks=tuple(update(index, block) for index, block in enumerate(state.blocks)))


def update_sample_precision(problem: Problem, state: State) -> State:
    r"""Update :math:`q(\lambda)` (paper, section 4.1): one value of a for each precision."""
    prior = problem.priors.sample
    return _each_block(state, lambda _, here: replace(here, sample_precision=prior.posterior(1, here.sample.second)))


def update_intermediate_precision(problem: Problem, state: State) -> State:
    r"""Update :math:`q(\upsilon)` (derivation, section 3): one precision for all intermediate outputs of an output."""
    prior = problem.priors.intermediate

    def update(_: int, here: BlockState) -> BlockState:
        n_kernels, n_samples, _ = here.block.shape
        return replace(here, intermediate_precision=prior.posterior(n_kernels * n_samples, here.residual))

    return _each_block(state, update)


def update_output_precision(problem: Problem, state: State) -> State:
    """Update the noise precision of every likelihood that has one."""
    weights = state.weights

    def update(index: int, here: BlockState) -> BlockState:
        if isinstance(here.noise_precision, PointMass):
            return here
        moments = weights.moments(index)
        here = here.observed(weights, moments)
        noise = here.block.likelihood.noise(here.targets.fit, here.predictor_variance(moments))
        return replace(here, noise_precision=noise)

    return _each_block(state, update)


def update_output_target(problem: Problem, state: State) -> State:
    """Update the targets of every likelihood that does not observe them."""
    weights = state.weights
    return _each_block(state, lambda index, here: here.retargeted(weights, weights.moments(index)))


def _pair_update(step: PairStep) -> Update:
    def update_pair(problem: Problem, state: State) -> State:
        def update(index: int, here: BlockState) -> BlockState:
            moved = step(here, state.weights.moments(index))
            # Steps of intermediate outputs look at the targets again; those of sample weights alone need not.
            return moved if moved.targets is here.targets else replace(moved, seen=state.weights)

        return _each_block(state, update)

    return update_pair


def _weight_update(step: WeightStep[Any]) -> Update:
    def update_weights(problem: Problem, state: State) -> State:
        return replace(state, weights=step(state.weights, state.evidence(), problem.priors))

    return update_weights


def update_scale(problem: Problem, state: State) -> State:
    """
    Move all factors to the best common scale: sample weights and intermediate outputs times c, kernel weights over c.

    The predictor does not see such a change, so the likelihood cannot oppose it; but factors that are updated in turn
    only creep along it. Here the best c is found in closed form (derivation, section 5), and the bound cannot fall.
    """
    if isinstance(problem.priors.intermediate, Gamma):
        state = _push(problem.priors, problem.priors.intermediate, state)
    return _move_means(state)


def _move_means(state: State) -> State:
    r"""
    Move the means alone, where the scale of the intermediate outputs is known.

    As a function of c, twice the negative bound is a constant plus :math:`A c^2 + X c + E c^{-2}`, with

    .. math:: A &= \sum_o \tilde{\boldsymbol\lambda}^\top \mu_a^2 + \tilde\upsilon\,\lVert\tilde{\mathbf G} -
              \mathbf K\mu_a\rVert^2 + \tilde\tau \operatorname{tr}(\Sigma_e\tilde{\mathbf G}\tilde{\mathbf G}^\top)\\
              X &= \sum_o 2\tilde\tau\,\Sigma_{eb}^\top\sum_i\tilde{\boldsymbol g}_i, \qquad
              E = \tilde{\boldsymbol\omega}^\top\mu_e^2 + \sum_o \tilde\tau N \mu_e^\top\Sigma(\boldsymbol g)\mu_e
    """
    A, X, E = 0.0, 0.0, state.weights.mean_cost
    for index, here in enumerate(state.blocks):
        G, tau, weights = here.intermediate, here.tau, state.weights.moments(index)
        A += float(np.sum(here.sample_precision.mean * here.sample.mean**2) + here.upsilon @ G.sums.residual)
        A += float(tau @ G.quadratic_mean(weights.covariance))
        X += float(2.0 * tau @ np.einsum("ml,lm->l", weights.cross, G.sums.total))
        E += float(tau @ G.spread_along(weights.mean))
    return _scaled(state, _root(A, X, E), spread=False)


def _root(A: float, X: float, E: float) -> float:
    """Minimise A c² + X c + E / c² over positive c: a convex function."""
    if not (A > 0.0 and E > 0.0 and np.isfinite([A, X, E]).all()):
        return 1.0

    def slope(c: float) -> float:
        # Times c³: a product neither divides by zero nor overflows with an error.
        return c * c * c * (2.0 * A * c + X) - 2.0 * E

    with np.errstate(all="ignore"):
        low = high = float(np.divide(E, A) ** 0.25)
    if not 0.0 < low < np.inf:
        return 1.0
    while slope(low) > 0.0:
        low /= 2.0
    while slope(high) < 0.0:
        high *= 2.0
    # At the ends of the range of numbers, products may have left it.
    if not (np.isfinite([low, high]).all() and slope(low) <= 0.0 <= slope(high)):
        return 1.0
    return float(brentq(slope, low, high)) if low < high else low


def _push(priors: Priors, intermediate: Gamma, state: State) -> State:
    r"""
    Transform all factors, covariances and precisions included, where the scale of the intermediate outputs is learned.

    Only the priors of the precisions notice: with :math:`x = c^2` the bound has the terms

    .. math:: (\alpha_\omega P - \alpha_\lambda D - \alpha_\upsilon) \log x
              - \frac{1}{x} \Big(\frac{\sum\tilde\lambda}{\beta_\lambda} + \frac{\tilde\upsilon}{\beta_\upsilon}\Big)
              - x\,\frac{\sum\tilde\omega}{\beta_\omega}
    """
    shrinking = [(block.sample_precision.mean, priors.sample) for block in state.blocks]
    shrinking += [(block.intermediate_precision.mean, intermediate) for block in state.blocks]
    growing = state.weights.precision_mean
    n = _count(growing, priors.kernel) - sum(_count(mean, prior) for mean, prior in shrinking)
    less, more = sum(_cost(mean, prior) for mean, prior in shrinking), _cost(growing, priors.kernel)
    # The positive root of more·x² − n·x − less, in the form that does not cancel.
    discriminant = float(np.sqrt(n**2 + 4.0 * more * less))
    x = (n + discriminant) / (2.0 * more) if n > 0.0 else 2.0 * less / (discriminant - n)
    return _scaled(state, float(np.sqrt(x)), spread=True)


def _count(mean: Array, prior: Gamma) -> float:
    return float(np.sum(np.broadcast_to(prior.shape, mean.shape)))


def _cost(mean: Array, prior: Gamma) -> float:
    return float(np.sum(mean / np.asarray(prior.scale)))


def _scaled(state: State, factor: float, *, spread: bool) -> State:
    """Apply a scale; with the spread, to covariances and precisions too."""
    if not np.isfinite(factor) or factor <= 0.0:
        return state
    factor = float(np.clip(factor, 1.0 / _LARGEST, _LARGEST))
    weights = state.weights.scaled(1.0 / factor, spread=spread)
    blocks = []
    for here in state.blocks:
        # The predictor has not moved: who has seen it with the old weights has seen it with the new ones.
        seen = weights if here.seen is state.weights else here.seen
        blocks.append(replace(here.scaled(factor, spread=spread), seen=seen))
    return State(tuple(blocks), weights)
