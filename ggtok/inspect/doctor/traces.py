"""Finds the line of a chat template at which two renderings diverge.

Markers are inserted before the template's tags: expressions that output the tag's number between
private-use characters. So a marked rendering is a list of events, each a tag and its position in
the plain text. The last event before the first difference that both renderings share identifies
the tag at which they diverge: the tag wrote different texts, or led to different tags.

Markers may change what a template does, for instance if it measures or compares text that a macro
or a block has written. So a marked rendering counts only if it equals the plain one after its
markers are removed. If it doesn't, macros and blocks get no markers.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from ggtok.chat.prompt import n_shared

_OPEN, _CLOSE = "\ue000", "\ue001"  # private-use characters around a tag's number
_MARKER = re.compile(f"{_OPEN}(\\d+){_CLOSE}")
_TAG = re.compile(r"\{\{|\{%|\{#")
_END = {
    "{{": re.compile(r"""(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|(?!\}\})[^'"])*\}\}""", re.DOTALL),
    "{%": re.compile(r"""(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|(?!%\})[^'"])*%\}""", re.DOTALL),
    "{#": re.compile(r".*?#\}", re.DOTALL),
}
_NAME = re.compile(r"\{%[-+]?\s*(\w+)(\s+\w+\s*(?:%\}|-%\}|\|))?")
_END_RAW = re.compile(r"\{%[-+]?\s*endraw\s*[-+]?%\}")
_INNER = ("macro", "call", "filter")  # blocks whose output becomes a value
_ENDS = ("endset", *(f"end{name}" for name in _INNER))
_INDENT = re.compile(r"(?:^|(?<=\n))[ \t]+\Z")

Event = tuple[int, int]  # a tag's number, and its position in the plain text


class Marked(NamedTuple):
    """A template with markers.

    Attributes:
        source: the template, with markers.
        lines: the line of each tag, counted from 1.
        tags: the beginning of each tag, for messages.
    """

    source: str
    lines: tuple[int, ...]
    tags: tuple[str, ...]


@lru_cache(16)
def insert_markers(source: str, inner: bool) -> Marked | None:
    """Inserts markers into a template; returns None if that isn't possible. If `inner`, also
    inserts them into macros, and into blocks whose output becomes a value."""
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
        elif name in _ENDS:
            depth = max(0, depth - 1)
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
    """Returns the name of the statement at `at`, and whether it begins a set block."""
    found = _NAME.match(source, at)
    if found is None:
        return "", False
    return found[1], found[1] == "set" and found[2] is not None


def plain(text: str) -> str:
    """Returns the text without markers."""
    return _MARKER.sub("", text)


def divergence(first: str, second: str) -> int | None:
    """Returns the tag at which two marked renderings diverge, or None if they diverge before the
    first tag, or nowhere."""
    at = n_shared(plain(first), plain(second))
    common = set(_events(second, at))
    return next((event[0] for event in reversed(_events(first, at)) if event in common), None)


def _events(text: str, end: int) -> list[Event]:
    """Returns the events in a marked text up to the position `end` in the plain text."""
    events: list[Event] = []
    pieces = _MARKER.split(text)
    at = len(pieces[0])
    for number, piece in zip(pieces[1::2], pieces[2::2], strict=True):
        if at > end:
            break
        events.append((int(number), at))
        at += len(piece)
    return events
