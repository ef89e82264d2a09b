"""Compares ggtok's pre-tokenizers with those of another version of llama.cpp.

    python -m tests.drift                          # the installed wheel
    python -m tests.drift --wheel libllama.so      # another build, or a folder that contains one
    python -m tests.drift --source llama.cpp       # a source tree: only compares names

Lists the names for `tokenizer.ggml.pre` that only one of the two programs knows, and, given a
library, the names for which ids or decoded texts differ on generated texts. The exit status is 1 if
it lists any name.

To find the names that a library knows, it tries all strings in the library and all suffixes of
these (the linker stores "mpt" as the end of "prompt"). This takes about a minute. The C structures
are b11549's (tests/support/llamacpp.py); if another build's structures differ, no file loads.
"""

from __future__ import annotations

import argparse
import re
import struct
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ggtok.native import pre_names
from tests.parity import compare
from tests.support.llamacpp import LlamaCpp, LlamaCppDied, LlamaCppLoadError, shared_object
from tests.support.patch import GGUF
from tests.support.vocabularies import fixture, real

SEED = 11549
MAX_NAME = 32
NAME = re.compile(rb"[a-z0-9][a-z0-9._-]+")
STRING = re.compile(rb"(?<=\0)[ -~]{2,80}(?=\0)")
COMPARISON = re.compile(r'\btokenizer_pre\s*==\s*"([^"]+)"')

# Names that need another vocabulary than gpt-2, and the fixture to use: with gpt-2 and the name
# "whitespace", llama.cpp aborts.
OTHER_VOCABULARY = {"whitespace": "bpe-whitespace"}


@dataclass(frozen=True)
class Row:
    """A pre-tokenizer name, and how ggtok and the other build differ for it."""

    name: str
    difference: str


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
        result = compare(name, path, n_texts, SEED, tokens=0, llama=llama)
        if result.differences:
            first = result.shown[0].replace("\n", "\n    ")
            difference = f"{result.differences} of {result.comparisons} results differ, first\n    "
            rows.append(Row(name, difference + first))
    return rows


def print_table(rows: list[Row]) -> None:
    width = max((len(row.name) for row in rows), default=0)
    for row in rows:
        print(f"{row.name:{width}}  {row.difference}")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.drift")
    other = parser.add_mutually_exclusive_group()
    other.add_argument("--wheel", type=Path, help="a shared object, or a folder with one")
    other.add_argument("--source", type=Path, help="a source tree of llama.cpp")
    parser.add_argument("--texts", type=int, default=100, help="texts for each name")
    args = parser.parse_args(arguments)

    ours = set(pre_names())
    if args.source:
        theirs = source_names(args.source)
        rows = name_rows(theirs, ours)
    else:
        library = find_library(args.wheel) if args.wheel else shared_object()
        with (
            tempfile.TemporaryDirectory(prefix="ggtok-drift-") as folder,
            LlamaCpp(library) as llama,
        ):
            theirs = known_names(llama, candidates(library) | ours, Path(folder))
            rows = name_rows(theirs, ours)
            rows += id_rows(llama, theirs & ours, args.texts, Path(folder))
    print_table(rows)
    print(f"drift: {len(theirs)} names there, {len(ours)} here, {len(rows)} differences")
    return 1 if rows else 0


if __name__ == "__main__":
    sys.exit(main())
