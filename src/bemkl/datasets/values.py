"""What a source gives before it is checked, and how a table becomes views and labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bemkl.arrays import Array
from bemkl.datasets.catalogue import Entry


class Values(NamedTuple):
    """Values and names from a source."""

    X: Array | dict[str, Array]  # (n_samples, n_features): the samples
    y: npt.NDArray[Any]  # (n_samples,) or (n_samples, n_outputs): labels or responses
    feature_names: tuple[str, ...] | dict[str, tuple[str, ...]]  # names of the columns
    target_names: tuple[str, ...]  # names of classes or responses
    train: npt.NDArray[np.bool_] | None  # (n_splits, n_samples): predefined splits
    source: str  # where they come from


def from_table(
    entry: Entry, X: Array, features: Sequence[str], Y: Array, targets: Sequence[str], source: str
) -> Values:
    """
    Make values of one table: cut it into views where the data set has them, and take classes as whole numbers.

    Shapes: X (n_samples, n_features), Y (n_samples, n_outputs).
    """
    responses: npt.NDArray[Any] = Y if entry.kind == "regression" else _whole_labels(source, Y)
    named = entry.target_names or tuple(name.removeprefix("target_") for name in targets)
    y = responses[:, 0] if responses.shape[1] == 1 else responses
    if isinstance(entry.columns, int):
        return Values(X, y, tuple(features), named, None, source)
    expected = sum(entry.columns.values())
    if X.shape[1] != expected:
        raise ValueError(
            f"{source}: expected {expected} features for the views {entry.columns} of {entry.name!r}, got {X.shape[1]}."
        )
    ends = np.cumsum(list(entry.columns.values()))
    slices = {view: slice(end - width, end) for (view, width), end in zip(entry.columns.items(), ends, strict=True)}
    return Values(
        {view: np.ascontiguousarray(X[:, part]) for view, part in slices.items()},
        y,
        {view: tuple(features[part]) for view, part in slices.items()},
        named,
        None,
        source,
    )


def _whole_labels(source: str, Y: Array) -> npt.NDArray[np.int64]:
    labels = Y.astype(np.int64)
    if not np.array_equal(labels, Y):
        raise ValueError(f"{source}: expected whole numbers as classes, got {Y[labels != Y][0]:g}.")
    return labels
