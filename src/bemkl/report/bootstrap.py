"""How sure the scores are: bootstrap over samples, all draws at once as weights of the samples."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bemkl.arrays import Array
from bemkl.evaluation import HeldOut

_BINS = 10
_NORMAL_95 = 1.959963984540054
_SMALLEST_PROBABILITY = 1e-15
_CHUNK = 2_000_000
_MOST_WORK = 1_000_000

Scores = dict[str, Array]


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
        return _regression(held_out, counts)
    P, D = held_out.probability, held_out.decision
    if held_out.y.ndim == 1:
        order = np.argsort(held_out.classes)
        truth = order[np.searchsorted(held_out.classes, held_out.y, sorter=order)]
        return _classification(truth, P, D, len(held_out.classes), counts)
    truth = held_out.y.astype(np.intp)
    labels = []
    for k in range(truth.shape[1]):
        probability = None if P is None else np.column_stack([1.0 - P[:, k], P[:, k]])
        labels.append(_classification(truth[:, k], probability, None if D is None else D[:, k], 2, counts))
    scores = {name: _mean([label[name] for label in labels]) for name in labels[0]}
    return {"all_right": _average(counts, (held_out.predicted == truth).all(axis=1))} | scores


def _classification(
    truth: npt.NDArray[np.intp], P: Array | None, decision: Array | None, n_classes: int, counts: Array
) -> Scores:
    D = P if decision is None else decision
    assert D is not None, "HeldOut of a classifier has a decision or a probability"
    if n_classes == 2:
        D = D[:, 1] if D.ndim == 2 and D.shape[1] == 2 else D.reshape(len(truth))
        predicted = (D > 0.0).astype(np.intp) if decision is not None or P is None else P.argmax(axis=1)
        curves = [_roc(truth == 1, D, counts)]
    else:
        predicted = D.argmax(axis=1)
        curves = [_roc(truth == k, D[:, k], counts) for k in range(n_classes)]
    scores = {
        "accuracy": _average(counts, predicted == truth),
        "auc": _mean([auc for auc, _ in curves]),
        "eer": _mean([eer for _, eer in curves]),
    }
    if P is None:
        return scores
    errors = (P - np.eye(n_classes)[truth]) ** 2
    of_truth = np.maximum(P[np.arange(len(truth)), truth], _SMALLEST_PROBABILITY)
    scores["log_loss"] = _average(counts, -np.log(of_truth))
    scores["brier"] = _average(counts, errors.sum(axis=1) if n_classes > 2 else errors[:, 1])
    scores["calibration_error"] = _calibration_error(P.argmax(axis=1) == truth, P.max(axis=1), counts)
    return scores


def _regression(held_out: HeldOut, counts: Array) -> Scores:
    truth, mean = (np.asarray(values, dtype=np.float64) for values in (held_out.y, held_out.predicted))
    truth, mean = truth.reshape(len(truth), -1), mean.reshape(len(mean), -1)
    squared = np.array([_average(counts, column) for column in ((truth - mean) ** 2).T])
    # Around the overall mean, so that the difference of two large numbers does not lose digits.
    centred = truth - truth.mean(axis=0)
    variance = np.array([_average(counts, column**2) - _average(counts, column) ** 2 for column in centred.T])
    constant = variance <= 1e-14 * centred.var(axis=0)[:, None]
    ratio = np.divide(squared, variance, out=np.where(squared > 0.0, 1.0, 0.0), where=~constant)
    scores = {"r2": (1.0 - ratio).mean(axis=0), "rmse": np.sqrt(squared).mean(axis=0)}
    if held_out.deviation is not None:
        spread = held_out.deviation.reshape(truth.shape)
        distance = (truth - mean) / spread
        density = -0.5 * (distance**2 + np.log(2.0 * np.pi)) - np.log(spread)
        scores["log_density"] = _average(counts, density.mean(axis=1))
        scores["coverage"] = _average(counts, (np.abs(distance) <= _NORMAL_95).mean(axis=1))
    return scores


def _roc(target: npt.NDArray[np.bool_], values: Array, counts: Array) -> tuple[Array, Array]:
    """Return area under the ROC curve and equal error rate of each draw; NaN where a draw has one class only."""
    order = np.argsort(-values, kind="stable")
    last = np.append(np.flatnonzero(np.diff(values[order])), len(order) - 1)
    drawn = counts[:, order]
    right = np.pad(np.cumsum(drawn * target[order], axis=1)[:, last], ((0, 0), (1, 0)))
    wrong = np.pad(np.cumsum(drawn * ~target[order], axis=1)[:, last], ((0, 0), (1, 0)))
    area, rate = np.full(len(counts), np.nan), np.full(len(counts), np.nan)
    both = (right[:, -1] > 0.0) & (wrong[:, -1] > 0.0)
    if both.any():
        right, wrong = right[both] / right[both, -1:], wrong[both] / wrong[both, -1:]
        area[both] = (np.diff(wrong) * (right[:, 1:] + right[:, :-1])).sum(axis=1) / 2.0
        rate[both] = _equal_error_rate(right, wrong)
    return area, rate


def _equal_error_rate(right: Array, wrong: Array) -> Array:
    """Return where straight pieces of the curves have as many false positives as false negatives, (n_draws,)."""
    gap = wrong - (1.0 - right)
    after = np.maximum((gap < 0.0).sum(axis=1), 1)
    rows = np.arange(len(gap))
    start, end = gap[rows, after - 1], gap[rows, after]
    share = -start / (end - start)
    rate: Array = wrong[rows, after - 1] + share * (wrong[rows, after] - wrong[rows, after - 1])
    return rate


def _calibration_error(is_right: npt.NDArray[np.bool_], confidence: Array, counts: Array) -> Array:
    bins = np.minimum((confidence * _BINS).astype(np.intp), _BINS - 1)
    gaps = counts @ ((is_right - confidence)[:, None] * np.eye(_BINS)[bins])
    error: Array = np.abs(gaps).sum(axis=1) / counts.sum(axis=1)
    return error


def _average(counts: Array, values: npt.NDArray[np.generic]) -> Array:
    average: Array = counts @ values.astype(np.float64) / counts.sum(axis=1)
    return average


def _mean(values: list[Array]) -> Array:
    """Return the mean of what is there."""
    table = np.array(values)
    there = np.isfinite(table)
    total = np.where(there, table, 0.0).sum(axis=0)
    mean: Array = np.divide(total, there.sum(axis=0), out=np.full(len(total), np.nan), where=there.any(axis=0))
    return mean


def _middle(values: Array) -> tuple[float, float]:
    values = values[np.isfinite(values)]
    if not values.size:
        return float("nan"), float("nan")
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)
