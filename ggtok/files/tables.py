"""Parquet and Arrow IPC files: each row a document, by pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ggtok.errors import FileError, InvalidTypeError, InvalidValueError, MissingExtraError
from ggtok.files.documents import LIMIT, Faults, Piece, Pieces, Place, faultless, filled, one_by_one
from ggtok.files.sources import Source
from ggtok.files.streams import check, naming

_AT_ONCE = 4 << 20  # bytes of rows, about, that are read of a Parquet file at a time


def pyarrow(what: str) -> Any:
    """The module, or an error that says that `what` needs it."""
    try:
        import pyarrow
    except ImportError:
        raise MissingExtraError(
            f"{what} needs pyarrow: run 'pip install \"ggtok[arrow]\"'"
        ) from None
    return pyarrow


def read(source: Source, place: Place, field: str, errors: str) -> Pieces:
    """The documents of a Parquet or Arrow file from a row on."""
    pa = pyarrow(f"{source.path}: a {source.kind} file")
    faults = Faults(errors, source.path)
    columns = _parquet if source.kind == "parquet" else _arrow
    row = place.offset
    with _naming(source, pa), open(source.path, "rb") as file:
        check(source, file.fileno())
        for column, share in columns(pa, file, source, field, row):
            at = int(source.size * share)
            found = texts(pa, column, source.path, field)
            while found:
                group = found[: filled(found) or len(found)]
                del found[: len(group)]
                yield from _group(group, row, place.source, at, faults, field)
                row += len(group)
        check(source, file.fileno())


def _group(
    group: list[bytes | None], row: int, number: int, at: int, faults: Faults, field: str
) -> Pieces:
    """Some rows: one piece, if each holds a document without faults."""
    if faultless(group):
        texts = [text for text in group if text is not None]
        next = Place(number, row + len(group))
        yield Piece(b"", sum(map(len, texts)), next, at, many=texts)
        return
    pieces = _pieces(group, row, number, at, faults, field)
    yield from one_by_one(pieces, Place(number, row), Place(number, row + len(group)))


def _pieces(
    group: list[bytes | None], row: int, number: int, at: int, faults: Faults, field: str
) -> Pieces:
    for text in group:
        where, row = f"row {row}", row + 1
        if text is None:
            found = faults.found("missing", where, f"the field {field!r} is null")
            yield faults.piece(b"", 0, Place(number, row), at, found)
        else:
            yield faults.document(text, len(text), Place(number, row), at, where)


def texts(pa: Any, column: Any, path: str, field: str) -> list[bytes | None]:
    """A column's strings as UTF-8."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kinds = ("string", "large_string", "binary", "large_binary", "string_view", "binary_view")
    if pa.types.is_null(column.type):
        return [None] * len(column)
    if str(column.type) not in kinds:
        raise InvalidTypeError(f"{path}: the column {field!r} is of {column.type}, not of strings")
    data: list[bytes | None] = column.cast(_binary(pa, column.type)).to_pylist()
    return data


def _binary(pa: Any, type: Any) -> Any:
    return pa.binary_view() if str(type).endswith("_view") else pa.large_binary()


def _parquet(
    pa: Any, file: Any, source: Source, field: str, row: int
) -> Iterator[tuple[Any, float]]:
    """Columns of rows from one on, and the share of the file's rows up to their end."""
    import pyarrow.parquet

    parquet = pyarrow.parquet.ParquetFile(file, pre_buffer=False, buffer_size=1 << 20)
    _has(field, parquet.schema_arrow.names, source.path)
    at, total = 0, max(parquet.metadata.num_rows, 1)
    for group in range(parquet.num_row_groups):
        rows = parquet.metadata.row_group(group).num_rows
        if at + rows <= row:
            at += rows
            continue
        each = max(1, _bytes(parquet.metadata.row_group(group), field) // max(rows, 1))
        if each > LIMIT:
            raise FileError(
                f"{source.path}: row group {group}: rows of more than {LIMIT >> 20} MiB"
            )
        for batch in parquet.iter_batches(
            max(1, _AT_ONCE // each), row_groups=[group], columns=[field], use_threads=False
        ):
            past = max(0, row - at)
            at += batch.num_rows
            if past < batch.num_rows:
                yield batch.column(0).slice(past), at / total


def _bytes(group: Any, field: str) -> int:
    """Bytes of a row group's column."""
    columns = (group.column(i) for i in range(group.num_columns))
    return sum(c.total_uncompressed_size for c in columns if c.path_in_schema == field)


def _arrow(pa: Any, file: Any, source: Source, field: str, row: int) -> Iterator[tuple[Any, float]]:
    import pyarrow.ipc

    magic = file.read(6)
    file.seek(0)
    if magic == b"ARROW1":
        reader = pyarrow.ipc.open_file(file)
        batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
    else:
        reader = pyarrow.ipc.open_stream(file)
        batches = iter(reader)
    _has(field, reader.schema.names, source.path)
    at = 0
    for batch in batches:
        past = max(0, row - at)
        at += batch.num_rows
        if past < batch.num_rows:
            yield batch.column(field).slice(past), file.tell() / max(source.size, 1)


def _has(field: str, names: list[str], path: str) -> None:
    if names.count(field) != 1:
        several = "several columns" if field in names else "no column"
        known = ", ".join(map(repr, names)) or "none"
        raise InvalidValueError(f"{path}: {several} {field!r}; there are {known}; pass field=")


@contextmanager
def _naming(source: Source, pa: Any) -> Iterator[None]:
    """Inside, pyarrow's errors become FileErrors with the path."""
    with naming(source.path):
        try:
            yield
        except pa.ArrowException as e:
            raise FileError(f"{source.path}: not a readable {source.kind} file: {e}") from None
