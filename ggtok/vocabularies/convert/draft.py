"""The draft of a vocabulary, which the readers of formats fill in, and common differences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ggtok.errors import VocabError
from ggtok.vocabularies.contents import Pair
from ggtok.vocabularies.convert.reading import MAX_TOKENS
from ggtok.vocabularies.report import ConversionReport, Difference
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
