"""How sure the scores are: bootstrap over samples, all draws at once as weights of the samples."""

from __future__ import annotations

import numpy as np

from bemkl.arrays import Array
from bemkl.evaluation import HeldOut
from bemkl.evaluation.weighted import (
    Scores,
    mean_of_known,
    weighted_average,
    weighted_classification,
    weighted_regression,
)

_CHUNK = 2_000_000
_MOST_WORK = 1_000_000


def count_draws(held_out: HeldOut) -> int:
    """Choose the number of draws: 1000, or 200 where samples times classes are many."""
    n_columns = 1 if held_out.probability is None else held_out.probability.shape[1]
    return 1000 if len(held_out.y) * n_columns <= _MOST_WORK else 200


def bootstrap_intervals(held_out: HeldOut, n_draws: int, seed: int = 0) -> dict[str, tuple[float, float]]:
    """Return 95 % percentile intervals of the scores."""
    rng, n_samples = np.random.default_rng(seed), len(held_out.y)
    step, parts = max(1, _CHUNK // n_samples), []
    for first in range(0, n_draws, step):
        rows = rng.integers(n_samples, size=(min(step, n_draws - first), n_samples))
        counts = np.array([np.bincount(drawn, minlength=n_samples) for drawn in rows], dtype=np.float64)
        parts.append(weighted_scores(held_out, counts))
    draws = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return {name: _middle(values) for name, values in draws.items()}


def weighted_scores(held_out: HeldOut, counts: Array) -> Scores:
    """Return the scores of draws of the samples. Shapes: counts (n_draws, n_samples); returns (n_draws,)."""
    if held_out.classes is None:
        responses, mean = (np.asarray(values, dtype=np.float64) for values in (held_out.y, held_out.predicted))
        return weighted_regression(responses, mean, held_out.deviation, counts)
    P, D = held_out.probability, held_out.decision
    if held_out.y.ndim == 1:
        order = np.argsort(held_out.classes)
        truth = order[np.searchsorted(held_out.classes, held_out.y, sorter=order)]
        return weighted_classification(truth, P, D, len(held_out.classes), counts)
    truth = held_out.y.astype(np.intp)
    labels = []
    for k in range(truth.shape[1]):
        probability = None if P is None else np.column_stack([1.0 - P[:, k], P[:, k]])
        labels.append(weighted_classification(truth[:, k], probability, None if D is None else D[:, k], 2, counts))
    scores = {name: mean_of_known([label[name] for label in labels]) for name in labels[0]}
    return {"all_right": weighted_average(counts, (held_out.predicted == truth).all(axis=1))} | scores


def _middle(values: Array) -> tuple[float, float]:
    values = values[np.isfinite(values)]
    if not values.size:
        return float("nan"), float("nan")
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)
