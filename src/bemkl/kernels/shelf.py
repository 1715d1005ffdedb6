"""Rows of one length that are handed out from large arrays, so that what is written one after the other lies so."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from bemkl.arrays import Array

_VALUES = 2**18
"""Numbers in an array: many rows, and little memory that nobody needs. Pages of larger ones are dear the first time."""

_LEAST = 32
_MANY = 256
"""Rows of an array from which what the last factor leaves of it is little."""


class Shelf:
    """
    Room for thin factors whose ranks are not known beforehand.

    Memory that is new to a process costs more than the arithmetic that fills it; here failed attempts leave their room
    to the next ones, and factors need not be copied to lie side by side. Very long rows are copied after all, because
    few of them would fill an array.
    """

    def __init__(self, length: int) -> None:
        self._length = length
        self._free = np.empty((0, length))

    def room(self, most: int) -> Array:
        """Return rows to write to, which are not taken yet. Shapes: returns (n_rows, length)."""
        if len(self._free) < min(most, _LEAST):
            self._open(min(most, _LEAST))
        return self._free[:most]

    def more(self, written: Array, most: int) -> Array:
        """
        Move rows that have come to the end of their room to where there is more.

        Shapes: written (n_rows, length); returns (n_more_rows, length).
        """
        needed = min(most, max(_LEAST, 2 * len(written)))
        if not self._copies or needed > len(self._free):
            self._open(needed)
        self._free[: len(written)] = written
        return self._free[:most]

    def take(self, n_rows: int) -> Array:
        """Keep the first rows of the last room, or a copy of very long ones. Shapes: returns (n_rows, length)."""
        taken = self._free[:n_rows]
        if self._copies:
            return taken.copy()
        self._free = self._free[n_rows:]
        return taken

    @property
    def _copies(self) -> bool:
        """Whether rows are so long that what was taken leaves its room."""
        return _MANY * self._length > _VALUES

    def _open(self, least: int) -> None:
        self._free = np.empty((max(least, _VALUES // max(self._length, 1)), self._length))


def joined(parts: list[Array]) -> Array:
    """
    Put arrays of rows one below the other, without a copy where they already lie so.

    Shapes: parts (n_rows, length); returns (n_all_rows, length).
    """
    # Factors of rank 0 have no rows, and lie nowhere.
    parts = [part for part in parts if len(part)] or parts[:1]
    if len(parts) == 1:
        return np.ascontiguousarray(parts[0])
    whole, starts = parts[0].base, [_address(part) for part in parts]
    in_line = all(
        part.base is whole and part.flags.c_contiguous and part.shape[1] == parts[0].shape[1] for part in parts
    ) and all(after == before + part.nbytes for part, (before, after) in zip(parts, pairwise(starts), strict=False))
    if not in_line or not isinstance(whole, np.ndarray) or whole.strides != parts[0].strides:
        return np.concatenate(parts)
    first = (starts[0] - _address(whole)) // whole.strides[0]
    return whole[first : first + sum(len(part) for part in parts)]


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])
