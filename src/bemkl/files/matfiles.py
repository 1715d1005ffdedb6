"""Numeric arrays of MATLAB files, of the versions 4, 5 and 7.3."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.io import loadmat, whosmat

from bemkl.files.matfive import byte_order, read_version_5
from bemkl.files.numpyfiles import refuse_impossible
from bemkl.visible import one_line

_Arrays = dict[str, npt.NDArray[Any]]


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
