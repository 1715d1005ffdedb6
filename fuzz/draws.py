"""Choices that a seed decides on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

Option = TypeVar("Option")

_EXTREME_SHARE = 0.35
_ODD_SHARE = {"moderate": 0.01, "extreme": 0.06}


class Draw:
    """
    Choices that a seed decides on, the same on every machine.

    A case is either moderate, with what users might have, or extreme. Choices that deserve a refusal are odd: they are
    rare, and noted, so that a refusal without any of them stands out.
    """

    def __init__(self, seed: int, stream: int) -> None:
        self.rng = np.random.default_rng([seed, stream])
        self.hostility = "extreme" if self.maybe(_EXTREME_SHARE) else "moderate"
        self.odd: list[str] = []

    @property
    def extreme(self) -> bool:
        """Whether numbers of all sizes are meant."""
        return self.hostility == "extreme"

    def maybe(self, share: float) -> bool:
        """Return True in a share of all cases."""
        return bool(self.rng.random() < share)

    def one_of(self, options: Sequence[Option]) -> Option:
        """Return one of several things."""
        return options[int(self.rng.integers(len(options)))]

    def number(self, low: int, high: int) -> int:
        """Return a whole number from low to high."""
        return int(self.rng.integers(low, high + 1))

    def pick(self, what: str, usual: Sequence[Any], extreme: Sequence[Any] = (), odd: Sequence[Any] = ()) -> Any:
        """Return something usual, in extreme cases also something extreme, and rarely something odd."""
        if odd and self.maybe(_ODD_SHARE[self.hostility]):
            self.odd.append(what)
            return self.one_of(odd)
        return self.one_of([*usual, *extreme] if self.extreme else usual)
