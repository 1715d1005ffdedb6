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
    """Return the ids that an input carries; places from 0 on are none."""
    found = index_of(values)
    return None if found is None or is_default(found) else found


def index_of(values: Any) -> Ids | None:
    """Return what the rows of an input are called, the default range included."""
    if hasattr(values, "row_ids"):
        found: Ids | None = values.row_ids
        return found
    return _names_of(values.index) if hasattr(values, "iloc") else None


def text_of(name: Hashable) -> str:
    """Return an id as text, the same for numbers that are equal: the form in which a saved model has it."""
    return str(_whole(name))


def rows_of(wanted: Sequence[Hashable], ids: Sequence[Hashable]) -> Rows:
    """Find ids among others. Shapes: returns (n_wanted,)."""
    places = {name: place for place, name in enumerate(ids)}
    return np.array([places.get(name, -1) for name in wanted], dtype=np.intp)


def order_like(label: str, ids: Sequence[Hashable], first_label: str, first: Sequence[Hashable]) -> Rows | None:
    """Return the order that brings ids into that of others, and refuse other ids."""
    if ids == first:
        return None
    shown, first_shown = ids, first
    if set(ids) != set(first):
        # The ids 100 and "100" are one: a file gives numbers in one place, and text in the next.
        ids, first = [text_of(name) for name in ids], [text_of(name) for name in first]
        if ids == first:
            return None
    rows, back = rows_of(first, ids), rows_of(ids, first)
    lost = [("it", [name for name, row in zip(first_shown, rows, strict=True) if row < 0])]
    lost += [(first_label, [name for name, row in zip(shown, back, strict=True) if row < 0])]
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


def aligned_to(X: Any, others: Mapping[str, Any]) -> list[Any]:
    """
    Bring targets, and whatever else has a row for each sample, into the order of the samples.

    The first input that has ids leads, which is one of the others where the samples have none.
    """
    samples: dict[str, Any] = {"X": X}
    if isinstance(X, Mapping):
        samples = {f"view {name!r}": view for name, view in X.items()}
    elif isinstance(X, list | tuple):
        samples = {f"kernel {m}": matrix for m, matrix in enumerate(X)}
    reference = _first_with_ids(samples)
    leaders = [] if reference is None else [reference]
    ranges = [] if leaders else [(name, len(ids)) for name, view in samples.items() if (ids := index_of(view))]
    turned = []
    for label, values in others.items():
        ids = ids_of(values)
        near = [leader for leader in leaders if ids is None or not _are_places(ids, leader[1])]
        if ids is None:
            for leader in near:
                _in_order(label, values, *leader)
            ranges += [(label, len(values))] if index_of(values) else []
        elif near:
            values = _in_order(label, values, *near[0])
        else:
            for name, n_rows in ranges:
                _refuse_shuffled(name, n_rows, label, ids)
            leaders.append((label, ids))
        turned.append(values)
    return turned


def aligned_matrices(matrices: Mapping[str, Any]) -> tuple[list[Any], Ids | None, Ids | None]:
    """
    Bring rows and columns of kernel matrices into the order of the first one that has ids.

    Returned are the matrices, what their rows are called, the default range included, and the ids of their columns.
    """
    labelled = {f"kernel {name!r}": matrix for name, matrix in matrices.items()}
    rows = _first_with_ids(labelled)
    if rows is not None:
        labelled = {label: _in_order(label, matrix, *rows) for label, matrix in labelled.items()}
    called = rows[1] if rows else next((ids for matrix in matrices.values() if (ids := index_of(matrix))), None)
    columns = _first_with_ids({label: _Columns(matrix) for label, matrix in labelled.items()})
    if columns is None:
        return list(labelled.values()), called, None
    if rows is not None and set(map(text_of, columns[1])) == set(map(text_of, rows[1])):
        columns = rows
    turned = []
    for label, matrix in labelled.items():
        ids = ids_of(_Columns(matrix))
        order = None if ids is None else order_like(f"columns of {label}", ids, *columns)
        turned.append(matrix if order is None else matrix.iloc[:, order])
    return turned, called, columns[1]


class _Columns:
    """The ids of a matrix's columns, where those of its rows are asked for."""

    def __init__(self, matrix: Any) -> None:
        self.row_ids = _names_of(matrix.columns) if hasattr(matrix, "iloc") else None


_NAN = float("nan")
"""One NaN for all, because it is equal to itself only by identity."""


def _names_of(index: Any) -> Ids:
    """Return what a pandas index holds."""
    found: Ids = index.tolist()
    return found if type(index).__name__ == "RangeIndex" else list(map(_plain, found))


def _plain(name: Any) -> Hashable:
    """Return an id in the form that is compared: NumPy's numbers as Python's, and one NaN for all."""
    if type(name) is str:
        return str(name)
    if isinstance(name, tuple):
        return tuple(map(_plain, name))
    if isinstance(name, np.integer | np.floating | np.str_):
        name = name.item()
    if (isinstance(name, float) and name != name) or type(name).__name__ == "NAType":
        return _NAN
    try:
        hash(name)
    except TypeError:
        return str(name)
    known: Hashable = name
    return known


def _whole(name: Hashable) -> Hashable:
    """Return whole numbers among fractions as such, as they are equal."""
    if isinstance(name, tuple):
        return tuple(map(_whole, name))
    return int(name) if isinstance(name, float) and name.is_integer() else name


def _first_with_ids(inputs: Mapping[str, Any]) -> tuple[str, Ids] | None:
    return next(((name, ids) for name, view in inputs.items() if (ids := ids_of(view)) is not None), None)


def _in_order(label: str, values: Any, first_label: str, first: Ids) -> Any:
    """Bring one input into the order of ids; one without ids, or with nothing but places, stays as it is."""
    ids = ids_of(values)
    if ids is None:
        if index_of(values):
            _refuse_shuffled(label, len(values), first_label, first)
        return values
    rows = order_like(label, ids, first_label, first)
    return values if rows is None else values.iloc[rows] if hasattr(values, "iloc") else values[rows]


def _refuse_shuffled(label: str, n_rows: int, other: str, ids: Ids) -> None:
    """Refuse a default range beside the same numbers in another order: either may be meant."""
    found, places = list(map(text_of, ids)), list(map(str, range(n_rows)))
    if found != places and sorted(found) == sorted(places):
        raise ValueError(
            f"{label}: has the index 0, 1, 2, ... and {other} the same numbers in another order, so it is not clear "
            "which rows belong together. Call reset_index(drop=True) on both if it is by their order, else give both "
            "their own index."
        )


def _are_places(ids: Ids, others: Ids) -> bool:
    """
    Tell whole numbers beside names that none of them spells.

    Such numbers are places in a table with the default range that was taken apart, as cross-validation does.
    """
    apart = _are_numbers(ids) != _are_numbers(others)
    return apart and set(map(text_of, ids)).isdisjoint(map(text_of, others))


def is_default(ids: Ids) -> bool:
    """Tell the default range, which says nothing of what rows are, from ids."""
    return all(type(name) is int and name == place for place, name in enumerate(ids))


def _are_numbers(ids: Ids) -> bool:
    return all(isinstance(name, int) for name in ids)


def _listed(names: Sequence[Hashable]) -> str:
    rest = len(names) - _SHOWN
    return ", ".join(map(repr, names[:_SHOWN])) + (f" and {rest} more" if rest > 0 else "")
