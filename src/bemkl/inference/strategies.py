"""What the engine asks of its strategies: ways to update the pair (a, G), and families of kernel weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from bemkl.inference.block_state import BlockState
from bemkl.inference.evidence import Evidence
from bemkl.inference.moments import WeightMoments
from bemkl.inference.priors import Priors

PairStep = Callable[[BlockState, WeightMoments], BlockState]


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


WeightT = TypeVar("WeightT")
WeightStep = Callable[[WeightT, Sequence[Evidence], Priors], WeightT]


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

    def start(
        self, n_kernels: int, n_outputs: Sequence[int], priors: Priors, rng: np.random.Generator | None
    ) -> WeightT:
        """Return weights to begin with: equal ones, or random ones where a generator is given."""

    def adopt(self, weights: WeightT) -> WeightT:
        """Return weights of another run as this strategy goes on with them: under its own priors."""


AnyWeightStrategy = WeightStrategy[Any]
