"""From a case that shows something to the smallest one that still does."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any

import numpy as np

Case = dict[str, Any]


Change = Callable[[Case], Iterator[Case]]


def shrink(case: Case, still: Callable[[Case], bool], changes: Sequence[Change], seconds: float) -> Case:
    """
    Take what is simpler as long as it still shows the same.

    Parameters
    ----------
    case : dict
        A case that shows something.
    still : callable
        Tells whether a case shows it.
    changes : sequence of callable
        Each yields cases that are a little simpler than one, the boldest first.
    seconds : float
        How long to try.

    Returns
    -------
    dict
        The simplest case found.
    """
    end = time.monotonic() + seconds
    before = None
    while before is not case and time.monotonic() < end:
        before = case
        for change in changes:
            while (simpler := _first(change(case), still, end)) is not None:
                case = simpler
    return case


def _first(candidates: Iterator[Case], still: Callable[[Case], bool], end: float) -> Case | None:
    """Return the first candidate that still shows the same; none if there is none, or no more time."""
    for candidate in candidates:
        if time.monotonic() > end:
            return None
        if still(_in_step(candidate)):
            return candidate
    return None


def _in_step(case: Case) -> Case:
    """Take the first samples, which are asked for alone too, from those of training again."""
    square = case.get("source") == "kernels"
    for query in [query for query in case.get("queries", []) if query["first"]]:
        for part, whole in zip(query["parts"], case["parts"], strict=True):
            count = len(part["values"][0] if square else part["values"])
            part["values"] = [kernel[:count] for kernel in whole["values"]] if square else whole["values"][:count]
            if "task" in query:
                query["task"] = case["task"]["values"][: len(part["values"])]
    return case


def _changed(case: Case, **changes: Any) -> Case:
    return deepcopy(case) | deepcopy(changes)


def _without_questions(case: Case) -> Iterator[Case]:
    if case["extras"]:
        yield _changed(case, extras=[])
    for position in range(len(case["extras"])):
        yield _changed(case, extras=_without(case["extras"], position))
    # Names of queries are numbers, so the others keep their places.
    for position, query in enumerate(case["queries"]):
        parts = [part | {"values": part["values"][:1]} for part in query["parts"]]
        if case["source"] != "kernels" and parts != query["parts"]:
            shorter = query | {"parts": parts} | ({"task": query["task"][:1]} if "task" in query else {})
            yield _changed(case, queries=[*case["queries"][:position], shorter, *case["queries"][position + 1 :]])


def _without_rows(case: Case) -> Iterator[Case]:
    """Leave out half of the samples, a quarter, and so on down to one."""
    n = len(case["target"]["values"])
    size = n // 2
    while size:
        for first in range(0, n, size):
            rows = [row for row in range(n) if not first <= row < first + size]
            if rows:
                yield _with_rows(case, rows)
        size //= 2


def _with_rows(case: Case, rows: list[int]) -> Case:
    """Keep some samples; kernels of new ones lose the columns of those that are gone."""
    smaller = deepcopy(case)
    square = case["source"] == "kernels"
    for part in smaller["parts"]:
        if square:
            part["values"] = np.array(part["values"])[:, rows][:, :, rows].tolist()
        else:
            part["values"] = [part["values"][row] for row in rows]
    if square:
        for query in smaller["queries"]:
            for part in query["parts"]:
                part["values"] = np.array(part["values"])[:, :, rows].tolist()
    smaller["target"]["values"] = [case["target"]["values"][row] for row in rows]
    if "task" in case:
        smaller["task"]["values"] = [case["task"]["values"][row] for row in rows]
    return smaller


def _without_parts(case: Case) -> Iterator[Case]:
    """Leave out views, kernels, columns and families of kernels."""
    if case["bank"] is not None:
        yield _changed(case, bank=None)
    for position in range(len(case["parts"]) if len(case["parts"]) > 1 else 0):
        smaller = deepcopy(case)
        for holder in (smaller, *smaller["queries"]):
            holder["parts"] = _without(holder["parts"], position)
        yield smaller
    for place, part in enumerate(case["parts"]):
        first = part["values"][0]
        axis = 0 if case["source"] == "kernels" else 1
        count = len(part["values"]) if axis == 0 else len(first) if isinstance(first, list) else 1
        for position in range(count if count > 1 else 0):
            smaller = deepcopy(case)
            for holder in (smaller, *smaller["queries"]):
                values = np.delete(np.array(holder["parts"][place]["values"]), position, axis=axis)
                holder["parts"][place]["values"] = values.tolist()
            yield smaller
    if case["bank"] is not None:
        specs = case["bank"]["specs"]
        for position in range(len(specs) if len(specs) > 1 else 0):
            yield _changed(case, bank=case["bank"] | {"specs": _without(specs, position)})
        for name in ("standardise", "scaling"):
            if case["bank"][name]:
                yield _changed(case, bank=case["bank"] | {name: None})


def _without_options(case: Case) -> Iterator[Case]:
    """Bring options back to their defaults."""
    for name in case["options"]:
        if name != "kernels":
            yield _changed(case, options={key: value for key, value in case["options"].items() if key != name})


def _plainer(case: Case) -> Iterator[Case]:
    """Take plain forms and round numbers."""
    if case["target"]["form"] != "V":
        yield _changed(case, target=case["target"] | {"form": "V"})
    plain = "list(V)" if case["source"] == "kernels" else "V"
    if any(part["form"] != plain for part in case["parts"]):
        smaller = deepcopy(case)
        for holder in (smaller, *smaller["queries"]):
            for part in holder["parts"]:
                part["form"] = plain
        yield smaller
    for round_off in (np.round, lambda values: np.round(values, 2), _two_digits):
        smaller = deepcopy(case)
        for part in smaller["parts"]:
            part["values"] = _rounded(part["values"], round_off)
        if smaller["parts"] != case["parts"]:
            yield smaller
        target = _rounded(case["target"]["values"], round_off)
        if repr(target) != repr(case["target"]["values"]):
            yield _changed(case, target=case["target"] | {"values": target})


def _two_digits(values: Any) -> Any:
    """Keep two digits of numbers of any size."""
    return np.vectorize(lambda value: float(f"{value:.1e}"))(values)


def _rounded(values: Any, round_off: Callable[[Any], Any]) -> Any:
    table = np.array(values, dtype=object)
    if not all(isinstance(value, float) for value in table.ravel()):
        return values
    with np.errstate(all="ignore"):
        return round_off(table.astype(float)).tolist()


def _without(items: list[Any], position: int) -> list[Any]:
    return [*items[:position], *items[position + 1 :]]


def _fewer_words(case: Case) -> Iterator[Case]:
    """Leave out commands and their options."""
    runs = case["runs"]
    for position, run in enumerate(runs):
        if len(runs) > 1:
            yield _changed(case, runs=_without(runs, position))
        for first in range(1, len(run)):
            for count in (2, 1):
                yield _changed(case, runs=[*runs[:position], run[:first] + run[first + count :], *runs[position + 1 :]])


def _fewer_files(case: Case) -> Iterator[Case]:
    """Leave out files, their rows and columns, and what is special about them."""
    for name, file in case["files"].items():
        yield _changed(case, files={key: value for key, value in case["files"].items() if key != name})
        for special in ("damage", "quote"):
            if special in file:
                plainer = {key: value for key, value in file.items() if key != special}
                yield _changed(case, files=case["files"] | {name: plainer})
        for cells in _fewer_cells(file.get("cells") or []):
            yield _changed(case, files=case["files"] | {name: file | {"cells": cells}})


def _fewer_cells(cells: list[list[str]]) -> Iterator[list[list[str]]]:
    """Leave out rows and columns of a table."""
    size = (len(cells) - 1) // 2
    while size > 0:
        for first in range(1, len(cells), size):
            yield [*cells[:first], *cells[first + size :]]
        size //= 2
    for column in range(max(map(len, cells), default=0)):
        yield [_without(row, column) for row in cells]


OF_PROBLEMS = (_without_parts, _without_options, _without_questions, _without_rows, _without_parts, _plainer)
"""Changes that make cases of the estimators simpler."""
OF_COMMANDS = (_fewer_words, _fewer_files)
"""Changes that make cases of the commands simpler."""
