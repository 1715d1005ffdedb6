"""The part of the page on scores: numbers with intervals, and their spread over folds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bemkl.evaluation import HeldOut
from bemkl.measures import wilson
from bemkl.report.bootstrap import bootstrap_intervals, count_draws, weighted_scores
from bemkl.report.markup import Section, decimals_for, fixed, paragraph, percent, plural, table
from bemkl.report.subject import Subject

NO_PREDICTIONS = (
    "No held-out predictions were given. cross_predict(model, X, y) of bemkl.evaluation makes them from the training "
    "samples by cross-validation, predict_held_out(model, X, y) from new samples; pass either as held_out."
)
"""What the page says where there is nothing to score."""

MEANINGS = {
    "all_right": ("all labels right", "share of samples; higher is better"),
    "accuracy": ("accuracy", "share of right labels; higher is better"),
    "auc": ("area under the ROC curve", "0.5 is chance; higher is better"),
    "eer": ("equal error rate", "lower is better"),
    "log_loss": ("log loss", "of the probabilities; lower is better"),
    "brier": ("Brier score", "squared error of the probabilities; lower is better"),
    "calibration_error": ("calibration error", "of the most probable class; lower is better"),
    "r2": ("R²", "share of variance explained; higher is better"),
    "rmse": ("root mean squared error", "in units of the response; lower is better"),
    "log_density": ("log density", "of the predictive distribution; higher is better"),
    "coverage": ("coverage", "share of values in their 95 % interval; 0.95 is right"),
}
"""Name and reading of each score."""

SHARES = ("all_right", "accuracy", "coverage")
"""Scores that are shares of samples."""


@dataclass(frozen=True, slots=True)
class Score:
    """A score and how sure it is."""

    name: str  # which one
    value: float  # over all held-out samples
    low: float
    high: float
    folds: tuple[float, ...]  # value in each fold; empty without folds

    @property
    def has_interval(self) -> bool:
        """Whether there is an interval."""
        return bool(np.isfinite(self.low))


def read_scores(held_out: HeldOut) -> list[Score]:
    """Score held-out predictions."""
    values = _all_scores(held_out)
    intervals = bootstrap_intervals(held_out, count_draws(held_out))
    intervals = {name: (low, high) if low < high else (float("nan"),) * 2 for name, (low, high) in intervals.items()}
    # Labels or responses of one sample depend on each other: the count is that of samples.
    intervals |= {name: wilson(values[name], len(held_out.y)) for name in SHARES if name in values}
    numbers = np.unique(held_out.folds)
    parts = [held_out.take(held_out.folds == fold) for fold in numbers] if len(numbers) > 1 else []
    folds = [_all_scores(part) for part in parts]
    return [
        Score(name, value, *intervals[name], tuple(fold.get(name, float("nan")) for fold in folds))
        for name, value in values.items()
    ]


def score_section(subject: Subject, scores: list[Score]) -> Section:
    """Show the scores."""
    held_out = subject.held_out
    if held_out is None:
        return Section("scores", "Scores", paragraph(no_predictions(subject)))
    if not scores:
        return Section("scores", "Scores", paragraph("Not available: scores need at least two held-out samples."))
    has_folds = bool(scores[0].folds)
    head = ["score", "value", "95 % interval", *(["folds: mean (least to largest)"] if has_folds else []), "reading"]
    rows = [_cells(score, has_folds) for score in scores]
    n_folds = len(scores[0].folds) if has_folds else 0
    origin = f"{subject.origin.rstrip('.')}. " if subject.origin else ""
    text = (
        f"{origin}Scores are of {plural(len(held_out.y), 'sample')}. {_dropped(subject)}{_naive(held_out)}"
        f"Intervals of shares of samples are Wilson's, the others are from {count_draws(held_out)} bootstrap draws of "
        "the samples, and left out where all draws are alike: they say how much the score depends on which samples "
        "were held out, not on which ones the model was fitted on."
    )
    if has_folds:
        text += f" The spread over the {n_folds} folds shows some of that; values of all folds are pooled in the score."
    return Section("scores", "Scores", paragraph(text) + table(head, rows, "Scores of the held-out predictions"))


def no_predictions(subject: Subject) -> str:
    """Say why there is nothing to score."""
    if subject.n_dropped:
        return (
            f"Not available: none of the {plural(subject.n_dropped, 'held-out sample')} has a target that the model "
            "knows."
        )
    return NO_PREDICTIONS


def _cells(score: Score, has_folds: bool) -> list[str]:
    name, reading = MEANINGS[score.name]
    # A little less, so that an end of exactly 1 does not take a digit from a value just below it.
    decimals = decimals_for([0.99 * score.value, 0.99 * score.high], 3)
    if not np.isfinite(score.value):
        reading = "not available: the held-out samples are of one class, or too few"
    folds = []
    if has_folds:
        there = [value for value in score.folds if np.isfinite(value)]
        middle = fixed(float(np.mean(there)), decimals) if there else "–"
        folds = [f"{middle} ({fixed(min(there), decimals)} to {fixed(max(there), decimals)})" if there else middle]
    interval = f"{fixed(score.low, decimals)} to {fixed(score.high, decimals)}" if score.has_interval else "–"
    return [name, fixed(score.value, decimals), interval, *folds, reading]


def _all_scores(held_out: HeldOut) -> dict[str, float]:
    if held_out.classes is None and len(held_out.y) < 2:
        return {}
    found = weighted_scores(held_out, np.ones((1, len(held_out.y))))
    return {name: float(values[0]) for name, values in found.items()}


def _dropped(subject: Subject) -> str:
    if not subject.n_dropped:
        return ""
    return f"{plural(subject.n_dropped, 'more sample')} without a target that the model knows are left out. "


def _naive(held_out: HeldOut) -> str:
    """Say what the most frequent class alone would reach."""
    if held_out.classes is None or held_out.y.ndim == 2:
        return ""
    _, counts = np.unique(held_out.y, return_counts=True)
    return f"Always naming the most frequent class would be right for {percent(counts.max() / counts.sum())}. "
