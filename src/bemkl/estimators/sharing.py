"""Kernels that several fits share: what a search over priors, deviations and margins would compute again and again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pickle import PicklingError
from threading import RLock
from typing import Any

import joblib

from bemkl.arrays import whole_number


class Memo:
    """
    Results by content of what they were computed from; the ones not used for longest go first.

    Parameters
    ----------
    max_bytes : int
        Most memory for the results.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._locks: dict[str, RLock] = {}
        self._kept: OrderedDict[str, tuple[Any, int]] = OrderedDict()
        self._lock = RLock()

    def get(self, key: str, compute: Callable[[], Any], size_of: Callable[[Any], int]) -> Any:
        """
        Return a result, computed if it is not there.

        Parameters
        ----------
        key : str
            What it is a result of.
        compute : callable
            Computes it.
        size_of : callable
            Maps it to its size in bytes.

        Returns
        -------
        Any
            The result.
        """
        with self._lock:
            lock = self._locks.setdefault(key, RLock())
        with lock:
            with self._lock:
                if key in self._kept:
                    self._kept.move_to_end(key)
                    return self._kept[key][0]
            result = compute()
            self._keep(key, result, size_of(result))
            return result

    def _keep(self, key: str, result: Any, size: int) -> None:
        if size > self.max_bytes:
            return
        with self._lock:
            self._kept[key] = result, size
            while sum(kept for _, kept in self._kept.values()) > self.max_bytes:
                self._kept.popitem(last=False)


_active: list[Memo] = []


@contextmanager
def shared_kernels(max_bytes: int = 2**31) -> Iterator[None]:
    """
    Compute each training and test kernel once for all fits inside, whatever tool makes them.

    A search over priors, deviations or margins fits the same bank to the same folds for every candidate. Inside this
    context the kernels of a fold, and the sum of their squares, are computed for the first candidate only. It covers
    the threads of one process; searches with several processes compute kernels in each fit as ever, and so do banks
    with functions of your own, because a name does not say what a function does.

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
    memo = Memo(whole_number("max_bytes", max_bytes, least=0))
    _active.append(memo)
    try:
        yield
    finally:
        _active.remove(memo)


def room_for(size: int) -> bool:
    """
    Say whether there is a context that shares kernels, and would keep a result of some size.

    Parameters
    ----------
    size : int
        Bytes.

    Returns
    -------
    bool
        Whether there is one.
    """
    return bool(_active) and size <= _active[-1].max_bytes


def shared(parts: Any, compute: Callable[[], Any], size_of: Callable[[Any], int]) -> Any:
    """
    Compute a result, or take it from the innermost context that shares kernels.

    Parameters
    ----------
    parts : Any
        All that the result depends on.
    compute : callable
        Computes it.
    size_of : callable
        Maps it to its size in bytes.

    Returns
    -------
    Any
        The result.
    """
    if not _active:
        return compute()
    try:
        key = joblib.hash(parts)
    except (PicklingError, AttributeError, TypeError):
        return compute()  # a kernel function that has no name to go by
    return _active[-1].get(key, compute, size_of)
