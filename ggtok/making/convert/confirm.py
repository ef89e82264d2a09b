"""A conversion checked: its ids beside those of the source's own package."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ggtok.errors import VocabError
from ggtok.making import spelling
from ggtok.making.convert.texts import Lines
from ggtok.making.report import ConversionReport, Difference
from ggtok.making.vocabulary import Vocabulary

if TYPE_CHECKING:
    from ggtok.tokenizer import Tokenizer

LINES = 300  # compared by each conversion
CHECK_LINES = 3000  # compared on request
_MAX_LINE = 4000

# Gives the ids of texts, special tokens parsed and none added.
Encode = Callable[[Sequence[str]], list[list[int]]]


def lines_for(vocabulary: Vocabulary, n: int) -> list[str]:
    """Lines that tell tokenizers of this vocabulary apart."""
    words = []
    step = max(1, len(vocabulary) // 4000)
    for id in range(0, len(vocabulary), step):
        if vocabulary.types[id] == spelling.NORMAL:
            word = vocabulary.tokens[id].decode("utf-8", "ignore")
            if word.isprintable() or word.isspace():
                words.append(word[:200])
    special = [
        text.decode("utf-8", "ignore")[:200]
        for wanted in (spelling.CONTROL, spelling.USER_DEFINED)
        for text in _some_of(vocabulary, wanted)
    ]
    return [line[:_MAX_LINE] for line in Lines(words, special).make(n)]


def _some_of(vocabulary: Vocabulary, wanted: int) -> list[bytes]:
    texts = [
        text
        for text, kind in zip(vocabulary.texts, vocabulary.types, strict=True)
        if kind == wanted
    ]
    return texts[:: max(1, len(texts) // 32)]


def encode_ours(vocabulary: Vocabulary, *, parse_special: bool) -> Encode:
    tok = vocabulary.tokenizer()

    def encode(lines: Sequence[str]) -> list[list[int]]:
        return tok.encode_batch(list(lines), add_special=False, parse_special=parse_special)

    return encode


@dataclass(frozen=True)
class Original:
    """A source as its own package reads it."""

    document: Any
    encoder: Callable[[Any], Encode | None]  # None: the package isn't installed
    copy: Callable[[Any], Any] = copy.deepcopy
    parses_special: bool = True  # control tokens in a text are found

    def encode(self, differences: Sequence[Difference] = ()) -> Encode | None:
        """The source changed so as to obey these rules of llama.cpp."""
        document = self.document
        if differences:
            document = self.copy(document)
            for difference in differences:
                assert difference.change is not None
                difference.change(document)
        return self.encoder(document)


def hugging_face(document: dict[str, Any]) -> Original:
    """A tokenizer.json, read by Hugging Face's tokenizers."""
    return Original(document, _tokenizers, _copied)


def _tokenizers(document: dict[str, Any]) -> Encode | None:
    try:
        from tokenizers import Tokenizer
    except ImportError:
        return None
    try:
        tokenizer = Tokenizer.from_str(json.dumps(document))
    except Exception as e:  # it has no class of its own for what it refuses
        raise VocabError(f"tokenizers can't load the source: {e}") from None
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def encode(lines: Sequence[str]) -> list[list[int]]:
        return [e.ids for e in tokenizer.encode_batch(list(lines), add_special_tokens=False)]

    return encode


def _copied(document: dict[str, Any]) -> dict[str, Any]:
    """A copy but for the long tables, which changes replace and don't alter."""
    shallow = {key: value for key, value in document.items() if key != "model"}
    return {**copy.deepcopy(shallow), "model": dict(document["model"])}


def confirmed(vocabulary: Vocabulary, original: Original | None, n: int) -> Vocabulary:
    """The vocabulary with a report of what `n` lines show, if the package is there."""
    if original is None:
        return vocabulary
    encode = original.encode() if n else None
    report = vocabulary.report
    if encode is None:
        return vocabulary
    assert isinstance(report, ConversionReport)
    lines = lines_for(vocabulary, n)
    theirs = encode(lines)
    tok = vocabulary.tokenizer()
    ours = tok.encode_batch(lines, add_special=False, parse_special=original.parses_special)
    measured = [_measured(d, original, lines, theirs) for d in report.differences]
    measured += _found_by_text(vocabulary, tok)
    if vocabulary.model == "t5" and vocabulary.scores is not None:
        measured.append(_equal_paths(vocabulary.scores, lines, theirs, ours))
    rest = _unexplained(report.differences, original, lines, theirs, ours)
    for i, difference in enumerate(measured):
        if difference.concerns is not None:
            measured[i] = _concerned(difference, rest, len(lines))
            rest = [line for line in rest if not difference.concerns(line)]
    return replace(
        vocabulary,
        report=replace(
            report, differences=tuple(measured), compared=len(lines), unexplained=tuple(rest)
        ),
    )


def _found_by_text(vocabulary: Vocabulary, tok: Tokenizer) -> list[Difference]:
    """Normal tokens that llama.cpp takes for control tokens, because of their texts."""
    texts = [
        text.decode("utf-8", "replace")
        for id, (text, kind) in enumerate(zip(vocabulary.texts, vocabulary.types, strict=True))
        if kind == spelling.NORMAL and b"<" in text and tok.is_control(id)
    ]
    if not texts:
        return []
    return [
        Difference(
            "control-by-text",
            f"llama.cpp takes {len(texts)} normal tokens for control tokens, such as {texts[0]!r}",
            concerns=lambda line: any(text in line for text in texts),
        )
    ]


def _equal_paths(
    scores: Sequence[float],
    lines: Sequence[str],
    theirs: Sequence[list[int]],
    ours: Sequence[list[int]],
) -> Difference:
    """Lines whose two readings have the same score, but for what sums of floats lose."""
    equal = set()
    for line, their, our in zip(lines, theirs, ours, strict=True):
        a, b = (math.fsum(scores[id] for id in ids) for ids in (their, our))
        if their != our and math.isclose(a, b, rel_tol=1e-5):
            equal.add(line)
    return Difference(
        "equal-paths",
        "of segmentations whose scores are (nearly) equal, llama.cpp may take another: it sums "
        "scores in double precision",
        concerns=equal.__contains__,
    )


def _concerned(difference: Difference, lines: Sequence[str], compared: int) -> Difference:
    assert difference.concerns is not None
    mine = [line for line in lines if difference.concerns(line)]
    return replace(
        difference, lines=len(mine), compared=compared, example=min(mine, key=len, default=None)
    )


def _measured(
    difference: Difference, original: Original, lines: Sequence[str], theirs: Sequence[list[int]]
) -> Difference:
    """How many lines have other ids when the source obeys this rule of llama.cpp."""
    if difference.change is None:
        return difference
    encode = original.encode([difference])
    assert encode is not None
    others = encode(lines)
    differ = [i for i, ids in enumerate(theirs) if ids != others[i]]
    example = min((lines[i] for i in differ), key=len, default=None)
    return replace(difference, lines=len(differ), compared=len(lines), example=example)


def _unexplained(
    differences: Sequence[Difference],
    original: Original,
    lines: Sequence[str],
    theirs: Sequence[list[int]],
    ours: Sequence[list[int]],
) -> list[str]:
    """Lines that the differences, all together, don't account for; shortest first."""
    differ = [i for i, ids in enumerate(theirs) if ids != ours[i]]
    changes = [d for d in differences if d.change is not None]
    if differ and changes:
        encode = original.encode(changes)
        assert encode is not None
        again = encode([lines[i] for i in differ])
        differ = [i for i, ids in zip(differ, again, strict=True) if ids != ours[i]]
    return sorted((lines[i] for i in differ), key=len)
