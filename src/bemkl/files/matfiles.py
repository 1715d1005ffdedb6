"""Numeric arrays of MATLAB files, of the old format and of version 7.3."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.io import loadmat

_Arrays = dict[str, npt.NDArray[Any]]


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
        If it is no such file.
    ImportError
        If it needs h5py, which is not installed.
    """
    try:
        stored = loadmat(path)
    except NotImplementedError:
        stored = _read_version_73(path)
    except Exception as error:
        raise ValueError(f"{path.name}: not a MATLAB file, or a damaged one ({error}). Download it again.") from None
    return {name: array for name, array in stored.items() if not name.startswith("_") and _is_numeric(array)}


def _read_version_73(path: Path) -> _Arrays:
    try:
        import h5py
    except ImportError:
        raise ImportError(f"{path.name} is a file of MATLAB 7.3, which h5py reads: pip install h5py.") from None
    with h5py.File(path, "r") as file:
        arrays = {name: item for name, item in file.items() if isinstance(item, h5py.Dataset)}
        # MATLAB writes column by column: the axes come in reverse.
        return {name: item[()].T for name, item in arrays.items() if _is_numeric(item)}


def _is_numeric(array: Any) -> bool:
    return getattr(array, "ndim", 0) == 2 and np.dtype(array.dtype).kind in "fiu"
