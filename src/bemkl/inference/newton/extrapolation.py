"""Over-relaxation: means that are updated in turn go on beyond where each of them alone would stop."""

from __future__ import annotations

import numpy as np

from bemkl._numerics.linalg import add_times
from bemkl.arrays import Array

RELAXATION = 1.3
"""
How far bold steps go. Updating two groups of means in turn closes a share of the remaining distance each time; going on
in the same direction closes more, and any factor below 2 keeps the quadratic part of the bound from falling. On the
paper's banks 1.2 to 1.4 are good (derivation, section 5).
"""


def beyond(old: Array, new: Array, relaxation: float = RELAXATION) -> Array:
    """Go from old to new means, and on in the same direction; the new ones may be lost."""
    new *= relaxation
    add_times(new[None], np.array([1.0 - relaxation]), old[None])
    return new
