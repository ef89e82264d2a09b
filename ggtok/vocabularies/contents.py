"""The contents of a vocabulary file, and reports about how they were produced."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ggtok.base.concurrency import cached_property
from ggtok.base.escape import number
from ggtok.errors import InvalidValueError
from ggtok.vocabularies import spelling

# ---- reports ----


def _differ(n: int, noun: str = "") -> str:
    things = number(n, noun) if noun else str(n)
    return f"{things} differs" if n == 1 else f"{things} differ"


@dataclass(frozen=True)
class Report:
    """Notes on how a vocabulary was produced, one for each subject."""

    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join(self.notes)


@dataclass(frozen=True)
class TrainingReport(Report):
    """A report about training.

    Attributes:
        asked, made: the number of tokens requested, and the number produced.
        words, distinct_words: the number of words, and of distinct words. For Unigram, the number
            of texts, and 0, since the sentencepiece package counts no words.
        text_bytes: the number of bytes in all words.
        text_tokens: the number of tokens in all words.
        dropped_words, dropped: the number of distinct words that ``max_words`` dropped, and the
            number of their occurrences.
        held_out_bytes, held_out_tokens: the size of the held-out text, or 0 if there is none.
        last_count: the number of occurrences of the last merge's pair.
        longest: the ids of the ten tokens with the most bytes, longest first.
        unused: the ids of tokens that don't occur in any encoded word, because later merges use
            all their occurrences. They serve only as parts of other tokens.
        seconds: the time for each phase: "count", "merge", "write".
        memory: the memory in bytes: "count" (for the counted words), "peak" (of the process).
    """

    asked: int = 0
    made: int = 0
    words: int = 0
    distinct_words: int = 0
    text_bytes: int = 0
    text_tokens: int = 0
    dropped_words: int = 0
    dropped: int = 0
    held_out_bytes: int = 0
    held_out_tokens: int = 0
    last_count: int = 0
    longest: tuple[int, ...] = ()
    unused: tuple[int, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    memory: Mapping[str, int] = field(default_factory=dict)

    @property
    def bytes_per_token(self) -> float:
        """The average number of bytes per token in the counted text."""
        return self.text_bytes / self.text_tokens if self.text_tokens else 0.0

    @property
    def held_out_bytes_per_token(self) -> float:
        """The average number of bytes per token in the held-out text."""
        return self.held_out_bytes / self.held_out_tokens if self.held_out_tokens else 0.0

    def __str__(self) -> str:
        seconds = ", ".join(f"{phase} {s:.2f} s" for phase, s in self.seconds.items())
        memory = ", ".join(f"{phase} {n / 1e6:.0f} MB" for phase, n in self.memory.items())
        lines = [f"{number(self.made, 'token')} of {self.asked} asked for"]
        size = number(self.text_bytes, "byte")
        ours = self.distinct_words > 0  # another trainer doesn't count words
        if ours:
            lines += [
                f"{number(self.words, 'word')}, {self.distinct_words} different, {size}",
                f"{self.bytes_per_token:.3f} bytes a token in the counted text",
            ]
        else:
            lines.append(f"{number(self.words, 'text')}, {size}")
        if self.held_out_tokens:
            lines.append(f"{self.held_out_bytes_per_token:.3f} bytes a token in held-out text")
        if self.dropped_words:
            lines.append(
                f"max_words dropped {number(self.dropped_words, 'rare word')} "
                f"({number(self.dropped, 'occurrence')}): "
                "counts are lower bounds"
            )
        if ours:
            lines += [
                f"tokens that only serve as parts of others: {len(self.unused)}",
                f"the last merge occurred {number(self.last_count, 'time')}",
            ]
        lines.append(f"time: {seconds}")
        if ours:
            lines.append(f"memory: {memory}")
        return "\n".join((*lines, *self.notes))


@dataclass(frozen=True)
class Difference:
    """A difference between the source's ids and those of llama.cpp with the converted vocabulary.

    Attributes:
        name: a short name, listed in the table of docs/converting.md.
        text: a description.
        lines: the number of compared lines that get different ids because of this difference, or
            None if no lines were compared.
        compared: the number of compared lines.
        example: a line that gets different ids, or None.
    """

    name: str
    text: str
    lines: int | None = None
    compared: int = 0
    example: str | None = None
    # A function that changes a source in place, so that it follows llama.cpp's rule.
    change: Callable[[Any], None] | None = None
    # A function that removes the cause of the difference from a line.
    without: Callable[[str], str] | None = None

    @property
    def share(self) -> float | None:
        """The share of lines with different ids, from 0 to 1, or None if no lines were compared."""
        return None if self.lines is None or not self.compared else self.lines / self.compared

    def __str__(self) -> str:
        if self.share is None:
            return f"{self.name}: {self.text}"
        counted = f"{self.lines} of {self.compared} lines differ ({self.share:.2%})"
        example = "" if self.example is None else f", such as {self.example!r}"
        return f"{self.name}: {self.text}; {counted}{example}"


@dataclass(frozen=True)
class ConversionReport(Report):
    """A report about a conversion.

    Attributes:
        format: the source's format, such as ``"tokenizer.json (BPE)"``.
        pre: the name of the pre-tokenizer, found or passed by the caller, or None.
        differences: the differences that llama.cpp's rules force. Each has a ``name``, a
            ``text`` and, if the source's own package is installed, the ``share`` of lines with
            different ids.
        compared: the number of lines compared with the source's own package; 0 if the package
            isn't installed, or needed too much time or memory (as ``notes`` then say).
        judge: the package that loaded the source for the comparison, or None. For a folder, it is
            ``"transformers"`` if transformers is installed and can load the folder, else the file's
            own package.
        differing: the number of compared lines with different ids.
        unexplained: the lines with different ids that no difference explains.
        known: the number of tokens that the package knows, whose texts, ids and flags were
            compared, as were its special ids, ends of generation and templates; 0 if only lines
            were compared.
        disagreements: what the package knows of the vocabulary and the conversion says
            differently, a sentence for each kind, except for named differences.
    """

    format: str = ""
    pre: str | None = None
    differences: tuple[Difference, ...] = ()
    compared: int = 0
    unexplained: tuple[str, ...] = ()
    judge: str | None = None
    differing: int = 0
    known: int = 0
    disagreements: tuple[str, ...] = ()

    @property
    def faults(self) -> list[str]:
        """Why the vocabulary should not be used, a phrase each: differences without a known
        reason."""
        faults = [f"{self.judge} has another vocabulary: {each}" for each in self.disagreements]
        if self.unexplained:
            differ = _differ(len(self.unexplained), "line")
            faults.append(f"{differ} for no known reason, such as {self.unexplained[0]!r}")
        return faults

    def __str__(self) -> str:
        lines = [f"converted from {self.format}"]
        if self.pre is not None:
            lines.append(f"pre-tokenizer: {self.pre}")
        if self.compared:
            compared = number(self.compared, "line")
            if self.known:
                compared = f"{number(self.known, 'token')} and {compared}"
            noun = "line" if self.known else ""
            differing = _differ(self.differing, noun) if self.differing else "none differs"
            if self.disagreements and not self.differing:
                differing = "no line differs"
            lines.append(f"compared with {self.judge} on {compared}: {differing}")
        else:
            lines.append("not compared with the source's own package")
        lines += [str(difference) for difference in self.differences]
        lines += self.faults
        return "\n".join((*lines, *self.notes))


Pair = tuple[bytes, bytes]


@dataclass(frozen=True)
class Differs:
    """Collects descriptions of the texts for which another library's ids differ from ggtok's.

    Attributes:
        allowed: whether a file may be written despite such differences.
        published: whether the caller chose the published expressions.
        reasons: the descriptions.
        accepted: what the caller's choice of format or expressions implies, for a warning.
    """

    allowed: bool
    published: bool = False
    reasons: list[str] = field(default_factory=list)
    accepted: list[str] = field(default_factory=list)

    def __call__(self, reason: str) -> None:
        self.reasons.append(reason)


@dataclass(frozen=True, eq=False, repr=False)
class Contents:
    """The part of :class:`ggtok.Vocabulary` that is written to files. That class documents the
    attributes."""

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
        """The merges, in order, each as the decoded bytes of its two tokens."""
        scheme = spelling.scheme(self.model, self.pre) or "marks"

        def decoded(text: bytes) -> bytes:
            return spelling.decode_text(text, spelling.NORMAL, scheme)

        return [(decoded(left), decoded(right)) for left, right in self.merge_texts or ()]
