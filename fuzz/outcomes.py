"""What came out of a case, as one line of a record."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

FINE = ("result", "refusal")
"""Kinds of outcomes that are allowed."""


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
