"""Creates malformed tables that no library would write, since their metadata contradicts their
contents."""

from __future__ import annotations

import io
import struct
from typing import Any

from tests.support.full import Lazy

pa: Any = Lazy("pyarrow")
Column = tuple[int, Any]
_I32, _I64, _BINARY, _LIST, _STRUCT = 5, 6, 8, 9, 12


def _varint(n: int) -> bytes:
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes([*out, n])


def _value(kind: int, value: Any) -> bytes:
    if kind in (_I32, _I64):
        return _varint(2 * value if value >= 0 else -2 * value - 1)
    if kind == _BINARY:
        return _varint(len(value)) + bytes(value)
    if kind == _LIST:
        of, items = value
        return bytes([len(items) << 4 | of]) + b"".join(_value(of, item) for item in items)
    return thrift(value)


def thrift(fields: dict[int, Column]) -> bytes:
    """Encodes a struct in Thrift's compact protocol. `fields` contains the type and value of each
    field, by field number."""
    out, last = b"", 0
    for number, (kind, value) in fields.items():
        out += bytes([(number - last) << 4 | kind]) + _value(kind, value)
        last = number
    return out + b"\0"


def parquet(
    rows: int,
    *,
    metadata: bool = True,
    encrypted: bool = False,
    chunks: int = 1,
    name: bytes = b"text",
    size: int = 0,
) -> bytes:
    """Returns a file of a few hundred bytes with a column of `rows` nulls.

    Args:
        metadata: whether the column chunk has its metadata.
        encrypted: whether the column chunk claims to be encrypted.
        chunks: the number of column chunks in the row group, all of the same column.
        name: the column's name.
        size: the size that the row group claims, in bytes.
    """
    levels = _varint(rows << 1) + b"\0"  # definition levels, all of them 0
    page = struct.pack("<I", len(levels)) + levels
    about = {1: (_I32, rows), 2: (_I32, 0), 3: (_I32, 3), 4: (_I32, 3)}
    sizes = {2: (_I32, len(page)), 3: (_I32, len(page))}
    page = thrift({1: (_I32, 0), **sizes, 5: (_STRUCT, about)}) + page
    chunk: dict[int, Column] = {2: (_I64, 4)}
    if metadata:
        chunk[3] = (
            _STRUCT,
            {
                1: (_I32, 6),
                2: (_LIST, (_I32, [0, 3])),
                3: (_LIST, (_BINARY, [name])),
                4: (_I32, 0),
                5: (_I64, rows),
                6: (_I64, len(page)),
                7: (_I64, len(page)),
                9: (_I64, 4),
            },
        )
    if encrypted:  # ColumnCryptoMetaData, with a key for the column
        chunk[8] = _STRUCT, {2: (_STRUCT, {1: (_LIST, (_BINARY, [name]))})}
    group = {1: (_LIST, (_STRUCT, [chunk] * chunks)), 2: (_I64, size or len(page)), 3: (_I64, rows)}
    root = {4: (_BINARY, b"schema"), 5: (_I32, 1)}
    leaf = {1: (_I32, 6), 3: (_I32, 1), 4: (_BINARY, name), 6: (_I32, 0)}
    footer = thrift(
        {
            1: (_I32, 1),
            2: (_LIST, (_STRUCT, [root, leaf])),
            3: (_I64, rows),
            4: (_LIST, (_STRUCT, [group])),
        }
    )
    return b"PAR1" + page + footer + struct.pack("<I", len(footer)) + b"PAR1"


def arrow(column: Any, was: bytes, now: bytes, *, stream: bool = False) -> bytes:
    """Returns an IPC file with one column, in which some bytes are changed."""
    batch = pa.record_batch([column], ["text"])
    sink = io.BytesIO()
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(sink, batch.schema) as writer:
        writer.write_batch(batch)
    data = sink.getvalue()
    assert len(was) == len(now) and data.count(was) == 1, data.count(was)
    return data.replace(was, now)
