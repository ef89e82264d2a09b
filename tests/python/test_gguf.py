"""ggtok.native.gguf reads headers as an independent reader does, within the bytes of the file."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest

import ggtok
from ggtok.native.gguf import ARRAY, STRING, FileHeader
from ggtok.vocabularies.edit.header import Header
from tests.support.patch import FORMATS, GGUF, TYPES
from tests.support.tensors import with_tensors
from tests.support.vocabularies import fixture, fixture_names


@pytest.mark.parametrize("name", fixture_names())
def test_every_value_of_a_file(name: str) -> None:
    gguf, data = GGUF.read(fixture(name)), Path(fixture(name)).read_bytes()
    header = FileHeader(data)
    assert (header.order, header.n_tensors) == (gguf.order, 0)
    raw = {
        p.key: struct.pack(gguf.order + "I", p.kind) + data[p.begin : p.end] for p in header.pairs()
    }
    assert raw == gguf.raw and list(raw) == list(gguf.raw)
    values = header.values()
    assert len(values) == len(raw)
    for pair in header.pairs():
        key = pair.key.decode("utf-8", "surrogateescape")
        expected = gguf.get(key)
        if isinstance(values[key], bytearray):
            values[key], expected = list(values[key]), [item & 255 for item in expected]
        assert repr(values[key]) == repr(expected), key


def some_header(order: str) -> bytes:
    """A header with every type as a value and as an array, and two tensors."""
    gguf = GGUF(3, order)
    for kind in [*FORMATS, "str"]:
        value: object = b"text" if kind == "str" else kind == "bool" or 1
        gguf.set(f"one.{kind}", value, kind)
        gguf.set(f"list.{kind}", [value, value], kind)
    data = gguf.dump()
    tensors = b"".join(
        struct.pack(
            order + f"Q{len(name)}sI{len(dims)}QIQ", len(name), name, len(dims), *dims, 0, at
        )
        for name, dims, at in ((b"a", (3, 4), 0), (b"bc", (), 64))
    )
    return data[:8] + struct.pack(order + "Q", 2) + data[16:] + tensors


@pytest.mark.parametrize("order", "<>")
def test_truncated_headers(order: str) -> None:
    data = some_header(order)
    whole = FileHeader(data)
    rows, end = whole.tensors()
    assert [(row.name, row.dims, row.offset) for row in rows] == [
        (b"a", (3, 4), 0),
        (b"bc", (), 64),
    ]
    assert end == len(data) and len(list(whole.pairs())) == 2 * (len(TYPES) - 1)
    for size in range(len(data)):
        if size < whole.size:
            with pytest.raises(ggtok.GGUFError):
                FileHeader(data[:size])
        else:
            assert size < FileHeader(data[:size]).tensors()[1] <= len(data)


@pytest.mark.parametrize("order", "<>")
def test_hostile_headers(order: str) -> None:
    """Counts, lengths, types and everything else with other values: an error, or values that are in
    the file."""
    rng, data = random.Random(1), some_header(order)
    parsed = 0
    for _ in range(3000):
        changed = bytearray(data)
        for _ in range(rng.choice((1, 1, 3))):
            at = rng.randrange(len(data))
            size = min(rng.choice((1, 4, 8)), len(data) - at)
            changed[at : at + size] = (
                rng.choice((b"\0", b"\xff", bytes([rng.randrange(256)]))) * size
            )
        try:
            header = FileHeader(bytes(changed))
            for pair in header.pairs():
                assert 24 < pair.begin <= pair.first <= pair.end <= len(data)
                value = header.value(pair)
                assert pair.kind != ARRAY or len(value) == pair.n
                if pair.of == STRING:
                    assert all(text in changed for text in header.strings(pair))
            header.values()
            parsed += 1
            rows, _ = header.tensors()
            assert all(row.name in changed for row in rows)
        except ggtok.GGUFError:
            pass
    assert 300 < parsed < 2900


@pytest.mark.parametrize("alignment", [0, 24])
def test_alignments_that_no_file_may_have(tmp_path: Path, alignment: int) -> None:
    path = with_tensors(tmp_path / "m.gguf", alignment=64)
    data = path.read_bytes()
    path.write_bytes(data.replace(struct.pack("<II", 4, 64), struct.pack("<II", 4, alignment), 1))
    with path.open("rb") as file, pytest.raises(ggtok.GGUFError, match=r"general\.alignment"):
        Header(file, "m.gguf")
