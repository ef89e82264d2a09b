"""Word splitting in Python: what the C library calls for ``pre_patterns``."""

from __future__ import annotations

import threading
from collections.abc import Callable

from ggtok.native.library import ffi

TYPE_CHECKING = False  # as in library.py
if TYPE_CHECKING:
    from typing import Any, TypeVar

    T = TypeVar("T")

# A function that cuts a text: the end offsets of its words in bytes.
Split = Callable[[bytes], list[int]]

_SIZE_MAX: int = 2 ** (8 * ffi.sizeof("size_t")) - 1


class Splitter:
    """What ggtok_py_split calls: a `Split`, and what went wrong in it on each thread."""

    def __init__(self, split: Split) -> None:
        self.split = split
        self.failed: dict[int, BaseException] = {}
        self.unread: dict[int, tuple[bytes, list[int]]] = {}

    def __call__(self, text: Any, n: int, ends: Any, room: int) -> int:
        thread = threading.get_ident()
        try:
            data: bytes = ffi.buffer(text, n)[:]
            # Too little room a moment ago: the same call again, with enough.
            known, offsets = self.unread.pop(thread, (None, []))
            if known != data:
                offsets = self.split(data)
            if len(offsets) <= room:
                ends[0 : len(offsets)] = offsets
            else:
                self.unread[thread] = data, offsets
            return len(offsets)
        except BaseException as e:  # re-raised by whoever called encode
            self.failed[thread] = e
            return _SIZE_MAX

    def take_failure(self) -> BaseException | None:
        return self.failed.pop(threading.get_ident(), None)

    def afresh(self, function: Callable[..., T]) -> Callable[..., T]:
        """`function`, which encodes, without the remains of an earlier call: one that a signal
        handler's exception ended didn't take its failure."""

        def call(*args: object) -> T:
            self.unread.pop(threading.get_ident(), None)
            self.take_failure()
            return function(*args)

        return call


def _outside(kind: type, raised: BaseException, traceback: Any) -> None:
    """An exception before the first line of ggtok_py_split or Splitter.__call__: a signal
    handler's."""
    splitter: Splitter = ffi.from_handle(traceback.tb_frame.f_locals["user"])
    splitter.failed[threading.get_ident()] = raised


@ffi.def_extern(error=_SIZE_MAX, onerror=_outside)  # type: ignore[untyped-decorator]
def ggtok_py_split(user: Any, text: Any, n: int, ends: Any, room: int) -> int:
    splitter: Splitter = ffi.from_handle(user)
    return splitter(text, n, ends, room)
