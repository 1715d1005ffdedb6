"""One look at samples of any kind: arrays, data frames, sparse matrices, or a dict of views."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.utils import check_array

from bemkl.alignment import Ids, aligned_views, ids_of, index_of
from bemkl.arrays import Array, explained, real_array, refuse_unread

Columns = int | str | slice | Sequence[int] | Sequence[str] | Sequence[bool]
Groups = Columns | Mapping[str, Columns]


@dataclass(frozen=True, slots=True)
class Samples:
    """Samples behind named columns; a view of a dict counts as one column."""

    names: tuple[str, ...]  # names of the columns or views
    n_samples: int  # number of samples
    kind: str  # what the names name
    # maps a list of positions to the points they make up: an array of shape (n_samples, n_features), or a list of
    # strings for a view of sequences
    take: Callable[[list[int]], Any]
    dtype: np.dtype[Any]  # precision that the kernels should have: float32 where all numbers came in it, else float64
    named: bool = True  # whether the names came with the samples; columns of arrays are only numbered
    ids: Ids | None = None  # what the samples are called, the default range included, where they came in data frames

    def find(self, on: Groups) -> list[tuple[str, list[int]]]:
        """Return the groups of columns that a specification asks for."""
        if isinstance(on, Mapping):
            return [(str(name), self._group(name, columns)) for name, columns in on.items()]
        everything = list(range(len(self.names)))
        if isinstance(on, str) and on in ("all", "each") and on in self.names:
            raise ValueError(f"on: {on!r} is also the name of a column. Write [{on!r}] for that column, or rename it.")
        if isinstance(on, str) and on == "all":
            return [(f"all {self.kind}", everything)]
        if isinstance(on, str) and on == "each":
            return [(self.names[j], [j]) for j in everything]
        if not isinstance(on, str | int | np.integer | slice | Sequence | np.ndarray) or isinstance(on, bool):
            raise ValueError(f'on: expected "all", "each", columns, or a dict of groups of columns, got {on!r}.')
        wanted: list[Any] = [on] if isinstance(on, str | int | np.integer | slice) else list(on)
        if isinstance(on, slice):
            positions = self._sliced(on)
        elif wanted and all(isinstance(chosen, bool | np.bool_) for chosen in wanted):
            positions = self._masked(wanted)
        else:
            positions = [self._position(column) for column in wanted]
        if not positions:
            raise ValueError("on: expected at least one column, got none.")
        if len(set(positions)) < len(positions):
            raise ValueError(f"on: expected different columns, got {wanted!r:.80}.")
        names = [self.names[j] for j in positions]
        label = " + ".join(names) if len(names) <= 3 else f"{names[0]} … {names[-1]} ({len(names)} {self.kind})"
        return [(label, positions)]

    def _sliced(self, on: slice) -> list[int]:
        """Return the positions of a slice, by position or by name; names include the last one, as in pandas."""
        ends = [
            None if end is None else self._position(end) if isinstance(end, str) else end for end in (on.start, on.stop)
        ]
        try:
            start, stop, step = slice(ends[0], ends[1], on.step).indices(len(self.names))
        except (TypeError, ValueError) as error:
            raise ValueError(f"on: {on!r} is no slice of columns ({error}). Use names or whole numbers.") from None
        return list(range(start, stop + 1 if isinstance(on.stop, str) else stop, step))

    def _masked(self, on: list[bool]) -> list[int]:
        """Return the positions where a mask is true."""
        if len(on) != len(self.names):
            raise ValueError(
                f"on: expected a mask of {len(self.names)} values, one for each of the {self.kind}, got {len(on)}."
            )
        return [j for j, chosen in enumerate(on) if chosen]

    def _group(self, name: Any, columns: Any) -> list[int]:
        """Return the positions of one group with a name."""
        if isinstance(columns, Mapping):
            raise ValueError(f"on: expected columns for the group {name!r}, got {columns!r:.80}.")
        found = self.find(columns)
        if len(found) > 1:
            raise ValueError(
                f'on: "each" makes a group a column, it cannot be the one group {name!r}. Write "each" alone.'
            )
        return found[0][1]

    def _position(self, column: Any) -> int:
        if isinstance(column, str) and column in self.names:
            return self.names.index(column)
        is_number = isinstance(column, int | np.integer) and not isinstance(column, bool | np.bool_)
        if is_number and 0 <= column < len(self.names):
            return int(column)
        shown = ", ".join(self.names[:8]) + (", …" if len(self.names) > 8 else "")
        hint = " Numbers are positions, from 0 on." if is_number else ""
        raise ValueError(f"on: there is no column {column!r}. The {len(self.names)} {self.kind} are {shown}.{hint}")


def read_samples(X: Any) -> Samples:
    """Look at samples of any kind."""
    if is_views(X):
        return _read_views(X)
    refuse_unread("X", X)
    if hasattr(X, "columns"):
        columns = tuple(str(name) for name in X.columns)
        if len(set(columns)) < len(columns):
            raise ValueError(f"X: expected columns with different names, got {list(columns)}.")
        kinds = {str(kind).lower() for kind in X.dtypes}
        return Samples(
            columns,
            len(X),
            "features",
            lambda at: _table_columns(X, [X.columns[j] for j in at]),
            _precision(kinds == {"float32"}),
            ids=index_of(X),
        )
    # Rows of NaN are missing views, and infinities are found where the kernel of a group is computed.
    with explained("X", "Pass a table of numbers with a row for each sample."):
        array = check_array(X, accept_sparse="csc", ensure_all_finite=False, input_name="X")
    single = _precision(array.dtype == np.float32)
    names = tuple(f"x{j}" for j in range(array.shape[1]))
    if issparse(array):
        return Samples(names, array.shape[0], "features", lambda at: array[:, at].toarray(), single, False)
    return Samples(names, len(array), "features", lambda at: array[:, at], single, False)


def is_views(X: Any) -> bool:
    """Tell a dict of views from other samples."""
    return isinstance(X, Mapping) and not issparse(X)


def count_samples(X: Any) -> int:
    """Count samples of any kind."""
    if is_views(X):
        sizes = {str(name): count_samples(view) for name, view in X.items()}
        if len(set(sizes.values())) > 1:
            aligned_views(X)  # names the samples that are missing, where views have ids
        return _common_size(sizes)
    refuse_unread("X", X)
    with explained("X", "Pass a table with a row for each sample, all of one length."):
        shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
    return int(shape[0]) if shape else 0


def _numbers(name: str, values: Any) -> npt.NDArray[Any]:
    """Read numbers; truth values, as one-hot codes have them, count as 0 and 1."""
    array = np.asarray(values)
    return array.astype(np.float64) if array.dtype == bool else real_array(name, values)


def _table_columns(table: Any, columns: list[Any]) -> Any:
    """Take columns of a data frame: numbers, or the strings of one column of sequences."""
    if len(columns) == 1:
        values = table[columns[0]].to_numpy()
        if _are_strings(values):
            return list(values)
    try:
        return _numbers("X", table[columns].to_numpy())
    except ValueError:
        for column in columns:
            try:
                _numbers("X", table[column].to_numpy())
            except ValueError as error:
                raise ValueError(
                    f"X: column {column!r} does not hold numbers ({error}) Code it as numbers, or leave it out of the "
                    "specs."
                ) from None
        raise


def _are_strings(values: Any) -> bool:
    """Tell a view of sequences, where None or NaN is a missing one, from numbers."""
    if not _are_objects(values):
        return False
    return any(isinstance(value, str) for value in values) and all(
        isinstance(value, str) or _is_missing(value) for value in values
    )


def _are_objects(values: Any) -> bool:
    return np.asarray(values).dtype.kind in "OUT"


def _is_missing(value: Any) -> bool:
    return value is None or (not isinstance(value, str) and bool(value != value))


def _common_size(sizes: dict[str, int]) -> int:
    """Return the number of samples that all views have."""
    if not sizes or len(set(sizes.values())) > 1:
        raise ValueError(f"X: expected views of the same samples, got views with {sizes} samples.")
    return next(iter(sizes.values()))


def _precision(single: Any) -> np.dtype[Any]:
    return np.dtype(np.float32 if single else np.float64)


def _read_views(X: Mapping[Any, Any]) -> Samples:
    X = aligned_views({str(name): view for name, view in X.items()})
    called = [ids for find in (ids_of, index_of) for view in X.values() if (ids := find(view)) is not None]
    flat = {name: np.ndim(view) == 1 for name, view in X.items()}
    strings = {name: flat[name] and _are_strings(view) for name, view in X.items()}
    columns = all(flat.values()) and not any(strings.values())
    views: dict[str, Any] = {}
    for name, view in zip(flat, X.values(), strict=True):
        if strings[name]:
            views[name] = list(view)
        elif flat[name]:
            views[name] = _numbers(f"X, view {name!r}", view)[:, None]
        else:
            try:
                samples = read_samples(view)
                points = samples.take(list(range(len(samples.names))))
                views[name] = points if isinstance(points, list) else _numbers("X", points)
            except ValueError as error:
                raise ValueError(f"X, view {name!r}: {error}") from None
    n_samples = _common_size({name: len(view) for name, view in views.items()})

    def take(at: list[int]) -> Any:
        chosen = [list(views.values())[j] for j in at]
        if len(chosen) == 1:
            return chosen[0]
        if any(isinstance(view, list) for view in chosen):
            raise ValueError('on: views of strings cannot be joined with others. Name one view, or use "each".')
        return np.hstack(chosen)

    # Sequences have no precision, also where all those of some samples are missing and might be numbers.
    without = {name for name, view in X.items() if flat[name] and _are_objects(view) and all(map(_is_missing, view))}
    numbers = [view for name, view in views.items() if not isinstance(view, list) and name not in without]
    single = _precision(all(view.dtype == np.float32 for view in numbers))
    kind, ids = "features" if columns else "views", next(iter(called), None)
    return Samples(tuple(views), n_samples, kind, take, single, ids=ids)


def split_missing(label: str, points: Any) -> tuple[Any, Array]:
    """
    Find the samples that a group has no values for: rows that are all NaN.

    Shapes: points (n_samples, n_features); returns present (n_samples,).
    """
    if isinstance(points, list):
        missing = np.array([_is_missing(point) for point in points])
        return ["" if gone else str(point) for point, gone in zip(points, missing, strict=True)], 1.0 - missing
    points = np.asarray(points, dtype=np.float64)
    lost = np.isnan(points)
    missing = lost.all(axis=1)
    bad = ~np.isfinite(points) & ~missing[:, None]
    if bad.any():
        row = int(np.argwhere(bad)[0][0])
        raise ValueError(
            f"X: row {row} of {label} is partly NaN or infinite. Impute it, or make the whole row NaN, which means "
            "that the sample has no such view."
        )
    return np.where(missing[:, None], 0.0, points), 1.0 - missing
