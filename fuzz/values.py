"""Numbers that break programs, and matrices and targets of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from fuzz.draws import Draw

Array = npt.NDArray[np.float64]
Shape = Callable[[np.random.Generator, int, int], Array]

_LARGEST, _SMALLEST = np.finfo(float).max, np.finfo(float).tiny
MODERATE_SCALES = [1.0] * 8 + [1e-8, 1e-4, 1e4, 1e8]
EXTREME_SCALES = [1e-300, 1e-160, 1e-150, 1e-30, 1e-20, 1e20, 1e30, 1e150, 1e154, 1e300, 5e-324]


def scale(draw: Draw) -> float:
    """Draw a factor."""
    return float(draw.pick("scale", MODERATE_SCALES, EXTREME_SCALES))


def _repeated_rows(rng: np.random.Generator, n: int, p: int) -> Array:
    return rng.normal(size=(n, p))[rng.integers(0, max(1, n // 3), size=n)]


def _repeated_columns(rng: np.random.Generator, n: int, p: int) -> Array:
    return rng.normal(size=(n, p))[:, rng.integers(0, max(1, p // 3), size=p)]


def _nearly_constant(rng: np.random.Generator, n: int, p: int) -> Array:
    return 1.0 + 1e-9 * rng.normal(size=(n, p))


SHAPES: dict[str, Shape] = {
    "normal": lambda rng, n, p: rng.normal(size=(n, p)),
    "whole": lambda rng, n, p: rng.integers(-3, 4, size=(n, p)).astype(float),
    "counts": lambda rng, n, p: rng.poisson(2.0, size=(n, p)).astype(float),
    "bits": lambda rng, n, p: (rng.random((n, p)) < 0.3).astype(float),
    "positive": lambda rng, n, p: np.abs(rng.normal(size=(n, p))),
    "heavy tails": lambda rng, n, p: rng.standard_t(1.5, size=(n, p)),
    "one direction": lambda rng, n, p: np.outer(rng.normal(size=n), rng.normal(size=p)),
    "one outlier": lambda rng, n, p: rng.normal(size=(n, p)) + 1e6 * np.eye(n, p),
    "years": lambda rng, n, p: rng.integers(1900, 2025, size=(n, p)).astype(float),
    "times": lambda rng, n, p: 1.7e9 + rng.uniform(0.0, 1e5, size=(n, p)),
    "constant": lambda rng, n, p: np.full((n, p), rng.normal()),
    "zeros": lambda rng, n, p: np.zeros((n, p)),
    "nearly constant": _nearly_constant,
    "repeated rows": _repeated_rows,
    "repeated columns": _repeated_columns,
}
EXTREME_SHAPES: dict[str, Shape] = {
    "all scales": lambda rng, n, p: rng.normal(size=(n, p)) * 10.0 ** rng.integers(-300, 300, size=p),
    "very heavy tails": lambda rng, n, p: np.clip(rng.standard_cauchy((n, p)) ** 5, -_LARGEST, _LARGEST),
    "far off": lambda rng, n, p: rng.normal(size=(n, p)) + 10.0 ** rng.integers(8, 17),
    "largest": lambda rng, n, p: np.where(rng.random((n, p)) < 0.2, _LARGEST, rng.normal(size=(n, p))),
    "smallest": lambda rng, n, p: np.where(rng.random((n, p)) < 0.2, 5e-324, _SMALLEST * rng.normal(size=(n, p))),
}
COUNTS = ("counts", "bits", "zeros", "positive")
"""Shapes without negative numbers."""


def matrix(draw: Draw, n_rows: int, n_columns: int, shape: str | None = None, *, keep: bool = False) -> Array:
    """Draw a table of numbers; with `keep` they stay as the shape makes them."""
    if shape is None:
        shape = draw.pick("shape", ["normal"] * 6 + list(SHAPES), list(EXTREME_SHAPES))
    table = (SHAPES | EXTREME_SHAPES)[shape](draw.rng, n_rows, n_columns)
    with np.errstate(all="ignore"):
        return _with_gaps(draw, table if keep else np.clip(table * scale(draw), -_LARGEST, _LARGEST))


def _with_gaps(draw: Draw, table: Array) -> Array:
    """Leave out all of some rows, which is a missing view, or single cells, which is odd."""
    n_rows, n_columns = table.shape
    if draw.maybe(0.06):
        table[draw.rng.random(n_rows) < 0.3] = np.nan
    bad = draw.pick("gaps", [None], odd=["cell", "column", "all", "inf", "-inf"])
    if bad == "column":
        table[:, draw.number(0, n_columns - 1)] = np.nan
    elif bad == "all":
        table[:] = np.nan
    elif bad is not None:
        value = {"cell": np.nan, "inf": np.inf, "-inf": -np.inf}[bad]
        table[draw.number(0, n_rows - 1), draw.number(0, n_columns - 1)] = value
    return table


def new_rows(draw: Draw, table: Array) -> Array:
    """Draw new samples for a table of training samples: near, the same, or far from them."""
    count = draw.number(1, 4)
    rows = table[draw.rng.integers(0, len(table), size=count)].copy()
    kind = draw.pick("new rows", ["same", "near", "near", "far", "zeros", "missing"], ["very far", "largest"])
    with np.errstate(all="ignore"):
        if kind == "near":
            rows = rows + 0.1 * np.abs(rows) * draw.rng.normal(size=rows.shape)
        elif kind == "far":
            rows = rows * 1e3
        elif kind == "very far":
            rows = rows * 1e8
        elif kind == "zeros":
            rows[:] = 0.0
        elif kind == "missing":
            rows[0] = np.nan
        elif kind == "largest":
            rows[-1] = _LARGEST
        return np.where(np.isinf(rows), np.sign(rows) * _LARGEST, rows)


def listed(values: Any) -> Any:
    """Return arrays as lists, as a case holds them."""
    return np.asarray(values).tolist()
