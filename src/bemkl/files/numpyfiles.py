"""Arrays of NumPy on disk, read only where the file has as much in it as it claims."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from bemkl.files.problems import InputError
from bemkl.visible import one_line

_DENSEST = 1032
"""As many bytes the compression of ZIP, HDF5 and MATLAB can make of one."""

_KINDS = "fiubUS"

_Array = npt.NDArray[Any]


class _Header(NamedTuple):
    shape: tuple[int, ...]
    by_columns: bool
    dtype: np.dtype[Any]


def load_array(path: Path) -> Any:
    """Load an array of numbers or strings."""
    with path.open("rb") as file:
        try:
            is_archive = file.read(2) == b"PK"
            file.seek(0)
            if is_archive:
                return _read_members(path, file)
            header = _read_header(file)
            if header.dtype.kind not in _KINDS:
                raise InputError(f"{path}: expected numbers, got an array of {header.dtype}.", "Convert it to numbers.")
            return _read_body(file, header, path.stat().st_size - file.tell())
        except (MemoryError, InputError):
            raise
        # What a damaged file makes NumPy and zipfile raise is not documented, and is of a dozen kinds.
        except Exception as error:
            what = f"{path}: not a file of NumPy with numbers ({one_line(error, 120)})."
            raise InputError(what, "Save plain arrays with numpy.save or savez.") from None


def refuse_impossible(path: Path, n_bytes: int) -> None:
    """Refuse to make room for more than a file can hold, however well it is compressed."""
    size = path.stat().st_size
    if n_bytes > _DENSEST * size:
        raise ValueError(f"it claims {n_bytes:,} bytes of numbers, and has {size:,} itself")


def _read_members(path: Path, file: IO[bytes]) -> dict[str, _Array]:
    """Read the arrays of numbers and strings, and leave out the others."""
    with zipfile.ZipFile(file) as archive:
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist() if not info.is_dir()}
        for info in members.values():
            refuse_impossible(path, info.file_size)
        arrays = {}
        for name, info in members.items():
            with archive.open(info) as member:
                header = _read_header(member)
                if header.dtype.kind in _KINDS:
                    arrays[name] = _read_body(member, header, info.file_size - member.tell())
        return arrays


def _read_header(file: IO[bytes]) -> _Header:
    version = npy.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"version {version} is not for numbers")
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    try:
        return _Header(*read(file))
    except MemoryError:  # which Python's parser runs into where brackets or signs are nested by the thousand
        raise ValueError("its header is no header") from None


def _read_body(file: IO[bytes], header: _Header, n_left: int) -> _Array:
    """Read an array, if there are as many bytes as its header says."""
    n_bytes = math.prod(header.shape) * header.dtype.itemsize
    if min(header.shape, default=0) < 0 or n_bytes > n_left:
        claim = f"{header.dtype} of shape {header.shape}"
        raise ValueError(f"its header says {claim}, and only {n_left:,} bytes follow")
    order: Literal["F", "C"] = "F" if header.by_columns else "C"
    return np.ndarray(header.shape, header.dtype, file.read(n_bytes), order=order)
