"""Cached properties."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class cached_property(Generic[T]):  # noqa: N801  # as in functools
    """The cached_property of functools without the lock that it has before Python 3.12.

    All instances share that lock. If a process forks while another thread computes a property,
    the child waits for the lock forever. Without it, several threads may compute the value at
    the same time, but all get the same object.
    """

    def __init__(self, function: Callable[[Any], T]) -> None:
        self._function = function
        self._name = function.__name__
        self.__doc__ = function.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> cached_property[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object, owner: type) -> cached_property[T] | T:
        if instance is None:
            return self
        found: T = instance.__dict__.setdefault(self._name, self._function(instance))
        return found
