"""Parquet files as tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bemkl.files.problems import InputError
from bemkl.files.tables import Cells, FileTable, refuse_same_names
from bemkl.visible import one_line

_EXACT = 2**53


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
