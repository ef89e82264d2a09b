"""The contents of a vocabulary file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ggtok.base.concurrency import cached_property
from ggtok.errors import InvalidValueError
from ggtok.vocabularies import spelling
from ggtok.vocabularies.report import Report

Pair = tuple[bytes, bytes]


@dataclass(frozen=True)
class Differs:
    """Collects the kinds of texts for which another library gives other ids."""

    allowed: bool  # whether such files may be written
    reasons: list[str] = field(default_factory=list)

    def __call__(self, reason: str) -> None:
        self.reasons.append(reason)


@dataclass(frozen=True, eq=False, repr=False)
class Contents:
    """The part of :class:`ggtok.Vocabulary` that is written to files. See its attributes."""

    model: str
    texts: Sequence[bytes]
    types: Sequence[int]
    pre: str | None = None
    scores: Sequence[float] | None = None
    merge_texts: Sequence[Pair] | None = None
    special_ids: Mapping[str, int] = field(default_factory=dict)
    flags: Mapping[str, bool] = field(default_factory=dict)
    chat_template: str | None = None
    chat_templates: Mapping[str, str] = field(default_factory=dict)
    pre_patterns: tuple[str, ...] | None = None
    keys: Mapping[str, object] = field(default_factory=dict)
    architecture: str = "llama"
    order: tuple[str, ...] = ()
    report: Report = field(default_factory=Report)
    inputs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        n = len(self.texts)
        if len(self.types) != n or (self.scores is not None and len(self.scores) != n):
            raise InvalidValueError(
                "a vocabulary must have equal numbers of texts, types and scores"
            )

    def __len__(self) -> int:
        return len(self.texts)

    @cached_property
    def merges(self) -> list[Pair]:
        """The merges in order, each as the decoded bytes of its two tokens."""
        scheme = spelling.scheme(self.model, self.pre) or "marks"

        def decoded(text: bytes) -> bytes:
            return spelling.decoded(text, spelling.NORMAL, scheme)

        return [(decoded(left), decoded(right)) for left, right in self.merge_texts or ()]
