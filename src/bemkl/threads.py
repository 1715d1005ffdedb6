"""One pool of BLAS threads at a time: NumPy's does the products, SciPy's waits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import scipy.linalg.lapack  # noqa: F401  # loads SciPy's library, so that it can be found
from threadpoolctl import ThreadpoolController

_lock = Lock()
_users = 0
_before: list[int] = []


@cache
def _idle_pools() -> list[Any]:
    """Return the BLAS libraries that SciPy has for itself; none where it shares NumPy's."""
    found = ThreadpoolController().select(user_api="blas").lib_controllers
    return [library for library in found if Path(library.filepath).parent.name.lower().startswith("scipy")]


@contextmanager
def one_pool() -> Iterator[None]:
    """
    Keep SciPy's linear algebra to one thread.

    The wheels of NumPy and SciPy carry a BLAS library each, and the threads of each keep spinning for a while after a
    product. Alternating between two pools of two threads is several times slower than one thread; here only
    factorisations and inverses are SciPy's, and one thread is enough for them.

    Yields
    ------
    None
        Nothing; the number of threads is restored at the end.

    Examples
    --------
    >>> with one_pool():
    ...     pass
    """
    global _users
    with _lock:
        if _users == 0:
            _before[:] = [library.num_threads for library in _idle_pools()]
            for library in _idle_pools():
                library.set_num_threads(1)
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                for library, count in zip(_idle_pools(), _before, strict=True):
                    library.set_num_threads(count)
