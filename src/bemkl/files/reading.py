"""Tables on disk: CSV, TSV, Parquet and NPY."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from bemkl.files.cells import unguarded
from bemkl.files.numpyfiles import load_array
from bemkl.files.parquet import read_parquet
from bemkl.files.problems import InputError, listed
from bemkl.files.tables import FileTable, read_number, refuse_same_names
from bemkl.visible import one_line

TABLE_ENDINGS = (".csv", ".tsv", ".tab", ".txt", ".parquet", ".npy")
"""Endings of files that `read_table` knows."""

DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": "\t"}
"""What is between the cells of a text file, by its ending."""


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
