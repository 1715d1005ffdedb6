"""The variational posterior of all blocks, in a run and after it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bemkl.inference.block_state import BlockPosterior, BlockState
from bemkl.inference.evidence import Evidence
from bemkl.inference.protocols import WeightPosterior


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """
    The whole posterior without the samples: what a fitted model keeps. It can start a run.

    Parameters
    ----------
    blocks : tuple of BlockPosterior
        Factors of each block.
    weights : WeightPosterior
        Factors that the blocks share: biases, kernel weights and their precisions.
    """

    blocks: tuple[BlockPosterior, ...]
    weights: WeightPosterior


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """
    The whole posterior in a run.

    Parameters
    ----------
    blocks : tuple of BlockState
        Factors of each block, with its samples.
    weights : WeightPosterior
        Factors that the blocks share: biases, kernel weights and their precisions.
    """

    blocks: tuple[BlockState, ...]
    weights: WeightPosterior

    def evidence(self) -> tuple[Evidence, ...]:
        """
        Collect what the blocks say about biases and kernel weights.

        Returns
        -------
        tuple of Evidence
            One a block.
        """
        return tuple(Evidence(block) for block in self.blocks)

    def observed(self) -> State:
        """
        Look at all targets with the kernel weights as they are.

        Returns
        -------
        State
            The same posterior.
        """
        seen = [block.observed(self.weights, self.weights.moments(i)) for i, block in enumerate(self.blocks)]
        return replace(self, blocks=tuple(seen))

    def posterior(self) -> Posterior:
        """
        Return the posterior without the samples.

        Returns
        -------
        Posterior
            What a fitted model keeps.
        """
        return Posterior(tuple(block.posterior() for block in self.blocks), self.weights)
