"""Thin factors of many kernels, put together one at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from bemkl.arrays import Array
from bemkl.kernels.forms.protocol import Positions
from bemkl.kernels.forms.thin import ThinFactors

_NUMBERS = 2**20
"""Numbers in an array of factors: enough for few calls, and for large pages of memory, which cost less."""


class Gathering:
    """Thin factors on their way into a stack, copied one below the other."""

    def __init__(self, basis: Any) -> None:
        self._basis = basis  # positions of the basis points among the samples, or a slice of all of them
        self._array = np.empty((0, 0))
        self._ends, self._positions = [0], list[int]()
        self._found: list[tuple[Positions, ThinFactors]] = []

    def add(self, position: int, factor: Array) -> None:
        """Copy the factor of the kernel that has a position in the stack. Shapes: factor (rank, n_samples)."""
        rank, n_samples = factor.shape
        if self._ends[-1] + rank > len(self._array):
            self._close()
            self._array = np.empty((max(rank, _NUMBERS // n_samples), n_samples))
        self._array[self._ends[-1] : self._ends[-1] + rank] = factor
        self._ends.append(self._ends[-1] + rank)
        self._positions.append(position)

    def forms(self) -> Iterator[tuple[Positions, ThinFactors]]:
        """Return the kernels with their positions."""
        self._close()
        yield from self._found

    def _close(self) -> None:
        """Keep the factors of an array, whose other rows never cost memory."""
        if self._positions:
            left = self._array[: self._ends[-1]]
            right = left if isinstance(self._basis, slice) else np.ascontiguousarray(left[:, self._basis])
            thin = ThinFactors(left, right, np.array(self._ends[1:], dtype=np.intp))
            self._found.append((np.array(self._positions, dtype=np.intp), thin))
        self._ends, self._positions = [0], []
