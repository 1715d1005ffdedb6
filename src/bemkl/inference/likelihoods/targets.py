"""Targets at the door: from samples first to outputs first."""

from __future__ import annotations

from copy import copy
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from bemkl.arrays import Array, finite_array

T = TypeVar("T")


def part_of(likelihood: T, samples: slice, *names: str) -> T:
    """Return a likelihood of some samples: a copy whose arrays with these names have only those, on their last axis."""
    part = copy(likelihood)
    for name in names:
        setattr(part, name, getattr(likelihood, name)[..., samples].copy())  # not a view of all samples
    return part


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
