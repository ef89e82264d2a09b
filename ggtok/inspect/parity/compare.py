"""Compares ggtok's ids with llama.cpp's."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import metadata
from importlib.util import find_spec
from itertools import islice

from ggtok.base.escape import printable
from ggtok.errors import GGTokError, MissingExtraError
from ggtok.inspect.parity.process import (
    LlamaCpp,
    LlamaCppDied,
    LlamaCppError,
    LlamaCppLoadError,
    Vocab,
)
from ggtok.inspect.parity.texts import defuse, texts
from ggtok.inspect.parity.worker import LIBRARY, PACKAGES
from ggtok.tokenizer import TokenAttr, Tokenizer

# The values of (add_special, parse_special) to compare.
FLAG_PAIRS = [(False, False), (False, True), (True, False), (True, True)]
SPECIAL_ATTRS = TokenAttr.UNKNOWN | TokenAttr.CONTROL | TokenAttr.USER_DEFINED
_WORDS = 5000  # the most pieces of a vocabulary to use in generated texts
_SHRINK_CALLS = 300  # the most attempts to shorten a text
# UTF-8 that only older builds decode: overlong forms, and values above U+10FFFF.
OVERLONG = re.compile(
    rb"[\xC0\xC1][\x80-\xBF]|\xE0[\x80-\x9F][\x80-\xBF]|\xF0[\x80-\x8F][\x80-\xBF]{2}"
    rb"|\xF4[\x90-\xBF][\x80-\xBF]{2}|[\xF5-\xF7][\x80-\xBF]{3}"
)
NFC_KEY = "tokenizer.ggml.normalizer.nfc"
_BATCH = 50  # texts per request to llama.cpp


def connect(library: str | None = None) -> tuple[LlamaCpp, str]:
    """Returns a llama.cpp, and the name and version of its package or library.

    It is the library at this path; without one, the package xllamacpp or else llama-cpp-python.

    Raises:
        LlamaCppLoadError: the library can't be used.
        MissingExtraError: neither package is installed, or no installed one works.
    """
    if library is not None:
        return _connect_library(library)
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


def _connect_library(path: str) -> tuple[LlamaCpp, str]:
    llama = LlamaCpp(LIBRARY, os.path.abspath(path))
    try:
        llama.check()
        build = llama.build()
    except LlamaCppError as e:
        llama.close()
        raise LlamaCppLoadError(f"{printable(path)}: {_load_advice(path, str(e))}") from None
    return llama, f"{printable(path)}" + (f" ({build})" if build else "")


def _load_advice(path: str, message: str) -> str:
    """Says why a library can't be used, and what to do."""
    if not os.path.isfile(path):
        return "no such file; --library names llama.cpp's shared library, such as libllama.so"
    if missing := re.search(r"version [`'](GLIBC\w*_[\d.]+)' not found", message):
        return (
            f"this library was built for a newer system: {missing[1]} is missing. Run ggtok on a "
            "system that has it, or preload a library that defines the missing functions "
            "(LD_PRELOAD)"
        )
    if missing := re.search(r"(\S+): cannot open shared object file", message):
        return f"it needs {missing[1]}: put the folder with that library into LD_LIBRARY_PATH"
    if missing := re.search(r"undefined symbol: (\w+)|function '(\w+)' not found", message):
        name = missing[1] or missing[2]
        return f"it has no function {name}, so it isn't llama.cpp's library, or is too old"
    if "other structures" in message:
        return "its structures aren't those of b11549, so ggtok can't call it: too old or too new"
    return "can't load it: " + message.removeprefix(f"{path}: ")


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "of unknown version"


def reasons(tok: Tokenizer, llama: LlamaCpp, found: ParityComparison) -> list[str]:
    """Returns the known reasons for differences between builds of llama.cpp that apply."""
    known = []
    composes = tok.vocab_type == "UGM" and tok._loaded.flags["nfc"]
    if found.different and composes and not llama.knows_key(NFC_KEY):
        known.append(
            f"the file asks for NFC ({NFC_KEY}), and this build of llama.cpp ignores the key, as "
            "b11549 does; ggtok gives the ids of builds that read it, such as b11739"
        )
    elif found.overlong:
        known.append(
            f"{found.overlong} of the differences are in texts with overlong UTF-8 or values "
            "above U+10FFFF: ggtok decodes these, as b11549 does, and newer builds, such as "
            "b11739, replace them by U+FFFD"
        )
    return known


def generate_texts(tok: Tokenizer, n: int, seed: int) -> Iterator[bytes]:
    """Yields `n` texts for this vocabulary, which depend only on the seed."""
    return texts(seed, n, words_of(tok), [tok.token_text(id) for id in special_of(tok)])


def words_of(tok: Tokenizer) -> list[bytes]:
    """Returns pieces from all over the vocabulary, evenly spaced."""
    some = range(0, tok.n_tokens, tok.n_tokens // _WORDS + 1)
    return [piece for id in some if (piece := tok.token_to_piece(id))]


def special_of(tok: Tokenizer) -> list[int]:
    attr, mask = tok._loaded.attr, int(SPECIAL_ATTRS)
    return [id for id in range(tok.n_tokens) if attr(id) & mask]


@dataclass
class ParityDifference:
    """A text for which the ids differ. `ggtok` may be an error message."""

    text: bytes
    add_special: bool
    parse_special: bool
    llama_cpp: list[int]
    ggtok: list[int] | str


@dataclass
class ParityComparison:
    """The result of a comparison.

    Attributes:
        texts: the number of texts, each of which is encoded in four ways.
        different: the number of results that differ, over all texts and ways.
        first: the first differences, with shortened texts.
        overlong: the number of these results whose text has UTF-8 that only older builds
            decode.
        deaths: the number of texts that crash llama.cpp, or that it refuses to encode.
    """

    texts: int = 0
    different: int = 0
    overlong: int = 0
    first: list[ParityDifference] = field(default_factory=list)
    deaths: int = 0


def compare(
    tok: Tokenizer,
    vocab: Vocab,
    given: Iterator[bytes],
    show: int,
    progress: Callable[[int], None] | None = None,
) -> ParityComparison:
    """Compares the ids for these texts, and keeps the first `show` differences."""
    found = ParityComparison()
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
                found.overlong += OVERLONG.search(text) is not None
                if len(found.first) < show:
                    text, ids = shrink(vocab, ours, text, add_special, parse_special, ids)
                    found.first.append(
                        ParityDifference(text, add_special, parse_special, ids, ours(text))
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
