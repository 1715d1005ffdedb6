"""What the engine asks of its strategies, and what the blocks tell these about the kernel weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from bemkl.arrays import Array
from bemkl.inference.block import BlockState
from bemkl.inference.matrices import Symmetric, is_dense
from bemkl.inference.moments import WeightMoments
from bemkl.inference.priors import Priors
from bemkl.inference.rows import InRows, ProfileSums, curvature_matrix, curve

_MANY = 200
"""Kernels from which some products with the rows cost less than the sum of their squares."""


class Evidence:
    """
    The part of Eq. (4) that comes from one block.

    Parameters
    ----------
    here : BlockState
        The block.
    """

    __slots__ = ("_here",)

    def __init__(self, here: BlockState) -> None:
        self._here = here

    @property
    def output_precision(self) -> Array:
        """Expected precisions of the targets, shape (n_outputs,)."""
        return self._here.tau

    @property
    def bias_precision(self) -> Array:
        """Precision that the samples give each bias, shape (n_outputs,)."""
        precision: Array = self._here.tau * self._here.intermediate.n_samples
        return precision

    @property
    def bias_kernel_precision(self) -> Array:
        """Precision that links each bias with the kernel weights, shape (n_outputs, n_kernels)."""
        precision: Array = self._here.tau[:, None] * self._here.intermediate.sums.total
        return precision

    @property
    def kernel_precision(self) -> Symmetric:
        """Precision that the samples give the kernel weights, of size n_kernels."""
        return self._here.intermediate.second_moment(self._here.tau)

    @property
    def bias_pull(self) -> Array:
        """Linear term of each bias, shape (n_outputs,)."""
        pull: Array = self._here.tau * self._here.targets.total
        return pull

    @property
    def kernel_pull(self) -> Array:
        """Linear term of the kernel weights, shape (n_kernels,)."""
        pull: Array = self._here.tau @ self._here.targets.pull
        return pull

    @property
    def kernel_spread(self) -> Symmetric:
        """The part of `kernel_precision` that comes from the covariances of the intermediate outputs."""
        return self._here.intermediate.summed_spread(self._here.tau)

    def profile(self, weights: WeightMoments) -> tuple[ProfileSums, Symmetric]:
        """
        Sum the derivatives of the bound in the predictor, with its targets at their optimum.

        Parameters
        ----------
        weights : WeightMoments
            Kernel weights and biases at whose means they are taken.

        Returns
        -------
        sums : ProfileSums
            The sums.
        matrix : Symmetric of size n_kernels
            Outer products of the intermediate outputs times the curvatures of their samples.
        """
        rows, sums = self._here.rows.run(curve, self._here.tau, weights.mean, weights.bias, False)
        return sums, rows.run(curvature_matrix, is_dense(self.kernel_spread))[1]

    def missing(self, weights: WeightMoments) -> tuple[ProfileSums, Symmetric | InRows]:
        """
        Return the same, with curvatures counted from the precision of the targets down.

        Parameters
        ----------
        weights : WeightMoments
            Kernel weights and biases at whose means they are taken.

        Returns
        -------
        sums : ProfileSums
            The sums.
        matrix : Symmetric of size n_kernels, or InRows
            Outer products of the intermediate outputs times what is missing, to be multiplied with vectors.
        """
        rows, sums = self._here.rows.run(curve, self._here.tau, weights.mean, weights.bias, True)
        if len(weights.mean) > _MANY:
            return sums, InRows(rows)
        return sums, rows.run(curvature_matrix, is_dense(self.kernel_spread))[1]


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
