"""Arrays of MATLAB's version 5 format, by a reader that a damaged file cannot lead outside of it."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

_HEADER = 128
_MATRIX, _COMPRESSED = 14, 15
_NUMERIC = range(6, 16)
_COMPLEX = 0x800
_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}


class _Part(NamedTuple):
    """A type, the content, and where the next part begins."""

    kind: int
    content: memoryview
    end: int


def byte_order(start: bytes) -> str:
    """Tell whether a file is of this format, and how its numbers are written."""
    return {b"\x00\x01IM": "<", b"\x01\x00MI": ">"}.get(start[124:_HEADER], "")


def read_version_5(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Read the two-dimensional real arrays of a file; what else there is in it is left out."""
    arrays = {}
    with path.open("rb") as file:
        order = byte_order(file.read(_HEADER))
        for content in _variables(file, path.stat().st_size, order):
            named = _read_array(content, order)
            if named is not None:
                arrays[named[0]] = named[1]
    return arrays


def _variables(file: IO[bytes], size: int, order: str) -> Iterator[memoryview]:
    """Yield the content of each variable, no more of them in memory than one."""
    while file.tell() < size:
        tag = file.read(8)
        if len(tag) < 8:
            raise ValueError("it ends inside a variable")
        kind, n_bytes = struct.unpack(order + "II", tag)
        if n_bytes > size - file.tell():
            raise ValueError(f"a variable has {n_bytes:,} bytes, and only {size - file.tell():,} follow")
        content = file.read(n_bytes)
        if kind == _COMPRESSED:
            kind, inner, _ = _part(memoryview(zlib.decompress(content)), 0, order)
        else:
            inner = memoryview(content)
        if kind == _MATRIX:
            yield inner


def _read_array(content: memoryview, order: str) -> tuple[str, npt.NDArray[Any]] | None:
    """Return name and values of a variable, or nothing for one that is no matrix of real numbers."""
    flags = _part(content, 0, order)
    (flag,) = struct.unpack_from(order + "I", flags.content)
    if flag & 0xFF not in _NUMERIC or flag & _COMPLEX:
        return None
    sizes = _part(content, flags.end, order)
    shape = struct.unpack(f"{order}{len(sizes.content) // 4}i", sizes.content)
    named = _part(content, sizes.end, order)
    if len(shape) != 2 or not named.content.nbytes:
        return None
    stored = _part(content, named.end, order)
    if stored.kind not in _NUMBERS:
        raise ValueError(f"numbers of the type {stored.kind}")
    values = np.frombuffer(stored.content, f"{order}{_NUMBERS[stored.kind]}")
    if min(shape) < 0 or len(values) != shape[0] * shape[1]:
        raise ValueError(f"a matrix of shape {shape} has {len(values):,} numbers")
    return bytes(named.content).decode("latin-1"), values.astype(values.dtype.newbyteorder("=")).reshape(
        shape, order="F"
    )


def _part(content: memoryview, start: int, order: str) -> _Part:
    """Read a part of a variable; small ones have their content inside the tag."""
    if len(content) < start + 8:
        raise ValueError("it ends inside a variable")
    kind, size = struct.unpack_from(order + "II", content, start)
    begin, end = start + 8, start + 8 + -(-size // 8) * 8
    if kind >> 16:
        kind, size, begin, end = kind & 0xFFFF, kind >> 16, start + 4, start + 8
    if begin + size > len(content):
        raise ValueError(f"a part has {size:,} bytes, and only {len(content) - begin:,} follow")
    return _Part(kind, content[begin : begin + size], end)
