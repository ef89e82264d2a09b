"""Implements ``Tokenizer.encode_batches``: encodes texts from memory or a generator, in batches."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ggtok import _types as types
from ggtok.base.concurrency import ahead
from ggtok.corpora.summary import EncodeProgress, ProgressFn
from ggtok.corpora.tables import pyarrow, texts
from ggtok.errors import InvalidTypeError, InvalidValueError, file_error
from ggtok.loading.loaded import checked_path
from ggtok.native import Native
from ggtok.native.arguments import iterate, on_main_thread, text_bytes, truth
from ggtok.native.arrays import id_arrays
from ggtok.text.batch_encoding import n_threads

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_TEXTS = 1 << 17  # the maximum number of texts in a batch
_VALID = "texts must be an iterable of texts, an Arrow stream, or the path of a file of lines"


def encode_batches(
    native: Native,
    source: object,
    *,
    batch_bytes: int,
    threads: int,
    add_special: bool,
    parse_special: types.ParseSpecial,
    progress: ProgressFn | None,
) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int64]]]:
    _check_source(source, batch_bytes)
    parse = native.parsed(parse_special)
    n, flag = n_threads(native, threads), truth(add_special, "add_special")
    return _encode_batches(
        native, ahead(_batches(source, batch_bytes)), (flag, parse, False, n), progress
    )


def _encode_batches(
    native: Native,
    batches: Iterator[tuple[tuple[bytes, ...], int]],
    flags: tuple[object, ...],
    progress: ProgressFn | None,
) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int64]]]:
    start = time.perf_counter()
    n_bytes = n_documents = n_ids = 0
    try:
        for batch, size in batches:
            args = *flags, False, on_main_thread(), None
            try:
                result = native.encode_batch(batch, *args)
            except Exception as e:
                result = native.retry_batch(e, batch, *args)
            ids, offsets = id_arrays(result)
            n_bytes, n_documents = n_bytes + size, n_documents + len(batch)
            n_ids += len(ids)
            del batch
            if progress is not None:
                seconds = time.perf_counter() - start
                progress(EncodeProgress(n_bytes, n_documents, n_ids, 0, 0, seconds))
            yield ids, offsets
            del result, ids, offsets
    finally:
        batches.close()  # type: ignore[attr-defined]


def _check_source(source: object, batch_bytes: int) -> None:
    """Refuses sources of a wrong type before anything is read."""
    if batch_bytes < 1:
        raise InvalidValueError(f"batch_bytes must be positive, but is {batch_bytes}")
    if isinstance(source, (str, bytes, bytearray, memoryview)):
        hint = "; pass a file's name as a pathlib.Path" if isinstance(source, str) else ""
        raise InvalidTypeError(f"{_VALID}, not {type(source).__name__}{hint}")


def _batches(source: Any, batch_bytes: int) -> Iterator[tuple[tuple[bytes, ...], int]]:
    """Yields batches of texts in UTF-8, with their sizes in bytes. If a text raises an error, all
    texts before it are yielded first."""
    batch: list[bytes] = []
    size = 0
    try:
        for i, text in enumerate(_iterate_documents(source)):
            batch.append(text_bytes(text, f"texts[{i}]"))
            size += len(batch[-1])
            if size >= batch_bytes or len(batch) >= _TEXTS:
                yield tuple(batch), size
                batch, size = [], 0
    except GeneratorExit:
        raise
    except BaseException:
        if batch:
            yield tuple(batch), size
        raise
    if batch:
        yield tuple(batch), size


def _iterate_documents(source: Any) -> Iterator[Any]:
    if isinstance(source, os.PathLike):
        return _read_lines(os.fspath(source))
    if hasattr(source, "__arrow_c_stream__"):
        return _arrow(source)
    return iter(iterate(source, _VALID))


def _read_lines(path: str | bytes) -> Iterator[bytes]:
    """Yields a file's lines, each with its newline."""
    try:
        with open(checked_path(path, "texts"), "rb") as file:
            yield from file
    except OSError as e:
        raise file_error(e.errno or 0, e.strerror or str(e), path) from None


def _arrow(source: Any) -> Iterator[bytes]:
    """Yields the strings in an Arrow stream that has one column, possibly in a struct."""
    pa = pyarrow("an Arrow stream of texts")
    try:
        reader = pa.RecordBatchReader.from_stream(source)
    except (TypeError, ValueError, pa.ArrowException):
        try:
            chunks: Iterable[Any] = pa.chunked_array(source).chunks
        except (TypeError, ValueError, pa.ArrowException) as e:
            raise InvalidTypeError(f"texts: an Arrow stream must be of strings: {e}") from None
    else:
        if len(reader.schema) != 1:
            raise InvalidTypeError(
                f"texts: an Arrow stream must have one column, not {len(reader.schema)}: select one"
            )
        chunks = (batch.column(0) for batch in reader)
    row = 0
    for chunk in chunks:
        for rows in texts(pa, chunk, "texts", "of the Arrow stream"):
            for text in rows:
                if text is None:
                    raise InvalidTypeError(f"texts[{row}] is null: drop nulls, or fill them")
                yield text
                row += 1
