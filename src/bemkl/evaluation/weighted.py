"""Scores of draws of the same samples, all at once: a draw is a weight for each sample, 1 where nothing is drawn."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bemkl.arrays import Array
from bemkl.measures import NORMAL_95

SMALLEST_PROBABILITY = 1e-15
"""Smallest probability whose logarithm is taken."""

_BINS = 10

Scores = dict[str, Array]


def weighted_classification(
    truth: npt.NDArray[np.intp], P: Array | None, decision: Array | None, n_classes: int, counts: Array
) -> Scores:
    """
    Return the scores of a classification on draws of the samples.

    Shapes: truth (n_samples,), P (n_samples, n_classes), decision as in `classification_scores`, counts (n_draws,
    n_samples); returns (n_draws,).
    """
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
        "accuracy": weighted_average(counts, predicted == truth),
        "auc": mean_of_known([auc for auc, _ in curves]),
        "eer": mean_of_known([eer for _, eer in curves]),
    }
    if P is None:
        return scores
    errors = (P - np.eye(n_classes)[truth]) ** 2
    of_truth = np.maximum(P[np.arange(len(truth)), truth], SMALLEST_PROBABILITY)
    scores["log_loss"] = weighted_average(counts, -np.log(of_truth))
    scores["brier"] = weighted_average(counts, errors.sum(axis=1) if n_classes > 2 else errors[:, 1])
    scores["calibration_error"] = _calibration_error(P.argmax(axis=1) == truth, P.max(axis=1), counts)
    return scores


def weighted_regression(truth: Array, mean: Array, deviation: Array | None, counts: Array) -> Scores:
    """
    Return the scores of a regression on draws of the samples.

    Shapes: truth, mean and deviation (n_samples,) or (n_samples, n_outputs), counts (n_draws, n_samples); returns
    (n_draws,).
    """
    truth, mean = truth.reshape(len(truth), -1), mean.reshape(len(mean), -1)
    squared = np.array([weighted_average(counts, column) for column in ((truth - mean) ** 2).T])
    # Around the overall mean, so that the difference of two large numbers does not lose digits.
    centred = truth - truth.mean(axis=0)
    second = np.array([weighted_average(counts, column**2) for column in centred.T])
    variance = second - np.array([weighted_average(counts, column) for column in centred.T]) ** 2
    constant = variance <= 1e-14 * centred.var(axis=0)[:, None]
    ratio = np.divide(squared, variance, out=np.where(squared > 0.0, 1.0, 0.0), where=~constant)
    scores = {"r2": (1.0 - ratio).mean(axis=0), "rmse": np.sqrt(squared).mean(axis=0)}
    if deviation is not None:
        spread = deviation.reshape(truth.shape)
        distance = (truth - mean) / spread
        density = -0.5 * (distance**2 + np.log(2.0 * np.pi)) - np.log(spread)
        scores["log_density"] = weighted_average(counts, density.mean(axis=1))
        scores["coverage"] = weighted_average(counts, (np.abs(distance) <= NORMAL_95).mean(axis=1))
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
    """Return gaps between confidence and share of right answers in bins of one width."""
    bins = np.minimum((confidence * _BINS).astype(np.intp), _BINS - 1)
    gaps = counts @ ((is_right - confidence)[:, None] * np.eye(_BINS)[bins])
    error: Array = np.abs(gaps).sum(axis=1) / counts.sum(axis=1)
    return error


def weighted_average(counts: Array, values: npt.NDArray[np.generic]) -> Array:
    """Average values of samples over draws. Shapes: counts (n_draws, n_samples); returns (n_draws,)."""
    average: Array = counts @ values.astype(np.float64) / counts.sum(axis=1)
    return average


def mean_of_known(values: list[Array]) -> Array:
    """Return the mean of what is there, draw by draw. Shapes: values (n_draws,); returns (n_draws,)."""
    table = np.array(values)
    there = np.isfinite(table)
    total = np.where(there, table, 0.0).sum(axis=0)
    mean: Array = np.divide(total, there.sum(axis=0), out=np.full(len(total), np.nan), where=there.any(axis=0))
    return mean
