"""What is to be predicted: classes, responses and tasks of all kinds."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuzz.draws import Draw
from fuzz.forms import ODD_TARGETS, TABLES_OF_TARGETS, TARGETS
from fuzz.values import listed, scale

_LARGEST = float(np.finfo(float).max)


def _two(draw: Draw, n: int) -> list[int]:
    """Return zeros and ones, both of them."""
    return _classes(draw, n, 2)


def _classes(draw: Draw, n: int, count: int) -> list[int]:
    """Return numbers of classes, at least two of them."""
    found = draw.rng.integers(0, count, size=n)
    found[draw.rng.permutation(n)[:2]] = 0, 1
    labels: list[int] = listed(found)
    return labels


LABELS = {
    "0 and 1": _two,
    "-1 and 1": lambda draw, n: [2 * label - 1 for label in _two(draw, n)],
    "fractions": lambda draw, n: [float(label) for label in _two(draw, n)],
    "truth": lambda draw, n: [bool(label) for label in _two(draw, n)],
    "text": lambda draw, n: [("yes", "no")[label] for label in _two(draw, n)],
    "strange text": lambda draw, n: [("", " ü\n")[label] for label in _two(draw, n)],
    "three": lambda draw, n: _classes(draw, n, 3),
    "several": lambda draw, n: [f"class {label}" for label in _classes(draw, n, 5)],
    "one against the rest": lambda draw, n: [int(place == 0) for place in range(n)],
    "each its own": lambda draw, n: list(range(n)),
    "large numbers": lambda draw, n: [2**60 + label for label in _two(draw, n)],
}
ODD_LABELS = {
    "one class": lambda draw, n: [1] * n,
    "a gap": lambda draw, n: [None, *_two(draw, n)[1:]],
    "NaN": lambda draw, n: [float("nan"), *_two(draw, n)[1:]],
    "text and numbers": lambda draw, n: ["a", *_two(draw, n)[1:]],
    "responses": lambda draw, n: listed(draw.rng.normal(size=n)),
    "infinite": lambda draw, n: [float("inf"), *_two(draw, n)[1:]],
}
RESPONSES = {
    "normal": lambda draw, n: listed(draw.rng.normal(size=n)),
    "scaled": lambda draw, n: listed(draw.rng.normal(size=n) * scale(draw)),
    "constant": lambda draw, n: [draw.one_of([0.0, 1.0, -3.3])] * n,
    "whole": lambda draw, n: listed(draw.rng.integers(0, 5, size=n)),
    "two values": lambda draw, n: _two(draw, n),
    "far off": lambda draw, n: listed(draw.rng.normal(size=n) + draw.one_of([100.0, 1e6])),
    "one apart": lambda draw, n: [1e-9, *[0.0] * (n - 1)],
    "heavy tails": lambda draw, n: listed(draw.rng.standard_t(1.5, size=n)),
    "years": lambda draw, n: listed(draw.rng.integers(1900, 2025, size=n)),
}
EXTREME_RESPONSES = {
    "one huge constant": lambda draw, n: [draw.one_of([1e300, 1e-300])] * n,
    "huge": lambda draw, n: listed(draw.rng.normal(size=n) * draw.one_of([1e150, 1e300])),
    "tiny": lambda draw, n: listed(draw.rng.normal(size=n) * draw.one_of([1e-150, 1e-300, 1e-310])),
    "very far off": lambda draw, n: listed(draw.rng.normal(size=n) + draw.one_of([1e16, 1e300])),
    "largest": lambda draw, n: [(_LARGEST, -_LARGEST)[label] for label in _two(draw, n)],
    "one huge": lambda draw, n: [1e300, *listed(draw.rng.normal(size=n - 1))],
    "smallest": lambda draw, n: [5e-324 * label for label in _two(draw, n)],
    "large whole numbers": lambda draw, n: listed(draw.rng.integers(-(2**62), 2**62, size=n)),
}
ODD_RESPONSES = {
    "NaN": lambda draw, n: [float("nan"), *[1.0] * (n - 1)],
    "infinite": lambda draw, n: [float("inf"), *[1.0] * (n - 1)],
    "text": lambda draw, n: ["a"] * n,
    "a gap": lambda draw, n: [None, *[1.0] * (n - 1)],
}

Target = dict[str, Any]


def labels(draw: Draw, n: int) -> Target:
    """Draw classes of samples, or several labels a sample."""
    if draw.maybe(0.1):
        table = draw.rng.integers(0, 2, size=(n, draw.number(2, 4)))
        table[0], table[1] = 0, 1
        return {"values": listed(table), "form": TABLES_OF_TARGETS[draw.one_of(list(TABLES_OF_TARGETS))]}
    kind = draw.pick("labels", ["0 and 1"] * 3 + list(LABELS), odd=list(ODD_LABELS))
    return _with_form(draw, (LABELS | ODD_LABELS)[kind](draw, n))


def responses(draw: Draw, n: int) -> Target:
    """Draw one response of samples, or several."""
    if draw.maybe(0.15):
        table = draw.rng.normal(size=(n, draw.number(1, 3))) * scale(draw)
        return {"values": listed(table), "form": TABLES_OF_TARGETS[draw.one_of(list(TABLES_OF_TARGETS))]}
    kind = draw.pick("responses", list(RESPONSES), list(EXTREME_RESPONSES), odd=list(ODD_RESPONSES))
    return _with_form(draw, (RESPONSES | EXTREME_RESPONSES | ODD_RESPONSES)[kind](draw, n))


def of_tasks(draw: Draw, n: int) -> Target:
    """Draw targets for samples of several tasks: numbers or classes, some missing."""
    target = draw.one_of([labels, responses])(draw, n)
    while isinstance(target["values"][0], list):
        target = draw.one_of([labels, responses])(draw, n)
    if draw.maybe(0.1):
        target = {"values": [None, *target["values"][1:]], "form": "V"}
    return target


def _with_form(draw: Draw, values: list[Any]) -> Target:
    form = draw.pick("form of y", ["array", *TARGETS], odd=list(ODD_TARGETS))
    return {"values": values, "form": (TARGETS | ODD_TARGETS)[form]}


def leave_out(draw: Draw, target: Target, marker: str) -> Target:
    """Mark some samples as unlabelled."""
    value = {"-1": -1, "None": None, "np.nan": float("nan"), "'?'": "?"}.get(marker)
    if marker == "False" or isinstance(target["values"][0], list) or draw.maybe(0.2):
        return target
    values = [value if place > 1 and draw.maybe(0.4) else label for place, label in enumerate(target["values"])]
    return {"values": values, "form": "np.array(V, dtype=object)" if draw.maybe(0.5) else "V"}


def tasks(draw: Draw, n: int) -> list[Any]:
    """Draw the task of each sample."""
    names = draw.pick("tasks", [["a"], ["a", "b"], ["a", "b", "c"], [1, 2]], odd=[[None, "a"], [("a", 1), ("b", 2)]])
    return [names[place % len(names)] for place in draw.rng.permutation(n)]
