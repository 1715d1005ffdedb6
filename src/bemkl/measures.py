"""What pictures and the report page measure: how alike kernels are, and how sure a share of samples is."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from bemkl.arrays import Array

NORMAL_95 = 1.959963984540054
"""Half the width of the central 95 % interval of the standard normal distribution."""


def alignments(values: Array) -> Array:
    """
    Cosines between kernels whose rows and columns are centred.

    Shapes: values (n_kernels, n_samples, n_basis); returns (n_kernels, n_kernels).
    """
    centred = values - values.mean(axis=1, keepdims=True)
    centred = (centred - centred.mean(axis=2, keepdims=True)).reshape(len(values), -1)
    norms = np.linalg.norm(centred, axis=1)[:, None]
    there = (norms > 1e-12 * np.linalg.norm(values.reshape(len(values), -1), axis=1)[:, None]) & (norms > 0.0)
    unit = np.divide(centred, norms, out=np.zeros_like(centred), where=there)
    product: Array = unit @ unit.T
    return product


def similar_order(alignment: Array) -> list[int]:
    """Put similar kernels side by side. Shapes: alignment (n_kernels, n_kernels)."""
    if len(alignment) < 3:
        return list(range(len(alignment)))
    distance = squareform(np.maximum(1.0 - alignment, 0.0), checks=False)
    return [int(m) for m in leaves_list(linkage(distance, "average"))]


def wilson(share: Any, count: Any) -> tuple[Any, Any]:
    """
    Return the ends of Wilson's 95 % interval of shares of samples.

    It has a width also where the share is 0 or 1, where resampling has none.
    """
    spread = NORMAL_95**2 / count
    centre = (share + spread / 2.0) / (1.0 + spread)
    half = np.sqrt(spread * (share * (1.0 - share) + spread / 4.0)) / (1.0 + spread)
    return np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)
