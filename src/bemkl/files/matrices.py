"""Matrices on disk: NPY, NPZ, MATLAB files and CSV, with ids where they have them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from bemkl.arrays import Array
from bemkl.files.matfiles import read_matfile
from bemkl.files.numpyfiles import load_array
from bemkl.files.problems import InputError, listed
from bemkl.files.tables import DELIMITERS, is_id_name, read_lines, read_number, refuse_duplicates, refuse_missing
from bemkl.visible import one_line

MATRIX_ENDINGS = (".npy", ".npz", ".mat", *DELIMITERS)
"""Endings of files that `read_matrices` knows."""


@dataclass(frozen=True, slots=True, eq=False)
class FileMatrix:
    """A matrix as it is on disk."""

    path: Path  # where it comes from, for messages
    values: Array = field(repr=False)  # (n_rows, n_columns): its entries
    rows: list[str] | None = None  # ids of the rows
    columns: list[str] | None = None  # ids of the columns
    # whether the file itself says which row is which; ids of columns alone are also those of the rows if the matrix is
    # square and of training samples
    labelled: bool = True


def read_matrices(path: Path, variable: str | None = None, delimiter: str | None = None) -> dict[str, FileMatrix]:
    """Read the matrices of a file."""
    ending = path.suffix.lower()
    if ending not in MATRIX_ENDINGS:
        raise InputError(f"{path}: a matrix ends with {', '.join(MATRIX_ENDINGS)}.", "Save it as one of these.")
    refuse_missing(path)
    if ending in DELIMITERS:
        found = {path.stem: _read_text(path, delimiter or DELIMITERS[ending])}
    elif ending == ".npy":
        found = {path.stem: FileMatrix(path, _one(path))}
    else:
        found = {name: FileMatrix(path, values) for name, values in _read_variables(path, ending).items()}
    if variable is not None:
        if variable not in found:
            raise InputError(f"{path}: there is no {variable!r} in it, but {listed(list(found))}.", "Check the name.")
        found = {variable: found[variable]}
    return {name: _checked(name, matrix) for name, matrix in found.items()}


def _one(path: Path) -> Any:
    values = load_array(path)
    if isinstance(values, dict):
        raise InputError(f"{path}: has several arrays in it, {listed(list(values))}.", "Rename it to .npz.")
    return values


def _read_variables(path: Path, ending: str) -> dict[str, Any]:
    if ending == ".npz":
        stored = load_array(path)
        arrays = stored if isinstance(stored, dict) else {path.stem: stored}
        arrays = {name: values for name, values in arrays.items() if values.ndim == 2 and values.dtype.kind in "fiu"}
    else:
        try:
            arrays = read_matfile(path)
        except (ValueError, ImportError) as error:
            raise InputError(f"{path}: cannot be read.", one_line(error)) from None
        # A scalar or a vector of MATLAB is a matrix too; a vector alone is the kernel of one new sample.
        for least in (2, 1):
            found = {name: values for name, values in arrays.items() if min(values.shape) >= least < values.size}
            if found:
                return found
        arrays = {}
    if not arrays:
        raise InputError(f"{path}: there is no matrix of numbers in it.", "Check the file.")
    return arrays


def _read_text(path: Path, delimiter: str) -> FileMatrix:
    """Read a matrix with ids above and before its rows, above them only, or without any."""
    rows, lines = read_lines(path, delimiter)
    if all(read_number(cell) is not None and cell.strip() for cell in rows[0]):
        return FileMatrix(path, _numbers(path, rows, lines, first_column=1))
    header, body = [cell.strip() for cell in rows[0]], rows[1:]
    if not body:
        raise InputError(f"{path}: there are no rows below the ids.", "Check the file.")
    ids: list[str] | None
    labelled = len(body[0]) == len(header) and (is_id_name(header[0]) or read_number(body[0][0]) is None)
    if labelled:
        ids, columns = [row[0].strip() for row in body], header[1:]
        values = _numbers(path, [row[1:] for row in body], lines[1:], first_column=2)
    else:
        values, columns = _numbers(path, body, lines[1:], first_column=1), header
        ids = columns if len(columns) == len(body) else None
    if len(columns) != values.shape[1]:
        raise InputError(f"{path}: {len(columns)} ids for {values.shape[1]} columns.", "Check the first row.")
    refuse_duplicates(path, columns)
    return FileMatrix(path, values, None if ids is None else refuse_duplicates(path, ids), columns, labelled)


def _numbers(path: Path, rows: list[list[str]], lines: list[int], *, first_column: int) -> Array:
    """Read entries, and name the first that is no number."""
    width = len(rows[0])
    for number, row in zip(lines, rows, strict=True):
        if len(row) != width:
            raise InputError(
                f"{path}, row {number}: expected {width} entries as in the row before, got {len(row)}.",
                "Check the row, and the delimiter (--delimiter).",
            )
    try:
        return np.array(rows, dtype=np.float64)
    except ValueError:
        for number, row in zip(lines, rows, strict=True):
            for column, cell in enumerate(row, start=first_column):
                value = read_number(cell)
                if value is None or np.isnan(value):
                    raise InputError(
                        f"{path}, row {number}, column {column}: expected a number, got {cell!r}.",
                        "A matrix has no missing entries; check the cell, and the delimiter (--delimiter).",
                    ) from None
        raise


def _checked(name: str, matrix: FileMatrix) -> FileMatrix:
    values = np.asarray(matrix.values)
    if values.ndim != 2 or not values.size or values.dtype.kind not in "fiub":
        raise InputError(
            f"{matrix.path}, {name!r}: expected a matrix of numbers, got {values.dtype} of shape {values.shape}.",
            "Rows are samples, columns are training samples.",
        )
    if not np.isfinite(values).all():
        row, column = np.argwhere(~np.isfinite(values))[0]
        raise InputError(
            f"{matrix.path}, {name!r}, row {row + 1}, column {column + 1}: the entry is {values[row, column]}.",
            "A matrix has no missing or infinite entries.",
        )
    if not values.any():
        raise InputError(f"{matrix.path}, {name!r}: all entries are zero.", "Leave it out.")
    return replace(matrix, values=np.asarray(values, dtype=np.float64))
