"""Reads Parquet and Arrow IPC files with pyarrow; each row is a document."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ggtok.base.files import open_regular, read_up_to
from ggtok.corpora.documents import (
    JOINER,
    LIMIT,
    DocumentPiece,
    Faults,
    Fields,
    Pieces,
    SourcePosition,
    faultless,
    full_group_size,
    one_by_one,
)
from ggtok.corpora.sources import SourceFile
from ggtok.corpora.streams import check_unchanged, naming
from ggtok.corpora.summary import RunCounts
from ggtok.errors import (
    FileError,
    GGTokError,
    InvalidTypeError,
    InvalidValueError,
    MissingExtraError,
)

_AT_ONCE = 4 << 20  # the approximate size, in bytes, of the rows to read at a time from Parquet
# Upper limits for the rows read at a time, in case the file's metadata is wrong: their number, and
# their size in bytes if every row had the longest value.
_MOST_ROWS = 1 << 16
_MOST = 64 << 20


def pyarrow(what: str) -> Any:
    """Imports pyarrow; if it is missing, the error says that `what` needs it."""
    try:
        import pyarrow
    except ImportError:
        raise MissingExtraError(
            f"{what} needs pyarrow: run 'pip install \"ggtok[arrow]\"'"
        ) from None
    return pyarrow


def read_table(source: SourceFile, position: SourcePosition, fields: Fields, errors: str) -> Pieces:
    """Yields the documents in a Parquet or Arrow file from `position` on."""
    if not source.size:  # an empty file, such as Hadoop's markers
        return
    pa = pyarrow(f"{source.path}: a {source.kind} file")
    faults = Faults(errors, source.path)
    columns = _parquet if source.kind == "parquet" else _arrow
    row = position.offset
    with _naming(source, pa), open_regular(source.path) as file:
        check_unchanged(source, file.fileno())
        for each, share in columns(pa, _Bounded(file, source.size), source, fields, row):
            at = int(source.size * share)
            if faults.rule == "skip" and any(pa.types.is_null(column.type) for column in each):
                # A file of a few bytes can have billions of such rows.
                n = len(each[0])
                row += n
                yield faults.piece(
                    b"", 0, SourcePosition(position.source, row), at, _count_skipped(n)
                )
                continue
            found: list[bytes | None] = []
            for some in _join_columns(pa, each, source.path, fields):
                found += some
                while n := full_group_size(found):
                    yield from _group(found[:n], row, position.source, at, faults, fields)
                    del found[:n]
                    row += n
            if found:
                yield from _group(found, row, position.source, at, faults, fields)
                row += len(found)
        check_unchanged(source, file.fileno())


class _Bounded:
    """An open file that limits reads to the file's size. Otherwise, pyarrow would allocate as much
    memory as the file's metadata says, before reading."""

    def __init__(self, file: Any, size: int) -> None:
        self._file, self._size = file, size

    def read(self, n: int = -1) -> bytes:
        left = max(0, self._size - self._file.tell())
        return read_up_to(self._file, left if n < 0 else min(n, left))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def _join_columns(
    pa: Any, columns: list[Any], path: str, fields: Fields
) -> Iterator[list[bytes | None]]:
    """Yields the documents in some rows. `columns` has a column for each field."""
    each = [
        texts(pa, column, path, name, FileError)
        for column, name in zip(columns, fields.names, strict=True)
    ]
    if len(each) == 1:
        yield from each[0]
        return
    between = JOINER.encode()
    for rows in zip(*each, strict=True):
        values = zip(*rows, strict=True)
        yield [None if None in row else between.join(row) for row in values]


def _group(
    group: list[bytes | None], row: int, number: int, at: int, faults: Faults, fields: Fields
) -> Pieces:
    """Yields the pieces for some rows: a single piece if no document has a fault, or if all are
    null and skipped."""
    if faults.rule == "skip" and not any(text is not None for text in group):
        n, next = len(group), SourcePosition(number, row + len(group))
        yield faults.piece(b"", 0, next, at, _count_skipped(n))
        return
    if faultless(group):
        texts = [text for text in group if text is not None]
        next = SourcePosition(number, row + len(group))
        yield DocumentPiece(b"", sum(map(len, texts)), next, at, many=texts)
        return
    pieces = _pieces(group, row, number, at, faults, fields)
    yield from one_by_one(
        pieces, SourcePosition(number, row), SourcePosition(number, row + len(group))
    )


def _count_skipped(n: int) -> RunCounts:
    return RunCounts(missing=n, skipped=n)


def _pieces(
    group: list[bytes | None], row: int, number: int, at: int, faults: Faults, fields: Fields
) -> Pieces:
    for text in group:
        where, row = f"row {row}", row + 1
        if text is None:
            found = faults.found("missing", where, f"the field {fields} is null")
            yield faults.piece(b"", 0, SourcePosition(number, row), at, found)
        else:
            yield faults.document(text, len(text), SourcePosition(number, row), at, where)


def texts(
    pa: Any, column: Any, path: str, field: str, error: type[GGTokError] = InvalidValueError
) -> Iterator[list[bytes | None]]:
    """Yields a column's strings in UTF-8, several rows at a time.

    The column may come from an untrusted file. By default, pyarrow doesn't check offsets, views and
    indices, and would return memory outside the buffers, so they are validated here. `error` is the
    exception for a malformed column.
    """
    is_dictionary = pa.types.is_dictionary(column.type)
    _check_type(pa, column.type, path, field)
    if pa.types.is_null(column.type.value_type if is_dictionary else column.type):
        values: list[bytes | None] = [None] * _ROWS
        yield from (values[: len(column) - at] for at in range(0, len(column), _ROWS))
        return
    try:
        if is_dictionary:  # many rows may have the same large value, so values aren't copied
            values, column = _check_strings(pa, column.dictionary).to_pylist(), column.indices
            column.validate(full=True)
        else:
            column = _check_strings(pa, column)
        for at in range(0, len(column), _ROWS):
            rows = column.slice(at, _ROWS).to_pylist()
            yield [_value(values, i) for i in rows] if is_dictionary else rows
    except (pa.ArrowException, IndexError) as e:
        raise error(f"{path}: the Arrow data is malformed: {e}") from None


def _check_type(pa: Any, type: Any, path: str, field: str) -> None:
    """Refuses a column whose values aren't strings."""
    kind = type.value_type if pa.types.is_dictionary(type) else type
    if str(kind) not in _BINARY and not pa.types.is_null(kind):
        raise InvalidTypeError(f"{path}: the column {field!r} is of {type}, not of strings")


# For each type of text column, a type with the same layout that pyarrow doesn't check for UTF-8.
_BINARY = {
    "string": "binary",
    "large_string": "large_binary",
    "string_view": "binary_view",
    **{name: name for name in ("binary", "large_binary", "binary_view")},
}
_ROWS = 1024


def _check_strings(pa: Any, column: Any) -> Any:
    """Checks that a column's strings are inside its buffers, and returns the column as bytes."""
    column = column.view(getattr(pa, _BINARY[str(column.type)])())
    column.validate(full=True)
    return column


def _value(values: list[bytes | None], i: int | None) -> bytes | None:
    if i is not None and i < 0:
        raise IndexError("an index is negative")
    return None if i is None else values[i]


def _parquet(
    pa: Any, file: Any, source: SourceFile, fields: Fields, row: int
) -> Iterator[tuple[list[Any], float]]:
    """Yields the fields' columns for several rows at a time, starting at `row`, with the fraction
    of the file's rows that have been read so far."""
    import pyarrow.parquet

    def opened(**options: Any) -> Any:
        return pyarrow.parquet.ParquetFile(file, pre_buffer=False, buffer_size=1 << 20, **options)

    parquet = opened()
    paths = _field_paths(pa, fields, parquet.schema_arrow, source.path)
    dictionaries = opened(read_dictionary=list(fields.names))
    at, total = 0, max(parquet.metadata.num_rows, 1)
    for group in range(parquet.num_row_groups):
        rows = parquet.metadata.row_group(group).num_rows
        if at + rows <= row:
            at += rows
            continue
        # Use the size of all columns together, because the call for the size of one column aborts
        # the process if that column has no metadata.
        each = max(1, parquet.metadata.row_group(group).total_byte_size // max(rows, 1))
        if each > LIMIT:
            raise FileError(
                f"{source.path}: row group {group}: rows of more than {LIMIT >> 20} MiB"
            )
        longest = max(1, _longest(pa, dictionaries, group, fields, paths))
        end = at + rows
        for batch in parquet.iter_batches(
            max(1, min(_AT_ONCE // each, _MOST // longest, _MOST_ROWS)),
            row_groups=[group],
            columns=list(fields.names),
            use_threads=False,
        ):
            past = max(0, row - at)
            at += batch.num_rows
            if past < batch.num_rows:
                yield [_leaf(batch, field).slice(past) for field in paths], at / total
        if at != end:
            raise FileError(
                f"{source.path}: row group {group}: fewer or more rows than its metadata says"
            )


def _longest(
    pa: Any, dictionaries: Any, group: int, fields: Fields, paths: list[_FieldPath]
) -> int:
    """Returns the length, in bytes, of the longest value in a row group's dictionary, summed over
    the fields. Every row may have that value, although it takes only a few bits per row in the
    file."""
    import pyarrow.compute

    longest = 0
    for batch in dictionaries.iter_batches(
        1, row_groups=[group], columns=list(fields.names), use_threads=False
    ):
        for field in paths:
            column = _leaf(batch, field)
            kind = column.type
            if pa.types.is_dictionary(kind) and str(kind.value_type) in _BINARY:
                lengths = pyarrow.compute.binary_length(_check_strings(pa, column.dictionary))
                longest += pyarrow.compute.max(lengths).as_py() or 0
        break
    return longest


def _arrow(
    pa: Any, file: Any, source: SourceFile, fields: Fields, row: int
) -> Iterator[tuple[list[Any], float]]:
    import pyarrow.ipc

    magic = file.read(6)
    file.seek(0)
    if magic == b"ARROW1":
        reader = pyarrow.ipc.open_file(file)
        batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
    else:
        reader = pyarrow.ipc.open_stream(file)
        batches = iter(reader)
    paths = _field_paths(pa, fields, reader.schema, source.path)
    at = 0
    for batch in batches:
        past = max(0, row - at)
        at += batch.num_rows
        if past < batch.num_rows:
            columns = [_leaf(batch, field).slice(past) for field in paths]
            yield columns, file.tell() / max(source.size, 1)


# The path of a field: a column's name, followed by the names of fields in nested structs.
_FieldPath = tuple[str, ...]


def _field_paths(pa: Any, fields: Fields, schema: Any, path: str) -> list[_FieldPath]:
    return [_field_path(pa, name, schema, path) for name in fields.names]


def _field_path(pa: Any, name: str, schema: Any, path: str) -> _FieldPath:
    if schema.names.count(name) == 1:
        _check_type(pa, schema.field(name).type, path, name)
        return (name,)
    column, *inner = name.split(".")
    if name not in schema.names and schema.names.count(column) == 1:
        kind = schema.field(column).type
        for part in inner:
            if not pa.types.is_struct(kind) or kind.get_field_index(part) < 0:
                break
            kind = kind.field(part).type
        else:
            _check_type(pa, kind, path, name)
            return (column, *inner)
    several = "several columns" if name in schema.names else "no column"
    known = ", ".join(map(repr, schema.names)) or "none"
    raise InvalidValueError(
        f"{path}: {several} {name!r}; there are {known}; pass field='NAME' (--field NAME)"
    )


def _leaf(batch: Any, field: _FieldPath) -> Any:
    """Returns a field's column in a batch. The column may be inside structs."""
    name, *inner = field
    column = batch.column(name)
    for part in inner:
        column.validate()
        column = column.flatten()[column.type.get_field_index(part)]
    return column


@contextmanager
def _naming(source: SourceFile, pa: Any) -> Iterator[None]:
    """A context that converts pyarrow's errors to FileErrors with the path."""
    with naming(source.path):
        try:
            yield
        except GGTokError:
            raise
        except (pa.ArrowException, LookupError, MemoryError, TypeError, ValueError) as e:
            raise FileError(f"{source.path}: not a readable {source.kind} file: {e}") from None
