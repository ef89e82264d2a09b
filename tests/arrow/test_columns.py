"""Tests columns built with ctypes: their formats, malformed data, and their release."""

from __future__ import annotations

import ctypes
import gc
import os
import random
import re
import struct
import sys
import threading
from array import array
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import numpy as np
import pytest

import ggtok
from tests.arrow.producer import (
    RELEASE_ARRAY,
    Array,
    Chunks,
    Column,
    array_in,
    bits,
    capsule,
    schema_in,
    strings,
)
from tests.support.interrupts import interrupted, posix
from tests.support.memory import resident
from tests.support.vocabularies import fixture

TEXTS = [b"Hello, world", None, b"", b"a text of more than twelve bytes", b"caf\xc3\xa9 \xff"] * 3
FORMATS = [b"u", b"U", b"vu", b"z", b"Z", b"vz"]


@pytest.fixture(scope="module")
def tok() -> ggtok.Tokenizer:
    return ggtok.load(fixture("bpe-llama3"))


def expected(tok: ggtok.Tokenizer, texts: list[bytes | None]) -> list[list[int] | None]:
    return [None if text is None else tok.encode(text) for text in texts]


def listed(ids: Any) -> list[list[int] | None]:
    """Reads ids as an Arrow library would; returns None for a null."""
    schema_capsule, array_capsule = ids.__arrow_c_array__()
    schema, array_ = schema_in(schema_capsule), array_in(array_capsule)
    assert (schema.format, schema.flags, schema.n_children) == (b"+L", 2, 1)
    item = schema.children[0].contents
    assert (item.format, item.name, item.flags) == (b"i", b"item", 2)
    child = array_.children[0].contents
    assert (array_.n_buffers, array_.n_children, array_.offset) == (2, 1, 0)
    assert (child.n_buffers, child.null_count, child.buffers[0]) == (2, 0, None)
    n = array_.length
    offsets = (ctypes.c_int64 * (n + 1)).from_address(array_.buffers[1])
    numbers = (ctypes.c_int32 * child.length).from_address(child.buffers[1])
    assert (offsets[0], offsets[n]) == (0, child.length)
    validity = array_.buffers[0]
    valid = [True] * n
    if validity:
        packed = (ctypes.c_uint8 * (n // 8 + 1)).from_address(validity)
        valid = [bool(packed[i // 8] >> i % 8 & 1) for i in range(n)]
    assert array_.null_count == ids.null_count == valid.count(False)
    assert len(ids) == n
    return [list(numbers[offsets[i] : offsets[i + 1]]) if valid[i] else None for i in range(n)]


# ---- well-formed data ----


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(("offset", "length"), [(0, None), (1, None), (9, 4), (15, None)])
def test_every_format_and_slice_is_read(
    tok: ggtok.Tokenizer, format: bytes, offset: int, length: int | None
) -> None:
    column = strings(format, TEXTS, offset=offset, length=length)
    texts = TEXTS[offset:][:length]
    assert listed(tok.encode_batch_arrow(column)) == expected(tok, texts)
    assert (column.released, column.schema_released) == (1, 0)
    column.end()
    assert (column.released, column.schema_released) == (1, 1)


@pytest.mark.parametrize("code", "cCsSiIlL")
def test_dictionary_columns_are_read(tok: ggtok.Tokenizer, code: str) -> None:
    """The indices and the dictionary both have nulls and are slices."""
    words = strings(b"u", [b"never", b"the kettle", None, b"of a table"], offset=1)
    kind = {"c": "b", "C": "B", "s": "h", "S": "H", "l": "q", "L": "Q"}.get(code, code)
    indices = array(kind, [9, 0, 1, 2, 0, 7, 2])
    validity = bits([True, True, True, True, True, False, True])
    column = Column(code.encode(), 6, [validity, indices], offset=1, dictionary=words)
    dictionary = [b"the kettle", None, b"of a table"]
    texts = [dictionary[i] if i < 7 else None for i in indices[1:]]
    assert listed(tok.encode_batch_arrow(column)) == expected(tok, texts)
    assert column.released == 1


def test_a_struct_of_one_column_is_read_as_its_field(tok: ggtok.Tokenizer) -> None:
    """The struct's nulls and slice apply in addition to those of its field."""
    field = strings(b"vu", [b"never", *TEXTS], offset=1)
    validity = bits(i != 4 for i in range(len(TEXTS)))
    table = Column(b"+s", len(TEXTS) - 3, [validity], offset=2, children=[field])
    texts = [None if i == 4 else text for i, text in enumerate(TEXTS)][2:-1]
    assert listed(tok.encode_batch_arrow(table)) == expected(tok, texts)
    assert table.released == 1
    no_nulls = Column(b"+s", 1, [b"\0"], null_count=0, children=[strings(b"u", [b"a"])])
    assert tok.encode_batch(no_nulls) == [tok.encode("a")]


def test_columns_without_texts_are_read(tok: ggtok.Tokenizer) -> None:
    assert listed(tok.encode_batch_arrow(Column(b"n", 3, None))) == [None] * 3
    for format in FORMATS:
        assert listed(tok.encode_batch_arrow(Column(format, 0, None))) == []
        assert listed(tok.encode_batch_arrow(Chunks([], schema=strings(format, [])))) == []
    assert tok.encode_batch(strings(b"u", [])) == []
    # If all texts are empty, the buffer for their bytes may be missing.
    empty = Column(b"u", 2, [None, array("i", [0, 0, 0]), None])
    assert tok.encode_batch(empty) == [tok.encode("")] * 2


def test_streams_are_read_and_released(tok: ggtok.Tokenizer) -> None:
    parts = [TEXTS[:2], [], TEXTS[2:9], TEXTS[9:]]
    stream = Chunks([strings(b"u", part) for part in parts])
    assert listed(tok.encode_batch_arrow(stream)) == expected(tok, TEXTS)
    assert [column.released for column in stream.delivered] == [1] * 4
    assert (stream.released, stream.schemas_delivered, stream.schemas_released) == (1, 1, 1)


def test_columns_give_the_same_lists_and_arrays_as_texts(tok: ggtok.Tokenizer) -> None:
    texts = [text for text in TEXTS if text is not None]
    lists = tok.encode_batch(texts)
    assert tok.encode_batch(strings(b"U", texts)) == lists
    assert tok.encode_batch(Chunks([strings(b"vu", texts)] * 1), threads=2) == lists
    ids, offsets = tok.encode_batch_arrays(strings(b"vz", texts))
    assert np.split(ids, offsets[1:-1])[3].tolist() == lists[3]
    assert len(offsets) == len(texts) + 1
    assert listed(tok.encode_batch_arrow(texts)) == lists  # from an iterable, for comparison
    assert listed(tok.encode_batch_arrow(text.decode("latin-1") for text in texts)) == [
        tok.encode(text.decode("latin-1")) for text in texts
    ]


def test_options_apply_to_columns(tok: ggtok.Tokenizer) -> None:
    texts = [b"<|eot_id|>", b"Hello"] * 200
    for options in ({"add_special": False}, {"parse_special": True}, {"threads": 1}):
        want = tok.encode_batch(texts, **options)  # type: ignore[arg-type]
        assert listed(tok.encode_batch_arrow(strings(b"u", texts), **options)) == want  # type: ignore
    with pytest.raises(ggtok.InvalidValueError, match="threads"):
        tok.encode_batch_arrow(strings(b"u", texts), threads=-1)
    with pytest.raises(ggtok.InvalidTypeError, match=r"texts\[1\] must be str"):
        tok.encode_batch_arrow(["a", None])  # type: ignore[list-item]
    with pytest.raises(ggtok.InvalidTypeError, match="iterable of texts, not int"):
        tok.encode_batch_arrow(3)  # type: ignore[arg-type]


def test_offsets_and_continuation_apply_to_columns(tok: ggtok.Tokenizer) -> None:
    texts = [b"Hello, world", b"", b"a <|eot_id|> b" * 9]
    for threads in (1, 2):
        found = tok.encode_batch_with_offsets(strings(b"vu", texts), threads=threads)
        for text, (ids, spans) in zip(texts, found, strict=True):
            want = tok.encode_with_offsets(text)
            assert ids == want[0] and spans.tolist() == want[1].tolist()
    with pytest.raises(ggtok.InvalidValueError, match="unit 'char' is for texts of type str"):
        tok.encode_batch_with_offsets(strings(b"u", texts), unit="char")
    with pytest.raises(ggtok.InvalidValueError, match=r"texts\[1\] is null"):
        tok.encode_batch_with_offsets(strings(b"u", [b"a", None]))
    ids = tok.encode_batch_arrow(strings(b"u", texts), continuation=True, parse_special=[664])
    assert listed(ids) == tok.encode_batch(texts, continuation=True, parse_special=[664])


def test_random_columns_give_the_ids_of_their_texts(tok: ggtok.Tokenizer) -> None:
    """encode_batch returns the same ids for random columns as for their texts."""
    rng = random.Random(20)
    for _ in range(60):
        texts = [
            None if rng.random() < 0.2 else rng.randbytes(rng.choice([0, 3, 12, 13, 40]))
            for _ in range(rng.randrange(40))
        ]
        offset = rng.randrange(len(texts) + 1)
        column = strings(rng.choice(FORMATS), texts, offset=offset)
        assert listed(tok.encode_batch_arrow(column)) == expected(tok, texts[offset:])


def test_pre_patterns_apply_to_columns() -> None:
    tok = ggtok.load(fixture("bpe-llama3"), pre_patterns=[r"\s+|\S+"])
    column = strings(b"u", TEXTS)
    assert listed(tok.encode_batch_arrow(column)) == expected(tok, TEXTS)


# ---- errors ----


@pytest.mark.parametrize("method", ["encode_batch", "encode_batch_arrays"])
def test_errors_name_the_first_null(tok: ggtok.Tokenizer, method: str) -> None:
    stream = Chunks([strings(b"u", [b"a", b"b"]), strings(b"u", [b"c", None, None])])
    with pytest.raises(ggtok.InvalidValueError, match=r"^texts\[3\] is null: drop or fill"):
        getattr(tok, method)(stream)
    assert [column.released for column in stream.delivered] == [1, 1]


def view(n: int, buffer: int = 0, at: int = 0) -> bytes:
    return struct.pack("<i4sii", n, b"aaaa", buffer, at)


SIZES = array("q", [20])
NUMBERS = array("i", [0, 1, 2])
WORDS = [b"a" * 20]


def of_ids(**kind: Any) -> Column:
    return Column(b"i", 2, [None, NUMBERS], dictionary=strings(b"u", [b"x", b"y"]), **kind)


def in_struct(length: int, *children: Column, buffers: Any = (None,), **kind: Any) -> Column:
    return Column(b"+s", length, list(buffers), children=children, **kind)


def modified(column: Column, change: Callable[[Column], None]) -> Column:
    change(column)
    return column


def no_child(column: Column) -> None:
    column.array.children[0] = type(column.array.children[0])()


def no_field(column: Column) -> None:
    column.schema.children[0] = type(column.schema.children[0])()


def no_dictionary(column: Column) -> None:
    column.array.dictionary = type(column.array.dictionary)()


MALFORMED = {
    "negative length": (lambda: Column(b"u", -1, [None, NUMBERS, b"ab"]), "length or offset"),
    "negative offset": (
        lambda: Column(b"u", 1, [None, NUMBERS, b"ab"], offset=-1),
        "length or offset",
    ),
    "huge length": (lambda: Column(b"u", 2**63 - 1, [None, NUMBERS, b"ab"]), "length or offset"),
    "huge offset": (
        lambda: Column(b"u", 1, [None, NUMBERS, b"ab"], offset=2**63 - 1),
        "length or offset",
    ),
    "their sum": (
        lambda: Column(b"n", 2**62, None, offset=2**62),
        "length or offset",
    ),
    "no buffers": (lambda: Column(b"u", 2, None), "lacks buffers"),
    "few buffers": (lambda: Column(b"u", 2, [None, NUMBERS]), "lacks buffers"),
    "a negative number of buffers": (
        lambda: Column(b"u", 2, [None, NUMBERS, b"ab"], n_buffers=-3),
        "lacks buffers",
    ),
    "no offsets": (lambda: Column(b"u", 2, [None, None, b"ab"]), "no offsets or views"),
    "no views": (lambda: Column(b"vu", 2, [None, None, b"ab", SIZES]), "no offsets or views"),
    "no data": (lambda: Column(b"u", 2, [None, NUMBERS, None]), "no data"),
    "no sizes": (lambda: Column(b"vu", 1, [None, view(20), b"a" * 20, None]), "no sizes"),
    "nulls nowhere": (
        lambda: Column(b"u", 2, [None, NUMBERS, b"ab"], null_count=1),
        "no validity buffer",
    ),
    "too many nulls": (
        lambda: Column(b"u", 2, [b"\0", NUMBERS, b"ab"], null_count=3),
        "number of nulls",
    ),
    "fewer than no nulls": (
        lambda: Column(b"u", 2, [b"\0", NUMBERS, b"ab"], null_count=-2),
        "number of nulls",
    ),
    "decreasing": (lambda: Column(b"u", 2, [None, array("i", [0, 2, 1]), b"ab"]), "decrease"),
    "beyond the last": (
        lambda: Column(b"U", 2, [None, array("q", [0, 2**60, 1]), b"ab"]),
        "decrease",
    ),
    "negative at first": (
        lambda: Column(b"u", 2, [None, array("i", [-1, 1, 2]), b"ab"]),
        "negative or decrease",
    ),
    "negative at last": (
        lambda: Column(b"z", 2, [None, array("i", [0, 1, -2]), b"ab"]),
        "offset of texts is negative",
    ),
    "a negative view": (lambda: Column(b"vu", 1, [None, view(-1), *WORDS, SIZES]), "negative"),
    "a view's buffer": (lambda: Column(b"vu", 1, [None, view(13, 1), *WORDS, SIZES]), "outside"),
    "a view's negative buffer": (
        lambda: Column(b"vu", 1, [None, view(13, -1), *WORDS, SIZES]),
        "outside",
    ),
    "a view's offset": (lambda: Column(b"vz", 1, [None, view(13, 0, 8), *WORDS, SIZES]), "outside"),
    "a view's negative offset": (
        lambda: Column(b"vz", 1, [None, view(13, 0, -1), *WORDS, SIZES]),
        "outside",
    ),
    "a view's missing buffer": (
        lambda: Column(b"vu", 1, [None, view(13), None, SIZES]),
        "outside",
    ),
    "a long view without buffers": (lambda: Column(b"vu", 1, [None, view(13)]), "outside"),
    "an index": (
        lambda: Column(b"i", 3, [None, NUMBERS], dictionary=strings(b"u", [b"a", b"b"])),
        "outside of its dictionary",
    ),
    "a negative index": (
        lambda: Column(b"c", 1, [None, b"\xff"], dictionary=strings(b"u", [b"a"] * 256)),
        "outside of its dictionary",
    ),
    "an index of 64 bits": (
        lambda: Column(b"L", 1, [None, array("Q", [2**64 - 1])], dictionary=strings(b"u", [b"a"])),
        "outside of its dictionary",
    ),
    "no indices": (
        lambda: Column(b"i", 2, [None, None], dictionary=strings(b"u", [b"a"])),
        "indices are missing",
    ),
    "indices of no integers": (
        lambda: Column(b"f", 2, [None, NUMBERS], dictionary=strings(b"u", [b"a"])),
        "are not integers",
    ),
    "a dictionary in the schema only": (lambda: modified(of_ids(), no_dictionary), "differ"),
    "a malformed dictionary": (
        lambda: Column(b"i", 2, [None, NUMBERS], dictionary=Column(b"u", 2, [None, None, b""])),
        "no offsets or views",
    ),
    "a malformed field": (
        lambda: in_struct(1, Column(b"u", 1, [None, None, b"a"])),
        "no offsets or views",
    ),
    "a short field": (lambda: in_struct(3, strings(b"u", [b"a", b"b"])), "longer than its field"),
    "a field that is short behind the offset": (
        lambda: in_struct(2, strings(b"u", [b"a", b"b"]), offset=1),
        "longer than its field",
    ),
    "a struct without its field": (
        lambda: modified(in_struct(1, strings(b"u", [b"a"])), no_child),
        "lacks its field",
    ),
    "a struct's schema without its field": (
        lambda: modified(in_struct(1, strings(b"u", [b"a"])), no_field),
        "without its field",
    ),
    "a struct's nulls": (
        lambda: in_struct(1, strings(b"u", [b"a"]), null_count=1),
        "no validity buffer",
    ),
}


@pytest.mark.parametrize("name", MALFORMED)
@pytest.mark.parametrize("stream", [False, True])
def test_malformed_columns_raise_errors(tok: ggtok.Tokenizer, name: str, stream: bool) -> None:
    make, message = MALFORMED[name]
    column = make()
    source = Chunks([column], schema=column) if stream else column
    with pytest.raises(ggtok.InvalidValueError, match=f"^texts: malformed Arrow data: .*{message}"):
        tok.encode_batch_arrow(source)
    if name in FAULTY_SCHEMAS:
        assert column.released == 0  # an array with a malformed schema isn't consumed
    else:
        assert column.released == 1


FAULTY_SCHEMAS = "indices of no integers", "a struct's schema without its field"


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (lambda: Column(b"l", 2, [None, SIZES]), "its Arrow format is 'l'"),
        (lambda: Column(b"+l", 0, [None, SIZES]), "its Arrow format is '+l'"),
        (lambda: Column(b"", 0, []), "its Arrow format is ''"),
        (lambda: Column(None, 0, []), "its Arrow format is ''"),
        (lambda: Column(b"\x1b[31m" * 100, 0, []), r"its Arrow format is '?[31m?[31m"),
        (lambda: in_struct(0), "one column is needed, but this one has 0"),
        (
            lambda: in_struct(1, strings(b"u", [b"a"]), strings(b"u", [b"b"])),
            "one column is needed, but this one has 2: select",
        ),
        (lambda: in_struct(0, Column(b"l", 0, [])), "the table's column must be of strings"),
        (
            lambda: Column(b"i", 0, [], dictionary=Column(b"l", 0, [])),
            "dictionary must be of strings",
        ),
        (
            lambda: Column(b"i", 0, [], dictionary=of_ids()),
            "dictionary must be of strings",
        ),
    ],
)
def test_columns_of_other_types_raise_errors(
    tok: ggtok.Tokenizer, column: Callable[[], Column], message: str
) -> None:
    wrong = column()
    with pytest.raises(ggtok.InvalidTypeError, match=re.escape(message)):
        tok.encode_batch(wrong)
    wrong.end()
    assert (wrong.released, wrong.schema_released) == (1, 1)


def test_too_large_columns_raise_errors(tok: ggtok.Tokenizer) -> None:
    """If a column has more rows than fit in memory, the call fails before it reads the buffers."""
    column = Column(b"u", 2**56, [None, NUMBERS, b"ab"])
    with pytest.raises((ggtok.OutOfMemoryError, ggtok.InvalidValueError)):
        tok.encode_batch(modified(column, lambda c: c.keep.append(array("q", [0]))))
    assert column.released == 1


def test_failing_streams_raise_errors(tok: ggtok.Tokenizer) -> None:
    stream = Chunks([strings(b"u", [b"a"])], error=b"the disk \x1b[31mis gone")
    with pytest.raises(ggtok.InvalidValueError) as e:
        tok.encode_batch_arrow(stream)
    assert str(e.value) == r"texts: the Arrow stream failed: the disk ?[31mis gone"
    assert (stream.released, stream.delivered[0].released, stream.schemas_released) == (1, 1, 1)
    for error in (b"", None):
        stream = Chunks([], error=error, schema_fails=True)
        with pytest.raises(ggtok.InvalidValueError, match=os.strerror(5)):
            tok.encode_batch_arrow(stream)
        assert (stream.released, stream.schemas_delivered) == (1, 0)
    stream = Chunks([Column(b"l", 2, [None, SIZES])])
    with pytest.raises(ggtok.InvalidTypeError):
        tok.encode_batch_arrow(stream)
    assert (stream.released, stream.delivered) == (1, [])


def test_used_capsules_raise_errors(tok: ggtok.Tokenizer) -> None:
    column = strings(b"u", [b"a"])
    tok.encode_batch(column)
    with pytest.raises(ggtok.InvalidValueError, match="the array was released before"):
        tok.encode_batch(column)
    assert column.released == 1
    stream = Chunks([strings(b"u", [b"a"])])
    tok.encode_batch(stream)
    with pytest.raises(ggtok.InvalidValueError, match="the stream was released before"):
        tok.encode_batch(stream)
    column = strings(b"u", [b"a"])
    column.schema.release(column.schema)
    with pytest.raises(ggtok.InvalidValueError, match="the schema was released before"):
        tok.encode_batch(column)
    assert column.released == 0  # the array is still in its capsule
    column.end()


def test_only_one_thread_gets_a_stream(tok: ggtok.Tokenizer) -> None:
    """If several threads encode the same stream, only one of them gets it. (tests/c/threads.c tests
    the same for arrays.)"""
    stream = Chunks([strings(b"u", [b"a"])])
    tried = []

    def use_it_too() -> None:
        with pytest.raises(ggtok.InvalidValueError, match="the stream was released before"):
            tok.encode_batch(stream)
        tried.append("stream")

    def before() -> None:  # called while the stream is being read
        stream.before = lambda: None
        threads = [threading.Thread(target=use_it_too) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    stream.before = before
    assert tok.encode_batch(stream) == [tok.encode("a")]
    assert (len(tried), stream.schemas_delivered, stream.released) == (2, 1, 1)


class Exports:
    def __init__(self, name: str, method: Callable[[], object]) -> None:
        setattr(self, name, method)


def failing() -> object:
    raise KeyError("no such column")


def unavailable() -> object:
    raise ImportError("pyarrow is needed")


def test_wrong_exports_raise_errors(tok: ggtok.Tokenizer) -> None:
    for name, value in (
        ("__arrow_c_stream__", "text"),
        ("__arrow_c_stream__", capsule(Array(), b"arrow_array")),
        ("__arrow_c_array__", None),
        ("__arrow_c_array__", (1, 2, 3)),
        ("__arrow_c_array__", (capsule(Array(), b"arrow_schema"), None)),
        ("__arrow_c_array__", (capsule(Array(), b"arrow_schema"), "text")),
        ("__arrow_c_array__", (capsule(Array(), b"x"), capsule(Array(), b"arrow_array"))),
    ):
        with pytest.raises(ggtok.InvalidTypeError, match=f"texts: {name} (returned|must)"):
            tok.encode_batch(Exports(name, lambda value=value: value))  # type: ignore
    for name in ("__arrow_c_stream__", "__arrow_c_array__"):
        with pytest.raises(ggtok.InvalidValueError, match=f"{name} failed: 'no such column'"):
            tok.encode_batch(Exports(name, failing))  # type: ignore[arg-type]
        with pytest.raises(ImportError, match="pyarrow is needed"):
            tok.encode_batch(Exports(name, unavailable))  # type: ignore[arg-type]

    class Iterable(Exports):
        def __iter__(self) -> Iterator[str]:
            return iter(["a", "b"])

    iterated = Iterable("__arrow_c_stream__", unavailable)
    assert tok.encode_batch(iterated) == tok.encode_batch(["a", "b"])

    def refused() -> object:
        raise ggtok.InvalidValueError("not today")

    with pytest.raises(ggtok.InvalidValueError, match=r"^not today$"):
        tok.encode_batch(Exports("__arrow_c_stream__", refused))  # type: ignore[arg-type]


# ---- memory ----


def test_memory_errors_are_ggtoks(tok: ggtok.Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    from ggtok.native import arrays

    def fail(*args: object) -> None:
        raise MemoryError

    monkeypatch.setattr(arrays, "_read", fail)
    with pytest.raises(ggtok.OutOfMemoryError):
        tok.encode_batch(strings(b"u", [b"a"]))


def test_ids_outlive_the_tokenizer_and_the_texts() -> None:
    tok = ggtok.load(fixture("bpe-llama3"))
    want = expected(tok, TEXTS)
    ids = tok.encode_batch_arrow(strings(b"u", TEXTS))
    one, two = ids.__arrow_c_array__(), ids.__arrow_c_array__()
    address = array_in(one[1]).buffers[1], array_in(one[1]).children[0].contents.buffers[1]
    assert address == (
        array_in(two[1]).buffers[1],
        array_in(two[1]).children[0].contents.buffers[1],
    )
    del tok, two
    gc.collect()
    assert listed(ids) == want
    # A consumer may move the child out of its parent and release it last.
    parent = array_in(one[1])
    child = Array.from_buffer_copy(parent.children[0].contents)
    parent.children[0].contents.release = RELEASE_ARRAY()
    parent.release(ctypes.pointer(parent))
    del ids, one
    gc.collect()
    numbers = (ctypes.c_int32 * child.length).from_address(child.buffers[1])
    assert list(numbers) == [id for row in want if row for id in row]
    child.release(ctypes.pointer(child))
    assert not child.release
    assert "len=15 null_count=3" in repr(
        ggtok.load(fixture("bpe-llama3")).encode_batch_arrow(strings(b"u", TEXTS))
    )


def test_a_consumer_may_release_a_schemas_child_first(tok: ggtok.Tokenizer) -> None:
    held = tok.encode_batch_arrow(["a"]).__arrow_c_schema__()
    schema = schema_in(held)
    item = schema.children[0].contents
    item.release(ctypes.pointer(item))
    assert not item.release
    schema.release(ctypes.pointer(schema))
    assert not schema.release


def test_threads_share_ids(tok: ggtok.Tokenizer) -> None:
    want = expected(tok, TEXTS * 20)
    ids = tok.encode_batch_arrow(strings(b"u", TEXTS * 20))
    found: list[object] = []

    def read() -> None:
        for _ in range(20):
            found.append(listed(ids) == want)
            found.append(listed(tok.encode_batch_arrow(strings(b"vu", TEXTS))) == want[:15])

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 160


@pytest.mark.parametrize("kind", ["texts", "offsets", "views", "indices"])
def test_memory_may_change_during_the_call(kind: str) -> None:
    """Another thread writes to the buffers during the call. Each value is read only once and
    checked after that; texts are copied before they are encoded."""
    tok = ggtok.load(fixture("bpe-llama3"))
    rng = random.Random(kind)
    n = 4000
    text = bytearray("the kettle of a tablé 日本 ".encode() * n)
    offsets = array("i", [27 * i for i in range(n + 1)])
    indices = array("i", [i % n for i in range(n)])
    views = bytearray(b"".join(view(27, 0, 27 * i) for i in range(n)))
    sizes = array("q", [len(text)])
    memory: Any = {"texts": text, "offsets": offsets, "views": views, "indices": indices}[kind]
    target = (ctypes.c_char * len(memoryview(memory).cast("B"))).from_buffer(memory)
    states = [bytes(target)] + [rng.randbytes(len(target)) for _ in range(3)]
    stop = threading.Event()

    def change() -> None:
        while not stop.is_set():
            for state in states:
                ctypes.memmove(target, state, len(state))

    def column() -> Column:
        if kind == "views":
            return Column(b"vu", n, [None, views, text, sizes])
        plain = Column(b"u", n, [None, offsets, text])
        return plain if kind != "indices" else Column(b"i", n, [None, indices], dictionary=plain)

    thread = threading.Thread(target=change)
    thread.start()
    outcomes = set()
    try:
        for _ in range(60):
            made = column()
            try:
                assert len(tok.encode_batch_arrow(made)) == n
                outcomes.add("read")
            except ggtok.InvalidValueError:
                outcomes.add("refused")
            assert made.released == 1
    finally:
        stop.set()
        thread.join()
    assert outcomes if kind != "texts" else outcomes == {"read"}


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's /proc to measure memory")
def test_calls_leak_no_memory(tok: ggtok.Tokenizer) -> None:
    """Neither successful nor failed calls leak memory: 120 further calls don't increase memory
    use."""
    texts: list[bytes | None] = [b"the kettle of a table " * 2000] * 20

    def calls(n: int) -> None:
        for _ in range(n):
            tok.encode_batch_arrow(strings(b"u", texts), threads=1).__arrow_c_array__()
            with pytest.raises(ggtok.InvalidValueError):
                tok.encode_batch(Chunks([strings(b"u", texts)], error=b"no more"))
            with pytest.raises(ggtok.InvalidValueError):
                tok.encode_batch(strings(b"u", [*texts, None]))

    calls(8)
    before = resident()
    calls(120)
    grown = resident() - before
    assert grown < 90_000  # kB; each call has a column of 880 kB and ids of 1.3 MB


@posix
def test_ctrl_c_stops_an_endless_stream(tok: ggtok.Tokenizer) -> None:
    words = strings(b"u", [b"a"])

    def endless() -> Iterator[Column]:
        while True:
            yield Column(b"c", 1 << 14, [None, bytes(1 << 14)], dictionary=words)

    def in_producer(frame: FrameType | None) -> bool:
        """Whether a ctypes callback is running: ctypes prints exceptions in callbacks, and ignores
        them."""
        while frame is not None:
            if "producer" in frame.f_code.co_filename:
                return True
            frame = frame.f_back
        return False

    stream = Chunks(endless())
    assert interrupted(lambda: tok.encode_batch(stream), 0.05, again=0.001, skip=in_producer)
    assert stream.released == stream.schemas_released == 1
    assert {column.released for column in stream.delivered} == {1}
