"""Kernels from matrices of distances that another tool computed."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from bemkl.arrays import Array, finite_array, positive_number

_ROUNDING = 1e-6


def mean_distance(distances: npt.ArrayLike) -> float:
    """
    Mean distance between the pairs of training samples, the scale that the paper divides by (section 6.2).

    Parameters
    ----------
    distances : array_like of shape (n_train, n_train)
        Symmetric distances between the training samples, with a zero diagonal.

    Returns
    -------
    float
        The mean over all pairs of two different samples.

    Examples
    --------
    >>> mean_distance([[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [2.0, 3.0, 0.0]])
    2.0
    """
    D = _distances(distances)
    if D.shape[0] != D.shape[1] or len(D) < 2:
        raise ValueError(
            f"distances: expected the square matrix of the training samples, got shape {D.shape}. "
            "For new samples, pass the scale of the training samples: scale=mean_distance(training_distances)."
        )
    largest = float(D.max())
    asymmetry, diagonal = float(np.abs(D - D.T).max()), float(D.diagonal().max())
    if max(asymmetry, diagonal) > _ROUNDING * largest:
        raise ValueError(
            "distances: expected a symmetric matrix with a zero diagonal, got "
            f"an asymmetry of {asymmetry:.3g} and {diagonal:.3g} on the diagonal. "
            "Put rows and columns in the same order, or pass a number as scale."
        )
    return float(D.sum() / (len(D) * (len(D) - 1)))


def from_distances(distances: npt.ArrayLike, scale: float | Literal["mean"] = "mean") -> Array:
    r"""
    Kernel of given distances (paper, section 6.2).

    .. math:: k = \exp(-d / s)

    Parameters
    ----------
    distances : array_like of shape (n_samples, n_train)
        Distances between samples and training samples, not negative.
    scale : float or "mean"
        Scale s; "mean" is the mean distance between the training samples, for their own square matrix. For new samples
        pass that number.

    Returns
    -------
    ndarray of shape (n_samples, n_train)
        The kernel matrix. Whether it is positive definite depends on the distances.

    Examples
    --------
    >>> training = [[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [2.0, 3.0, 0.0]]
    >>> from_distances([[2.0, 0.0, 4.0]], scale=mean_distance(training)).round(4)
    array([[0.3679, 1.    , 0.1353]])
    """
    number = mean_distance(distances) if isinstance(scale, str) and scale == "mean" else scale
    kernel: Array = np.exp(_distances(distances) / -positive_number("scale", number))
    return kernel


def _distances(distances: npt.ArrayLike) -> Array:
    D = finite_array("distances", distances)
    if D.ndim != 2:
        raise ValueError(f"distances: expected a matrix, got shape {D.shape}. Use squareform for condensed distances.")
    if D.size and D.min() < 0.0:
        raise ValueError(f"distances: expected no negative entry, got {D.min():g}. A similarity is not a distance.")
    return D
