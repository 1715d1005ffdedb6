"""Targets at the door: from samples first to outputs first."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bemkl.arrays import Array, finite_array


def outputs_first(name: str, values: npt.ArrayLike) -> Array:
    """
    Check targets and give every output a row of its own.

    Shapes: values (n_samples,) or (n_samples, n_outputs); returns (n_outputs, n_samples).
    """
    array = finite_array(name, values)
    if array.ndim not in (1, 2) or 0 in array.shape:
        raise ValueError(
            f"{name}: expected shape (n_samples,) or (n_samples, n_outputs), got {array.shape}. "
            "Put samples in rows and outputs in columns."
        )
    return np.array(np.atleast_2d(array.T), order="C")
