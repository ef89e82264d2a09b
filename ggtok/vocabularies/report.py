"""What came of making a vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


def counted(n: int, noun: str) -> str:
    """A number of things, in words."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _differ(n: int, noun: str = "") -> str:
    things = counted(n, noun) if noun else str(n)
    return f"{things} differs" if n == 1 else f"{things} differ"


@dataclass(frozen=True)
class Report:
    """What is to be said about how a vocabulary was made: sentences, each about one thing."""

    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join(self.notes)


@dataclass(frozen=True)
class TrainingReport(Report):
    """What came of a training.

    Attributes:
        asked, made: tokens asked for, and made.
        words, distinct_words: words counted, and different ones among them. Of Unigram, texts, and
            0: the sentencepiece package counts no words, nor what is below them here.
        text_bytes: bytes of those words.
        text_tokens: tokens that they become.
        dropped_words, dropped: words that ``max_words`` dropped: different ones, and all.
        held_out_bytes, held_out_tokens: of the held-out text; 0 without one.
        last_count: how often the last merge's pair occurred.
        longest: ids of the ten tokens with the most bytes, longest first.
        unused: ids of tokens made by merges that no counted word ends with: later merges took all
            their occurrences. No text that was counted reaches them: they only serve as parts.
        seconds: by phase: "count", "merge", "write".
        memory: bytes by phase: "count" (of the counted words), "peak" (of the process).
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
        """Of the text that was counted."""
        return self.text_bytes / self.text_tokens if self.text_tokens else 0.0

    @property
    def held_out_bytes_per_token(self) -> float:
        """Of the held-out text."""
        return self.held_out_bytes / self.held_out_tokens if self.held_out_tokens else 0.0

    def __str__(self) -> str:
        seconds = ", ".join(f"{phase} {s:.2f} s" for phase, s in self.seconds.items())
        memory = ", ".join(f"{phase} {n / 1e6:.0f} MB" for phase, n in self.memory.items())
        lines = [f"{counted(self.made, 'token')} of {self.asked} asked for"]
        size = counted(self.text_bytes, "byte")
        ours = self.distinct_words > 0  # another trainer counts and measures nothing here
        if ours:
            lines += [
                f"{counted(self.words, 'word')}, {self.distinct_words} different, {size}",
                f"{self.bytes_per_token:.3f} bytes a token in the counted text",
            ]
        else:
            lines.append(f"{counted(self.words, 'text')}, {size}")
        if self.held_out_tokens:
            lines.append(f"{self.held_out_bytes_per_token:.3f} bytes a token in held-out text")
        if self.dropped_words:
            lines.append(
                f"max_words dropped {counted(self.dropped_words, 'rare word')} "
                f"({counted(self.dropped, 'occurrence')}): "
                "counts are lower bounds"
            )
        if ours:
            lines += [
                f"tokens that only serve as parts of others: {len(self.unused)}",
                f"the last merge occurred {counted(self.last_count, 'time')}",
            ]
        lines.append(f"time: {seconds}")
        if ours:
            lines.append(f"memory: {memory}")
        return "\n".join((*lines, *self.notes))


@dataclass(frozen=True)
class Difference:
    """One difference between the source and what llama.cpp makes of its vocabulary.

    Attributes:
        name: of the row in the documentation's table.
        text: what differs, in a sentence.
        lines: how many of the compared lines have other ids for it, or None: not compared.
        compared: how many lines that were.
        example: one of them, or None.
    """

    name: str
    text: str
    lines: int | None = None
    compared: int = 0
    example: str | None = None
    change: Callable[[Any], None] | None = None  # of a tokenizer.json, in place
    without: Callable[[str], str] | None = None  # a line without its cause

    @property
    def share(self) -> float | None:
        """The share of lines that have other ids, 0 to 1, or None: not compared."""
        return None if self.lines is None or not self.compared else self.lines / self.compared

    def __str__(self) -> str:
        if self.share is None:
            return f"{self.name}: {self.text}"
        counted = f"{self.lines} of {self.compared} lines differ ({self.share:.2%})"
        example = "" if self.example is None else f", such as {self.example!r}"
        return f"{self.name}: {self.text}; {counted}{example}"


@dataclass(frozen=True)
class ConversionReport(Report):
    """What came of a conversion.

    Attributes:
        format: what the source is, such as ``"tokenizer.json (BPE)"``.
        pre: the pre-tokenizer's name that was found or given, or None.
        differences: what llama.cpp's rules force to differ from the source; each has a ``name``,
            a ``text`` and, where the source's own package is installed, the ``share`` of lines
            with other ids.
        compared: how many lines were compared with what loads the source; 0: that isn't there,
            or takes too much time or memory, as ``notes`` say then.
        judge: the package that they were compared with, or None: ``"transformers"`` for a folder
            if it is installed and can load it, else the one that the file belongs to.
        differing: how many of those lines have other ids.
        unexplained: those that differ for none of the named reasons.
    """

    format: str = ""
    pre: str | None = None
    differences: tuple[Difference, ...] = ()
    compared: int = 0
    unexplained: tuple[str, ...] = ()
    judge: str | None = None
    differing: int = 0

    @property
    def unexplained_reason(self) -> str:
        """A sentence about the unexplained lines."""
        differ = _differ(len(self.unexplained), "line")
        return f"{differ} for no known reason, such as {self.unexplained[0]!r}"

    def __str__(self) -> str:
        lines = [f"converted from {self.format}"]
        if self.pre is not None:
            lines.append(f"pre-tokenizer: {self.pre}")
        if self.compared:
            differing = _differ(self.differing) if self.differing else "none differs"
            compared = counted(self.compared, "line")
            lines.append(f"compared with {self.judge} on {compared}: {differing}")
        else:
            lines.append("not compared with the source's own package")
        lines += [str(difference) for difference in self.differences]
        if self.unexplained:
            lines.append(self.unexplained_reason)
        return "\n".join((*lines, *self.notes))
