"""The variational posterior: one object a factor, grouped by block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from bemkl.arrays import Array
from bemkl.distributions import Precision
from bemkl.inference.moments import PairContext, Profile, WeightMoments
from bemkl.inference.posteriors import Output, PairPosterior, WeightPosterior
from bemkl.inference.problem import Problem
from bemkl.inference.summaries import Evidence, Predictor


@dataclass(frozen=True, slots=True, eq=False)
class BlockState:
    r"""
    Factors that belong to one block.

    Parameters
    ----------
    sample_precision : Precision
        Factor of :math:`\lambda`, entries of shape (n_outputs, n_basis).
    intermediate_precision : Precision
        Factor of :math:`\upsilon`, entries of shape (n_outputs,), or one known value.
    pair : PairPosterior
        Factor of sample weights a and intermediate outputs G.
    output : Output
        Factor of the likelihood.
    """

    sample_precision: Precision
    intermediate_precision: Precision
    pair: PairPosterior
    output: Output

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return len(self.output.target)


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """
    The whole posterior. Any state can start a run.

    Parameters
    ----------
    blocks : tuple of BlockState
        Factors of each block.
    weights : WeightPosterior
        Factors that the blocks share: biases, kernel weights and their precisions.
    """

    blocks: tuple[BlockState, ...]
    weights: WeightPosterior

    def context(self, problem: Problem, block: int) -> PairContext:
        """
        Collect what the pair of one block depends on.

        Parameters
        ----------
        problem : Problem
            What is fitted.
        block : int
            Which block.

        Returns
        -------
        PairContext
            The expectations.
        """
        here = self.blocks[block]
        profile = partial(problem.blocks[block].likelihood.profile, here.output)
        return pair_context(
            here.sample_precision, here.intermediate_precision, here.output, self.weights.moments(block), profile
        )

    def predictor(self, block: int) -> Predictor:
        """
        Return the predictor at the training samples of one block.

        Parameters
        ----------
        block : int
            Which block.

        Returns
        -------
        Predictor
            Its moments, computed when asked for.
        """
        return Predictor(self.blocks[block].pair, self.weights.moments(block))

    def evidence(self, problem: Problem) -> tuple[Evidence, ...]:
        """
        Collect what the blocks say about biases and kernel weights.

        Parameters
        ----------
        problem : Problem
            What is fitted.

        Returns
        -------
        tuple of Evidence
            One a block.
        """
        return tuple(
            Evidence(here.pair, here.output, partial(block.likelihood.profile, here.output))
            for here, block in zip(self.blocks, problem.blocks, strict=True)
        )


def pair_context(
    sample_precision: Precision,
    intermediate_precision: Precision,
    output: Output,
    weights: WeightMoments,
    profile: Callable[[Array], Profile],
) -> PairContext:
    """Collect what a pair depends on from the factors around it."""
    return PairContext(
        sample_precision=sample_precision.mean,
        intermediate_precision=np.broadcast_to(intermediate_precision.mean, output.precision.shape),
        output_precision=output.precision,
        target=output.target,
        weights=weights,
        profile=profile,
    )


def check_state(problem: Problem, state: State) -> None:
    """Refuse a state that does not belong to a problem."""
    if not isinstance(state, State):
        raise ValueError(f"state: expected a State, got {state!r}. Pass the state of another fit, or leave it out.")
    expected = [_signature(block.likelihood.start(), *block.stack.shape) for block in problem.blocks]
    found = [
        _signature(block.output, *block.pair.intermediate_mean.shape[1:], block.pair.sample_mean.shape[1])
        for block in state.blocks
    ]
    learned = [type(problem.priors.intermediate)] * len(expected)
    if expected != found or learned != [type(block.intermediate_precision) for block in state.blocks]:
        raise ValueError(
            "state: its blocks (kind of output, n_outputs, n_kernels, n_samples, n_basis) "
            f"{found} do not fit a problem with blocks {expected} "
            f"and a {learned[0].__name__} for the intermediate precision. Start from a state of the same problem."
        )
    family = type(problem.weights.start(problem.n_kernels, problem.n_outputs, problem.priors, None))
    if type(state.weights) is not family:
        raise ValueError(
            f"state: has {type(state.weights).__name__} where the problem has {family.__name__}. "
            "Start from a state of the same family of weights."
        )
    for index, n_outputs in enumerate(problem.n_outputs):
        weights = state.weights.moments(index)
        if weights.cross.shape != (problem.n_kernels, n_outputs):
            raise ValueError(
                f"state: weights of shape (n_kernels, n_outputs) {weights.cross.shape} in block {index} do not fit "
                f"{(problem.n_kernels, n_outputs)}. Start from a state of the same problem."
            )


def _signature(output: Output, *shape: int) -> tuple[str, int, int, int, int]:
    n_kernels, n_samples, n_basis = shape
    n_outputs, n_targets = output.target.shape
    kind = type(output).__name__ if n_targets == n_samples else f"{type(output).__name__} of {n_targets} samples"
    return kind, n_outputs, n_kernels, n_samples, n_basis
