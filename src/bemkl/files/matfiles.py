"""Numeric arrays of MATLAB files, of the old format and of version 7.3."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.io import loadmat, whosmat

from bemkl.files.numpyfiles import refuse_impossible
from bemkl.visible import one_line

_Arrays = dict[str, npt.NDArray[Any]]
_NUMERIC = ("double", "single", "logical", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)))


def read_matfile(path: Path) -> _Arrays:
    """
    Read the two-dimensional numeric arrays of a file; what else there is in it is left out.

    Parameters
    ----------
    path : Path
        The file. Version 7.3 is a format of its own, which h5py reads.

    Returns
    -------
    dict of ndarray
        The arrays by the names of the variables, in the precision of the file.

    Raises
    ------
    ValueError
        If it is no such file, or claims to hold more than it can.
    ImportError
        If it needs h5py, which is not installed.
    """
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
    try:
        listed = whosmat(path)
    except NotImplementedError:
        return _read_version_73(path)
    names = [name for name, shape, kind in listed if len(shape) == 2 and kind in _NUMERIC]
    # A number may take no more than one byte of the file, before it is compressed.
    refuse_impossible(path, sum(math.prod(shape) for name, shape, _ in listed if name in names))
    arrays: _Arrays = loadmat(path, variable_names=names) if names else {}
    return arrays


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
