"""A table from disk: named columns of text or numbers and, where it has them, ids of rows."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bemkl.arrays import Array
from bemkl.files.problems import InputError, listed

_MISSING = {"", "na", "n/a", "nan", "null"}
_ID_NAMES = {"", "index", "name", "names", "sample", "samples", "subject", "patient", "__index_level_0__", "unnamed: 0"}
_ENDS_WITH_ID = re.compile(r"(?:^|[^a-zA-Z])(?:id|ID|Id)s?$|[a-z](?:ID|Id)s?$")

Cells = Sequence[str] | Array


@dataclass(frozen=True, slots=True, eq=False)
class FileTable:
    """A table as it is on disk."""

    path: Path  # where it comes from, for messages
    columns: tuple[str, ...]  # names of the columns
    cells: tuple[Cells, ...] = field(repr=False)  # the columns: text as it was read, or numbers
    lines: tuple[int, ...] = ()  # numbers of the rows, as a user counts the lines of the file; from 1 on without them
    named: bool = True  # whether the file has names of columns; those of arrays are only numbered

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.cells[0])

    def row(self, position: int) -> int:
        """Return the number of a row for a message."""
        return self.lines[position] if self.lines else position + 1

    def texts(self, column: str) -> list[str | None]:
        """Return a column as text."""
        return [_text(cell) for cell in self.cells[self._position(column)]]

    def numbers(self, columns: Sequence[str]) -> Array:
        """Return columns as numbers. Shapes: returns (n_rows, n_columns)."""
        table = np.empty((self.n_rows, len(columns)))
        for place, column in enumerate(columns):
            cells = self.cells[self._position(column)]
            if isinstance(cells, np.ndarray) or _are_plain(cells):
                table[:, place] = np.array(cells, dtype=np.float64)
                continue
            for row, cell in enumerate(cells):
                number = read_number(cell)
                if number is None:
                    raise InputError(
                        f"{self.path}, row {self.row(row)}, column {column!r}: expected a number, got {cell!r}.",
                        "Write it with a decimal point and no other marks."
                        if re.fullmatch(r"\s*[-+]?\d[\d.]*,\d+\s*", cell)
                        else "Code it as a number, leave the cell empty if the value is missing, or drop the column.",
                    )
                table[row, place] = number
        return table

    def is_numeric(self, column: str) -> bool:
        """Tell whether all cells of a column that hold something hold numbers."""
        cells = self.cells[self._position(column)]
        return isinstance(cells, np.ndarray) or all(read_number(cell) is not None for cell in cells)

    def id_column(self, wanted: str | None, exclude: Sequence[str] = ()) -> str | None:
        """Find the column that names the rows."""
        if wanted is not None:
            if wanted in self.columns:
                return wanted
            if not self.named:
                return None
            raise InputError(
                f"{self.path}: there is no column {wanted!r} to match rows by; the columns are {listed(self.columns)}.",
                "Give every table that column, or name another one with --id.",
            )
        if not self.named or len(self.columns) == 1:
            return None
        first, *others = (column for column in self.columns if column not in exclude)
        if self.columns[0] == first and (is_id_name(first) or self._is_text(first)):
            return first
        return next((name for name in (first, *others) if is_id_name(name) and self._is_unique(name)), None)

    def _is_text(self, column: str) -> bool:
        """Tell whether most cells of a column are no numbers."""
        cells = self.cells[self._position(column)]
        text = 0 if isinstance(cells, np.ndarray) else sum(read_number(cell) is None for cell in cells)
        return 2 * text > self.n_rows

    def _is_unique(self, column: str) -> bool:
        return len(set(self.texts(column))) == self.n_rows

    def ids(self, column: str) -> list[str]:
        """Return the ids of the rows."""
        found = self.texts(column)
        if None in found:
            raise InputError(
                f"{self.path}, row {self.row(found.index(None))}: the id in column {column!r} is empty.",
                "Give every row an id, or name another column with --id.",
            )
        ids = [name for name in found if name is not None]
        return refuse_duplicates(self.path, ids)

    def _position(self, column: str) -> int:
        if column not in self.columns:
            raise InputError(
                f"{self.path}: there is no column {column!r}; the columns are {listed(self.columns)}.",
                "Check the name, and the delimiter of the file.",
            )
        return self.columns.index(column)


def is_id_name(name: str) -> bool:
    """Tell whether a column is called like one that names rows."""
    return name.strip().lower() in _ID_NAMES or _ENDS_WITH_ID.search(name.strip()) is not None


def refuse_same_names(path: Path, columns: Sequence[str]) -> None:
    """Refuse columns that have the same name."""
    seen: set[str] = set()
    for name in columns:
        if name in seen:
            what = f"{path}: columns need different names, there is more than one {name!r}."
            raise InputError(what, "Rename one of them.")
        seen.add(name)


def refuse_duplicates(path: Path, ids: list[str]) -> list[str]:
    """Refuse ids that are there twice."""
    seen: set[str] = set()
    twice = [name for name in ids if name in seen or seen.add(name)]  # type: ignore[func-returns-value]
    if twice:
        raise InputError(
            f"{path}: ids have to be different, these are there more than once: {listed(list(dict.fromkeys(twice)))}.",
            "Keep one row of each, or name another column with --id.",
        )
    return ids


def _are_plain(cells: Sequence[str]) -> bool:
    """Tell whether NumPy reads all cells as `read_number` does, which is much faster."""
    try:
        np.array(cells, dtype=np.float64)
    except ValueError:
        return False
    return not any("_" in cell for cell in cells)


def read_number(cell: str) -> float | None:
    """Read a number."""
    if "_" in cell:  # which Python would take for a sign between digits
        return None
    try:
        return float(cell)
    except ValueError:
        return math.nan if cell.strip().lower() in _MISSING else None


def _text(cell: Any) -> str | None:
    """Read text; whole numbers have no decimal point."""
    if isinstance(cell, str):
        # Letters with accents can be written in two ways that look the same.
        stripped = unicodedata.normalize("NFC", cell.strip())
        return None if stripped.lower() in _MISSING else stripped
    if np.isnan(cell):
        return None
    return str(int(cell)) if float(cell).is_integer() else repr(float(cell))
