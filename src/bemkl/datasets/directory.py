"""Reading of a folder: a table with a header, or an archive of views."""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bemkl.arrays import Array
from bemkl.datasets.catalogue import Entry
from bemkl.datasets.sets import DataSet

_SOURCE = "directory"
_Arrays = dict[str, npt.NDArray[Any]]


def read_directory(entry: Entry, folder: Path) -> DataSet | None:
    """Read a data set from `<folder>/<name>/<name>.csv` or `.npz`."""
    table, archive = (folder / entry.name / f"{entry.name}.{ending}" for ending in ("csv", "npz"))
    if table.is_file():
        return read_table(entry, table)
    return read_archive(entry, archive) if archive.is_file() else None


def read_table(entry: Entry, path: Path) -> DataSet:
    """Read a table: a header, numbers, and the responses in the last columns, `target` or `target_*`."""
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = list(csv.reader(file)) or [[]]
    targets = [name for name in header if name == "target" or name.startswith("target_")]
    if not targets or header[-len(targets) :] != targets:
        raise ValueError(
            f"{path.name}: expected the response in a last column 'target', or in last columns 'target_*', got the "
            f"columns {_abbreviated(header)}. Rename the response and put it last."
        )
    if not rows:
        raise ValueError(f"{path.name}: expected rows below the header, got none. Copy the file again.")
    features = [name for name in header if name not in (*targets, *entry.ignored)]
    X = _numbers(path, header, rows, features, may_be_empty=False)
    Y = _numbers(path, header, rows, targets, may_be_empty=entry.kind == "regression")
    return entry.of_table(X, features, Y, targets, _SOURCE)


def _numbers(
    path: Path, header: list[str], rows: list[list[str]], names: Sequence[str], *, may_be_empty: bool
) -> Array:
    """Convert named columns; a cell that is no number is named by its line in the file."""
    positions = [header.index(name) for name in names]
    values = np.empty((len(rows), len(positions)))
    for i, row in enumerate(rows):
        if len(row) != len(header):
            raise ValueError(f"{path.name}: expected {len(header)} cells in line {i + 2}, got {len(row)}.")
        for j, position in enumerate(positions):
            cell = row[position].strip()
            try:
                values[i, j] = float(cell) if cell or not may_be_empty else np.nan
            except ValueError:
                raise ValueError(
                    f"{path.name}: expected a number in line {i + 2}, column {header[position]!r}, got {cell!r}. "
                    "Remove or recode such rows first."
                ) from None
    return values


def read_archive(entry: Entry, path: Path) -> DataSet:
    """
    Read an archive of views: `X_<view>`, `y`, and `view_names` for their order.

    Where training and test samples are stored apart (`X_<view>_train`, `y_train` and the like), they are stacked in
    this order; a view that the test samples lack is NaN for them.
    """
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays: _Arrays = {name: stored[name] for name in stored.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path.name}: not an archive of plain arrays ({error}). Copy the file again.") from None
    arrays = _stacked(entry, arrays) if "y_train" in arrays else arrays
    views = [str(view) for view in arrays.get("view_names", entry.views)]
    if not views:
        raise ValueError(f"{path.name}: expected an array 'view_names' beside {_abbreviated(list(arrays))}.")
    missing = [name for name in ("y", *(f"X_{view}" for view in views)) if name not in arrays]
    if missing:
        raise ValueError(
            f"{path.name}: expected the arrays {', '.join(missing)} beside what it has, {_abbreviated(list(arrays))}."
        )
    X = {view: arrays[f"X_{view}"].astype(np.float64) for view in views}
    y = arrays["y"] if arrays["y"].dtype.kind in "Uf" else arrays["y"].astype(np.int64)
    rows = {view: len(values) for view, values in X.items()} | {"y": len(y)}
    if len(set(rows.values())) > 1:
        raise ValueError(f"{path.name}: expected the same samples in all views, got these numbers of rows: {rows}.")
    names = {view: _feature_names(arrays, view, values.shape[1]) for view, values in X.items()}
    classes = entry.target_names or tuple(str(name) for name in arrays.get("class_names", ()))
    return entry.of_values(X, y, names, classes, _splits(arrays), _SOURCE)


def _stacked(entry: Entry, arrays: _Arrays) -> _Arrays:
    """Put test samples below training samples."""
    y_train, y_test = arrays["y_train"], arrays["y_test"]
    stacked = arrays | {"y": np.concatenate([y_train, y_test])}
    for view in entry.views:
        train = arrays[f"X_{view}_train"]
        absent = np.full((len(y_test), train.shape[1]), np.nan)
        stacked[f"X_{view}"] = np.concatenate([train, arrays.get(f"X_{view}_test", absent)])
    stacked["is_train"] = np.arange(len(stacked["y"])) < len(y_train)
    return stacked


def _feature_names(arrays: _Arrays, view: str, n_features: int) -> tuple[str, ...]:
    stored = arrays.get(f"features_{view}", [f"{view}_{j}" for j in range(n_features)])
    return tuple(str(name) for name in stored)


def _splits(arrays: _Arrays) -> npt.NDArray[np.bool_] | None:
    stored = arrays.get("train_splits", arrays.get("is_train"))
    return None if stored is None else np.atleast_2d(stored).astype(np.bool_)


def _abbreviated(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:5])
    return shown + (f" and {len(names) - 5} more" if len(names) > 5 else "") if names else "no name at all"
