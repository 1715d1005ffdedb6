"""What is wrong with a file, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence

from bemkl.visible import shortened, visible

_LONGEST_NAME = 80


class InputError(ValueError):
    """Something in the input that two lines can explain."""

    def __init__(self, what: str, advice: str) -> None:
        # Names from files may hold ends of lines, and the two parts are told by the first one.
        super().__init__(f"{visible(what)}\n{visible(advice)}")


def listed(names: Sequence[str], most: int = 5) -> str:
    """Name some things in a sentence."""
    shown = ", ".join(shortened(name, _LONGEST_NAME) for name in names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown
