"""The draft of a vocabulary, which the readers of formats fill in, and common differences.

A difference from the source that llama.cpp's rules force says how to change the source so that it
follows llama.cpp's rule. With all of these changes, a tokenizer.json must produce our ids for every
text. With one change, it shows how many lines the rule affects.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ggtok.errors import VocabError
from ggtok.vocabularies.contents import ConversionReport, Difference, Pair
from ggtok.vocabularies.convert.reading import MAX_TOKENS, Folder
from ggtok.vocabularies.spelling import UNUSED
from ggtok.vocabularies.vocabulary import Vocabulary

MAX_HOLES = 1 << 18  # ids without a token, unless there are more tokens than that


@dataclass
class Draft:
    """Tokens by id, with holes. The other attributes are those of Vocabulary."""

    model: str
    texts: dict[int, bytes] = field(default_factory=dict)
    types: dict[int, int] = field(default_factory=dict)
    scores: dict[int, float] | None = None
    merges: list[Pair] | None = None
    pre: str | None = None
    special_ids: dict[str, int] = field(default_factory=dict)
    flags: dict[str, bool] = field(default_factory=dict)
    keys: dict[str, object] = field(default_factory=dict)
    chat_template: str | None = None
    chat_templates: Mapping[str, str] = field(default_factory=dict)
    architecture: str = "llama"
    size: int = 0  # the least number of tokens
    filler_score: float = 0.0
    differences: list[Difference] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def set(self, id: int, text: bytes, type: int, score: float = 0.0) -> None:
        self.texts[id] = text
        self.types[id] = type
        if self.scores is not None:
            self.scores[id] = score

    def set_templates(self, folder: Folder) -> None:
        templates = folder.templates()
        self.chat_template = templates.pop("default", None)
        self.chat_templates = templates

    def vocabulary(self, format: str) -> Vocabulary:
        """The vocabulary, with unused tokens for ids that have no token."""
        if not self.texts:
            raise VocabError(f"{format}: there are no tokens")
        n = max(self.size, max(self.texts) + 1)
        if n > MAX_TOKENS:
            raise VocabError(f"{format}: {n} tokens are more than {MAX_TOKENS}")
        check_holes(n, len(self.texts), format)
        self._check_unique(format)
        taken = set(self.texts.values()) if len(self.texts) < n else set()
        texts, types, scores = [], [], []
        for id in range(n):
            text = self.texts.get(id)
            texts.append(_filler(id, taken) if text is None else text)
            types.append(self.types.get(id, UNUSED))
            if self.scores is not None:
                scores.append(self.scores.get(id, self.filler_score))
        holes = n - len(self.texts)
        if holes:
            self.notes.append(f"{holes} ids without a token become unused tokens [PADn]")
        return Vocabulary(
            model=self.model,
            texts=texts,
            types=types,
            pre=self.pre,
            scores=None if self.scores is None else scores,
            merge_texts=self.merges,
            special_ids={name: id for name, id in self.special_ids.items() if 0 <= id < n},
            flags=self.flags,
            keys=self.keys,
            chat_template=self.chat_template,
            chat_templates=self.chat_templates,
            architecture=self.architecture,
            report=ConversionReport(
                notes=tuple(self.notes),
                format=format,
                pre=self.pre,
                differences=tuple(self.differences),
            ),
        )

    def _check_unique(self, format: str) -> None:
        seen: dict[bytes, int] = {}
        for id, text in self.texts.items():
            other = seen.setdefault(text, id)
            if other != id:
                raise VocabError(f"{format}: tokens {other} and {id} have the same text {text!r}")


def check_holes(n: int, known: int, where: str) -> None:
    """Raises VocabError if most ids have no token: models have only some unused ids."""
    if n - known > max(MAX_HOLES, known):
        raise VocabError(f"{where}: {n} ids are too many for {known} tokens")


def _filler(id: int, taken: set[bytes]) -> bytes:
    text = b"[PAD%d]" % id
    while text in taken:
        text += b"_"
    taken.add(text)
    return text


# ---- differences ----

Json = dict[str, Any]
_MARK = "\u2581"


def without_normalizer(document: Json) -> None:
    document["normalizer"] = None


def fewer_categories(pre: str, change: Callable[[Json], None]) -> Difference:
    return Difference(
        "pre-tokenizer",
        f"llama.cpp's {pre} distinguishes fewer characters than the source's expressions (letters "
        "have one category, and case only in ASCII; U+017F is not an s), and none newer than "
        "Unicode 15.1",
        change=change,
    )


def newer_characters(change: Callable[[Json], None]) -> Difference:
    return Difference(
        "unicode",
        "llama.cpp's Unicode is 15.1: the source's own package may know newer letters and numbers",
        change=change,
    )


def unigram_fallback(change: Callable[[Any], None]) -> Difference:
    return Difference(
        "byte-fallback",
        "for unknown characters, the source produces byte tokens, and llama.cpp <unk>",
        change=change,
    )


def leading_space(special: Sequence[str]) -> Difference:
    return Difference(
        "leading-space",
        "the source puts no space before a text that begins with one: llama.cpp does",
        without=_leading_spaces(special),
    )


def _leading_spaces(special: Sequence[str]) -> Callable[[str], str]:
    """A function that removes spaces at the start of a line and after each of these texts."""
    begins = "|".join(["^", *map(re.escape, sorted(special, key=len, reverse=True))])
    pattern = re.compile(f"({begins})[ {_MARK}]+")
    return lambda line: pattern.sub(r"\1", line)
