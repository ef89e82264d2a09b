"""Checks a conversion by comparing its ids with those of a package that loads the source.

A file is loaded by its own package. To find the lines that each of llama.cpp's rules affects, the
source is changed to follow one rule after another, and loaded again after each change. A folder is
also loaded by transformers, which uses more files of the folder. In that case, the ids of
transformers decide, and the file's own package explains the differences.
"""

from __future__ import annotations

import copy
import json
import math
import operator
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ggtok.errors import VocabError
from ggtok.vocabularies import spelling
from ggtok.vocabularies.contents import ConversionReport, Difference
from ggtok.vocabularies.convert.folder import SourceFolder
from ggtok.vocabularies.convert.lines import lines_for
from ggtok.vocabularies.convert.originals import Encode, Package, TooMuch
from ggtok.vocabularies.convert.package_facts import PackageFacts
from ggtok.vocabularies.vocabulary import Vocabulary

if TYPE_CHECKING:
    from ggtok.tokenizer import Tokenizer


# ---- comparison ----

LINES = 300  # how many lines each conversion compares
CHECK_LINES = 3000  # how many lines are compared on request


def _texts_of(vocabulary: Vocabulary, wanted: int) -> list[str]:
    rows = zip(vocabulary.texts, vocabulary.types, strict=True)
    return [text.decode("utf-8", "replace") for text, kind in rows if kind == wanted]


def encode_ours(vocabulary: Vocabulary, *, parse_special: bool) -> Encode:
    tok = vocabulary.tokenizer()

    def encode(lines: Sequence[str]) -> list[list[int]]:
        return tok.encode_batch(list(lines), add_special=False, parse_special=parse_special)

    return encode


@dataclass(frozen=True)
class Original:
    """A source in the form that its own package reads."""

    document: Any
    package: Package
    source: Callable[[Any], object]  # converts a document to the package's input
    copy: Callable[[Any], Any] = copy.deepcopy
    parses_special: bool = True  # whether the package parses control tokens in a text
    number: Callable[[int], int] | None = None  # converts the package's ids to llama.cpp's
    generated: bool = False  # whether ggtok created the document according to a tokenizer class

    def knows_ids(self, folder: SourceFolder) -> bool:
        """Whether the package knows all tokens by llama.cpp's ids: sentencepiece doesn't read the
        folder's configuration."""
        of_document = self.package.name == "tokenizers"
        return of_document or (self.number is None and folder.path is None)

    def facts(self) -> PackageFacts | None:
        """Returns what the package knows of the vocabulary, or None if it isn't installed or fails,
        which :meth:`encode` reports."""
        with suppress(TooMuch):
            if self.encode() is not None:
                return PackageFacts.of_answer(self.package.facts())
        return None

    def encode(self, differences: Sequence[Difference] = ()) -> Encode | None:
        """Returns a function that encodes with the source after making the changes of these
        differences to it, or None if the package isn't installed."""
        document = self.document
        if differences:
            document = self.copy(document)
            for difference in differences:
                assert difference.change is not None
                difference.change(document)
        encode, number = self.package.read(self.source(document)), self.number
        if encode is None or number is None:
            return encode
        return lambda lines: [list(map(number, ids)) for ids in encode(lines)]


def hugging_face(document: dict[str, Any], *, generated: bool = False) -> Original:
    """Returns an Original for a tokenizer.json, which Hugging Face's tokenizers reads."""
    return Original(
        document, Package("tokenizers"), json.dumps, _copy_document, generated=generated
    )


def _copy_document(document: dict[str, Any]) -> dict[str, Any]:
    """Copies a document, except for the long tables, which may be replaced but not modified."""
    shallow = {key: value for key, value in document.items() if key != "model"}
    return {**copy.deepcopy(shallow), "model": dict(document["model"])}


def confirm(
    vocabulary: Vocabulary, original: Original | None, n: int, folder: SourceFolder | None = None
) -> Vocabulary:
    """Compares the vocabulary and the ids of `n` lines if the packages are installed, and returns
    the vocabulary with a report."""
    folder = folder or SourceFolder(None)
    if not n:
        return vocabulary
    judge, facts, theirs = None, None, None
    if folder.path is not None:
        try:
            judge = Judge.of("transformers", os.path.abspath(folder.path))
        except VocabError as e:
            vocabulary = _add_note(vocabulary, e.args[0])
    if judge is None and original is not None and original.knows_ids(folder):
        facts = original.facts()
    lines = lines_for(vocabulary, n, facts if judge is None else judge.facts)
    if original is not None:
        try:
            vocabulary, theirs = _compare_with_package(vocabulary, original, lines)
        except TooMuch as e:
            vocabulary = _add_note(vocabulary, e.args[0])
    if judge is None:
        return vocabulary if facts is None else _report_disagreements(vocabulary, facts)
    try:
        return _compare_with_transformers(
            _report_disagreements(vocabulary, judge.facts), judge, lines, original, theirs
        )
    except TooMuch as e:
        return _add_note(vocabulary, e.args[0])


@dataclass(frozen=True)
class Judge:
    """A package that has loaded the source, and what it knows of the vocabulary."""

    encode: Encode
    facts: PackageFacts

    @classmethod
    def of(cls, name: str, source: object) -> Judge | None:
        package = Package(name)
        encode = package.read(source)
        return None if encode is None else cls(encode, PackageFacts.of_answer(package.facts()))


def _report_disagreements(vocabulary: Vocabulary, facts: PackageFacts) -> Vocabulary:
    """Returns the vocabulary with a report that has the package's disagreements."""
    report = vocabulary.report
    assert isinstance(report, ConversionReport)
    report = replace(
        report,
        known=len(facts.tokens),
        disagreements=tuple(facts.disagreements(vocabulary)) if facts.tokens else (),
    )
    return replace(vocabulary, report=report)


def _add_note(vocabulary: Vocabulary, note: str) -> Vocabulary:
    report = vocabulary.report
    return replace(vocabulary, report=replace(report, notes=(*report.notes, note)))


Ids = dict[str, list[int]]  # the ids for each line


def _compare_with_transformers(
    vocabulary: Vocabulary,
    judge: Judge,
    lines: Sequence[str],
    original: Original | None,
    theirs: Ids | None,
) -> Vocabulary:
    """Compares the vocabulary's ids with those of transformers. `theirs` are the ids from the
    file's own package."""
    encode, report = judge.encode, vocabulary.report
    assert isinstance(report, ConversionReport)
    if original is not None and not original.parses_special:
        # The package doesn't parse control tokens, so lines with their texts can't be compared.
        control = _texts_of(vocabulary, spelling.CONTROL)
        lines = [line for line in lines if _without_texts(line, control) == line]
    expected = dict(zip(lines, encode(lines), strict=True))
    ours = encode_ours(vocabulary, parse_special=True)(lines)
    differing = [line for line, ids in zip(lines, ours, strict=True) if expected[line] != ids]
    known, differences = set(report.unexplained), report.differences
    if original is None or theirs is None:
        unexplained = [] if differences else differing
    else:
        loader = {line for line in differing if theirs[line] != expected[line]}
        unexplained = [x for x in differing if x in known or (original.generated and x in loader)]
        if loader and not original.generated:
            row = _count_differences(_LOADER, loader, lines)
            differences = (*differences, row)
    report = replace(
        report,
        differences=differences,
        judge="transformers",
        compared=len(lines),
        differing=len(differing),
        unexplained=tuple(sorted(unexplained, key=len)),
    )
    return replace(vocabulary, report=report)


_LOADER = Difference(
    "loader",
    "transformers doesn't follow all rules of the file: its class for the folder has other rules, "
    "so its ids differ from those of the file's own package",
)


def _compare_with_package(
    vocabulary: Vocabulary, original: Original, lines: Sequence[str]
) -> tuple[Vocabulary, Ids | None]:
    """Compares the vocabulary's ids with those of the file's own package. Returns the vocabulary
    with a report, and the package's ids."""
    encode, report = original.encode(), vocabulary.report
    if encode is None:
        return vocabulary, None
    assert isinstance(report, ConversionReport)
    theirs = encode(lines)
    tok = vocabulary.tokenizer()
    differences = [*report.differences, *_found_by_text(vocabulary, tok)]
    changed = _apply_differences(differences, original, lines, theirs)
    pair = _Pair.of(vocabulary, original, differences, tok)
    rest = pair.differing(lines)
    if pair.scores is not None:
        equal = pair.equal_paths(rest)
        differences.append(_EQUAL_PATHS)
        changed.append(equal)
        rest = [line for line in rest if line not in equal]
    causes = [i for i, difference in enumerate(differences) if difference.without is not None]
    for i in causes:
        found = pair.lines_explained_by(rest, [differences[i]])
        changed[i] = (changed[i] or set()) | found
        rest = [line for line in rest if line not in found]
    together = pair.lines_explained_by(rest, [differences[i] for i in causes])
    for i in causes:
        without = differences[i].without
        changed[i] = {*(changed[i] or ()), *(x for x in together if without and without(x) != x)}
    rest = [line for line in rest if line not in together]
    report = replace(
        report,
        differences=tuple(map(_count_differences, differences, changed, [lines] * len(changed))),
        judge=original.package.name,
        compared=len(lines),
        differing=sum(map(operator.ne, theirs, pair.ours(lines))),
        unexplained=tuple(sorted(rest, key=len)),
    )
    return replace(vocabulary, report=report), dict(zip(lines, theirs, strict=True))


def _found_by_text(vocabulary: Vocabulary, tok: Tokenizer) -> list[Difference]:
    """Reports normal tokens that llama.cpp treats as control tokens because of their texts."""
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
            f"llama.cpp treats {len(texts)} normal tokens as control tokens, such as {texts[0]!r}",
            without=lambda line: _without_texts(line, texts),
        )
    ]


def _without_texts(line: str, texts: Sequence[str]) -> str:
    for text in texts:
        line = line.replace(text, "")
    return line


def _apply_differences(
    differences: Sequence[Difference],
    original: Original,
    lines: Sequence[str],
    theirs: Sequence[list[int]],
) -> list[set[str] | None]:
    """Applies the changes of the differences to the source, one after another. Returns, for each
    difference, the lines whose ids its change affects, or None if the difference has no change."""
    changed: list[set[str] | None] = []
    followed: list[Difference] = []
    before = theirs
    for difference in differences:
        if difference.change is None:
            changed.append(None)
            continue
        followed.append(difference)
        encode = original.encode(followed)
        assert encode is not None
        after = encode(lines)
        rows = zip(lines, before, after, strict=True)
        changed.append({line for line, old, new in rows if old != new})
        before = after
    return changed


def _count_differences(
    difference: Difference, changed: set[str] | None, lines: Sequence[str]
) -> Difference:
    if changed is None:
        return difference
    example = min(sorted(changed), key=len, default=None)
    count = sum(line in changed for line in lines)
    return replace(difference, lines=count, compared=len(lines), example=example)


_EQUAL_PATHS = Difference(
    "equal-paths",
    "of segmentations whose scores are equal except for rounding, llama.cpp may choose another, "
    "because it sums scores in double precision",
)
_ROUNDING = 2.0**-23  # the relative rounding error of one addition of floats


@dataclass(frozen=True)
class _Pair:
    """Two encoders to compare: the source's encoder, after the changes of all differences, and
    ggtok's encoder."""

    source: Encode
    ours: Encode
    scores: Sequence[float] | None  # the tokens' scores, for Unigram

    @classmethod
    def of(
        cls,
        vocabulary: Vocabulary,
        original: Original,
        differences: Sequence[Difference],
        tok: Tokenizer,
    ) -> _Pair:
        source = original.encode([d for d in differences if d.change is not None])
        assert source is not None

        def ours(lines: Sequence[str]) -> list[list[int]]:
            special = original.parses_special
            return tok.encode_batch(list(lines), add_special=False, parse_special=special)

        return cls(source, ours, vocabulary.scores if vocabulary.model == "t5" else None)

    def differing(self, lines: Sequence[str]) -> list[str]:
        read = zip(lines, self.source(lines), self.ours(lines), strict=True)
        return [line for line, theirs, ours in read if theirs != ours]

    def equal_paths(self, lines: Sequence[str]) -> set[str]:
        """Returns the lines for which both segmentations have the same score, up to rounding."""
        read = zip(lines, self.source(lines), self.ours(lines), strict=True)
        return {line for line, theirs, ours in read if self._score_alike(theirs, ours)}

    def _score_alike(self, theirs: Sequence[int], ours: Sequence[int]) -> bool:
        assert self.scores is not None
        a, b = ([self.scores[id] for id in ids] for ids in (theirs, ours))
        bound = _ROUNDING * (len(a) * math.fsum(map(abs, a)) + len(b) * math.fsum(map(abs, b)))
        return abs(math.fsum(a) - math.fsum(b)) <= bound

    def lines_explained_by(
        self, lines: Sequence[str], differences: Sequence[Difference]
    ) -> set[str]:
        """Returns the lines that contain causes of these differences, and get equal ids when all
        of these causes are removed."""
        changed = {}
        for line in lines:
            text = line
            for difference in differences:
                assert difference.without is not None
                text = difference.without(text)
            if text != line:
                changed[line] = text
        still = set(self.differing(list(changed.values())))
        if self.scores is not None:
            still -= self.equal_paths(list(still))
        return {line for line, text in changed.items() if text not in still}
