"""Finds the line of a chat template at which two renderings part.

Markers are written into the template before its tags: expressions that output a private character
and the tag's number. So a marked rendering is a list of events, each a tag and the text written
from there to the next marker. The first event that differs between two renderings names the tag:
the event's own if its text differs, or the one before it, which led to different tags.

Markers may change what a template does, as where it measures or compares text that a macro or a
block has written. A marked rendering therefore counts only if it is the plain one without its
markers. If it isn't, markers inside macros and blocks are left out.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

_OPEN, _CLOSE = "\ue000", "\ue001"  # private characters around a marker's number
_MARKER = re.compile(f"{_OPEN}(\\d+){_CLOSE}")
_TAG = re.compile(r"\{\{|\{%|\{#")
_END = {
    "{{": re.compile(r"""(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|(?!\}\})[^'"])*\}\}""", re.DOTALL),
    "{%": re.compile(r"""(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|(?!%\})[^'"])*%\}""", re.DOTALL),
    "{#": re.compile(r".*?#\}", re.DOTALL),
}
_NAME = re.compile(r"\{%[-+]?\s*(\w+)(\s+\w+\s*(?:%\}|-%\}|\|))?")
_END_RAW = re.compile(r"\{%[-+]?\s*endraw\s*[-+]?%\}")
_INNER = ("macro", "call", "filter")  # blocks whose text is a value
_INDENT = re.compile(r"(?:^|(?<=\n))[ \t]+\Z")

Event = tuple[int, str]


class Marked(NamedTuple):
    """A template with markers.

    Attributes:
        source: the template.
        lines: the line of each tag, counted from 1.
        tags: the beginning of each tag, for messages.
    """

    source: str
    lines: tuple[int, ...]
    tags: tuple[str, ...]


@lru_cache(16)
def marked(source: str, inner: bool) -> Marked | None:
    """The template with markers; None if that can't be. `inner`: also inside of macros and blocks
    whose text is a value."""
    if _OPEN in source:
        return None
    out: list[str] = []
    lines: list[int] = []
    tags: list[str] = []
    at, depth, line = 0, 0, 1
    while (begin := _TAG.search(source, at)) is not None:
        kind = begin[0]
        end = _END[kind].match(source, begin.end())
        if end is None:
            break
        name, is_block = _name(source, begin.start()) if kind == "{%" else ("", False)
        before = source[at : begin.start()]
        line += before.count("\n")
        if name in (*(f"end{inner}" for inner in _INNER), "endset"):
            depth = max(0, depth - 1)
        if kind != "{#" and (inner or not depth):
            strips = source[begin.end() : begin.end() + 1]
            if kind == "{%" and strips not in ("-", "+"):
                before = _INDENT.sub("", before)
            out += [before, "{{", "-" * (strips == "-"), f' "{_OPEN}{len(lines)}{_CLOSE}" }}}}']
            lines.append(line)
            tags.append(source[begin.start() : end.end()])
        else:
            out.append(before)
        if name in _INNER or is_block:
            depth += 1
        at = end.end()
        if name == "raw":
            raw = _END_RAW.search(source, at)
            if raw is None:
                break
            at = raw.end()
        out.append(source[begin.start() : at])
        line += source.count("\n", begin.start(), at)
    out.append(source[at:])
    return Marked("".join(out), tuple(lines), tuple(tags))


def _name(source: str, at: int) -> tuple[str, bool]:
    """The name of a statement, and whether it is a set block."""
    found = _NAME.match(source, at)
    if found is None:
        return "", False
    return found[1], found[1] == "set" and found[2] is not None


def plain(text: str) -> str:
    """The text without markers."""
    return _MARKER.sub("", text)


def parting(first: str, second: str) -> int | None:
    """The tag at which two marked renderings part; None: before the first tag, or nowhere."""
    one, other = _events(first), _events(second)
    last = -1
    for (tag, text), (other_tag, other_text) in zip(one, other, strict=False):
        if tag != other_tag:
            break
        last = tag
        if text != other_text:
            break
    else:
        if len(one) == len(other):
            return None
    return last if last >= 0 else None


def _events(text: str) -> list[Event]:
    pieces = _MARKER.split(text)
    numbers = [-1, *map(int, pieces[1::2])]
    return list(zip(numbers, pieces[::2], strict=True))
