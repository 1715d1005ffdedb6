"""The sweep: every factor's update, in order. Each is a pure function from state to state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from bemkl.inference.block import BlockState
from bemkl.inference.problem import Problem
from bemkl.inference.scale import update_scale
from bemkl.inference.state import State
from bemkl.inference.strategies import PairStep, WeightStep

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
