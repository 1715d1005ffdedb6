"""Files from their descriptions."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import scipy.io


def make(folder: Path, files: dict[str, dict[str, Any]]) -> None:
    """Write the files of a case into a folder."""
    for name, file in files.items():
        content = _WRITERS[file["kind"]](file)
        _write(folder / name, content, file.get("damage"))


def _write(path: Path, content: bytes, damage: str | None) -> None:
    """Write a file whole, or damaged."""
    if damage == "gone":
        return
    if damage == "folder":
        path.mkdir()
        return
    if damage == "cut":
        content = content[: 2 * len(content) // 3]
    elif damage == "empty":
        content = b""
    elif damage == "noise":
        content = bytes(byte ^ 0x5A if place % 7 == 3 else byte for place, byte in enumerate(content))
    path.write_bytes(content)


def _text(file: dict[str, Any]) -> bytes:
    buffer = io.StringIO()
    always = file.get("quote") == "all"
    quoting: Literal[0, 1] = csv.QUOTE_ALL if always else csv.QUOTE_MINIMAL
    writer = csv.writer(buffer, delimiter=file["sign"], lineterminator=file["end"], quoting=quoting)
    writer.writerows(file["cells"])
    return buffer.getvalue().encode(file["encoding"], "replace")


def _npy(file: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.array(file["values"]))
    return buffer.getvalue()


def _npz(file: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    arrays: dict[str, Any] = {name: np.array(values) for name, values in file["arrays"].items()}
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def _mat(file: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    scipy.io.savemat(buffer, {name: np.array(values) for name, values in file["arrays"].items()})
    return buffer.getvalue()


def _parquet(file: dict[str, Any]) -> bytes:
    """Write columns as numbers where all of them are, else as text."""
    header, *rows = file["cells"]
    columns = [
        pa.array(_as_numbers([row[place] if place < len(row) else "" for row in rows])) for place in range(len(header))
    ]
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pa.table(columns, names=header), buffer)
    return buffer.getvalue()


def _as_numbers(cells: list[str]) -> list[Any]:
    try:
        return [float(cell) if cell.strip() else None for cell in cells]
    except ValueError:
        return cells


_WRITERS = {"text": _text, "npy": _npy, "npz": _npz, "mat": _mat, "parquet": _parquet}
