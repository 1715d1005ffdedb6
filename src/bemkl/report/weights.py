"""Which kernels and views matter, as numbers: rows of the model's own summary, and sums over the kernels of a view."""

from __future__ import annotations

from typing import Any

import numpy as np

from bemkl.report.strips import Interval
from bemkl.report.subject import Subject

_COVERAGE = 0.95

Row = dict[str, Any]


def weight_rows(subject: Subject) -> list[Row]:
    """Return the table of kernel weights."""
    rows = _records(subject.model.summary(_COVERAGE))
    view = dict(zip(subject.model.kernel_names_, subject.views, strict=True))
    return [{"class": "", "view": view[row["kernel"]]} | row for row in rows]


def view_rows(subject: Subject) -> list[Row]:
    """Return the table of views."""
    return _records(subject.model.summary(_COVERAGE, by="view"))


def _records(summary: Any) -> list[Row]:
    """Return the rows of a summary, whatever it is."""
    rows: list[Row] = summary.reset_index().to_dict("records") if hasattr(summary, "reset_index") else list(summary)
    return rows


def view_intervals(subject: Subject, rows: list[Row]) -> dict[str, list[Interval]]:
    """Sum the weights of the kernels of each view, under their joint posterior."""
    views = list(dict.fromkeys(subject.views))
    inside = (np.array(subject.views)[:, None] == np.array(views)).astype(np.float64)
    found = {}
    for label, fitted in zip(subject.weight_labels, subject.fits, strict=True):
        values, (lows, highs) = fitted.kernel_weights @ inside, fitted.sum_interval(inside, _COVERAGE)
        share = view_shares(rows, label)
        found[label] = [
            Interval(views[v], float(values[v]), float(lows[v]), float(highs[v]))
            for v in sorted(range(len(views)), key=lambda v: -share[views[v]])
        ]
    return found


def view_shares(rows: list[Row], label: str | None = None) -> dict[str, float]:
    """Sum the shares of the kernels of each view."""
    chosen = [row for row in rows if label is None or row["class"] == label]
    n_sets = len({row["class"] for row in chosen})
    shares = dict.fromkeys((row["view"] for row in chosen), 0.0)
    for row in chosen:
        shares[row["view"]] += row["share"] / n_sets
    return shares


def count_certain(rows: list[Row]) -> int:
    """Count the weights whose interval excludes zero."""
    return sum(row["low"] > 0.0 or row["high"] < 0.0 for row in rows)
