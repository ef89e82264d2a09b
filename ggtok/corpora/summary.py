"""What a run tells its user: how far it is, and what it did."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from typing import Any


@dataclass
class Counts:
    """What was read and made so far.

    Attributes:
        documents: that were written.
        ids: that were written, BOS and EOS included.
        bytes: of text that was read, decompressed; skipped documents included.
        invalid_utf8: documents that are not valid UTF-8 (or hold a lone surrogate, in JSON).
        empty: documents without text.
        missing: records without the field, or with something else than a string there.
        malformed: records that are not JSON objects.
        skipped: documents and records of these four kinds that ``errors="skip"`` dropped.
    """

    documents: int = 0
    ids: int = 0
    bytes: int = 0
    invalid_utf8: int = 0
    empty: int = 0
    missing: int = 0
    malformed: int = 0
    skipped: int = 0

    def add(self, other: Counts) -> None:
        for each in fields(Counts):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))

    def as_dict(self) -> dict[str, int]:
        return {each.name: getattr(self, each.name) for each in fields(Counts)}


@dataclass(frozen=True)
class EncodeProgress:
    """How far a call is: what ``progress`` is called with, after each batch.

    Attributes:
        bytes: of text that was encoded so far.
        documents, ids: that were made so far.
        read, total: bytes of the source files on disk: those read so far, and all; 0 for texts
            that aren't files.
        seconds: since the call.
        bytes_before: of ``bytes``, those that an earlier run encoded, which this one continues.
        read_before: the same of ``read``.
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
class Summary(Counts):
    """What :meth:`ggtok.Tokenizer.encode_files` did; the manifest has the same counts.

    All counts are of the whole output, whatever part of it earlier runs made.

    Attributes:
        files: the paths that were written: ids, index if the format has one, manifest.
        format, dtype: of the ids.
        sources: how many files were read.
        seconds: that this call took.
        resumed: ids that an earlier run had written, and this one didn't make again.
        already_complete: whether an earlier run had completed the output, so that this one did
            nothing but verify it.
    """

    files: tuple[str, ...] = ()
    format: str = "raw"
    dtype: str = "uint32"
    sources: int = 0
    seconds: float = field(default=0.0, compare=False)
    resumed: int = field(default=0, compare=False)
    already_complete: bool = field(default=False, compare=False)

    def as_dict(self) -> dict[str, Any]:
        """All attributes, for JSON."""
        return {**asdict(self), "files": list(self.files)}
