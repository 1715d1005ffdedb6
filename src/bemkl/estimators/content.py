"""What a result depends on, by content: objects with the same key are read the same, whatever else they are."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import joblib
import numpy as np
from scipy.sparse import issparse

from bemkl.kernels import KernelBank, KernelSpec

_TABLES = {"pandas", "polars"}
"""Libraries whose tables and columns hold what they show."""

_PLAIN = {type(None), bool, int, float, complex, str, bytes}
_STRINGS = {type(None), str}


class _UnknownContentError(Exception):
    """What an object holds cannot be told from what it shows now."""


def key_of(parts: list[Any]) -> str | None:
    """
    Return a key of everything that a result depends on.

    The order of views, columns and parameters counts, and so does the precision of numbers. Open files, arrays that are
    computed when they are read, and other objects whose content is not known have no key, because they may be read
    differently the next time.
    """
    try:
        key: str = joblib.hash(_content(parts))
    except _UnknownContentError:
        return None
    return key


def _content(thing: Any) -> Any:
    """Rewrite as lists, with the name of each type first; dicts become pairs, because joblib sorts dicts."""
    kind = type(thing)
    if kind in _PLAIN or isinstance(thing, np.generic):
        return thing
    if kind in (list, tuple, range):
        # Many names are hashed as one: joblib takes its time with each.
        names = set(map(type, thing)) <= _STRINGS
        return [kind.__name__, repr(thing) if names else [_content(part) for part in thing]]
    if kind is dict:
        return [kind.__name__, [[_content(name), _content(part)] for name, part in thing.items()]]
    if kind in (np.ndarray, np.memmap):
        return [kind.__name__, thing.shape, _content(thing.ravel().tolist())] if thing.dtype.hasobject else thing
    if kind is KernelSpec:
        return [kind.__name__, [_content(getattr(thing, field.name)) for field in fields(thing)]]
    if kind is KernelBank:
        return [kind.__name__, _content(thing.get_params(deep=False))]
    if issparse(thing) and kind.__module__.startswith("scipy."):
        return [kind.__name__, thing.shape, _content_of_sparse(thing)]
    if kind.__module__.partition(".")[0] in _TABLES and hasattr(thing, "to_numpy"):
        rows = _content(thing.index.to_numpy()) if hasattr(thing, "index") else None
        values = _content_of_table(thing) if hasattr(thing, "columns") else _content(thing.to_numpy())
        return [kind.__name__, str(getattr(thing, "dtype", None)), rows, values]
    raise _UnknownContentError


def _content_of_sparse(matrix: Any) -> list[Any]:
    if matrix.format in ("csr", "csc", "bsr"):
        return [matrix.data, matrix.indices, matrix.indptr]
    entries = matrix.tocoo()
    return [entries.data, entries.row, entries.col]


def _content_of_table(table: Any) -> list[Any]:
    """Read columns of one type together: one by one, those of a wide table would take longer than their kernels."""
    positions: dict[Any, list[int]] = {}
    for position, kind in enumerate(table.dtypes):
        positions.setdefault(kind, []).append(position)
    names = list(table.columns)
    values = [_content(table[[names[j] for j in same]].to_numpy()) for same in positions.values()]
    return [_content(names), [[str(kind), np.array(same)] for kind, same in positions.items()], values]
