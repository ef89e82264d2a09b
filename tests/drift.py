"""Compares ggtok with another version of llama.cpp.

    python -m tests.drift --newer                  # b11739, which the first call downloads
    python -m tests.drift                          # the installed wheel
    python -m tests.drift --wheel libllama.so      # another build, or a folder that contains one
    python -m tests.drift --source llama.cpp       # a source tree: only compares names

Lists the names for `tokenizer.ggml.pre` that only one of the two programs knows. Given a library,
lists also the names and vocabularies for which ids or decoded texts differ on generated texts, or
special tokens, flags, EOG sets, attributes, scores or pieces differ; and differences for malformed
and for decomposed texts. A difference is either ours to fix, or known: UTF-8 that only older builds
decode, and files with the key normalizer.nfc in builds that ignore it. The exit status is 1 if any
is ours to fix.

To find the names that a library knows, it tries all strings in the library and all suffixes of
these (the linker stores "mpt" as the end of "prompt"). This takes about a minute. The C structures
are b11549's (tests/support/llamacpp.py); if another build's structures differ, no file loads.
"""

from __future__ import annotations

import argparse
import random
import re
import struct
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ggtok.inspect.parity.compare import NFC_KEY
from ggtok.inspect.parity.worker import contains
from ggtok.native import pre_names
from tests.parity import Result, compare, compare_texts, load
from tests.support.composing import NEWER as NEWER_CHARACTERS
from tests.support.composing import composable, composing_texts, composing_vocabulary
from tests.support.llamacpp import LlamaCpp, LlamaCppDied, LlamaCppLoadError, shared_object
from tests.support.newer_llamacpp import newer_library
from tests.support.patch import GGUF
from tests.support.vocabularies import NEWER, OTHERS, REAL, fixture, fixture_names, real

SEED = 11549
MAX_NAME = 32
NAME = re.compile(rb"[a-z0-9][a-z0-9._-]+")
STRING = re.compile(rb"(?<=\0)[ -~]{2,80}(?=\0)")
COMPARISON = re.compile(r'\btokenizer_pre\s*==\s*"([^"]+)"')

# Names that need another vocabulary than gpt-2, and the fixture to use: with gpt-2 and the name
# "whitespace", llama.cpp aborts.
OTHER_VOCABULARY = {"whitespace": "bpe-whitespace"}


# The vocabularies to compare; "malformed" texts are compared with one fixture of each type.
FIXTURES = [name for name in fixture_names() if name != "big-endian"]
VOCABULARIES = [*REAL, *OTHERS, *FIXTURES]
TYPES = ["bpe-llama3", "bpe-gemma4", "spm", "wpm", "ugm", "rwkv", "plamo2"]
# Parts of malformed texts: overlong forms, surrogates, truncated and too large sequences.
MALFORMED = [
    *(b"\xc1\xa9", b"\xc0\x80", b"\xe0\x81\xa9", b"\xf0\x80\x81\xa9", b"\xc0\xaf"),
    *(b"\xed\xa0\x80", b"\xed\xb0\x80", b"\xe2\x82", b"\xf0\x9f\x98", b"\xc3", b"\x80", b"\xbf"),
    *(b"\xff", b"\xfe", b"\xf8\x88\x80\x80\x80", b"\xf4\x90\x80\x80", b"\xf5\x90\x80\x80"),
]
OVERLONG_IS_KNOWN = "known: all in texts with overlong UTF-8 or values above U+10FFFF"
NFC_IS_KNOWN = f"known: this build ignores {NFC_KEY}"


@dataclass(frozen=True)
class Row:
    """A pre-tokenizer name or vocabulary, and how ggtok and the other build differ for it."""

    name: str
    difference: str
    known: str = ""


def source_names(tree: Path) -> set[str]:
    """Returns the pre-tokenizer names with which llama.cpp's source compares a model's name."""
    text = (tree / "src" / "llama-vocab.cpp").read_text(encoding="utf-8")
    names = set(COMPARISON.findall(text))
    if not names:
        raise SystemExit(f"no names in {tree}: did the comparisons change their form?")
    return names


def find_library(path: Path) -> Path:
    """Returns the first shared object with llama.cpp's C API at the path: a file, or a folder to
    search."""
    files = [path] if path.is_file() else sorted(path.rglob("*.so*"))
    for file in files:
        if b"llama_tokenize" in file.read_bytes():
            return file
    raise SystemExit(f"no shared object with llama.cpp's C API in {path}")


def read_only_data(library: bytes) -> bytes:
    """Returns the section .rodata of a 64-bit ELF file, or the whole contents of any other file."""
    if library[:5] != b"\x7fELF\x02":
        return library
    at, size, n, names = struct.unpack_from("<Q10xHHH", library, 0x28)
    sections = [struct.unpack_from("<I20xQQ", library, at + i * size) for i in range(n)]
    for name, offset, length in sections:
        if library.startswith(b".rodata\0", sections[names][1] + name):
            return library[offset : offset + length]
    return library


def candidates(library: Path) -> set[str]:
    """Returns the strings in a library, and their suffixes, that look like names."""
    strings = set(STRING.findall(read_only_data(library.read_bytes())))
    ends = {string[i:] for string in strings for i in range(len(string) - 1)}
    return {end.decode() for end in ends if len(end) <= MAX_NAME and NAME.fullmatch(end)}


def known_names(llama: LlamaCpp, names: Iterable[str], folder: Path) -> set[str]:
    """Returns the names with which a tiny vocabulary loads."""
    gguf = GGUF.read(fixture("bpe-gpt2"))
    gguf.set("tokenizer.ggml.tokens", ["a", "b", "ab"])
    gguf.set("tokenizer.ggml.merges", ["a b"])
    for key in ("token_type", "bos_token_id", "eos_token_id", "unknown_token_id"):
        gguf.remove(f"tokenizer.ggml.{key}")

    def loads(name: str) -> bool:
        gguf.set("tokenizer.ggml.pre", name)
        try:
            llama.load(gguf.write(folder / "name.gguf")).free()
        except LlamaCppLoadError:
            return False
        return True

    try:
        if not loads("default"):
            raise SystemExit("the library can't be driven: no vocabulary loads")
        if loads("no-such-name"):
            raise SystemExit("the library does not tell a known name from an unknown one")
    except LlamaCppDied as death:
        raise SystemExit(f"the library can't be driven: {death}") from None
    return {name for name in names if loads(name)}


def name_rows(theirs: set[str], ours: set[str]) -> list[Row]:
    return [Row(name, "unknown to ggtok") for name in sorted(theirs - ours)] + [
        Row(name, "known to ggtok alone") for name in sorted(ours - theirs)
    ]


def id_rows(llama: LlamaCpp, names: Iterable[str], n_texts: int, folder: Path) -> list[Row]:
    """Returns a row for each pre-tokenizer name with which the library's results differ from
    ggtok's."""
    rows = []
    for name in sorted(names):
        base = fixture(OTHER_VOCABULARY[name]) if name in OTHER_VOCABULARY else real("gpt-2")
        gguf = GGUF.read(base)
        gguf.set("tokenizer.ggml.pre", name)
        path = gguf.write(folder / "ids.gguf")
        rows += rows_of(compare(name, path, n_texts, SEED, tokens=0, llama=llama))
    return rows


def rows_of(result: Result, known: str = "") -> list[Row]:
    """Returns a row if there are differences. `known` says why they all are known."""
    if not result.differences:
        return []
    if not known and result.overlong == result.differences:
        known = OVERLONG_IS_KNOWN
    difference = f"{result.differences} of {result.comparisons} results differ"
    if not known:
        difference += ", first\n    " + result.shown[0].replace("\n", "\n    ")
    return [Row(result.name, difference, known)]


def vocabulary_rows(llama: LlamaCpp, library: Path, n_texts: int) -> list[Row]:
    """Compares ids, decoded texts, special tokens, flags, EOG sets, attributes and pieces."""
    reads_nfc = contains(library, NFC_KEY.encode())
    rows = []
    for name in VOCABULARIES:
        path = fixture(name) if name in FIXTURES else real(name)
        result = compare(
            name, path, n_texts, SEED, tokens=1 if name in FIXTURES else 20, llama=llama
        )
        rows += rows_of(result, NFC_IS_KNOWN if name in NEWER and not reads_nfc else "")
    return rows


def malformed_rows(llama: LlamaCpp, n_texts: int) -> list[Row]:
    """Compares texts that contain malformed UTF-8."""
    chooser = random.Random(SEED)
    parts = [*MALFORMED, *MALFORMED, b"a", b" b", "\u00e9".encode(), b"the ", b"\n"]
    texts = [b"".join(chooser.choices(parts, k=chooser.randint(1, 8))) for _ in range(n_texts)]
    rows = []
    for name in TYPES:
        result = Result(f"malformed texts, {name}")
        vocab = llama.load(fixture(name))
        compare_texts(vocab, load(fixture(name)), texts, result)
        vocab.free()
        rows += rows_of(result)
    return rows


def nfc_rows(llama: LlamaCpp, library: Path, n_texts: int, folder: Path) -> list[Row]:
    """Compares texts of all characters that NFC changes, with a vocabulary that spells their
    NFC."""
    if not contains(library, NFC_KEY.encode()):
        return []
    characters = [*composable(), *NEWER_CHARACTERS]
    path = composing_vocabulary(characters).write(folder / "composing.gguf")
    texts = [text.encode() for text in composing_texts(characters, n_texts, SEED)]
    result = Result("NFC of every character")
    vocab = llama.load(path)
    compare_texts(vocab, load(path), texts, result)
    vocab.free()
    return rows_of(result)


def print_table(rows: list[Row]) -> None:
    width = max((len(row.name) for row in rows), default=0)
    for row in rows:
        print(f"{row.name:{width}}  {row.difference}" + (f" ({row.known})" if row.known else ""))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.drift")
    other = parser.add_mutually_exclusive_group()
    other.add_argument("--newer", action="store_true", help="b11739, downloaded on the first call")
    other.add_argument("--wheel", type=Path, help="a shared object, or a folder with one")
    other.add_argument("--source", type=Path, help="a source tree of llama.cpp")
    parser.add_argument("--texts", type=int, default=100, help="texts for each comparison")
    args = parser.parse_args(arguments)

    ours = set(pre_names())
    if args.source:
        theirs = source_names(args.source)
        rows = name_rows(theirs, ours)
    else:
        library = (
            newer_library()
            if args.newer
            else find_library(args.wheel)
            if args.wheel
            else shared_object()
        )
        with (
            tempfile.TemporaryDirectory(prefix="ggtok-drift-") as folder,
            LlamaCpp(library) as llama,
        ):
            theirs = known_names(llama, candidates(library) | ours, Path(folder))
            rows = name_rows(theirs, ours)
            rows += id_rows(llama, theirs & ours, args.texts, Path(folder))
            rows += vocabulary_rows(llama, library, args.texts)
            rows += malformed_rows(llama, args.texts)
            rows += nfc_rows(llama, library, args.texts, Path(folder))
    print_table(rows)
    fix = sum(not row.known for row in rows)
    print(
        f"drift: {len(theirs)} names there, {len(ours)} here, {len(rows)} differences, "
        f"{fix} of them ours to fix"
    )
    return 1 if fix else 0


if __name__ == "__main__":
    sys.exit(main())
