"""The texts on which tokenizers are timed.

prose: the topics in Python's help, then docstrings from its standard library.
code:  the sources of the standard library.
With --corpus, also each *.txt file in a folder.
"""

from __future__ import annotations

import ast
import hashlib
import random
import sysconfig
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

MB = 1_000_000
FIRST_PASS = 16 * MB
DOCUMENT = 4096
_DOCSTRING_MIN = 200  # characters; shorter docstrings are rarely prose


@dataclass(frozen=True)
class Corpus:
    name: str
    text: str

    def head(self, n: int) -> str:
        """Returns the first n bytes, cut at a character boundary."""
        return cut(self.text, n)[0]

    def describe(self) -> dict[str, str | int]:
        data = self.text.encode()
        return {
            "name": self.name,
            "bytes": len(data),
            "sha256": hashlib.sha256(data).hexdigest(),
        }


def size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def cut(text: str, n: int, count: int | None = None) -> list[str]:
    """Splits the text into consecutive pieces of at most n bytes, without splitting characters;
    returns the first `count` pieces (default: all)."""
    if text.isascii():
        end = len(text) if count is None else n * count
        return [text[at : at + n] for at in range(0, min(end, len(text)), n)]
    data = text.encode()
    pieces: list[str] = []
    at = 0
    while at < len(data) and (count is None or len(pieces) < count):
        end = min(at + n, len(data))
        while end < len(data) and data[end] & 0xC0 == 0x80:
            end -= 1
        pieces.append(data[at:end].decode())
        at = end
    return pieces


def documents(text: str) -> list[str]:
    return cut(text, DOCUMENT)


@cache
def _sources() -> tuple[str, ...]:
    """Returns the standard library's sources, sorted by file name, without duplicates."""
    seen: dict[str, None] = {}
    root = Path(sysconfig.get_path("stdlib"))
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).parts
        if "site-packages" in parts or "lib2to3" in parts or parts[0] == "pydoc_data":
            continue  # pydoc_data is prose; lib2to3's tests can't be parsed
        try:
            seen[path.read_text(encoding="utf-8")] = None
        except UnicodeDecodeError:
            continue
    return tuple(seen)


def _docstrings() -> Iterator[str]:
    seen: set[str] = set()
    for source in _sources():
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                text = ast.get_docstring(node)
                if text and len(text) >= _DOCSTRING_MIN and text not in seen:
                    seen.add(text)
                    yield text


@cache
def prose() -> Corpus:
    from pydoc_data import topics

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the sources' syntax warnings
        parts = [*topics.topics.values(), *_docstrings()]
    return Corpus("prose", "\n\n".join(parts))


@cache
def code() -> Corpus:
    return Corpus("code", "\n".join(_sources()))


def folder(path: Path) -> list[Corpus]:
    return [
        Corpus(file.stem, file.read_text(encoding="utf-8", errors="replace"))
        for file in sorted(path.glob("*.txt"))
    ]


def mixed(more: list[Corpus], most: int = FIRST_PASS) -> Corpus:
    """Returns up to `most` bytes without repetition: prose, then the folder's files, then code."""
    text = "\n".join([prose().text, *(corpus.text for corpus in more), code().text])
    return Corpus("mixed", cut(text, most, 1)[0])


def chinese(more: list[Corpus]) -> Corpus:
    """Returns a Chinese file from the folder, or random Han characters, some far more frequent than
    others."""
    for corpus in more:
        if "zh" in corpus.name.lower().replace("_", "-").replace(".", "-").split("-"):
            return corpus
    chooser = random.Random(1)
    words = ("".join(_han(chooser) for _ in range(chooser.randint(2, 20))) for _ in range(20_000))
    return Corpus("zh-made", "".join(word + chooser.choice("\uff0c\u3002\u3001") for word in words))


def _han(chooser: random.Random) -> str:
    return chr(0x4E00 + int(chooser.paretovariate(0.6)) % 0x51A5)
