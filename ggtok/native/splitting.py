"""Word splitting in Python: the C library's callback for ``pre_patterns``."""

from __future__ import annotations

import threading
from collections.abc import Callable

from ggtok.native.library import ffi

TYPE_CHECKING = False  # as in native/library.py
if TYPE_CHECKING:
    from typing import Any, TypeVar

    T = TypeVar("T")

# Splits a text into words; returns their end offsets in bytes.
Split = Callable[[bytes], list[int]]

_SIZE_MAX: int = 2 ** (8 * ffi.sizeof("size_t")) - 1


class Splitter:
    """The target of ggtok_py_split: a `Split`, and the exception it raised on each thread."""

    def __init__(self, split: Split) -> None:
        self.split = split
        self.failed: dict[int, BaseException] = {}
        self.unread: dict[int, tuple[bytes, list[int]]] = {}

    def __call__(self, text: Any, n: int, ends: Any, room: int) -> int:
        thread = threading.get_ident()
        try:
            data: bytes = ffi.buffer(text, n)[:]
            # C repeats a call with more room if `ends` was too small; use the stored result.
            known, offsets = self.unread.pop(thread, (None, []))
            if known != data:
                offsets = self.split(data)
            if len(offsets) <= room:
                ends[0 : len(offsets)] = offsets
            else:
                self.unread[thread] = data, offsets
            return len(offsets)
        except BaseException as e:  # re-raised by the caller of encode
            self.failed[thread] = e
            return _SIZE_MAX

    def take_failure(self) -> BaseException | None:
        return self.failed.pop(threading.get_ident(), None)

    def afresh(self, function: Callable[..., T]) -> Callable[..., T]:
        """A wrapper of an encoding function that first clears the state of an earlier call.

        A call that a signal handler's exception ended has left its failure behind.
        """

        def call(*args: object) -> T:
            self.unread.pop(threading.get_ident(), None)
            self.take_failure()
            return function(*args)

        return call


def _outside(kind: type, raised: BaseException, traceback: Any) -> None:
    """Handles an exception raised before the first line of ggtok_py_split or
    Splitter.__call__. Only a signal handler can raise one there."""
    splitter: Splitter = ffi.from_handle(traceback.tb_frame.f_locals["user"])
    splitter.failed[threading.get_ident()] = raised


@ffi.def_extern(error=_SIZE_MAX, onerror=_outside)  # type: ignore[untyped-decorator]
def ggtok_py_split(user: Any, text: Any, n: int, ends: Any, room: int) -> int:
    splitter: Splitter = ffi.from_handle(user)
    return splitter(text, n, ends, room)
