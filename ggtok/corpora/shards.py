"""Writes one output, or several shards, each of which is a separate run for some of the sources.

A shard contains consecutive sources, which are never divided. The sources of each shard have about
the same total size on disk. Like a single output, shards can be resumed: complete shards aren't
written again.
"""

from __future__ import annotations

import glob
import os
import re
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ggtok.corpora import id_formats, jsonl
from ggtok.corpora.conversations import Conversations
from ggtok.corpora.documents import Fields
from ggtok.corpora.encode_conversations import ChatEncoder
from ggtok.corpora.finished import verify
from ggtok.corpora.run import EncodingRun
from ggtok.corpora.sources import GlobFilter, Search, SourceFile, checked_kind
from ggtok.corpora.summary import EncodeProgress, ProgressFn, RunCounts, Summary
from ggtok.errors import InvalidValueError
from ggtok.loading.loaded import Loaded
from ggtok.text.sampling import settings_of

if TYPE_CHECKING:
    from ggtok.text.batch_encoding import SamplingRule

_SHARD_BITS = 40  # the documents of a shard are numbered from its number times 2 ** 40


def encode_files(
    loaded: Loaded,
    sources: object,
    out: str | os.PathLike[str],
    *,
    format: str | None,
    shards: int | None,
    include: object,
    exclude: object,
    kind: object,
    field: object,
    progress: ProgressFn | None,
    sampling: SamplingRule | None,
    **options: Any,
) -> Summary:
    """Implements ``Tokenizer.encode_files``."""
    begun = time.perf_counter()
    is_chat = options["chat"] is not None and options["chat"] is not False
    fields = _conversations(field, sampling, options) if is_chat else Fields.checked(field)
    path, checked = id_formats.checked_out(out), checked_kind(kind)
    options["format"] = id_formats.format_name(format, path)
    if shards is not None and shards < 1:
        raise InvalidValueError(f"shards must be at least 1, but is {shards}")
    outs = [path] if shards is None else shard_names(path, shards)
    own = [name for each in outs for name in id_formats.companions(each)]
    search = Search(own, GlobFilter.checked(include, exclude), checked)
    found = jsonl.decide_json_kinds(search.find(sources), fields)
    if isinstance(fields, Conversations):
        _check_kinds(found)
    parts = [found] if shards is None else split_sources(found, shards)
    # All shards have one time, which templates may write.
    options["chat"] = ChatEncoder(loaded, options["chat"]) if is_chat else None
    whole = _Whole(sum(source.size for source in found), begun, progress)
    for number, (part, each) in enumerate(zip(parts, outs, strict=True)):
        options["sampling"] = sampling and (*sampling[:-1], number << _SHARD_BITS)
        run = EncodingRun(
            loaded, part, each, kind=checked, fields=fields, progress=whole.show, **options
        )
        whole.add(run.summary(), sum(source.size for source in part))
    return whole.summary()


def _conversations(
    field: object, sampling: SamplingRule | None, options: dict[str, Any]
) -> Conversations:
    """Refuses arguments that have no effect with `chat`."""
    given = {"field": field, "separator": options["separator"], **settings_of(sampling)}
    for name, value in given.items():
        if value is not None:
            raise InvalidValueError(f"{name} has no effect with chat")
    return Conversations()


def _check_kinds(sources: Sequence[SourceFile]) -> None:
    """Refuses files that aren't JSON lines."""
    for source in sources:
        if source.kind != "jsonl":
            raise InvalidValueError(
                f"{source.path}: not JSON lines, in which each line is a conversation; "
                "include='*.jsonl' (--include) selects files in folders, kind='jsonl' (--kind) "
                "reads files of any name as JSON lines"
            )


def shard_names(out: str, n: int) -> list[str]:
    """Returns the shards' names, such as ``ids-00000-of-00002.bin`` for ``ids.bin``."""
    stem, extension = os.path.splitext(out)
    return [f"{stem}-{i:05}-of-{n:05}{extension}" for i in range(n)]


def existing_outputs(out: str) -> list[str]:
    """Returns the names of the outputs that were written for `out`: its shards if at least one
    shard has a manifest and no file of `out` itself exists, otherwise only `out`."""
    stem, extension = os.path.splitext(out)
    end = f"{extension}.manifest.json"
    found = glob.glob(f"{glob.escape(stem)}-*-of-*{glob.escape(end)}")
    counts = {re.fullmatch(r"-[0-9]{5}-of-([0-9]{5})", p[len(stem) : -len(end)]) for p in found}
    numbers = sorted({int(count[1]) for count in counts if count is not None})
    own = out, f"{out}.manifest.json", f"{out}.journal"
    if any(map(os.path.lexists, own)) or not numbers:
        return [out]
    return [name for n in numbers for name in shard_names(out, n)]


def verify_all(out: str) -> tuple[RunCounts, list[str], list[str]]:
    """Verifies an output or its shards; returns the counts, the names of the files, and a
    description of each damaged file."""
    counts = RunCounts()
    files: list[str] = []
    wrong: list[str] = []
    outs = existing_outputs(out)
    for each in outs:
        try:
            manifest, found = verify(each)
        except FileNotFoundError:
            if len(outs) == 1:
                raise
            wrong.append(f"{each}: isn't complete: it has no manifest")
            continue
        counts.add(manifest.counts)
        files += manifest.files
        wrong += found
    return counts, files, wrong


def split_sources(sources: Sequence[SourceFile], n: int) -> list[list[SourceFile]]:
    """Divides the sources into n consecutive, nonempty parts of about equal size."""
    if len(sources) < n:
        raise InvalidValueError(
            f"{n} shards of {len(sources)} source files: a shard has whole files, so there can't "
            "be more shards; split large files first"
        )
    parts: list[list[SourceFile]] = []
    left, at = sum(source.size for source in sources), 0
    for more in reversed(range(n)):  # the number of parts after this one
        share, size, start = left / (more + 1), 0, at
        while at < len(sources) - more and (
            at == start or not more or size + sources[at].size / 2 <= share
        ):
            size += sources[at].size
            at += 1
        parts.append(list(sources[start:at]))
        left -= size
    return parts


class _Whole:
    """Combines the progress and the summaries of all shards."""

    def __init__(self, total: int, begun: float, progress: ProgressFn | None) -> None:
        self._total, self._begun, self._progress = total, begun, progress
        self._summaries: list[Summary] = []
        self._counts = RunCounts()
        self._read = self._bytes_before = self._read_before = 0
        self._last: EncodeProgress | None = None

    def show(self, p: EncodeProgress) -> None:
        """Reports a shard's progress, added to that of earlier shards."""
        self._last = p
        if self._progress is not None:
            self._progress(
                EncodeProgress(
                    self._counts.bytes + p.bytes,
                    self._counts.documents + p.documents,
                    self._counts.ids + p.ids,
                    self._read + p.read,
                    self._total,
                    time.perf_counter() - self._begun,
                    self._bytes_before + p.bytes_before,
                    self._read_before + p.read_before,
                )
            )

    def add(self, summary: Summary, read: int) -> None:
        """Adds a complete shard, whose sources have `read` bytes."""
        if summary.already_complete:
            done = summary.bytes, summary.documents, summary.ids, read, read, 0.0
            self.show(EncodeProgress(*done, summary.bytes, read))
        if self._last is not None:
            self._bytes_before += self._last.bytes_before
            self._read_before += self._last.read_before
        self._last = None
        self._read += read
        self._counts.add(
            RunCounts(**{name: getattr(summary, name) for name in RunCounts().as_dict()})
        )
        self._summaries.append(summary)

    def summary(self) -> Summary:
        first = self._summaries[0]
        return Summary(
            **self._counts.as_dict(),
            files=tuple(file for each in self._summaries for file in each.files),
            format=first.format,
            dtype=first.dtype,
            sources=sum(each.sources for each in self._summaries),
            seconds=time.perf_counter() - self._begun,
            resumed=sum(each.resumed for each in self._summaries),
            already_complete=all(each.already_complete for each in self._summaries),
        )
