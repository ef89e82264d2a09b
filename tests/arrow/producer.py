"""Builds Arrow data with ctypes, well-formed or malformed, and counts how often each part is
released."""

from __future__ import annotations

import ctypes
import struct
from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import Any

P = ctypes.POINTER


class Schema(ctypes.Structure):
    pass


class Array(ctypes.Structure):
    pass


class Stream(ctypes.Structure):
    pass


RELEASE_SCHEMA = ctypes.CFUNCTYPE(None, P(Schema))
RELEASE_ARRAY = ctypes.CFUNCTYPE(None, P(Array))
RELEASE_STREAM = ctypes.CFUNCTYPE(None, P(Stream))
GET_SCHEMA = ctypes.CFUNCTYPE(ctypes.c_int, P(Stream), P(Schema))
GET_NEXT = ctypes.CFUNCTYPE(ctypes.c_int, P(Stream), P(Array))
GET_LAST_ERROR = ctypes.CFUNCTYPE(ctypes.c_void_p, P(Stream))
Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", P(P(Schema))),
    ("dictionary", P(Schema)),
    ("release", RELEASE_SCHEMA),
    ("private_data", ctypes.c_void_p),
]
Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", P(ctypes.c_void_p)),
    ("children", P(P(Array))),
    ("dictionary", P(Array)),
    ("release", RELEASE_ARRAY),
    ("private_data", ctypes.c_void_p),
]
Stream._fields_ = [
    ("get_schema", GET_SCHEMA),
    ("get_next", GET_NEXT),
    ("get_last_error", GET_LAST_ERROR),
    ("release", RELEASE_STREAM),
    ("private_data", ctypes.c_void_p),
]
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_pointer_in = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_in.restype = ctypes.c_void_p
_pointer_in.argtypes = [ctypes.py_object, ctypes.c_char_p]

_kept: list[object] = []  # names of capsules, which must outlive these; few, so never freed


def capsule(pointed: ctypes.Structure, name: bytes) -> object:
    """Creates a capsule without a destructor: its consumer must release its contents."""
    _kept.append(name)
    result: object = _new_capsule(ctypes.addressof(pointed), name, None)
    return result


def array_in(capsule: object) -> Array:
    return Array.from_address(_pointer_in(capsule, b"arrow_array"))


def schema_in(capsule: object) -> Schema:
    return Schema.from_address(_pointer_in(capsule, b"arrow_schema"))


class Column:
    """An array and its schema, with counts of how often each was released.

    Arguments aren't checked, so that tests can make malformed columns. A buffer is bytes-like or
    None. Children and dictionaries are released with their parents.
    """

    def __init__(
        self,
        format: bytes | None,
        length: int,
        buffers: Sequence[Any] | None,
        *,
        offset: int = 0,
        null_count: int = -1,
        n_buffers: int | None = None,
        children: Sequence[Column] = (),
        dictionary: Column | None = None,
    ) -> None:
        self.released = self.schema_released = 0
        self.keep: list[object] = [buffers, children, dictionary]
        self.schema, self.array = Schema(), Array()
        self.schema.format, self.schema.name = format, b"a"
        self.array.length, self.array.offset, self.array.null_count = length, offset, null_count
        if buffers is not None:
            pointers = (ctypes.c_void_p * max(len(buffers), 1))()
            for i, buffer in enumerate(buffers):
                pointers[i] = self._address(buffer)
            self.keep.append(pointers)
            self.array.buffers = pointers
            self.array.n_buffers = len(buffers) if n_buffers is None else n_buffers
        if children:
            self.schema.n_children = self.array.n_children = len(children)
            schemas = (P(Schema) * len(children))(*(ctypes.pointer(c.schema) for c in children))
            arrays = (P(Array) * len(children))(*(ctypes.pointer(c.array) for c in children))
            self.schema.children, self.array.children = schemas, arrays
        if dictionary is not None:
            self.schema.dictionary = ctypes.pointer(dictionary.schema)
            self.array.dictionary = ctypes.pointer(dictionary.array)
        self.schema.release = RELEASE_SCHEMA(self._release_schema)
        self.array.release = RELEASE_ARRAY(self._release)

    def _address(self, buffer: Any) -> int | None:
        if buffer is None:
            return None
        if isinstance(buffer, bytes):
            buffer = ctypes.create_string_buffer(buffer, len(buffer) + 1)
        else:
            buffer = (ctypes.c_char * len(memoryview(buffer).cast("B"))).from_buffer(buffer)
        self.keep.append(buffer)
        return ctypes.addressof(buffer)

    def _release(self, array: Any) -> None:
        self.released += 1
        array.contents.release = RELEASE_ARRAY()

    def _release_schema(self, schema: Any) -> None:
        self.schema_released += 1
        schema.contents.release = RELEASE_SCHEMA()

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        self._capsules = capsule(self.schema, b"arrow_schema"), capsule(self.array, b"arrow_array")
        return self._capsules

    def end(self) -> None:
        """Releases the schema and the array, as the capsules' destructors would."""
        for struct_, name in ((self.schema, "schema"), (self.array, "array")):
            if struct_.release:
                struct_.release(ctypes.pointer(struct_))
            assert not struct_.release, name


class Chunks:
    """A stream of the columns' arrays, with the schema of the first column or of `schema`.

    After the arrays, the stream fails if `error` is set; with `schema_fails`, it has no schema."""

    def __init__(
        self,
        columns: Iterable[Column],
        *,
        schema: Column | None = None,
        error: bytes | None = None,
        code: int = 5,
        schema_fails: bool = False,
    ) -> None:
        self.columns = iter(columns)
        self.delivered: list[Column] = []
        self.first = schema
        self.error = ctypes.create_string_buffer(error) if error is not None else None
        self.fails, self.code, self.schema_fails = error is not None, code, schema_fails
        self.released = self.schemas_delivered = self.schemas_released = 0
        self.before: Callable[[], None] = lambda: None
        self.stream = Stream()
        self.stream.get_schema = GET_SCHEMA(self._get_schema)
        self.stream.get_next = GET_NEXT(self._get_next)
        self.stream.get_last_error = GET_LAST_ERROR(self._get_last_error)
        self.stream.release = RELEASE_STREAM(self._release)

    def _get_schema(self, stream: Any, out: Any) -> int:
        if self.schema_fails:
            return self.code
        if self.first is None:
            self.first = next(self.columns)
            self.columns = (c for cs in ([self.first], self.columns) for c in cs)
        ctypes.memmove(out, ctypes.byref(self.first.schema), ctypes.sizeof(Schema))
        self.schemas_delivered += 1
        self._schema_release = RELEASE_SCHEMA(self._release_schema)
        out.contents.release = self._schema_release
        return 0

    def _release_schema(self, schema: Any) -> None:
        self.schemas_released += 1
        schema.contents.release = RELEASE_SCHEMA()

    def _get_next(self, stream: Any, out: Any) -> int:
        self.before()
        column = next(self.columns, None)
        if column is not None:
            self.delivered.append(column)
            ctypes.memmove(out, ctypes.byref(column.array), ctypes.sizeof(Array))
            return 0
        if self.fails:
            return self.code
        ctypes.memset(out, 0, ctypes.sizeof(Array))
        return 0

    def _get_last_error(self, stream: Any) -> int | None:
        return ctypes.addressof(self.error) if self.error else None

    def _release(self, stream: Any) -> None:
        self.released += 1
        stream.contents.release = RELEASE_STREAM()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return capsule(self.stream, b"arrow_array_stream")


# ---- well-formed columns ----


def bits(flags: Iterable[bool]) -> bytes:
    text = "".join("01"[flag] for flag in flags)
    return bytes(int(text[i : i + 8][::-1], 2) for i in range(0, len(text), 8))


def strings(
    format: bytes, texts: Sequence[bytes | None], *, offset: int = 0, length: int | None = None
) -> Column:
    """Builds a column from these texts, or a slice of that column. Null entries have bytes, too,
    which readers must ignore."""
    data, ends = b"", [0]
    for text in texts:
        data += b"junk" if text is None else text
        ends.append(len(data))
    validity = bits(text is not None for text in texts) if None in texts else None
    length = len(texts) - offset if length is None else length
    if format in (b"vu", b"vz"):
        views, buffers = b"", [b"#" * 7, b"#" * 5]
        for i, text in enumerate(texts):
            if text is None or len(text) <= 12:
                views += struct.pack("<i12s", len(text or b""), text or b"")
            else:
                where = len(buffers[i % 2])
                views += struct.pack("<i4sii", len(text), text[:4], i % 2, where)
                buffers[i % 2] += text
        sizes = array("q", map(len, buffers))
        return Column(format, length, [validity, views, *buffers, sizes], offset=offset)
    offsets = array("i" if format in (b"u", b"z") else "q", ends)
    return Column(format, length, [validity, offsets, data], offset=offset)
