"""Cells of CSV that a spreadsheet would run as formulas, and how they are kept from it."""

from __future__ import annotations

import re

# A formula begins with one of these signs, the wide ones in some languages, after quotes and blanks at most.
_FORMULA = re.compile("[\\s']*[=+\\-@＝＋－＠]|'*[\t\r\n]")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


def guarded(cell: str) -> str:
    """Put a single quote in front of what a spreadsheet would run; numbers with a sign are none of that."""
    return f"'{cell}" if _is_formula(cell) else cell


def unguarded(cell: str) -> str:
    """Take the quote away that `guarded` put in front."""
    return cell[1:] if cell.startswith("'") and _is_formula(cell[1:]) else cell


def _is_formula(cell: str) -> bool:
    return _FORMULA.match(cell) is not None and _NUMBER.fullmatch(cell) is None
