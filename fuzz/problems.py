"""Cases for the estimators: plain data that a seed decides on."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuzz import forms, kernels, targets, values
from fuzz.draws import Draw
from fuzz.options import options

Case = dict[str, Any]
Part = dict[str, Any]

_SIZES = [2, 3, 4, 5, 6, 8, 12, 15, 20, 25, 40]
_TARGETS = {"BEMKLClassifier": targets.labels, "BEMKLRegressor": targets.responses, "BEMKLMultiTask": targets.of_tasks}
EXTRAS = (
    *("twice", "warm", "rows in another order", "as an array", "saved", "pickled", "shared", "selected"),
    *("by ids", "scored"),
)
"""Questions that need another fit or a file; a case has few of them."""


def problem(seed: int) -> Case:
    """Draw a case."""
    draw = Draw(seed, stream=0)
    estimator = draw.one_of(["BEMKLClassifier"] * 2 + ["BEMKLRegressor"] * 2 + ["BEMKLMultiTask"])
    several = estimator == "BEMKLMultiTask"
    n = draw.one_of(_SIZES[4:] if several else _SIZES)
    source = draw.one_of(["table", "table", "views"] if several else ["table", "table", "views", "kernels"])
    case: Case = {"seed": seed, "hostility": draw.hostility, "odd": draw.odd, "estimator": estimator}
    case |= {"options": options(draw, estimator), "bank": None}
    case |= {"table": _table, "views": _views, "kernels": _kernels}[source](draw, n)
    if source == "kernels":
        case["options"] |= {"kernels": "'precomputed'"}
    case["target"] = _TARGETS[estimator](draw, n)
    if "unlabeled" in case["options"]:
        case["target"] = targets.leave_out(draw, case["target"], case["options"]["unlabeled"])
    if several:
        _add_tasks(draw, case, n)
    case["extras"] = [name for name in EXTRAS if draw.maybe(0.06)]
    case["ids"] = forms.IDS[draw.one_of(list(forms.IDS))]
    case["scores"] = [
        (forms.SCORED[draw.one_of(list(forms.SCORED))], forms.WEIGHTS[draw.one_of(list(forms.WEIGHTS))])
        for _ in range(3)
    ]
    return case


def _part(table: values.Array, form: str, name: str | None = None) -> Part:
    return {"name": name, "values": values.listed(table), "form": form}


def _first(table: Any) -> values.Array:
    """Return the first samples, which have to be predicted alone as among the others."""
    return np.array(table[: max(1, len(table) // 3)])


def _table(draw: Draw, n: int) -> Case:
    """Draw samples in one table."""
    p = draw.one_of([1, 1, 2, 2, 3, 3, 5, 12, 30])
    form = forms.form(draw)
    bank, shape = None, None
    if draw.maybe(0.7):
        shape = draw.one_of(["normal"] * 3 + list(values.SHAPES))
        bank = kernels.bank(draw, [str(place) for place in range(p)], shape)
    table = values.matrix(draw, n, p, shape, keep=shape in values.COUNTS)
    queries = [{"parts": [_part(_first(table), form)], "first": True}]
    for _ in range(draw.number(0, 2)):
        rows = values.new_rows(draw, table)
        queries.append({"parts": [_part(rows, forms.new_form(draw, form))], "first": False})
    return {"source": "table", "bank": bank, "parts": [_part(table, form)], "queries": queries}


def _views(draw: Draw, n: int) -> Case:
    """Draw samples in a dict of views."""
    names = ["one", "two", "three"][: draw.number(1, 3)]
    tables = [values.matrix(draw, n, draw.number(1, 3)) for _ in names]
    shapes = [
        forms.VIEWS[draw.one_of(list(forms.VIEWS))] if table.shape[1] == 1 and draw.maybe(0.5) else forms.form(draw)
        for table in tables
    ]
    parts = [_part(*one) for one in zip(tables, shapes, names, strict=True)]
    first = [_part(_first(table), form, name) for table, form, name in zip(tables, shapes, names, strict=True)]
    queries = [{"parts": first, "first": True}]
    if draw.maybe(0.5):
        rows = [values.new_rows(draw, table) for table in tables]
        fewest = min(map(len, rows))
        new = [_part(r[:fewest], form, name) for r, form, name in zip(rows, shapes, names, strict=True)]
        queries.append({"parts": new, "first": False})
    if draw.maybe(0.2):
        _add_sequences(draw, n, parts, queries)
        names = [*names, "text"]
    bank = kernels.bank(draw, [repr(name) for name in names], "normal") if draw.maybe(0.4) else None
    return {"source": "views", "bank": bank, "parts": parts, "queries": queries}


def _add_sequences(draw: Draw, n: int, parts: list[Part], queries: list[Case]) -> None:
    """Add a view of strings, some of them missing."""
    texts = [
        None if draw.maybe(0.05) else "".join(draw.one_of("ACGT") for _ in range(draw.number(0, 8))) for _ in range(n)
    ]
    form = draw.one_of(["V", "np.array(V, dtype=object)", "pd.Series(V)"])
    parts.append({"name": "text", "values": texts, "form": form})
    for query in queries:
        count = len(query["parts"][0]["values"])
        query["parts"].append({"name": "text", "values": texts[:count], "form": form})


def _kernels(draw: Draw, n: int) -> Case:
    """Draw kernel matrices."""
    name = draw.pick("form of kernels", ["list", "array", *forms.STACKS], odd=list(forms.ODD_STACKS))
    form = (forms.STACKS | forms.ODD_STACKS)[name]
    stack = np.array([kernels.kernel_matrix(draw, n) for _ in range(draw.number(1, 5))])
    queries = [{"parts": [_part(stack[:, : max(1, n // 3)], form)], "first": True}]
    if draw.maybe(0.6):
        rows = draw.rng.integers(0, n, size=draw.number(1, 3))
        factor = draw.pick("factor of new kernels", [1.0, 1.0, 0.5, 0.0, -2.0], [1e8, 1e-8, 1e200])
        with np.errstate(all="ignore"):
            new = np.clip(stack[:, rows] * factor, -1e308, 1e308)
        queries.append({"parts": [_part(new, form)], "first": False})
    return {"source": "kernels", "parts": [_part(stack, form)], "queries": queries}


def _add_tasks(draw: Draw, case: Case, n: int) -> None:
    """Add the task of each sample, and of each new one."""
    names = targets.tasks(draw, n)
    plain = all(part["form"] == "V" for part in case["parts"]) and len(case["parts"]) == 1
    case["task"] = {"values": names, "apart": plain and case["parts"][0]["name"] is None and draw.maybe(0.3)}
    for query in case["queries"]:
        count = len(query["parts"][0]["values"])
        query["task"] = [names[place % n] for place in range(count)]
