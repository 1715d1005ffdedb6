"""A case as objects and as a script: both are made of the same statements."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse as sp

import bemkl
from fuzz.problems import Case

_IMPORTS = {"np": "import numpy as np", "sp": "import scipy.sparse as sp", "pd": "import pandas as pd"}
_IMPORTS |= {"pl": "import polars as pl", "nan": "from numpy import nan", "inf": "from numpy import inf"}
_NAMESPACE = {name: getattr(bemkl, name) for name in bemkl.__all__}
_NAMESPACE |= {"np": np, "sp": sp, "pd": pd, "pl": pl, "nan": np.nan, "inf": np.inf}


class QuestionError(Exception):
    """A question ended with an error, which is the cause of this one."""


class Session:
    """Objects by name, and the questions that they are asked."""

    def __init__(self, names: dict[str, Any], case: Case | None = None) -> None:
        self.names = _NAMESPACE | names
        self.case = case or {}
        self.question = ""
        self.refused: list[QuestionError] = []

    @classmethod
    def of(cls, case: Case) -> Session:
        """Make the data of a case; the model comes later, because it may be refused."""
        session = cls({}, case)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            for name, value in constants(case):
                session.names[name] = value
            for name, expression in data_statements(case):
                session.names[name] = eval(expression, session.names)
        return session

    def ask(self, question: str, name: str | None = None) -> Any:
        """Evaluate an expression, and keep the answer under a name."""
        self.question = f"{name} = {question}" if name else question
        try:
            with np.errstate(divide="warn", over="warn", invalid="warn", under="ignore"):
                answer = eval(question, self.names)
        except Exception as error:
            raise QuestionError(self.question) from error
        if name:
            self.names[name] = answer
        return answer

    def note(self, raised: QuestionError) -> None:
        """Keep an error about new samples: it may be a refusal, after which there is more to ask."""
        self.refused.append(raised)


def constants(case: Case) -> Iterator[tuple[str, Any]]:
    """Yield the plain values of a case by name."""
    for place, part in enumerate(case["parts"]):
        yield f"V{place}", _plain(part["values"])
    for number, query in enumerate(case["queries"]):
        for place, part in enumerate(query["parts"]):
            yield f"Q{number}_{place}", _plain(part["values"])
        if "task" in query:
            yield f"new{number}_task", _hashable(query["task"])
    yield "Y", case["target"]["values"]
    yield "N", len(case["target"]["values"])
    if "task" in case:
        yield "task", _hashable(case["task"]["values"])


def data_statements(case: Case) -> Iterator[tuple[str, str]]:
    """Yield expressions that make the data of a case."""
    target = _of(case["target"]["form"], "Y")
    if case.get("task", {}).get("apart"):
        yield "X", "{t: V0[[s == t for s in task]] for t in dict.fromkeys(task)}"
        yield "y", "{t: [v for v, s in zip(Y, task) if s == t] for t in dict.fromkeys(task)}"
        for number in range(len(case["queries"])):
            task = f"new{number}_task"
            yield f"new{number}", f"{{t: Q{number}_0[[s == t for s in {task}]] for t in dict.fromkeys({task})}}"
        return
    yield "X", _expression(case["parts"], "V")
    yield "y", target
    for number, query in enumerate(case["queries"]):
        yield f"new{number}", _expression(query["parts"], f"Q{number}_")


def model_expression(case: Case) -> str:
    """Return the expression that makes the model of a case."""
    arguments = [f"{name}={value}" for name, value in case["options"].items()]
    if case["bank"] is not None:
        bank = case["bank"]
        chosen = [f"{name}={bank[name]!r}" for name in ("standardise", "scaling") if bank[name]]
        arguments.insert(0, f"kernels=KernelBank({', '.join(['[' + ', '.join(bank['specs']) + ']', *chosen])})")
    return f"{case['estimator']}({', '.join(arguments)})"


def script(case: Case, questions: list[str]) -> str:
    """Return a script that shows a case, and needs nothing but the packages of its data."""
    statements = dict(data_statements(case))
    wanted = _needed(["X", "y", *_words(" ".join(questions))], statements)
    body = [f"{name} = {_literal(value)}" for name, value in constants(case) if name in wanted]
    body += [f"{name} = {expression}" for name, expression in statements.items() if name in wanted]
    body += [f"model = {model_expression(case)}", *questions]
    words = _words("\n".join(body))
    imports = [line for name, line in _IMPORTS.items() if name in words]
    ours = sorted(set(bemkl.__all__) & words)
    return "\n".join([*imports, f"from bemkl import {', '.join(ours)}", "", *body, ""])


def _needed(names: list[str], statements: dict[str, str]) -> set[str]:
    """Return all names that some names are made of."""
    wanted = set(names)
    for name in names:
        if name in statements:
            wanted |= _words(statements[name])
    return wanted


def _words(code: str) -> set[str]:
    return set(re.findall(r"[A-Za-z_]\w*", code))


def _expression(parts: list[dict[str, Any]], prefix: str) -> str:
    forms = [_of(part["form"], f"{prefix}{place}") for place, part in enumerate(parts)]
    if parts[0]["name"] is None:
        return forms[0]
    return "{" + ", ".join(f"{part['name']!r}: {form}" for part, form in zip(parts, forms, strict=True)) + "}"


def _of(form: str, name: str) -> str:
    return re.sub(r"\bV\b", name, form)


def _plain(values: Any) -> Any:
    """Return numbers as an array, and anything else as it is."""
    return np.array(values, dtype=np.float64) if values and isinstance(values[0], list) else values


def _hashable(names: list[Any]) -> list[Any]:
    return [tuple(name) if isinstance(name, list) else name for name in names]


def _literal(value: Any) -> str:
    return f"np.array({value.tolist()!r})" if isinstance(value, np.ndarray) else repr(value)
