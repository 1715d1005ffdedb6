"""Landmarks: a few training samples that serve as basis points instead of all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from bemkl.arrays import Array, whole_number

Similarity = Callable[[int], Array]
_ROUNDING = 1e-12
_UNEXPLAINED = 0.01


def choose_landmarks(
    landmarks: Any, n_samples: int, similarity: Similarity, rng: np.random.Generator
) -> npt.NDArray[np.intp]:
    """
    Choose basis points among the training samples.

    "kmeans++" draws samples with a probability proportional to their squared distance from the nearest landmark so far,
    in the feature space of the mean kernel. "pivoted" takes the sample that the landmarks so far explain worst, the
    pivot of an incomplete Cholesky decomposition. Neither forms a square matrix. Without a number, they go on until
    1 % of the sum of squared distances, or of the trace, is left.

    Parameters
    ----------
    landmarks : int, array_like of int, {"kmeans++", "pivoted"}, or (str, int)
        How many (by "kmeans++"), which rows, by which strategy, or by which strategy and how many.
    n_samples : int
        Number of training samples.
    similarity : callable
        Maps the position of a sample to its (n_samples,) similarities to all samples.
    rng : numpy.random.Generator
        Draws for "kmeans++".

    Returns
    -------
    ndarray of int
        Positions of the landmarks: rows as they were given, chosen ones in increasing order.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([0.0, 0.1, 5.0, 5.1, 9.0])
    >>> K = np.exp(-np.subtract.outer(x, x) ** 2)
    >>> choose_landmarks(("pivoted", 3), 5, lambda row: K[row], np.random.default_rng(0))
    array([0, 2, 4])
    """
    strategy, count = _read(landmarks, n_samples)
    if strategy is None:
        return check_rows("landmarks", landmarks, n_samples)
    if count is not None and count > n_samples:
        raise ValueError(f"landmarks: expected at most the {n_samples} training samples, got {count}.")
    return np.sort(_STRATEGIES[strategy](n_samples, count, similarity, rng))


def _read(landmarks: Any, n_samples: int) -> tuple[str | None, int | None]:
    """Tell strategy and number apart; no strategy for rows."""
    if isinstance(landmarks, str):
        strategy, count = landmarks, None
    elif isinstance(landmarks, tuple) and len(landmarks) == 2 and isinstance(landmarks[0], str):
        strategy, count = landmarks[0], whole_number("landmarks", landmarks[1], least=1)
    elif np.ndim(landmarks) == 0:
        return "kmeans++", whole_number("landmarks", landmarks, least=1)
    else:
        return None, None
    if strategy not in _STRATEGIES:
        raise ValueError(
            f"landmarks: expected a number, rows, or one of {', '.join(_STRATEGIES)} with or without a number, "
            f"got {landmarks!r}."
        )
    return strategy, count


def check_rows(name: str, values: Any, n_samples: int) -> npt.NDArray[np.intp]:
    """Check positions of samples."""
    rows = np.asarray(values)
    if rows.ndim != 1 or not rows.size or rows.dtype.kind not in "iu":
        raise ValueError(f"{name}: expected rows as whole numbers in one dimension, got {values!r:.80}.")
    if rows.min() < 0 or rows.max() >= n_samples or len(np.unique(rows)) < len(rows):
        raise ValueError(f"{name}: expected different rows from 0 to {n_samples - 1}, got {values!r:.80}.")
    return rows.astype(np.intp)


def _kmeans_plus_plus(
    n_samples: int, count: int | None, similarity: Similarity, rng: np.random.Generator
) -> npt.NDArray[np.intp]:
    """Draw by squared distance; samples have unit length in feature space, so it is 2 - 2 k."""
    chosen = [int(rng.integers(n_samples))]
    nearest = 2.0 - 2.0 * similarity(chosen[0])
    total = nearest.sum()
    while len(chosen) < (n_samples if count is None else count):
        nearest = np.maximum(nearest, 0.0)
        nearest[chosen] = 0.0
        if count is None and nearest.sum() <= _UNEXPLAINED * total:
            break
        # Where only copies of the landmarks are left, all of them are equally good.
        weight = nearest if nearest.sum() > 0.0 else np.isin(np.arange(n_samples), chosen, invert=True).astype(float)
        chosen.append(int(rng.choice(n_samples, p=weight / weight.sum())))
        nearest = np.minimum(nearest, 2.0 - 2.0 * similarity(chosen[-1]))
    return np.array(chosen, dtype=np.intp)


def _pivoted(
    n_samples: int, count: int | None, similarity: Similarity, rng: np.random.Generator
) -> npt.NDArray[np.intp]:
    """Take the largest residual of the diagonal, which starts at 1."""
    residual = np.ones(n_samples)
    factor = np.zeros((n_samples, 0))
    chosen: list[int] = []
    while len(chosen) < (n_samples if count is None else count):
        if count is None and residual.sum() <= _UNEXPLAINED * n_samples:
            break
        candidates = residual.copy()
        candidates[chosen] = -np.inf
        pivot = int(candidates.argmax())
        chosen.append(pivot)
        if residual[pivot] <= _ROUNDING:
            continue  # explained by the others: dividing by it would blow up what is left of rounding
        column = (similarity(pivot) - factor @ factor[pivot]) / np.sqrt(residual[pivot])
        factor = np.column_stack([factor, column])
        residual = np.maximum(residual - column**2, 0.0)
    return np.array(chosen, dtype=np.intp)


_STRATEGIES = {"kmeans++": _kmeans_plus_plus, "pivoted": _pivoted}
