"""The table of kernel weights: which kernels matter, and how sure we are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bemkl.arrays import Array
from bemkl.estimators.fitted import Fitted
from bemkl.estimators.sources import Source
from bemkl.marginal.relevance import Losses

SELECTED = 1e-2
"""A kernel is selected where its weight is more than this share of the largest, in absolute value."""

NEEDED = 0.05
"""A view is needed where as much is lost without it by chance less often than this."""

_WITHOUT = {"evidence": "evidence", "loss": "loss", "loss_std": "loss_deviation", "p": "probability"}
"""Columns of a summary about what is lost without a kernel or view, and where a fit has them."""

_MOST_DIGITS = 250
"""Digits after the point that numbers of up to 1e50 can be rounded to: rounding multiplies by that power of ten."""


def selected(weights: Array) -> npt.NDArray[np.bool_]:
    """Tell which kernels a combination uses. Shapes: weights (n_kernels,); returns (n_kernels,)."""
    size = np.abs(weights)
    chosen: npt.NDArray[np.bool_] = size > SELECTED * size.max()
    return chosen


def used(source: Source, fitted: Fitted) -> npt.NDArray[np.bool_]:
    """
    Tell which kernels one fit uses: by the probability to be on, or by weight and the test of their views.

    Shapes: returns (n_kernels,).
    """
    if fitted.inclusion is not None:
        on: npt.NDArray[np.bool_] = fitted.inclusion > 0.5
        return on
    tests = None if fitted.relevance is None else fitted.relevance.views
    if tests is None:
        return selected(fitted.kernel_weights)
    views, _, _ = source.kinds()
    names, needed = list(dict.fromkeys(views)), tests.probability < NEEDED
    return selected(fitted.kernel_weights) & needed[[names.index(view) for view in views]]


def shares(fitted: Fitted) -> Array:
    """Share of each kernel in how the decisions on the training samples vary. Shapes: returns (n_kernels,)."""
    deviation = fitted.signal.mean(axis=0)
    total = deviation.sum()
    share: Array = deviation / total if total > 0.0 else deviation
    return share


def weight_rows(names: Sequence[str], fitted: Fitted, coverage: float, *, rounded: bool = True) -> list[dict[str, Any]]:
    """Describe the kernel weights of one fit, largest first."""
    mean, std = fitted.kernel_weights, fitted.weight_deviations
    low, high = fitted.weight_interval(coverage)
    shown = _shown({"weight": mean, "std": std, "low": low, "high": high}, shares(fitted), rounded=rounded)
    shown |= _lost(None if fitted.relevance is None else fitted.relevance.kernels, rounded=rounded)
    return [
        {"kernel": names[m]} | {name: float(values[m]) for name, values in shown.items()}
        for m in np.argsort(-np.abs(mean), kind="stable")
    ]


def view_rows(views: Sequence[str], fitted: Fitted, coverage: float, *, rounded: bool = True) -> list[dict[str, Any]]:
    """Describe the sums of the kernel weights of each view, given the view of each kernel; largest share first."""
    names = list(dict.fromkeys(views))
    inside = (np.array(views)[:, None] == np.array(names)).astype(np.float64)
    low, high = fitted.sum_interval(inside, coverage)
    share, count = shares(fitted) @ inside, inside.sum(axis=0).astype(int)
    shown = _shown({"weight": fitted.kernel_weights @ inside, "low": low, "high": high}, share, rounded=rounded)
    shown |= _lost(None if fitted.relevance is None else fitted.relevance.views, rounded=rounded)
    return [
        {"view": names[v], "kernels": int(count[v])} | {name: float(values[v]) for name, values in shown.items()}
        for v in np.argsort(-share, kind="stable")
    ]


def _lost(losses: Losses | None, *, rounded: bool) -> dict[str, Array]:
    """Return columns on what is lost without kernels or views, where that is known."""
    if losses is None:
        return {}
    columns = {column: getattr(losses, field) for column, field in _WITHOUT.items()}
    if rounded:
        return {name: np.array([float(f"{value:.3g}") for value in values]) for name, values in columns.items()}
    return columns


def _shown(columns: dict[str, Array], share: Array, *, rounded: bool) -> dict[str, Array]:
    """Round columns to the digits of the largest weight that are worth reading, and add the share."""
    largest = np.abs(columns["weight"]).max()
    digits = 3 - int(np.floor(np.log10(largest))) if largest > 0.0 else 3
    cut = rounded and digits <= _MOST_DIGITS
    shown = {name: np.round(values, digits) if cut else values for name, values in columns.items()}
    return shown | {"share": np.round(share, 4) if rounded else share}


def weight_intervals(fitted: Sequence[Fitted], coverage: float, *, one: bool) -> Array:
    """Return the intervals of the kernel weights. Shapes: returns (2, n_kernels) or (2, n_blocks, n_kernels)."""
    ends = np.stack([np.stack(block.weight_interval(coverage)) for block in fitted], axis=1)
    return ends[:, 0] if one else ends


class WeightTable(Sequence[dict[str, Any]]):
    """Rows with named columns that print well, for those without pandas."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self._rows = rows

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self._rows[0]) if self._rows else []

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._rows)

    def __getitem__(self, key: Any) -> Any:
        """Return a row by position, rows by slice, or a column by name."""
        if isinstance(key, str):
            return [row[key] for row in self._rows]
        return WeightTable(self._rows[key]) if isinstance(key, slice) else self._rows[key]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Go through the rows."""
        return iter(self._rows)

    def __repr__(self) -> str:
        """Align the columns."""
        shown = [[_cell(value) for value in row.values()] for row in self._rows]
        widths = [max(map(len, cells)) for cells in zip(self.columns, *shown, strict=True)]
        texts = [[isinstance(value, str) for value in row.values()] for row in self._rows]
        lines = [_line(self.columns, widths, texts[0])] if self._rows else ["no rows"]
        return "\n".join(lines + [_line(*row) for row in zip(shown, [widths] * len(shown), texts, strict=True)])


def as_table(rows: list[dict[str, Any]]) -> Any:
    """Make rows a table."""
    try:
        import pandas
    except ImportError:
        return WeightTable(rows)
    return pandas.DataFrame(rows).set_index([key for key in ("class", "view", "kernel") if key in rows[0]])


def _cell(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _line(cells: list[str], widths: list[int], texts: list[bool]) -> str:
    aligned = [c.ljust(w) if text else c.rjust(w) for c, w, text in zip(cells, widths, texts, strict=True)]
    return "  ".join(aligned).rstrip()
