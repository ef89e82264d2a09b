"""Encodes corpora on many machines, with Ray Data, Dask or Spark.

Each recipe sends its workers a tokenizer (the bytes of its metadata, or the model's name) and
batches of an Arrow column. A task writes one shard of ids, and returns a record about it. After all
tasks, the caller writes one manifest. docs/files.md has examples.

    >>> from ggtok import distributed
    >>> distributed.encode_ray(ray.data.read_parquet("s3://..."), tok, "/shared/ids")

**Nothing is lost or duplicated** if a worker dies or a task runs twice. A shard gets its final
name, the hash of its ids, only when it is complete. The manifest lists only the shards whose
records reached the caller, in the order of the data, and frameworks use each task's result once.
Ignore files that aren't in the manifest.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

import ggtok
from ggtok.base.files import give_name, sync_folder
from ggtok.corpora import id_formats, vocabulary_hash
from ggtok.corpora.document_batches import BYTES
from ggtok.corpora.documents import RULES, DocumentPiece, Faults, SourcePosition
from ggtok.corpora.encode_documents import Encoder
from ggtok.corpora.partial_file import PartialFile
from ggtok.corpora.summary import RunCounts
from ggtok.corpora.tables import pyarrow, texts
from ggtok.errors import InvalidTypeError, InvalidValueError, file_error
from ggtok.native.arguments import truth
from ggtok.text.batch_encoding import n_threads

__all__ = ["Job", "Shards", "encode_dask", "encode_ray", "encode_spark"]


# ---- the work of one task ----

Record = dict[str, Any]
_MANIFEST = "manifest.json"
_COUNTS = [each.name for each in fields(RunCounts)]


@dataclass(frozen=True)
class _Payload:
    """A tokenizer for workers: the arguments of :func:`ggtok.load`."""

    source: str | bytes
    pre: str | None
    patterns: tuple[str, ...] | None
    overrides: dict[str, Any] | None
    key: str

    def load(self) -> ggtok.Tokenizer:
        """Returns the tokenizer, loaded once per process."""
        if self.key not in _LOADED:
            _LOADED.clear()  # a worker runs one job at a time
            _LOADED[self.key] = ggtok.load(
                self.source, pre=self.pre, pre_patterns=self.patterns, overrides=self.overrides
            )
        return _LOADED[self.key]


_LOADED: dict[str, ggtok.Tokenizer] = {}


def payload(tok: ggtok.Tokenizer, ship: str) -> _Payload:
    """Returns the payload for a tokenizer.

    If `ship` is ``"bytes"``, it contains the file's metadata; if ``"name"``, the path or name from
    which the tokenizer was loaded, and workers load the vocabulary from there.
    """
    if ship not in ("bytes", "name"):
        raise InvalidValueError(f"ship must be 'bytes' or 'name', not {ship!r}")
    loaded = tok._loaded
    source: str | bytes | None = loaded.path
    if ship == "bytes":
        source = vocabulary_hash.metadata_of(loaded)
    if source is None:
        raise InvalidTypeError(
            f"this tokenizer can't be sent by its {ship}: load it from a path or from bytes"
        )
    data = source if isinstance(source, bytes) else os.fsencode(source)
    options = loaded.pre_option, loaded.patterns, loaded.overrides
    rest = repr(options).encode()
    key = hashlib.sha256(data + rest).hexdigest()
    return _Payload(source, *options, key)


@dataclass(frozen=True)
class Job:
    """Everything that a worker needs to encode its batches, created by :class:`Shards`."""

    tokenizer: _Payload
    folder: str
    field: str
    format: str
    dtype: str
    add_special: bool
    eos: bool
    errors: str
    threads: int

    def __call__(self, batches: Iterable[Any]) -> Record:
        """Encodes Arrow record batches or tables to a shard, and returns its record."""
        shard = _Shard(self)
        try:
            for batch in batches:
                shard.add(batch)
            return shard.finish()
        finally:
            shard.close()


class _Shard:
    """A shard that is being written under a temporary name."""

    def __init__(self, job: Job) -> None:
        self._job = job
        tok = job.tokenizer.load()
        self._threads = n_threads(tok._loaded, job.threads)
        self._encoder = Encoder(tok._loaded, job.add_special, job.eos)
        self._faults = Faults(job.errors, "the data")
        self._class, self._dtype = id_formats.choose_format(job.format, job.dtype, tok.n_tokens)
        os.makedirs(job.folder, exist_ok=True)
        self._out = os.path.join(job.folder, f"writing-{uuid.uuid4().hex}")
        self._format = self._class(self._out, self._dtype)
        for file in self._format.data, self._format.index:
            file.create()
        self._format.begin()
        self._counts = RunCounts()
        # Hashes of the ids and of the documents' end offsets. Neither depends on how the documents
        # are divided into batches.
        self._hashes = hashlib.sha256(f"{job.format} {self._dtype}".encode()), hashlib.sha256()
        self._pieces: list[DocumentPiece] = []
        self._size = self._row = 0

    def add(self, batch: Any) -> None:
        column = batch.column(self._job.field)
        pa = pyarrow("ggtok.distributed")
        for chunk in getattr(column, "chunks", [column]):
            for rows in texts(pa, chunk, "the data", self._job.field):
                for text in rows:
                    self._document(text)

    def _document(self, text: bytes | None) -> None:
        where, place = f"row {self._row}", SourcePosition(0, self._row)
        self._row += 1
        if text is None:
            found = self._faults.found("missing", where, f"the field {self._job.field!r} is null")
            piece = self._faults.piece(b"", 0, place, 0, found)
        else:
            piece = self._faults.document(text, len(text), place, 0, where)
        self._counts.bytes += piece.size
        if piece.faults is not None:
            self._counts.add(piece.faults)
        if piece.text is not None:
            self._pieces.append(piece)
            self._size += len(piece.text)
        if self._size >= BYTES:
            self._write()

    def _write(self) -> None:
        encoded = self._encoder.encode(self._pieces, self._threads)
        ends = encoded.ends + self._counts.ids
        self._format.append(encoded.ids, ends)
        self._hashes[0].update(encoded.ids.tobytes())
        self._hashes[1].update(ends.tobytes())
        self._counts.ids += len(encoded.ids)
        self._counts.documents += len(encoded.ends)
        self._pieces, self._size = [], 0

    def finish(self) -> Record:
        """Gives the files their final names, the file of ids last; returns the shard's record."""
        self._write()
        files = self._format.finish(self._counts.ids, self._counts.documents)
        digest = hashlib.sha256(b"".join(hash.digest() for hash in self._hashes))
        name = f"shard-{digest.hexdigest()[:32]}"
        for file in files:
            file.sync()
            file.close()
            path = file.path.replace(self._out, os.path.join(self._job.folder, name))
            try:
                give_name(file.partial, path)
            except OSError as e:
                raise file_error(e.errno or 0, e.strerror or str(e), path) from None
        sync_folder(files[-1].path)
        data = files[-1]
        return {
            "shard": os.path.basename(data.path).replace(os.path.basename(self._out), name),
            "size": data.extent.size,
            "crc32": f"{data.extent.crc:08x}",
            **self._counts.as_dict(),
        }

    def close(self) -> None:
        """Removes unfinished files."""
        for file in self._format.data, self._format.index:
            file.close()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(file.partial)


#: The fields of a record and their types, named as in Arrow and Spark.
SCHEMA = {"shard": "string", "size": "int64", "crc32": "string", **dict.fromkeys(_COUNTS, "int64")}


@dataclass
class Shards:
    """The caller's side of a job: creates the job and writes the manifest.

    With a framework that has no recipe, send :attr:`job` to the workers, call it there with the
    Arrow batches of each task, and pass the records that it returns to :meth:`finish`, in order.

    Attributes:
        job: the job for the workers. It can be pickled, and contains the tokenizer.
    """

    job: Job = field(init=False)

    def __init__(
        self,
        tok: ggtok.Tokenizer,
        folder: str | os.PathLike[str],
        *,
        field: str = "text",
        format: str = "raw",
        dtype: str = "auto",
        add_special: bool = True,
        eos: bool = True,
        errors: str = "raise",
        threads: int = 1,
        ship: str = "bytes",
    ) -> None:
        add_special, eos = truth(add_special, "add_special"), truth(eos, "eos")
        if errors not in RULES:
            raise InvalidValueError(f"errors must be one of {', '.join(RULES)}, not {errors!r}")
        name = os.path.abspath(os.fsdecode(folder))
        if os.path.lexists(os.path.join(name, _MANIFEST)):
            raise InvalidValueError(f"{name}: contains a finished job; choose another folder")
        _, dtype = id_formats.choose_format(format, dtype, tok.n_tokens)
        Encoder(tok._loaded, add_special, eos)  # raises the errors that workers would raise
        sent = payload(tok, ship)
        self.job = Job(sent, name, field, format, dtype, add_special, eos, errors, threads)
        self._model = vocabulary_hash.description(tok._loaded)

    def finish(self, records: Iterable[Record]) -> ggtok.Summary:
        """Writes ``manifest.json``, which lists the shards of these records as the job's output."""
        rows = list(self._rows(records))
        counts = RunCounts()
        for row in rows:
            counts.add(RunCounts(**{name: row[name] for name in _COUNTS}))
        job = self.job
        options = {"field": job.field, "add_special": job.add_special, "eos": job.eos}
        manifest = {
            "format": job.format,
            "dtype": job.dtype,
            "byteorder": "little",
            "counts": counts.as_dict(),
            "options": {**options, "errors": job.errors},
            "model": self._model,
            "versions": {"ggtok": ggtok.__version__},
            "shards": rows,
        }
        os.makedirs(job.folder, exist_ok=True)
        file = PartialFile(os.path.join(job.folder, _MANIFEST))
        file.create()
        file.append(json.dumps(manifest, indent=1).encode() + b"\n")
        file.sync()
        file.close()
        file.give_name()
        sync_folder(file.path)
        paths = [os.path.join(job.folder, row["shard"]) for row in rows]
        return ggtok.Summary(
            **counts.as_dict(),
            files=(*paths, file.path),
            format=job.format,
            dtype=job.dtype,
            already_complete=False,
        )

    def _rows(self, records: Iterable[Record]) -> Iterator[Record]:
        for record in records:
            row = {name: record[name] for name in SCHEMA}
            row |= {name: int(row[name]) for name in ("size", *_COUNTS)}
            path = os.path.join(self.job.folder, row["shard"])
            if not os.path.exists(path):
                raise file_error(2, "is missing: do workers and caller share the folder?", path)
            if row["documents"]:
                yield row


# ---- recipes, which use objects from the frameworks without importing the frameworks ----


def encode_ray(
    dataset: Any, tok: ggtok.Tokenizer, folder: str | os.PathLike[str], **options: Any
) -> ggtok.Summary:
    """Encode a column of a Ray dataset, with one shard for each block.

    Args:
        dataset: a ``ray.data.Dataset`` with a column of strings.
        tok: the tokenizer. It is put into Ray's object store once.
        folder: the folder for shards and manifest, with the same path on all nodes.
        **options: ``field``: the column, ``"text"`` by default; ``format``, ``dtype``,
            ``add_special``, ``eos``, ``errors``: as for :meth:`ggtok.Tokenizer.encode_files`;
            ``threads``: the number of threads for each task, 1 by default; ``ship``: ``"bytes"``
            sends the file's metadata to workers, ``"name"`` sends the path or name,
            from which workers load the vocabulary.

    Raises:
        InvalidValueError, InvalidTypeError: an option is wrong, or the folder contains a
            finished job.
        FileError: a shard is missing in the caller's folder.
        Exception: an error from Ray, whose cause is the worker's error.
    """
    shards = Shards(tok, folder, **options)
    dataset.context.execution_options.preserve_order = True
    records = dataset.select_columns([shards.job.field]).map_batches(
        partial(_ray_task, shards.job), batch_format="pyarrow", batch_size=None
    )
    return shards.finish(records.take_all())


def encode_dask(
    dataframe: Any, tok: ggtok.Tokenizer, folder: str | os.PathLike[str], **options: Any
) -> ggtok.Summary:
    """Encode a column of a Dask dataframe, with one shard for each partition.

    Args:
        dataframe: a ``dask.dataframe.DataFrame`` with a column of strings.
        tok, folder, **options: as for :func:`encode_ray`.
    """
    shards = Shards(tok, folder, **options)
    meta = [(name, "object" if kind == "string" else kind) for name, kind in SCHEMA.items()]
    records = dataframe[[shards.job.field]].map_partitions(
        _dask_task, shards.job, meta=meta, enforce_metadata=False
    )
    return shards.finish(records.compute().to_dict("records"))


def encode_spark(
    dataframe: Any, tok: ggtok.Tokenizer, folder: str | os.PathLike[str], **options: Any
) -> ggtok.Summary:
    """Encode a column of a Spark dataframe, with one shard for each partition.

    Args:
        dataframe: a ``pyspark.sql.DataFrame`` with a column of strings.
        tok, folder, **options: as for :func:`encode_ray`.
    """
    shards = Shards(tok, folder, **options)
    columns = ", ".join(
        f"{name} {'long' if kind == 'int64' else kind}" for name, kind in SCHEMA.items()
    )
    records = dataframe.select(shards.job.field).mapInArrow(
        partial(_spark_task, shards.job), columns
    )
    return shards.finish(row.asDict() for row in records.collect())


def _ray_task(job: Job, table: Any) -> Any:
    return _table(job([table]))


def _dask_task(frame: Any, job: Job) -> Any:
    pa = pyarrow("ggtok.distributed")
    return type(frame)([job([pa.Table.from_pandas(frame, preserve_index=False)])])


def _spark_task(job: Job, batches: Iterable[Any]) -> Iterator[Any]:
    yield from _table(job(batches)).to_batches()


def _table(record: Record) -> Any:
    """Converts a record to an Arrow table with one row."""
    pa = pyarrow("ggtok.distributed")
    schema = pa.schema([(name, getattr(pa, kind)()) for name, kind in SCHEMA.items()])
    return pa.Table.from_pylist([record], schema)
