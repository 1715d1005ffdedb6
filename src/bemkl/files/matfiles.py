"""Numeric arrays of MATLAB files, of the versions 4, 5 and 7.3."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.io import loadmat, whosmat

from bemkl.files.numpyfiles import refuse_impossible
from bemkl.visible import one_line

_Arrays = dict[str, npt.NDArray[Any]]
_HEADER = 128
_MATRIX, _COMPRESSED = 14, 15
_NUMERIC = range(6, 16)
_COMPLEX = 0x800
_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}


def read_matfile(path: Path) -> _Arrays:
    """Read the two-dimensional numeric arrays of a file; what else there is in it is left out."""
    try:
        stored = _read(path)
    except (ImportError, MemoryError):
        raise
    # What a damaged file makes SciPy and h5py raise is of many kinds.
    except Exception as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise
        message = f"{path.name}: not a MATLAB file, or a damaged one ({one_line(error)}). Download it again."
        raise ValueError(message) from None
    return {name: array for name, array in stored.items() if not name.startswith("_") and _is_numeric(array)}


def _read(path: Path) -> _Arrays:
    with path.open("rb") as file:
        start = file.read(128)
    if byte_order(start):
        return read_version_5(path)
    if start[124:126] in (b"\x00\x02", b"\x02\x00"):
        return _read_version_73(path)
    # SciPy reads version 4 without trouble; in a damaged file of version 5 it can end the process.
    refuse_impossible(path, sum(math.prod(shape) for _, shape, _ in whosmat(path)))
    return {name: values for name, values in loadmat(path).items() if isinstance(values, np.ndarray)}


def _read_version_73(path: Path) -> _Arrays:
    try:
        import h5py
    except ImportError:
        raise ImportError(f"{path.name} is a file of MATLAB 7.3, which h5py reads: pip install h5py.") from None
    with h5py.File(path, "r") as file:
        # Links to other files, and arrays that are in them, are none of this file.
        own = {name: file[name] for name in file if isinstance(file.get(name, getlink=True), h5py.HardLink)}
        arrays = {name: item for name, item in own.items() if isinstance(item, h5py.Dataset) and _is_numeric(item)}
        arrays = {name: item for name, item in arrays.items() if item.external is None and not item.is_virtual}
        refuse_impossible(path, sum(item.nbytes for item in arrays.values()))
        # MATLAB writes column by column: the axes come in reverse.
        return {name: item[()].T for name, item in arrays.items()}


def _is_numeric(array: Any) -> bool:
    return getattr(array, "ndim", 0) == 2 and np.dtype(array.dtype).kind in "fiu"


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
