"""Properties that are computed when they are first asked for, without a lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


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
