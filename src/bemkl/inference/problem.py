"""What is fitted: blocks of data that share kernel weights, their priors, and the strategies to use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bemkl.inference.pair import JointMeans
from bemkl.inference.priors import Priors
from bemkl.inference.protocols import (
    AnyLikelihood,
    AnyPairStrategy,
    AnyWeightStrategy,
    Likelihood,
    PairStrategy,
    Stack,
    WeightStrategy,
)
from bemkl.inference.weights import Free

ASYMMETRY_TOLERANCE = 1e-6
"""Largest relative difference across the diagonal of a square training kernel."""

_PLUG_INS = {
    "stack": (Stack, "DenseStack(kernels)"),
    "likelihood": (Likelihood, "Probit(y) or Gaussian(y)"),
    "pair": (PairStrategy, "JointMeans() or Plain()"),
    "weights": (WeightStrategy, "Free()"),
}


def require_plug_in(name: str, plug_in: Any) -> None:
    """Refuse an object that lacks what the engine asks of its kind of plug-in."""
    protocol, example = _PLUG_INS[name]
    if isinstance(plug_in, type):
        raise ValueError(f"{name}: expected an object, got the class {plug_in.__name__} itself. Pass {example}.")
    members = [member for member in vars(protocol) if not member.startswith("_")]
    missing = [member for member in members if not hasattr(plug_in, member)]
    if missing:
        raise ValueError(
            f"{name}: {plug_in!r} cannot be used as a {name}, it lacks {', '.join(missing)}. Pass {example}."
        )


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """
    Samples with their kernels and labels or responses; a task of multitask learning is a block.

    Parameters
    ----------
    stack : Stack
        Training kernels.
    likelihood : Likelihood
        Labels or responses of the same samples, one or more outputs.
    landmarks : bool
        Set it where the columns of the kernels are chosen basis points and happen to be as many as the samples.
        Otherwise square kernels have to be symmetric, because their columns are the samples.

    Examples
    --------
    >>> import numpy as np
    >>> from bemkl.inference import Gaussian
    >>> from bemkl.kernels import DenseStack
    >>> block = Block(DenseStack(np.eye(3)[None]), Gaussian([0.5, 1.0, -1.0]))
    """

    stack: Stack
    likelihood: AnyLikelihood
    landmarks: bool = False

    def __post_init__(self) -> None:
        """Refuse parts that do not fit each other."""
        require_plug_in("stack", self.stack)
        require_plug_in("likelihood", self.likelihood)
        _, n_samples, n_basis = self.stack.shape
        if n_samples != self.likelihood.n_samples:
            raise ValueError(
                f"likelihood: has {self.likelihood.n_samples} samples, but the stack has kernels of {n_samples}. "
                "Pass the labels or responses of the rows of the kernels, in the same order."
            )
        if n_samples < 2:
            raise ValueError("stack: expected at least 2 samples, got 1. A model cannot be learned from one sample.")
        if n_samples == n_basis and not self.landmarks:
            asymmetry = self.stack.asymmetries().max()
            if asymmetry > ASYMMETRY_TOLERANCE:
                raise ValueError(
                    f"stack: square training kernels have to be symmetric, got a relative asymmetry of "
                    f"{asymmetry:.2g}. Average each kernel with its transpose if that is noise, or pass landmarks=True "
                    "if the columns are chosen basis points rather than the samples."
                )


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
    pair: AnyPairStrategy = field(default_factory=JointMeans)

    def __post_init__(self) -> None:
        """Refuse blocks that cannot share kernel weights."""
        if not isinstance(self.blocks, Iterable):
            raise ValueError(f"blocks: expected a sequence of blocks, got {self.blocks!r}. Pass [block].")
        object.__setattr__(self, "blocks", tuple(self.blocks))
        for position, block in enumerate(self.blocks):
            if not isinstance(block, Block):
                raise ValueError(f"blocks: expected Block objects, got {block!r} at position {position}.")
        counts = [block.stack.shape[0] for block in self.blocks]
        if not counts or min(counts) != max(counts):
            raise ValueError(
                f"blocks: expected one or more blocks with the same kernels, got blocks with {counts} kernels. "
                "Blocks share the kernel weights, so each needs the same list of kernels."
            )
        if not isinstance(self.priors, Priors):
            raise ValueError(f"priors: expected a Priors object, got {self.priors!r}.")
        require_plug_in("weights", self.weights)
        require_plug_in("pair", self.pair)

    @property
    def n_kernels(self) -> int:
        """Number of kernels."""
        return self.blocks[0].stack.shape[0]

    @property
    def n_rows(self) -> int:
        """Most rows that a matrix has: the largest number of kernels, samples or basis points."""
        return max(size for block in self.blocks for size in block.stack.shape)

    @property
    def n_outputs(self) -> tuple[int, ...]:
        """Number of outputs of each block."""
        return tuple(block.likelihood.n_outputs for block in self.blocks)

    @property
    def n_observations(self) -> int:
        """Number of observed labels or responses."""
        return sum(block.likelihood.n_samples * block.likelihood.n_outputs for block in self.blocks)
