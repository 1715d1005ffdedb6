"""Tables on disk: CSV, TSV, Parquet and NPY."""

from __future__ import annotations

import csv
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from bemkl.files.problems import InputError, listed
from bemkl.files.tables import Cells, FileTable, read_number

TABLE_ENDINGS = (".csv", ".tsv", ".tab", ".txt", ".parquet", ".npy")
"""Endings of files that `read_table` knows."""

_EXACT = 2**53
DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": "\t"}
"""What is between the cells of a text file, by its ending."""


def read_table(path: Path, delimiter: str | None = None) -> FileTable:
    """
    Read a table.

    Parameters
    ----------
    path : Path
        A file that ends with one of `TABLE_ENDINGS`.
    delimiter : str, optional
        What is between the cells of a text file, instead of what its ending says.

    Returns
    -------
    FileTable
        The table.
    """
    ending = path.suffix.lower()
    if ending not in TABLE_ENDINGS:
        raise InputError(
            f"{path}: a table ends with {', '.join(TABLE_ENDINGS)}.", "Save it as one of these, or rename it."
        )
    refuse_missing(path)
    if ending == ".npy":
        return _read_array(path)
    return _read_parquet(path) if ending == ".parquet" else _read_text(path, delimiter or DELIMITERS[ending])


def refuse_missing(path: Path) -> None:
    """
    Refuse a path that is no file.

    Parameters
    ----------
    path : Path
        The path.
    """
    if not path.is_file():
        there = "is a folder" if path.is_dir() else "does not exist"
        raise InputError(f"{path}: the file {there}.", "Check the path.")


def read_lines(path: Path, delimiter: str) -> tuple[list[list[str]], list[int]]:
    """
    Read the cells of a text file, row by row.

    Parameters
    ----------
    path : Path
        The file, in UTF-8.
    delimiter : str
        What is between the cells.

    Returns
    -------
    rows : list of list of str
        The rows in which something is written.
    lines : list of int
        Their numbers, as a user counts the lines of the file.
    """
    if len(delimiter) != 1 or delimiter in '\r\n"':
        raise InputError(f"--delimiter: expected one character, got {delimiter!r}.", 'Such as ";" or tab.')
    rows, lines = [], []
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, delimiter=delimiter)
            for row in reader:
                if any(cell.strip() for cell in row):
                    rows.append(row)
                    lines.append(reader.line_num)
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: not a text file with cells ({error}).", "Save it as CSV in UTF-8.") from None
    if not rows:
        raise InputError(f"{path}: the file is empty.", "Check the path.")
    return rows, lines


def _read_text(path: Path, delimiter: str) -> FileTable:
    rows, lines = read_lines(path, delimiter)
    header = [name.strip() for name in rows[0]]
    _refuse_delimiter(path, header, delimiter)
    if all(read_number(name) is not None and name for name in header):
        raise InputError(
            f"{path}: the first row holds numbers ({listed(header, 3)}), expected names of columns.",
            "Put a row of names on top, or save the numbers as NPY.",
        )
    twice = [name for name in header if header.count(name) > 1]
    if twice:
        raise InputError(
            f"{path}: columns need different names, there is more than one {twice[0]!r}.", "Rename one of them."
        )
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


def load_array(path: Path) -> Any:
    """
    Load an array of numbers or strings.

    Parameters
    ----------
    path : Path
        A file of NumPy.

    Returns
    -------
    ndarray or dict of str to ndarray
        The array; the arrays by name of a file that has several.
    """
    try:
        with path.open("rb") as file:
            values = np.load(file, allow_pickle=False)
            if not isinstance(values, np.ndarray):
                return {name: values[name] for name in values.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(
            f"{path}: not a file of NumPy with numbers ({error!s:.120}).", "Save plain arrays with numpy.save or savez."
        ) from None
    if values.dtype.kind not in "fiubUS":
        raise InputError(f"{path}: expected numbers, got an array of {values.dtype}.", "Convert it to numbers.")
    return values


def _read_parquet(path: Path) -> FileTable:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise InputError(f"{path}: Parquet files need pyarrow.", "Install it: pip install bemkl[files].") from None
    try:
        table = pyarrow.parquet.read_table(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{path}: not a Parquet file ({error!s:.120}).", "Write it again.") from None
    if not table.num_rows or not table.num_columns:
        raise InputError(f"{path}: the table is empty.", "Check the file.")
    return FileTable(path, tuple(table.column_names), tuple(_parquet_column(column) for column in table.columns))


def _parquet_column(column: Any) -> Cells:
    """Return numbers as numbers, and anything else as text."""
    values = column.to_pylist()
    numeric = all(isinstance(value, int | float | None) for value in values)
    # Large whole numbers are ids that a float cannot tell apart.
    if numeric and all(value is None or not abs(value) >= _EXACT for value in values):
        return np.array([np.nan if value is None else float(value) for value in values])
    return ["" if value is None else str(value) for value in values]
