"""Tables on disk: CSV, TSV, Parquet and NPY."""

from __future__ import annotations

import csv
import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bemkl.arrays import Array
from bemkl.files.numpyfiles import load_array
from bemkl.files.problems import InputError, listed
from bemkl.visible import one_line

_MISSING = {"", "na", "n/a", "nan", "null"}
_ID_NAMES = {"", "index", "name", "names", "sample", "samples", "subject", "patient", "__index_level_0__", "unnamed: 0"}
_ENDS_WITH_ID = re.compile(r"(?:^|[^a-zA-Z])(?:id|ID|Id)s?$|[a-z](?:ID|Id)s?$")
TABLE_ENDINGS = (".csv", ".tsv", ".tab", ".txt", ".parquet", ".npy")
"""Endings of files that `read_table` knows."""

DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": "\t"}
"""What is between the cells of a text file, by its ending."""
_EXACT = 2**53
# A formula begins with one of these signs, the wide ones in some languages, after quotes and blanks at most.
_FORMULA = re.compile("[\\s']*[=+\\-@＝＋－＠]|'*[\t\r\n]")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")

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


def read_table(path: Path, delimiter: str | None = None) -> FileTable:
    """Read a table."""
    ending = path.suffix.lower()
    if ending not in TABLE_ENDINGS:
        raise InputError(
            f"{path}: a table ends with {', '.join(TABLE_ENDINGS)}.", "Save it as one of these, or rename it."
        )
    refuse_missing(path)
    if ending == ".npy":
        return _read_array(path)
    return read_parquet(path) if ending == ".parquet" else _read_text(path, delimiter or DELIMITERS[ending])


def refuse_missing(path: Path, advice: str = "Check the path.") -> None:
    """Refuse a path that is no file."""
    if path.is_file():
        return
    if path.is_dir():
        raise InputError(f"{path}: is a folder.", "Name a file in it.")
    if path.exists():
        raise InputError(f"{path}: is no regular file.", "Write its content to a file first.")
    link = f", it is a link to {path.readlink()}" if path.is_symlink() else ""
    raise InputError(f"{path}: the file does not exist{link}.", advice)


def delimiter_of(path: Path) -> str:
    """Return what is between the cells of a text file."""
    return DELIMITERS.get(path.suffix.lower(), ",")


def read_lines(path: Path, delimiter: str) -> tuple[list[list[str]], list[int]]:
    """Read the cells of a text file, row by row."""
    if len(delimiter) != 1 or delimiter in '\r\n"':
        raise InputError(f"--delimiter: expected one character, got {delimiter!r}.", 'Such as ";" or tab.')
    rows, lines = [], []
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(_text_lines(path, file), delimiter=delimiter, strict=True)
            for row in reader:
                if any(cell.strip() for cell in row):
                    rows.append(list(map(unguarded, row)) if "'" in "".join(row) else row)
                    lines.append(reader.line_num)
    except (UnicodeDecodeError, csv.Error) as error:
        what = f"{path}: not a text file with cells ({one_line(error)})."
        raise InputError(what, "Save it as CSV in UTF-8, and end quotes where they begin.") from None
    if not rows:
        raise InputError(f"{path}: the file is empty.", "Check the path.")
    return rows, lines


def _text_lines(path: Path, file: Iterable[str]) -> Iterator[str]:
    """Pass lines on, and refuse what is no text: NumPy would take an id that ends with such a sign for another one."""
    for line in file:
        if "\0" in line:
            raise InputError(f"{path}: not a text file, there are zero bytes in it.", "Save it as CSV in UTF-8.")
        yield line


def _read_text(path: Path, delimiter: str) -> FileTable:
    rows, lines = read_lines(path, delimiter)
    header = [name.strip() for name in rows[0]]
    _refuse_delimiter(path, header, delimiter)
    if all(read_number(name) is not None and name for name in header):
        raise InputError(
            f"{path}: the first row holds numbers ({listed(header, 3)}), expected names of columns.",
            "Put a row of names on top, or save the numbers as NPY.",
        )
    refuse_same_names(path, header)
    for number, row in zip(lines[1:], rows[1:], strict=True):
        if len(row) != len(header):
            raise InputError(
                f"{path}, row {number}: expected {len(header)} cells as in the first row, got {len(row)}.",
                f"Check the row, and that {delimiter!r} is the delimiter (--delimiter).",
            )
    if len(rows) == 1:
        raise InputError(f"{path}: there are no rows below the names of the columns.", "Check the file.")
    return FileTable(path, tuple(header), tuple(zip(*rows[1:], strict=True)), tuple(lines[1:]))


def _refuse_delimiter(path: Path, header: list[str], delimiter: str) -> None:
    """Refuse a file that looks as if its cells were divided by something else."""
    if len(header) > 1:
        return
    counts = {other: header[0].count(other) for other in (",", ";", "\t", "|") if other != delimiter}
    other = max(counts, key=counts.__getitem__)
    if counts[other]:
        raise InputError(
            f"{path}: with {delimiter!r} between cells there is one column only, but the first row has "
            f"{counts[other]} times {other!r}.",
            f"Pass --delimiter {'tab' if other == chr(9) else repr(other)}, or --delimiter NAME=... for one view only.",
        )


def _read_array(path: Path) -> FileTable:
    values = load_array(path)
    if isinstance(values, dict):
        raise InputError(f"{path}: has several arrays in it, {listed(list(values))}.", "Save one with numpy.save.")
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2 or not values.size:
        raise InputError(f"{path}: expected samples in rows, got an array of shape {values.shape}.", "Reshape it.")
    names = tuple(f"x{column}" for column in range(values.shape[1]))
    if values.dtype.kind in "US":
        return FileTable(path, names, tuple(list(map(str, column)) for column in values.T), named=False)
    return FileTable(path, names, tuple(np.asarray(values.T, dtype=np.float64)), named=False)


def read_parquet(path: Path) -> FileTable:
    """Read a table."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise InputError(f"{path}: Parquet files need pyarrow.", "Install it: pip install pyarrow.") from None
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            table = file.read()
        refuse_same_names(path, table.column_names)
        cells = tuple(_cells(path, name, table.column(name)) for name in table.column_names)
    except (MemoryError, InputError):
        raise
    # What a damaged file makes pyarrow raise is of many kinds, and not all name the file.
    except Exception as error:
        what = f"{path}: not a Parquet file, or a damaged one ({one_line(error)})."
        raise InputError(what, "Write it again, with text in UTF-8.") from None
    if not table.num_rows or not table.num_columns:
        raise InputError(f"{path}: the table is empty.", "Check the file.")
    return FileTable(path, tuple(table.column_names), cells)


def _cells(path: Path, name: str, column: Any) -> Cells:
    """Return numbers as numbers, and anything else as text."""
    from pyarrow import types

    if types.is_nested(column.type):
        what = f"{path}, column {name!r}: expected numbers or text, got {one_line(column.type)}."
        raise InputError(what, "Make columns of its parts, or leave it out of the file.")
    # Some programs do not say that their bytes are text.
    values: list[Any] = [value.decode() if isinstance(value, bytes) else value for value in column.to_pylist()]
    numeric = all(isinstance(value, int | float | None) for value in values)
    # Large whole numbers are ids that a float cannot tell apart.
    if numeric and all(value is None or not abs(value) >= _EXACT for value in values):
        return np.array([np.nan if value is None else float(value) for value in values])
    texts = ["" if value is None else str(value) for value in values]
    if any("\0" in text for text in texts):
        # NumPy would take a name that ends with one for another name.
        raise InputError(f"{path}, column {name!r}: there are zero bytes in its text.", "Write it without them.")
    return texts


def guarded(cell: str) -> str:
    """Put a single quote in front of what a spreadsheet would run; numbers with a sign are none of that."""
    return f"'{cell}" if _is_formula(cell) else cell


def unguarded(cell: str) -> str:
    """Take the quote away that `guarded` put in front."""
    return cell[1:] if cell.startswith("'") and _is_formula(cell[1:]) else cell


def _is_formula(cell: str) -> bool:
    return _FORMULA.match(cell) is not None and _NUMBER.fullmatch(cell) is None
