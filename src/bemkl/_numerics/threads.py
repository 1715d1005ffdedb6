"""One pool of BLAS threads at a time, one thread where more of them do not pay, and values kept without a lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from threading import RLock, local
from typing import Any, Generic, TypeVar, overload

import scipy.linalg.lapack  # noqa: F401  # loads SciPy's library, so that it can be found
from threadpoolctl import ThreadpoolController

T = TypeVar("T")

_lock = RLock()
_SMALL = 800
"""Rows up to which a second thread shortens a fit by no more than a fifth, and doubles what it takes of the machine."""


class _Pools:
    """BLAS libraries that are kept to one thread while somebody asks for it."""

    def __init__(self, libraries: list[Any]) -> None:
        self.libraries = libraries
        self._users, self._here = 0, local()
        self._before: list[int] = []

    def hold(self) -> None:
        """Keep the libraries to one thread; they may be held more than once, and by several threads."""
        with _lock:
            if self._users == 0:
                self._before = [library.num_threads for library in self.libraries]
            self._users += 1
            self._here.users = getattr(self._here, "users", 0) + 1
            for library in self.libraries:
                library.set_num_threads(1)

    def release(self) -> None:
        """Give back what there was before, once nobody holds the libraries any more."""
        with _lock:
            self._users -= 1
            self._here.users -= 1
            for library, count in zip(self.libraries, self._before, strict=True):
                # Where there is one number for all, who leaves first must not change it under the others' hands.
                if (self._here.users if _has_number_a_thread(library) else self._users) == 0:
                    _give_back(library, count)

    def keep_own(self) -> None:
        """Forget the threads that a forked process does not have, and give back what only they held."""
        held, self._users = self._users, getattr(self._here, "users", 0)
        for library, count in zip(self.libraries, self._before, strict=True):
            if held and not self._users and not _has_number_a_thread(library):
                _give_back(library, count)


def _has_number_a_thread(library: Any) -> bool:
    """Say whether every thread has a number of its own, as with OpenMP, and gives its own back."""
    return getattr(library, "threading_layer", None) == "openmp"


def _give_back(library: Any, count: int) -> None:
    """Set a number of threads, unless none were taken, or somebody else has set another number since."""
    # Newer versions of threadpoolctl let one thread at a time decide: not always the last one to leave.
    change_hands = getattr(library, "clear_controlling_thread", lambda **_: None)
    if count != 1 and library.num_threads == 1:
        change_hands(force=True)
        library.set_num_threads(count)
    change_hands()


def _pools() -> tuple[_Pools, _Pools]:
    """Return the BLAS libraries that SciPy has for itself, if it does not share NumPy's, and all others."""
    with _lock:
        return _found_pools()


@cache
def _found_pools() -> tuple[_Pools, _Pools]:
    found = ThreadpoolController().select(user_api="blas").lib_controllers
    of_scipy = [library for library in found if Path(library.filepath).parent.name.lower().startswith("scipy")]
    return _Pools(of_scipy), _Pools([library for library in found if library not in of_scipy])


def _before_fork() -> None:
    """Wait until no other thread is in the middle of a change, which the child would never see the end of."""
    _lock.acquire()


def _after_fork() -> None:
    _lock.release()


def _after_fork_in_child() -> None:
    """Give back what threads hold that are not there in the child; this one still gives its own back itself."""
    if _found_pools.cache_info().currsize:
        for pools in _found_pools():
            pools.keep_own()
    _lock.release()


if hasattr(os, "register_at_fork"):  # not on Windows, where there are no forks
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)


def one_thread_is_enough(n_rows: int) -> bool:
    """Say whether matrices are so small that a second thread does not pay."""
    return n_rows <= _SMALL


@contextmanager
def one_pool(n_rows: int, *, mostly_scipy: bool = False) -> Iterator[None]:
    """
    Keep SciPy's linear algebra to one thread, and NumPy's too where matrices are small.

    The wheels of NumPy and SciPy carry a BLAS library each, and the threads of each keep spinning for a while after a
    product. Alternating between two pools of two threads is several times slower than one thread; only factorisations
    and inverses are SciPy's, and one thread is enough for them. Products of small matrices are over before a second
    thread has done much, but it spins all the same.

    A forked process gets back what threads of its parent were holding, unless the thread that forked holds it itself.
    Libraries have locks of their own: what is promised is that none of ours is left locked, not that a process may be
    forked while another thread imports, compiles a loop for the first time, or is inside a BLAS.
    """
    of_scipy, others = _pools()
    with ExitStack() as held:
        large = () if mostly_scipy else (of_scipy,)
        for pools in (of_scipy, others) if one_thread_is_enough(n_rows) else large:
            pools.hold()
            held.callback(pools.release)
        yield


class lazy_property(Generic[T]):  # noqa: N801  # written like `property`, which it replaces
    """
    A property that is computed once, and kept with the object's other attributes.

    Python 3.11 computes a `functools.cached_property` under a lock that all objects of the class share: threads wait
    for each other, and a process that is forked meanwhile waits for ever. Here two threads that ask at the same time
    compute the same twice, and both get what the first one kept.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute, self.__doc__ = compute, compute.__doc__

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type[Any]) -> lazy_property[T]: ...

    @overload
    def __get__(self, instance: object, owner: type[Any]) -> T: ...

    def __get__(self, instance: object, owner: type[Any]) -> T | lazy_property[T]:
        if instance is None:
            return self
        kept: T = vars(instance).setdefault(self._name, self._compute(instance))
        return kept
