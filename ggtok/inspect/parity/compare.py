"""Compares ggtok's ids with llama.cpp's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import metadata
from importlib.util import find_spec
from itertools import islice

from ggtok.errors import GGTokError, MissingExtraError
from ggtok.inspect.parity.process import LlamaCpp, LlamaCppDied, LlamaCppError, Vocab
from ggtok.inspect.parity.texts import defuse, texts
from ggtok.inspect.parity.worker import PACKAGES
from ggtok.tokenizer import TokenAttr, Tokenizer

# The values of (add_special, parse_special) to compare.
FLAG_PAIRS = [(False, False), (False, True), (True, False), (True, True)]
SPECIAL_ATTRS = TokenAttr.UNKNOWN | TokenAttr.CONTROL | TokenAttr.USER_DEFINED
_WORDS = 5000  # the most pieces of a vocabulary to use in generated texts
_SHRINK_CALLS = 300  # the most attempts to shorten a text
_BATCH = 50  # texts per request to llama.cpp


def connect() -> tuple[LlamaCpp, str]:
    """Returns the installed llama.cpp, and the name and version of its package.

    The package is xllamacpp or else llama-cpp-python.

    Raises:
        MissingExtraError: neither package is installed, or no installed one works.
    """
    faults = ""
    for package, (module, _) in PACKAGES.items():
        if find_spec(module) is None:
            continue
        llama = LlamaCpp(package)
        try:
            llama.check()
        except LlamaCppError as e:
            llama.close()
            faults += f"; {package} doesn't work: {e}"
        else:
            return llama, f"{package} {_version(package)}"
    raise MissingExtraError(
        f"no llama.cpp to compare with: pip install xllamacpp, or llama-cpp-python{faults}"
    )


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "of unknown version"


def generated(tok: Tokenizer, n: int, seed: int) -> Iterator[bytes]:
    """Yields `n` texts for this vocabulary, which depend only on the seed."""
    return texts(seed, n, words_of(tok), [tok.token_text(id) for id in special_of(tok)])


def words_of(tok: Tokenizer) -> list[bytes]:
    """Returns pieces from all over the vocabulary, evenly spaced."""
    some = range(0, tok.n_tokens, tok.n_tokens // _WORDS + 1)
    return [piece for id in some if (piece := tok.token_to_piece(id))]


def special_of(tok: Tokenizer) -> list[int]:
    attr, mask = tok._native.attr, int(SPECIAL_ATTRS)
    return [id for id in range(tok.n_tokens) if attr(id) & mask]


@dataclass
class Difference:
    """A text for which the ids differ. `ggtok` may be an error message."""

    text: bytes
    add_special: bool
    parse_special: bool
    llama_cpp: list[int]
    ggtok: list[int] | str


@dataclass
class Comparison:
    """The result of a comparison.

    Attributes:
        texts: the number of texts, each of which is encoded in four ways.
        different: the number of results that differ, over all texts and ways.
        first: the first differences, with shortened texts.
        deaths: the number of texts that crash llama.cpp, or that it refuses to encode.
    """

    texts: int = 0
    different: int = 0
    first: list[Difference] = field(default_factory=list)
    deaths: int = 0


def compare(
    tok: Tokenizer,
    vocab: Vocab,
    given: Iterator[bytes],
    show: int,
    progress: Callable[[int], None] | None = None,
) -> Comparison:
    """Compares the ids for these texts, and keeps the first `show` differences."""
    found = Comparison()
    if progress:
        progress(0)
    while batch := list(islice(given, _BATCH)):
        dead: set[bytes] = set()
        for add_special, parse_special in FLAG_PAIRS:
            alive = [text for text in batch if text not in dead]
            theirs = vocab.survivors(alive, add_special, parse_special)
            for text, ids in zip(alive, theirs, strict=True):
                if ids is None:
                    dead.add(text)
                    continue

                def ours(
                    text: bytes, add: bool = add_special, parse: bool = parse_special
                ) -> list[int] | str:
                    try:
                        return tok.encode(text, add_special=add, parse_special=parse)
                    except GGTokError as e:
                        return str(e)

                if ids == ours(text):
                    continue
                found.different += 1
                if len(found.first) < show:
                    text, ids = shrink(vocab, ours, text, add_special, parse_special, ids)
                    found.first.append(
                        Difference(text, add_special, parse_special, ids, ours(text))
                    )
        found.texts += len(batch)
        found.deaths += len(dead)
        if progress:
            progress(found.texts)
    return found


def shrink(
    vocab: Vocab,
    ours: Callable[[bytes], object],
    text: bytes,
    add_special: bool,
    parse_special: bool,
    theirs: list[int],
) -> tuple[bytes, list[int]]:
    """Shortens a differing text by removing smaller and smaller pieces."""
    calls = 0
    size = len(text) // 2
    while size and calls < _SHRINK_CALLS:
        at = 0
        while at < len(text) and calls < _SHRINK_CALLS:
            shorter = defuse(text[:at] + text[at + size :])
            calls += 1
            try:
                ids = vocab.tokenize(shorter, add_special, parse_special)
            except LlamaCppDied:
                ids = None
            if ids is not None and ids != ours(shorter):
                text, theirs = shorter, ids
            else:
                at += size
        size //= 2
    return text, theirs
