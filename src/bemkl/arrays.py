"""The array type of the package, and the one check that turns user input into it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
"""A float64 array; shapes are in the docstrings."""


def finite_array(name: str, values: Any) -> Array:
    """
    Convert user input to a float64 array and refuse anything that is not a finite number.

    Parameters
    ----------
    name : str
        Argument to name in the error.
    values : array_like
        What the user passed.

    Returns
    -------
    ndarray of float64
        The values; the input itself where it already is such an array.

    Raises
    ------
    ValueError
        If the values are not numbers, or some are NaN or infinite.
    """
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name}: expected numbers, got {type(values).__name__} that NumPy cannot convert "
            f"({error}). Pass a numeric array."
        ) from None
    refuse_nonfinite(name, array)
    return array


def refuse_nonfinite(name: str, array: npt.NDArray[Any]) -> None:
    """
    Raise if an array holds NaN or infinity, and say where the first one is.

    Parameters
    ----------
    name : str
        Argument to name in the error.
    array : ndarray
        Values to look at.

    Raises
    ------
    ValueError
        If some value is NaN or infinite.
    """
    bad = ~np.isfinite(array)
    if bad.any():
        where = tuple(int(index) for index in np.argwhere(bad)[0])
        value = array[where]
        raise ValueError(
            f"{name}: expected finite numbers, got {value} at index {where} "
            f"({int(bad.sum())} of {array.size} values are NaN or infinite). "
            "Remove or impute them first."
        )
