"""Kernels that several fits share: what a search over priors, deviations and margins would compute again and again."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import fields
from threading import Lock, local
from typing import Any

import joblib
import numpy as np
from scipy.sparse import issparse

from bemkl.arrays import whole_number
from bemkl.kernels import KernelBank, KernelSpec

_TABLES = {"pandas", "polars"}
"""Libraries whose tables and columns hold what they show."""

_PLAIN = {type(None), bool, int, float, complex, str, bytes}
_STRINGS = {type(None), str}


class Memo:
    """Results by content of what they were computed from; the ones not used for longest go first."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.forget()

    def forget(self) -> None:
        """Begin anew: no results, nobody who computes, and a lock that nobody holds."""
        self._lock = Lock()
        self._kept: OrderedDict[str, tuple[Any, int]] = OrderedDict()
        self._size = 0
        self._running: dict[str, Future[Any]] = {}

    def get(self, key: str, compute: Callable[[], Any], size_of: Callable[[Any], int]) -> Any:
        """Return a result, computed if it is not there; threads that ask meanwhile wait for the first of them."""
        mine: Future[Any] = Future()
        try:
            with self._lock:
                if key in self._kept:
                    self._kept.move_to_end(key)
                    return self._kept[key][0]
                first = self._running.setdefault(key, mine)
            if first is mine:
                mine.set_result(self._compute(key, compute, size_of))
            elif _here.computes:
                # Others may wait for who computes: it never waits itself, so that no two wait for each other.
                return compute()
            with suppress(CancelledError):
                return first.result()
        finally:
            with self._lock:
                if self._running.get(key) is mine:
                    del self._running[key]
            mine.cancel()  # which does nothing where there is a result
        return self.get(key, compute, size_of)

    def _compute(self, key: str, compute: Callable[[], Any], size_of: Callable[[Any], int]) -> Any:
        """Compute a result, with no lock held, and keep it."""
        outer, _here.computes = _here.computes, True
        try:
            result = compute()
        finally:
            _here.computes = outer
        self._keep(key, result, size_of(result))
        return result

    def _keep(self, key: str, result: Any, size: int) -> None:
        if size > self.max_bytes:
            return
        with self._lock:
            self._kept[key] = result, size
            self._size += size
            while self._size > self.max_bytes:
                self._size -= self._kept.popitem(last=False)[1][1]


class _Here(local):
    """Whether this thread computes what others may wait for."""

    computes = False


_here = _Here()
_open: list[Memo] = []
_own: ContextVar[Memo | None] = ContextVar("_own", default=None)


def _current() -> Memo | None:
    """Return the memo of this thread's innermost context, or else of the one opened last in any thread."""
    opened = tuple(_open)  # looked at once, because other threads may close theirs at any time
    own = _own.get()
    return own if own in opened else opened[-1] if opened else None


def _forget_all() -> None:
    for memo in _open:
        memo.forget()


if hasattr(os, "register_at_fork"):  # not on Windows, where there are no forks
    os.register_at_fork(after_in_child=_forget_all)


@contextmanager
def shared_kernels(max_bytes: int = 2**31) -> Iterator[None]:
    """
    Compute each training and test kernel once for all fits inside, whatever tool makes them.

    A search over priors, deviations or margins fits the same bank to the same folds for every candidate. Inside this
    context the kernels of a fold, and the sum of their squares, are computed for the first candidate only.

    It covers the threads of one process, also those that a search starts, and those that have nothing to do with it: a
    thread takes its own innermost context, and one without a context the one that was opened last. A process that is
    forked inside begins with nothing kept; other processes compute kernels in each fit as ever. So do banks with
    functions of your own, because a name does not say what a function does, and samples whose content may change
    unseen: other than arrays, data frames, sparse matrices, lists, and dicts of these.

    Parameters
    ----------
    max_bytes : int
        Most memory for kept kernels; the ones not used for longest are dropped.

    Yields
    ------
    None
        Nothing; kept kernels are dropped at the end.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.model_selection import GridSearchCV
    >>> from bemkl import BEMKLClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> grid = {"kernel_prior": ["sparse", "dense"], "margin": [0.5, 1.0]}
    >>> with shared_kernels():
    ...     search = GridSearchCV(BEMKLClassifier(tol=1e-3), grid, cv=2).fit(X[::2], y[::2])
    >>> bool(search.best_score_ > 0.9)
    True
    """
    memo, outer = Memo(whole_number("max_bytes", max_bytes, least=0)), _own.get()
    _open.append(memo)
    _own.set(memo)
    try:
        yield
    finally:
        _own.set(outer)
        _open.remove(memo)


def room_for(size: int) -> bool:
    """Say whether there is a context that shares kernels, and would keep a result of some size."""
    memo = _current()
    return memo is not None and size <= memo.max_bytes


def shared(key: str | None, compute: Callable[[], Any], size_of: Callable[[Any], int]) -> Any:
    """Compute a result, or take it from the context that shares kernels."""
    memo = _current()
    return compute() if memo is None or key is None else memo.get(key, compute, size_of)


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
