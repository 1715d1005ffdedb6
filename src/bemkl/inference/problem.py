"""What is fitted: blocks of data that share kernel weights, their priors, and the strategies to use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from bemkl.distributions import Priors
from bemkl.inference.block import Block, BlockState, PairStep, WeightStep, WeightT
from bemkl.inference.moments import WeightMoments
from bemkl.inference.newton.joint_means import JointMeans
from bemkl.inference.protocols import require_plug_in
from bemkl.inference.weights.free import Free


class PairStrategy(Protocol):
    """One way to update the pair (a, G) of a block with everything else fixed."""

    @property
    def steps(self) -> Mapping[str, PairStep]:
        """Updates by name, in order."""

    @property
    def cautious(self) -> PairStrategy:
        """The same family with steps that cannot lower the bound; itself where none can."""

    def start(self, here: BlockState, weights: WeightMoments) -> BlockState:
        """Return a block with a pair to begin with, from one whose means are zero."""


class WeightStrategy(Protocol[WeightT]):
    """One family of posteriors for biases, kernel weights and their precisions."""

    @property
    def steps(self) -> Mapping[str, WeightStep[WeightT]]:
        """Updates by name, in order."""

    @property
    def cautious(self) -> WeightStrategy[WeightT]:
        """The same family with steps that cannot lower the bound; itself where none can."""

    @property
    def balanced(self) -> bool:
        """Whether sweeps end with a search for the best scale of kernel weights against all other factors."""

    @property
    def shared(self) -> bool:
        """Whether all blocks have the same kernel weights."""

    @property
    def poolable(self) -> bool:
        """Whether `Pooled` is this family for weights of blocks around common ones."""

    def start(
        self, n_kernels: int, n_outputs: Sequence[int], priors: Priors, rng: np.random.Generator | None
    ) -> WeightT:
        """Return weights to begin with: equal ones, or random ones where a generator is given."""

    def adopt(self, weights: WeightT) -> WeightT:
        """Return weights of another run as this strategy goes on with them: under its own priors."""


AnyWeightStrategy = WeightStrategy[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """
    Blocks that share kernel weights, with priors and strategies.

    Parameters
    ----------
    blocks : sequence of Block
        One block for a single task, several for multitask learning.
    priors : Priors
        Priors of the precisions.
    weights : WeightStrategy
        Family of posteriors of the kernel weights.
    pair : PairStrategy
        How the sample weights and intermediate outputs are updated.

    Examples
    --------
    >>> import numpy as np
    >>> from bemkl.inference import Probit
    >>> from bemkl.kernels import DenseStack
    >>> problem = Problem([Block(DenseStack(np.eye(3)[None]), Probit([1, -1, 1]))])
    >>> problem.n_kernels, problem.n_outputs
    (1, (1,))
    """

    blocks: Sequence[Block]
    priors: Priors = field(default_factory=Priors)
    weights: AnyWeightStrategy = field(default_factory=Free)
    pair: PairStrategy = field(default_factory=JointMeans)

    def __post_init__(self) -> None:
        """Refuse blocks that cannot share kernel weights."""
        if not isinstance(self.blocks, Iterable):
            raise ValueError(f"blocks: expected a sequence of blocks, got {self.blocks!r}. Pass [block].")
        object.__setattr__(self, "blocks", tuple(self.blocks))
        for position, block in enumerate(self.blocks):
            if not isinstance(block, Block):
                raise ValueError(f"blocks: expected Block objects, got {block!r} at position {position}.")
        counts = [block.shape[0] for block in self.blocks]
        if not counts or min(counts) != max(counts):
            raise ValueError(
                f"blocks: expected one or more blocks with the same kernels, got blocks with {counts} kernels. "
                "Blocks share the kernel weights, so each needs the same list of kernels."
            )
        if not isinstance(self.priors, Priors):
            raise ValueError(f"priors: expected a Priors object, got {self.priors!r}.")
        require_plug_in("weights", self.weights, WeightStrategy, "Free()")
        require_plug_in("pair", self.pair, PairStrategy, "JointMeans() or Plain()")

    @property
    def n_kernels(self) -> int:
        """Number of kernels."""
        return self.blocks[0].shape[0]

    @property
    def n_rows(self) -> int:
        """Most rows that a matrix has: the largest number of kernels, samples or basis points."""
        return max(size for block in self.blocks for size in block.shape)

    @property
    def n_outputs(self) -> tuple[int, ...]:
        """Number of outputs of each block."""
        return tuple(block.n_outputs for block in self.blocks)

    @property
    def n_observations(self) -> int:
        """Number of observed labels or responses."""
        return sum(block.likelihood.n_samples * block.n_outputs for block in self.blocks)
