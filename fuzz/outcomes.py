"""What came out of a case, as one line of a record."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from typing import Any

FINE = ("result", "refusal")
"""Kinds of outcomes that are allowed."""


@dataclass(frozen=True)
class Finding:
    """What came out of a case, if not a result: its kind, what was said, and where."""

    kind: str
    what: str
    where: str = ""


@dataclass(frozen=True)
class Outcome:
    """
    What came out of a case.

    `kind` is "result", "refusal", or what is wrong; `what` is said without numbers, so that the same thing has the same
    name; `where` is the innermost place in the package, `question` what was asked when it happened.
    """

    harness: str
    seed: int
    kind: str
    what: str = ""
    where: str = ""
    question: str = ""
    detail: str = ""
    hostility: str = ""
    about: str = ""
    odd: tuple[str, ...] = ()
    seconds: float = 0.0

    @classmethod
    def about_case(cls, harness: str, case: dict[str, Any], about: str) -> Outcome:
        """Return the outcome of a case of which nothing is known yet."""
        odd = tuple(case["odd"])
        return cls(harness, case["seed"], "result", hostility=case["hostility"], about=about, odd=odd)

    def ended(self, finding: Finding, question: str, detail: str, start: float) -> Outcome:
        """Return the outcome with what was found, and the seconds since the start."""
        seconds = round(time.perf_counter() - start, 3)
        kind, what, where = finding.kind, finding.what, finding.where
        return replace(self, kind=kind, what=what, where=where, question=question, detail=detail, seconds=seconds)

    @property
    def fine(self) -> bool:
        """Whether it is allowed."""
        return self.kind in FINE

    @property
    def sort(self) -> tuple[str, str, str]:
        """What the same fault has in common."""
        return self.kind, self.what, self.where

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data, without what is empty."""
        return {name: value for name, value in asdict(self).items() if value or name == "seed"}
