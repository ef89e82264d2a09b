"""Writes one output, from the sources to the finished files.

    sources ─► documents ─► batches ─┐            (a thread)
                                     ▼
                                  encode          (several threads)
                                     ▼
                        output, checkpoints       (a thread)

The output depends only on the plan. A checkpoint contains everything that the rest of the output
depends on: the position in the sources, and the lengths of the files.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import sys
import time
from array import array
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import ggtok._version
from ggtok.base.concurrency import BackgroundWriter, cached_property, map_ordered
from ggtok.base.files import read_up_to, sync_folder
from ggtok.corpora import finished, id_formats, jsonl, streams, tables, text, vocabulary_hash
from ggtok.corpora.document_batches import BYTES, DocumentBatch, batches
from ggtok.corpora.documents import DROPPING, RULES, Fields, Pieces, SourcePosition
from ggtok.corpora.encode_conversations import ChatEncoder
from ggtok.corpora.encode_documents import Encoded, Encoder
from ggtok.corpora.id_formats import Raw
from ggtok.corpora.journal import GROWING, Journal, SourceState, compare
from ggtok.corpora.partial_file import Extent, PartialFile, give_name, partial_of
from ggtok.corpora.sources import TABLES, SourceFile
from ggtok.corpora.summary import EncodeProgress, ProgressFn, RunCounts, Summary
from ggtok.errors import (
    FileError,
    InvalidValueError,
)
from ggtok.loading.loaded import Loaded
from ggtok.native.contexts import Blocks
from ggtok.text.sampling import settings_of

if TYPE_CHECKING:
    from ggtok.text.batch_encoding import SamplingRule

CHECKPOINT = 64 << 20  # bytes of ids between checkpoints
_LARGE = 8 << 20  # bytes of text; only batches of few long documents have more
# Vocabulary types with which documents can't be encoded in parts.
_WHOLE = ("UGM",)


class EncodingRun:
    """The encoding of sources into one output."""

    def __init__(
        self,
        loaded: Loaded,
        sources: Sequence[SourceFile],
        out: str,
        *,
        format: str,
        dtype: str,
        kind: str | None,
        separator: str | bytes | None,
        fields: Fields,
        chat: ChatEncoder | None,
        add_special: bool,
        eos: bool,
        errors: str,
        threads: int,
        resume: bool,
        force: bool,
        progress: ProgressFn,
        sampling: SamplingRule | None,
    ) -> None:
        self._start = time.perf_counter()
        self._threads, self._force = threads, force
        self._loaded, self._resume, self._progress = loaded, resume, progress
        if errors not in RULES:
            raise InvalidValueError(f"errors must be one of {', '.join(RULES)}, not {errors!r}")
        self._out, self._sources = out, sources
        self._format, self._dtype = id_formats.choose_format(format, dtype, loaded.n_tokens)
        self._chat = chat
        self._has_mask = chat is not None and chat.has_mask
        self._encoder = self._chat or Encoder(loaded, bool(add_special), bool(eos), sampling)
        self._separator = text.checked_separator(separator)
        self._fields = fields
        self._errors = errors
        self._options = {
            "format": format,
            "dtype": self._dtype,
            "kind": kind,
            "separator": None if self._separator is None else repr(self._separator)[2:-1],
            "field": self._fields.plan,
            "add_special": bool(add_special),
            "eos": bool(eos),
            "errors": errors,
            "chat": None if self._chat is None else self._chat.plan,
            **settings_of(sampling),
        }

    def _plan(self) -> dict[str, Any]:
        """Returns everything that the output depends on, except the sources."""
        return {
            "ggtok": ggtok._version.__version__,
            "model": vocabulary_hash.identity(self._loaded),
            "options": self._options,
        }

    def _states(self) -> Iterator[SourceState]:
        pairs = zip(self._sources, self._samples, strict=True)
        return ((source.path, source.size, source.mtime, sample) for source, sample in pairs)

    @cached_property
    def _samples(self) -> array[int]:
        return array("L", map(streams.sample_checksum, self._sources))

    def summary(self) -> Summary:
        """Starts or resumes the run, and returns its summary."""
        model = vocabulary_hash.path(self._loaded)
        existing = finished.existing_files(
            self._out, self._files(), () if model is None else (model,)
        )
        journal = Journal(self._out + ".journal", private=bool(existing))
        try:
            if journal.plan is not None and self._resume:
                self._check_resumed(journal, journal.plan)
                if journal.complete:
                    # The earlier run was killed after the files were complete, but before all of
                    # them were renamed.
                    self._give_names(journal)
                    id_formats.clean(self._out)
                    journal.remove()
                    return self._finished()
            elif self._resume and self._files()[0] in existing and not self._force:
                try:
                    return self._finished(already=True)
                finally:
                    journal.remove()
            else:
                self._begin(journal, existing)
            output = None
            try:
                output = self._new_output(journal)
                summary = self._encode_all(output)
            except BaseException:
                if output is not None:
                    output.close()
                if journal.last is None:  # there is no checkpoint from which to resume
                    id_formats.clean(self._out)
                    journal.remove()
                raise
            id_formats.clean(self._out)
            journal.remove()
            return summary
        finally:
            journal.close()

    def _new_output(self, journal: Journal) -> _Output:
        format = self._format(self._out, self._dtype, self._has_mask)
        return _Output(self._out, format, journal)

    def _begin(self, journal: Journal, existing: list[str]) -> None:
        """Removes unfinished files and starts a journal. Raises an error for files that weren't
        written by a run for this output, unless `force` is set."""
        if journal.plan is None and not self._force:
            left = filter(os.path.lexists, id_formats.unfinished_files(self._out))
            try:
                finished.check_own(self._files()[-1], existing, left)
            except BaseException:
                journal.remove()
                raise
        id_formats.clean(self._out)
        journal.begin(self._plan(), self._states())

    def _give_names(self, journal: Journal) -> None:
        """Renames the complete files that haven't been renamed yet, the manifest last."""
        *_, manifest = files = self._files()
        for path in (*reversed(files[:-1]), manifest):
            if os.path.lexists(partial_of(path)) or not os.path.lexists(path):
                give_name(path)
        sync_folder(journal.path)

    def _check_resumed(self, journal: Journal, before: dict[str, Any]) -> None:
        """Checks that the journal belongs to a run with the same plan."""
        journal.plan = None  # frees the list of sources, which may be long
        was = before["options"]["errors"]
        if was == "raise" and self._errors != was:
            # The earlier run found no faulty document, so any rule would give the same result.
            before["options"]["errors"] = self._errors
            self._compare(before)
            journal.amend(self._plan())
        else:
            self._compare(before)

    def _compare(self, before: dict[str, Any]) -> None:
        if self._chat is not None:
            self._chat.adopt_time(before["options"].get("chat"))
            self._options["chat"] = self._chat.plan
        compare(self._out, {**self._plan(), "sources": list(self._states())}, before)

    def _encode_all(self, output: _Output) -> Summary:
        output.open()
        resumed, counts = output.ids, RunCounts(**output.counts.as_dict())
        total = sum(source.size for source in self._sources)
        before: int | None = None
        bytes_before, n_media = counts.bytes, 0
        found = batches(self._sources, output.position, self._read, BYTES, counts.documents)
        room = 3 * self._threads * BYTES  # for each thread, one batch waits, in work and encoded
        results = map_ordered(self._encoded, found, self._threads, size=lambda b: b.size, room=room)
        with output.checkpointing_interrupts() as writer, contextlib.closing(results):  # type: ignore[type-var]
            for batch, encoded in results:
                if encoded is None:
                    encoded = self._encoder.encode(batch.pieces, self._threads, batch.first)
                counts.add(batch.counts)
                counts.add(encoded.faults)
                counts.documents += len(encoded.ends)
                counts.ids += len(encoded.ids)
                n_media += encoded.n_media
                writer.put((batch, encoded))
                if before is None:
                    before = batch.read if resumed else 0
                seconds = time.perf_counter() - self._start
                self._progress(
                    EncodeProgress(
                        counts.bytes,
                        counts.documents,
                        counts.ids,
                        batch.read,
                        total,
                        seconds,
                        bytes_before,
                        before,
                    )
                )
                del batch, encoded
        if self._chat is not None:
            self._chat.warn(n_media)
        output.finish(self._manifest(output), self._source_rows(output))
        self._give_names(output.journal)
        return Summary(
            **output.counts.as_dict(),
            files=self._files(),
            format=self._format.name,
            dtype=self._dtype,
            sources=len(self._sources),
            seconds=time.perf_counter() - self._start,
            resumed=resumed,
            already_complete=False,
        )

    def _encoded(self, batch: DocumentBatch) -> tuple[DocumentBatch, Encoded | None]:
        """Encodes a batch, unless it is so large that the caller's thread should encode it, where
        Ctrl-C stops encoding at once."""
        is_large = batch.size > _LARGE
        return batch, None if is_large else self._encoder.encode(batch.pieces, 1, batch.first)

    def _read(self, source: SourceFile, position: SourcePosition) -> Pieces:
        if source.kind == "jsonl":
            return jsonl.read_jsonl(source, position, self._fields, self._errors)
        if source.kind in TABLES:
            return tables.read_table(source, position, self._fields, self._errors)
        return text.read_text_documents(source, position, self._text)

    @cached_property
    def _text(self) -> text.TextOptions:
        return text.TextOptions(
            self._separator,
            self._errors,
            self._format.whole
            or self._loaded.vocab_type in _WHOLE
            or self._encoder.sampling is not None,
            Blocks(self._loaded),
            self._encoder.flags,
        )

    def _files(self) -> tuple[str, ...]:
        """Returns the paths of the output's files, with the manifest last."""
        paths = self._format.paths(self._out, self._has_mask)
        return (*paths, self._out + ".manifest.json")

    def _manifest(self, output: _Output) -> dict[str, Any]:
        versions = {"ggtok": ggtok._version.__version__, "python": platform.python_version()}
        for name in "numpy", "pyarrow", "orjson", "msgspec", "zstandard":
            if version := getattr(sys.modules.get(name), "__version__", None):
                versions[name] = version
        return {
            "format": self._format.name,
            "dtype": self._dtype,
            "byteorder": "little",
            "counts": output.counts.as_dict(),
            "options": self._options,
            "model": vocabulary_hash.description(self._loaded),
            "versions": versions,
        }

    def _source_rows(self, output: _Output) -> Iterator[dict[str, Any]]:
        """Yields the manifest's entry for each source."""
        documents = output.source_documents()
        for (path, size, mtime, sample), n in zip(self._states(), documents, strict=True):
            yield {
                "path": path,
                "bytes": size,
                "mtime_ns": mtime,
                "sample": sample,
                "documents": int(n),
            }

    def _finished(self, already: bool = False) -> Summary:
        """Checks that a complete output has this run's plan and that its files are intact, and
        returns its summary."""
        files = self._files()
        manifest = finished.read_manifest(files[-1])
        if manifest is None:
            raise finished.not_ours(files[0])
        self._compare(manifest.plan)
        if damage := finished.faults(self._out, manifest):
            more = f" (and {len(damage) - 1} more)" if len(damage) > 1 else ""
            raise FileError(
                f"{damage[0]}{more}: the output is damaged; resume=False and force=True "
                "(--restart --force) write it again"
            )
        counts = manifest.counts
        return Summary(
            **counts.as_dict(),
            files=files,
            format=self._format.name,
            dtype=self._dtype,
            sources=len(self._sources),
            seconds=time.perf_counter() - self._start,
            resumed=counts.ids,
            already_complete=already,
        )


class _Output:
    """The files of an output, and their progress."""

    def __init__(self, out: str, format: Raw, journal: Journal) -> None:
        self._out, self._format, self.journal = out, format, journal
        # A file that contains, for each source, the number of documents up to the source's end.
        self._sources = PartialFile(out + ".sources", output=format.data.path)
        self._partials = {"data": format.data, "index": format.index, "sources": self._sources}
        if format.mask is not None:
            self._partials["mask"] = format.mask
        self.position = SourcePosition(0)
        self.counts = RunCounts()
        # If a document is unfinished, the number of ids before it, and the extent of `data` there.
        self._opened: tuple[int, Extent] | None = None
        self._bytes_then = 0  # counts.bytes at the last checkpoint

    @property
    def ids(self) -> int:
        return self.counts.ids

    def open(self) -> None:
        """Opens the files at the last checkpoint, or creates them."""
        state = self.journal.last
        if state is None:
            for partial in self._partials.values():
                partial.create()
            self._format.begin()
            return
        self.position = SourcePosition(*state["position"])
        self.counts = RunCounts(**state["counts"])
        sizes = {name: state[name][0] for name in GROWING if name in state}
        del sizes["sources"]
        if not self._format.fits(self.counts.ids, self.counts.documents, sizes):
            raise FileError(
                f"{self.journal.path}: its last checkpoint contradicts itself; resume=False "
                "(--restart) starts over"
            )
        for name, partial in self._partials.items():
            partial.reopen(state[name])
        self._bytes_then = self.counts.bytes
        if state["opened"] is not None:
            ids, size, crc = state["opened"]
            self._opened = ids, Extent(size, crc)

    @contextlib.contextmanager
    def checkpointing_interrupts(self) -> Iterator[BackgroundWriter[tuple[DocumentBatch, Encoded]]]:
        """A context with a thread that writes batches. After Ctrl-C, the batches that it has
        written get a checkpoint."""
        writer = BackgroundWriter(self._write)
        try:
            with writer:
                yield writer
        except KeyboardInterrupt:
            if writer.stopped_between_items and self.counts.bytes > self._bytes_then:
                with contextlib.suppress(OSError):  # the interrupt is what happened first
                    self._checkpoint(self.position, self.counts)
            raise

    def _write(self, item: tuple[DocumentBatch, Encoded]) -> None:
        """Writes a batch, and a checkpoint if one is due."""
        batch, encoded = item
        if encoded.drops and self._opened is not None:
            self._drop(*self._opened)
        base = self.counts.ids
        ids, ends = encoded.ids, encoded.ends
        if not encoded.opens:
            self._format.append(ids, ends + base, encoded.mask)
            if batch.pieces:
                self._opened = None
        elif len(ends) or self._opened is None or encoded.drops:
            end = int(ends[-1]) if len(ends) else 0
            self._format.append(ids[:end], ends + base)
            self._opened = base + end, self._format.data.extent
            self._format.append(ids[end:], ends[:0])
        else:
            self._format.append(ids, ends)
        closed = [self.counts.documents + encoded.before[n] for n in batch.closed]
        self._sources.append(np.array(closed, "<i8").view(np.uint8))
        self.counts.add(batch.counts)
        self.counts.add(encoded.faults)
        self.counts.documents += len(ends)
        self.counts.ids += len(ids)
        self.position = batch.next
        # If most documents are skipped, few ids are written, so the text that was read counts, too.
        read = self.counts.bytes - self._bytes_then
        if (
            self._format.data.extent.size - self._size_then() >= CHECKPOINT
            or read >= 4 * CHECKPOINT
        ):
            self._checkpoint(self.position, self.counts)

    def _size_then(self) -> int:
        last = self.journal.last
        return last["data"][0] if last is not None else 0

    def _drop(self, ids: int, extent: Extent) -> None:
        """Removes an unfinished document that began before the batch."""
        self.counts.ids, self._opened = ids, None
        self._format.data.cut(extent)
        if extent.size < self._size_then():
            # If this process is killed, the file must not be shorter than the journal says. So
            # before removing data, write a checkpoint after which the rest of the document is
            # dropped.
            counts = RunCounts(**self.counts.as_dict())
            counts.add(RunCounts(invalid_utf8=1, skipped=1))
            self._checkpoint(self.position._replace(skip=0, state=DROPPING), counts)
        self._format.data.trim()

    def _checkpoint(self, position: SourcePosition, counts: RunCounts) -> None:
        for partial in self._partials.values():
            partial.sync()
        self._bytes_then = counts.bytes
        self.journal.checkpoint(
            {
                "position": position,
                "counts": counts.as_dict(),
                "opened": None if self._opened is None else [self._opened[0], *self._opened[1]],
                **{name: partial.state() for name, partial in self._partials.items()},
            }
        )

    def source_documents(self) -> Any:
        """Returns the number of documents in each source."""
        with self._sources.written() as file:
            ends = np.frombuffer(read_up_to(file, self._sources.extent.size), "<i8")
        return np.diff(ends, prepend=np.int64(0))

    def finish(self, manifest: dict[str, Any], sources: Iterator[dict[str, Any]]) -> None:
        """Completes the files, so that they only need to be renamed."""
        files = self._format.finish(self.counts.ids, self.counts.documents)
        manifest["files"] = [
            {
                "name": os.path.basename(file.path),
                "bytes": file.extent.size,
                "header_bytes": file.header,
                "header_crc32": f"{file.header_crc:08x}",
                "crc32": f"{file.extent.crc:08x}",
            }
            for file in files
        ]
        last = PartialFile(self._out + ".manifest.json")
        last.create()
        last.append(json.dumps(manifest, indent=1).encode()[:-2] + b',\n "sources": [')
        for i, source in enumerate(sources):  # dumped one by one, since there may be many
            last.append(b",\n  "[not i :] + json.dumps(source).encode())
        last.append(b"\n ]\n}\n")
        for file in (*files, last):
            file.sync()
            file.close()
        self.close()
        self.journal.finish()

    def close(self) -> None:
        for partial in self._partials.values():
            partial.close()
