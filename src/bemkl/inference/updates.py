"""The sweep: every factor's update, in order. Each is a pure function from state to state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from bemkl.distributions import PointMass
from bemkl.inference.problem import Problem
from bemkl.inference.protocols import AnyLikelihood, PairStep, WeightStep
from bemkl.inference.scale import update_scale
from bemkl.inference.state import BlockState, State
from bemkl.inference.summaries import Predictor

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
    return _each_block(
        state, lambda _, block: replace(block, sample_precision=prior.posterior(1, block.pair.sample_second))
    )


def update_intermediate_precision(problem: Problem, state: State) -> State:
    r"""Update :math:`q(\upsilon)` (derivation, section 3): one precision for all intermediate outputs of an output."""
    prior = problem.priors.intermediate

    def update(index: int, block: BlockState) -> BlockState:
        if isinstance(prior, PointMass):
            return replace(block, intermediate_precision=prior)
        n_kernels, n_samples, _ = problem.blocks[index].stack.shape
        return replace(block, intermediate_precision=prior.posterior(n_kernels * n_samples, block.pair.residual))

    return _each_block(state, update)


def update_output_precision(problem: Problem, state: State) -> State:
    """Update the noise precision of every likelihood that has one."""
    return _each_output(problem, state, lambda likelihood: likelihood.update_precision)


def update_output_target(problem: Problem, state: State) -> State:
    """Update the targets of every likelihood that does not observe them."""
    return _each_output(problem, state, lambda likelihood: likelihood.update_target)


def _each_output(
    problem: Problem, state: State, update_of: Callable[[AnyLikelihood], Callable[[Any, Predictor], Any]]
) -> State:
    """Replace every block's output factor by what its likelihood's update makes of it."""

    def update(index: int, block: BlockState) -> BlockState:
        update_output = update_of(problem.blocks[index].likelihood)
        return replace(block, output=update_output(block.output, state.predictor(index)))

    return _each_block(state, update)


def _pair_update(step: PairStep[Any]) -> Update:
    def update_pair(problem: Problem, state: State) -> State:
        return _each_block(
            state,
            lambda index, block: replace(
                block, pair=step(problem.blocks[index].stack, block.pair, state.context(problem, index))
            ),
        )

    return update_pair


def _weight_update(step: WeightStep[Any]) -> Update:
    def update_weights(problem: Problem, state: State) -> State:
        return replace(state, weights=step(state.weights, state.evidence(problem), problem.priors))

    return update_weights
