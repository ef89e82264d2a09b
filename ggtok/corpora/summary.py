"""The progress and the summary of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from typing import Any


@dataclass
class RunCounts:
    """The counts of a run so far.

    Attributes:
        documents: the number of documents written.
        ids: the number of ids written, including BOS and EOS.
        bytes: the number of bytes of text read, after decompression, including skipped documents.
        invalid_utf8: documents that aren't valid UTF-8 (or, in JSON, have a lone surrogate).
        empty: documents without text.
        missing: records in which the field is missing or isn't a string (a list of messages).
        malformed: records that aren't JSON objects, and conversations that the chat template or
            llama-server would refuse.
        skipped: how many documents and records of these four kinds ``errors="skip"`` dropped.
    """

    documents: int = 0
    ids: int = 0
    bytes: int = 0
    invalid_utf8: int = 0
    empty: int = 0
    missing: int = 0
    malformed: int = 0
    skipped: int = 0

    def add(self, other: RunCounts | None) -> None:
        for each in fields(RunCounts) if other is not None else ():
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))

    def as_dict(self) -> dict[str, int]:
        return {each.name: getattr(self, each.name) for each in fields(RunCounts)}


@dataclass(frozen=True)
class EncodeProgress:
    """The progress of a call, which is passed to ``progress`` after each batch.

    Attributes:
        bytes: the number of bytes of text encoded so far.
        documents, ids: the numbers of documents and ids written so far.
        read, total: the number of bytes of the source files on disk, read so far and in total; 0
            for texts that aren't in files.
        seconds: the time since the call began.
        bytes_before: how much of ``bytes`` an earlier run encoded, if this one resumes it.
        read_before: how much of ``read`` an earlier run read, if this one resumes it.
    """

    bytes: int
    documents: int
    ids: int
    read: int
    total: int
    seconds: float
    bytes_before: int = 0
    read_before: int = 0


ProgressFn = Callable[[EncodeProgress], object]


@dataclass
class Summary(RunCounts):
    """The result of :meth:`ggtok.Tokenizer.encode_files`; the manifest has the same counts.

    All counts are for the whole output, including what earlier runs wrote.

    Attributes:
        files: the paths of the output's files: ids, index (if the format has one), masks (of
            conversations, if the format has a file for them), manifest.
        format, dtype: the format and the type of the ids.
        sources: the number of source files.
        seconds: the duration of this call.
        resumed: the number of ids that earlier runs had already written.
        already_complete: whether an earlier run had completed the output, so that this call only
            verified it.
    """

    files: tuple[str, ...] = ()
    format: str = "raw"
    dtype: str = "uint32"
    sources: int = 0
    seconds: float = field(default=0.0, compare=False)
    resumed: int = field(default=0, compare=False)
    already_complete: bool = field(default=False, compare=False)

    def as_dict(self) -> dict[str, Any]:
        """Returns all attributes, for JSON."""
        return {**asdict(self), "files": list(self.files)}
