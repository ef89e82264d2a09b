"""What a source's own package knows of its vocabulary, to be compared with a conversion.

Packages answer with :class:`Facts`, which don't depend on how ggtok reads the source. So they show
tokens that the conversion lacks, and tokens that it types or numbers differently.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ggtok.tokenizer import TokenAttr, Tokenizer
from ggtok.vocabularies import spelling
from ggtok.vocabularies.contents import ConversionReport
from ggtok.vocabularies.vocabulary import Vocabulary

_SHOWN = 3  # the most examples in a sentence
_MARK = "\u2581"
_FOUND_WHOLE = (spelling.CONTROL, spelling.USER_DEFINED)


@dataclass(frozen=True)
class PackageFacts:
    """A vocabulary according to a package.

    Attributes:
        tokens: the texts of all tokens, by id.
        added: for each token that is searched for before text is split, its flags: special,
            lstrip, rstrip, single_word, normalized. None if the package doesn't say.
        special: the ids of special tokens, by name.
        around: the ids that are added before and after a text, or None if the package adds none.
        ends: the ids that end generation, or None if the package doesn't know.
        templates: the chat templates by name, or None if the package has none.
    """

    tokens: Mapping[int, str]
    added: Mapping[int, Sequence[bool]] | None = None
    special: Mapping[str, int] = field(default_factory=dict)
    around: Sequence[Sequence[int]] | None = None
    ends: Sequence[int] | None = None
    templates: Mapping[str, str] | None = None

    @classmethod
    def of_answer(cls, answer: Mapping[str, Any]) -> PackageFacts:
        """Returns the facts in a package's answer, whose JSON has ids as texts."""
        values = dict(answer)
        for name in "tokens", "added":
            if values.get(name) is not None:
                values[name] = {int(id): value for id, value in values[name].items()}
        return cls(**values)

    def disagreements(self, vocabulary: Vocabulary) -> list[str]:
        """Returns a sentence for each kind of fact in which a conversion differs, unless its report
        names the difference."""
        report = vocabulary.report
        named = (
            {row.name for row in report.differences}
            if isinstance(report, ConversionReport)
            else set[str]()
        )
        tok = vocabulary.tokenizer()
        found = [*self._texts(vocabulary), *self._types(vocabulary), *self._special(vocabulary)]
        if "added-tokens" not in named:
            found += self._flags(vocabulary, tok)
        if "ends" not in named:
            lost = [id for id in self.ends or () if id < len(vocabulary) and not tok.is_eog(id)]
            found += _sentence(lost, "end generation in the source, not in llama.cpp", self)
        if "template" not in named:
            found += self._around(vocabulary)
        ours = dict(vocabulary.chat_templates)
        if vocabulary.chat_template is not None:
            ours["default"] = vocabulary.chat_template
        if self.templates is not None and dict(self.templates) != ours:
            found.append("the chat templates aren't the source's")
        return found

    def _texts(self, vocabulary: Vocabulary) -> Iterator[str]:
        texts, types = vocabulary.texts, vocabulary.types
        missing: list[int] = []
        other: list[int] = []
        for id, text in self.tokens.items():
            ours = texts[id].decode("utf-8", "replace") if id < len(texts) else None
            if ours is None or ours not in _spellings(text, vocabulary.model):
                lacks = ours is None or types[id] == spelling.UNUSED
                (missing if lacks else other).append(id)
        more = [
            id for id, type in enumerate(types) if type != spelling.UNUSED and id not in self.tokens
        ]
        yield from _sentence(missing, "missing", self)
        rows = [f"{id} {_quote_token(texts[id])} instead of {self.tokens[id]!r}" for id in other]
        if rows:
            yield f"{_token_count(rows)} with another text: {_examples(rows)}"
        if more:
            rows = [f"{id} {_quote_token(texts[id])}" for id in more]
            yield f"{_token_count(rows)} more than the source has: {_examples(rows)}"

    def _types(self, vocabulary: Vocabulary) -> Iterator[str]:
        if self.added is None:
            return
        special, ordinary, plain = [], [], []
        for id, type in enumerate(vocabulary.types):
            flags = self.added.get(id)
            if id not in self.tokens or type in (spelling.UNKNOWN, spelling.UNUSED):
                continue
            if flags is None:
                if type in _FOUND_WHOLE:
                    plain.append(id)
            elif flags[0] and type != spelling.CONTROL:
                special.append(id)
            elif not flags[0] and type != spelling.USER_DEFINED:
                ordinary.append(id)
        yield from _sentence(special, "special, but not control tokens", self)
        yield from _sentence(ordinary, "added, but not user-defined tokens", self)
        yield from _sentence(plain, "ordinary tokens, but found whole in llama.cpp", self)

    def _flags(self, vocabulary: Vocabulary, tok: Tokenizer) -> list[str]:
        wrong = []
        for id, (_, lstrip, rstrip, single_word, _) in (self.added or {}).items():
            if id < len(vocabulary):
                attr = tok.token_attr(id)
                ours = bool(attr & TokenAttr.LSTRIP), bool(attr & TokenAttr.RSTRIP)
                if ours != (lstrip, rstrip) or single_word:
                    wrong.append(id)
        return list(_sentence(wrong, "found under conditions", self))

    def _special(self, vocabulary: Vocabulary) -> Iterator[str]:
        ours = vocabulary.special_ids
        last = self.around[1][-1:] if self.around is not None else []
        for name, id in self.special.items():
            if name == "cls":
                continue
            if name == "eos" and list(last) == [ours.get("eos")] and ours.get("eot") == id:
                continue  # llama.cpp adds EOS, so the token that the source adds is EOS
            if name == "eos" and vocabulary.model == "bert":
                continue  # SEP ends texts
            if ours.get(name) != id:
                yield f"{name.upper()} is token {ours.get(name)} instead of {id}"

    def _around(self, vocabulary: Vocabulary) -> Iterator[str]:
        if self.around is None:
            return
        tok = vocabulary.tokenizer()
        text = tok.encode("a", add_special=False)
        ids = tok.encode("a", add_special=True)
        before, after = self.around
        if ids != [*before, *text, *after]:
            yield (
                f"around a text, llama.cpp adds {ids[: len(ids) - len(text)]} in all, and the "
                f"source {list(before)} and {list(after)}"
            )


def _spellings(text: str, model: str) -> Iterable[str]:
    """Returns how a token's text may be spelled in a GGUF file."""
    yield text
    yield text.replace(_MARK, " ")
    if model == "bert":
        yield text[2:] if text.startswith("##") else _MARK + text


def _sentence(ids: Sequence[int], predicate: str, facts: PackageFacts) -> Iterator[str]:
    if ids:
        rows = [f"{id} {facts.tokens.get(id, '')!r}" for id in ids]
        yield f"{_token_count(rows)} ({predicate}): {_examples(rows)}"


def _token_count(rows: Sequence[str]) -> str:
    return f"{len(rows)} tokens" if len(rows) > 1 else "1 token"


def _examples(rows: Sequence[str]) -> str:
    return ", ".join(rows[:_SHOWN]) + (", ..." if len(rows) > _SHOWN else "")


def _quote_token(text: bytes) -> str:
    return repr(text.decode("utf-8", "replace"))
