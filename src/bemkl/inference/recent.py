"""Stacks that remember what was made of them last, for as long as a run lasts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from bemkl.arrays import Array
from bemkl.inference.graded import graded_qr
from bemkl.inference.protocols import Stack

T = TypeVar("T")

_BLOCK_BYTES = 32 * 2**20


class RecentStack:
    """A stack that remembers the sum for its last weights, and one more thing that was made of it."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self.shape, self.asymmetries = stack.shape, stack.asymmetries
        self.project, self.backproject = stack.project, stack.backproject
        self.gram, self.rows = stack.gram, stack.rows
        self._sum: tuple[Array, Array] | None = None
        self._made: tuple[object, Any] | None = None
        self._root: Array | None = None

    def combine_roughly(self, weights: Array) -> Array:
        """
        Approximate the weighted sum of the kernels, or return it again.

        Shapes: weights (n_kernels,); returns (n_samples, n_basis).
        """
        if self._sum is None or not np.array_equal(self._sum[0], weights):
            self._sum = None  # two such matrices are never needed at a time
            self._sum = weights.copy(), self._stack.combine_roughly(weights)
        return self._sum[1]

    def root(self) -> Array:
        """Return a root of the sum of squared kernels, made once. Shapes: returns (n_rows, n_basis)."""
        if self._root is None:
            self._root = root_of_gram(self._stack)
        return self._root

    def recall(self, settings: object, make: Callable[[], T]) -> T:
        """Make something of the kernels, or return what was made of the same settings last."""
        if self._made is None or self._made[0] is not settings:
            self._made = None
            self._made = settings, make()
        made: T = self._made[1]
        return made


def recall(stack: Stack, settings: object, make: Callable[[], T]) -> T:
    """Make something of a stack, or return what was made of the same settings last if the stack remembers."""
    return stack.recall(settings, make) if isinstance(stack, RecentStack) else make()


def root_of_gram(stack: Stack) -> Array:
    r"""
    Return S with :math:`\mathbf{S}^\top\mathbf{S} = \mathbf{C}`, from the kernels' rows.

    Shapes: returns (n_rows, n_basis).
    """
    n_basis = stack.shape[2]
    root = np.empty((0, n_basis))
    for rows in _row_blocks(stack):
        triangle, order = graded_qr(np.concatenate([root, rows]))
        root = np.empty_like(triangle)
        root[:, order] = triangle
    return root


def _row_blocks(stack: Stack) -> Iterator[Array]:
    """Yield the rows of all kernels, some samples at a time."""
    n_kernels, n_samples, n_basis = stack.shape
    step = max(1, _BLOCK_BYTES // (8 * n_kernels * n_basis))
    for first in range(0, n_samples, step):
        yield stack.rows(slice(first, min(first + step, n_samples))).reshape(-1, n_basis)


def recall_root(stack: Stack) -> Array:
    """
    Return a root of a stack's sum of squared kernels, made once if the stack remembers.

    Shapes: returns (n_rows, n_basis).
    """
    return stack.root() if isinstance(stack, RecentStack) else root_of_gram(stack)


def remembering(stacks: Sequence[Stack]) -> list[RecentStack]:
    """Return the same stacks with memories, those that they have already; what is one stack shares one."""
    memories = {id(stack): stack if isinstance(stack, RecentStack) else RecentStack(stack) for stack in stacks}
    return [memories[id(stack)] for stack in stacks]
