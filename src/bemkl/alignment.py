"""Rows of several inputs that belong together by their ids: brought into one order, or refused."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Ids = list[Hashable]
Rows = npt.NDArray[np.intp]

_SHOWN = 5


def ids_of(values: Any) -> Ids | None:
    """Return the ids that an input carries."""
    if hasattr(values, "row_ids"):
        ids: Ids | None = values.row_ids
        return ids
    return _own(values.index) if hasattr(values, "iloc") else None


def rows_of(wanted: Sequence[Hashable], ids: Sequence[Hashable]) -> Rows:
    """Find ids among others. Shapes: returns (n_wanted,)."""
    places = {name: place for place, name in enumerate(ids)}
    return np.array([places.get(name, -1) for name in wanted], dtype=np.intp)


def order_like(label: str, ids: Ids, first_label: str, first: Ids) -> Rows | None:
    """Return the order that brings ids into that of others, and refuse other ids."""
    if ids == first:
        return None
    rows, back = rows_of(first, ids), rows_of(ids, first)
    lost = [("it", [name for name, row in zip(first, rows, strict=True) if row < 0])]
    lost += [(first_label, [name for name, row in zip(ids, back, strict=True) if row < 0])]
    if any(names for _, names in lost):
        said = " and ".join(f"{where} lacks {_listed(names)}" for where, names in lost if names)
        raise ValueError(
            f"{label}: expected the ids of {first_label}, but {said}. Pass the same samples everywhere, or arrays "
            "without an index if rows belong together by their order."
        )
    if len(set(ids)) < len(ids) or len(ids) != len(first):
        raise ValueError(
            f"{label}: has the ids of {first_label} in another order, and some of them more than once, so rows cannot "
            "be matched. Make ids unique, or pass arrays without an index if rows belong together by their order."
        )
    return rows


def aligned_views(views: Mapping[str, Any]) -> dict[str, Any]:
    """Bring the rows of views into the order of the first one that has ids."""
    reference = _first_with_ids({f"view {name!r}": view for name, view in views.items()})
    if reference is None:
        return dict(views)
    return {name: _in_order(f"X, view {name!r}", view, *reference) for name, view in views.items()}


def aligned_to(X: Any, label: str, values: Any) -> Any:
    """Bring targets, or anything else with a row for each sample, into the order of the samples."""
    views: dict[str, Any] = {"X": X}
    if isinstance(X, Mapping):
        views = {f"view {name!r}": view for name, view in X.items()}
    elif isinstance(X, list | tuple):
        views = {f"kernel {m}": matrix for m, matrix in enumerate(X)}
    reference = _first_with_ids(views)
    if reference is None:
        frames = [(name, view) for name, view in views.items() if hasattr(view, "iloc")]
        reference = (frames[0][0], list(range(len(frames[0][1])))) if frames else None
    ids = ids_of(values)
    if reference is None or (ids is not None and _are_numbers(ids) and not _are_numbers(reference[1])):
        # Numbers beside names are places in a table that was taken apart, as cross-validation does: no ids.
        return values
    return _in_order(label, values, *reference)


def aligned_matrices(matrices: Mapping[str, Any]) -> tuple[list[Any], Ids | None, Ids | None]:
    """Bring rows and columns of kernel matrices into the order of the first one that has ids."""
    labelled = {f"kernel {name!r}": matrix for name, matrix in matrices.items()}
    rows = _first_with_ids(labelled)
    if rows is not None:
        labelled = {label: _in_order(label, matrix, *rows) for label, matrix in labelled.items()}
    frames = {label: matrix for label, matrix in labelled.items() if hasattr(matrix, "iloc")}
    columns = _first_with_ids({label: _Columns(matrix) for label, matrix in frames.items()})
    if columns is None:
        return list(labelled.values()), rows and rows[1], None
    if rows is not None and set(columns[1]) == set(rows[1]):
        columns = rows
    turned = []
    for label, matrix in labelled.items():
        ids = _own(matrix.columns) if hasattr(matrix, "iloc") else None
        order = None if ids is None else order_like(f"columns of {label}", ids, *columns)
        turned.append(matrix if order is None else matrix.iloc[:, order])
    return turned, rows and rows[1], columns[1]


class _Columns:
    """The ids of a matrix's columns, where those of its rows are asked for."""

    def __init__(self, matrix: Any) -> None:
        self.row_ids = _own(matrix.columns)


def _own(index: Any) -> Ids | None:
    """Return what a pandas index holds, unless it is the default range."""
    if type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1:
        return None
    found: Ids = index.tolist()
    return None if _is_default(found) else found


def _first_with_ids(inputs: Mapping[str, Any]) -> tuple[str, Ids] | None:
    return next(((name, ids) for name, view in inputs.items() if (ids := ids_of(view)) is not None), None)


def _in_order(label: str, values: Any, first_label: str, first: Ids) -> Any:
    """Bring one input into the order of ids; one without ids, or with nothing but places, stays as it is."""
    ids = ids_of(values)
    if ids is None:
        if hasattr(values, "iloc"):
            _refuse_shuffled(label, len(values), first_label, first)
        return values
    if _is_default(first):
        _refuse_shuffled(first_label, len(first), label, ids)
        return values
    rows = order_like(label, ids, first_label, first)
    return values if rows is None else values.iloc[rows] if hasattr(values, "iloc") else values[rows]


def _refuse_shuffled(label: str, n_rows: int, other: str, ids: Ids) -> None:
    """Refuse a default range beside the same numbers in another order: either may be meant."""
    if _are_numbers(ids) and len(ids) == n_rows and sorted(ids) == list(range(n_rows)) and not _is_default(ids):  # type: ignore[type-var]
        raise ValueError(
            f"{label}: has the index 0, 1, 2, ... and {other} the same numbers in another order, so it is not clear "
            "which rows belong together. Call reset_index(drop=True) on both if it is by their order, else give both "
            "their own index."
        )


def _are_numbers(ids: Ids) -> bool:
    return all(isinstance(name, int) for name in ids)


def _is_default(ids: Ids) -> bool:
    return all(name == place and isinstance(name, int) for place, name in enumerate(ids))


def _listed(names: Ids) -> str:
    rest = len(names) - _SHOWN
    return ", ".join(map(repr, names[:_SHOWN])) + (f" and {rest} more" if rest > 0 else "")
