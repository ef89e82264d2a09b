"""Finds the tags around reasoning in a template's output by comparing renderings.

llama-server does this for templates without a handler, and uses the tags to continue an answer. It
splits two renderings that differ in one thing into markers (``<...>``, ``[...]``) and text; the
segments that they don't share contain the tags. In the same way, the server finds how a template
writes tool calls. If these look like JSON but aren't valid, the server doesn't start.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ggtok.chat import values
from ggtok.chat.handlers import fits
from ggtok.chat.prompt import C_SPACES, n_shared
from ggtok.errors import InvalidValueError

Json = dict[str, Any]
# (messages, tools, add_generation_prompt, enable_thinking) -> text, or None if the template fails
Render = Callable[[list[Json], list[Json] | None, bool, bool], str | None]

_MARKER = r"(?:<[^>]*>|\[[^\]]*\])"
_SPACE = rf"[{C_SPACES}]*"

_USER = {"role": "user", "content": "U_USER_MSG Hello END_U"}
_ANSWER = "A_ASST_MSG I can help END_A"
_THOUGHT = "REASON_PART I am thinking END_R"
_SAID = {"role": "assistant", "content": _ANSWER}
_REASONED = {**_SAID, "reasoning_content": _THOUGHT}
_FIRST, _SECOND = "AA_ARG_FST_AA", "BB_ARG_SND_BB"
_SCHEMA = {
    "type": "object",
    "properties": {
        _FIRST: {"type": "string", "description": "First argument"},
        _SECOND: {"type": "string", "description": "Second argument"},
    },
    "required": [],
}
_TOOLS: list[Json] = [
    {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": _SCHEMA},
    }
    for name, description in (
        ("FFF_FIRST_FUN_F", "Test function foo"),
        ("SSS_SECOND_FUN_S", "Test function bar"),
    )
]


def _call(first: str, second: str) -> list[Json]:
    arguments = {_FIRST: first, _SECOND: second}
    function = {"name": "FFF_FIRST_FUN_F", "arguments": arguments}
    return [{"id": "call00001", "type": "function", "function": function}]


_CALLED = {"role": "assistant", "content": "", "tool_calls": _call("XXXX", "YYYY")}
_REASONED_CALL = {
    "role": "assistant",
    "content": None,
    "reasoning_content": _THOUGHT,
    "tool_calls": _call("VVVV", "XXXX"),
}
# Matches the test function's name in JSON.
_NAMED = re.compile(rf'[{{:][{C_SPACES}]*"FFF_FIRST_FUN_F"')
_ENDED = re.compile(f"{_THOUGHT}{_SPACE}(?P<post>(?:{_MARKER}{_SPACE})?)")
_ANCHOR = 64  # bytes from the end of one rendering to search for in the other


@dataclass(slots=True)
class Tags:
    """The texts before and after reasoning, including white space; "" for none."""

    start: str = ""
    end: str = ""
    found: bool = False
    unreadable: str = ""  # the error in the JSON of the template's calls


def find(render: Render, source: str, tool_calls: bool) -> Tags:
    tags = Tags()
    _by_presence(render, tags)
    _by_thinking(render, tags)
    if tool_calls:
        _by_scope(render, tags)
        tags.unreadable = _fault_of_calls(render, tags)
    for present, absent, only_unfound, start, end in _KNOWN:
        if fits(source, present, absent) and not (only_unfound and tags.found):
            tags.start, tags.end, tags.found = start, end, True
    if "laguna_glm_thinking" in source:
        tags.start, tags.end = tags.start.strip(C_SPACES), tags.end.strip(C_SPACES)
    return tags


# Templates whose tags can't be detected. A row has texts in the source, texts that must be absent,
# whether the row applies only if no tags were found, and the tags.
_KNOWN = (
    (
        ("content.split('</think>')",),
        ("reasoning_content", "<SPECIAL_12>"),
        True,
        *("<think>", "</think>"),
    ),
    (
        (
            "Write your thoughts between <think></think> and write your response between "
            "<response></response>",
        ),
        (),
        False,
        *("<think>", "</think>"),
    ),
    (
        ("<SPECIAL_10>", "<SPECIAL_11>", "<SPECIAL_12>", "<TOOL_RESPONSE>"),
        (),
        False,
        *("<think>\n", "</think>"),
    ),
)


def _by_presence(render: Render, tags: Tags) -> None:
    """Compares an answer with and without reasoning."""
    without = render([_USER, _SAID], None, False, True)
    with_it = render([_USER, _REASONED], None, False, True)
    if without is None or with_it is None:
        return
    _, right = difference(without, with_it)
    if _THOUGHT not in right:
        return
    if found := _wrapped(with_it, True):
        tags.start, tags.end = found
        tags.found = True
    elif (match := _ENDED.search(with_it)) and match["post"]:
        tags.end, tags.found = match["post"], True


def _by_thinking(render: Render, tags: Tags) -> None:
    """Compares the generation prompts with thinking off and on."""
    off = render([_USER], None, True, False)
    on = render([_USER], None, True, True)
    if off is None or on is None:
        return
    left, right = difference(off, on)
    left_text, right_text = left.strip(C_SPACES), right.strip(C_SPACES)
    if not left_text and right:
        if right_text and on.endswith(right_text) and not tags.start:
            tags.start, tags.found = right, True
    elif not right_text and left:
        if left_text and off.endswith(left_text) and not tags.end:
            pieces = _not_blank(segments(off))
            if len(pieces) >= 2 and pieces[-1][1] == left_text and pieces[-2][0]:
                tags.start = pieces[-2][1]
            tags.end, tags.found = left, True
    elif left_text and right_text:
        _by_tail(off, on, tags)


def _by_tail(off: str, on: str, tags: Tags) -> None:
    """Handles two renderings that each have text that the other lacks: searches each for the end
    of the other, and uses the two markers that follow the match."""
    for base, longer in ((on, off), (off, on)):
        anchor = base.encode()[-_ANCHOR:]
        at = longer.encode().rfind(anchor)
        if at < 0:
            continue
        extra = longer.encode()[at + len(anchor) :].decode("utf-8", "replace").strip(C_SPACES)
        pieces = _not_blank(segments(extra))
        if len(pieces) == 2 and pieces[0][0] and pieces[1][0]:
            tags.start = tags.start or pieces[0][1]
            tags.end = tags.end or pieces[1][1]
            tags.found = True
            return


def _by_scope(render: Render, tags: Tags) -> None:
    """Finds the tags in templates that write reasoning only together with calls."""
    said = render([_USER, _REASONED], _TOOLS, False, True)
    called = render([_USER, _REASONED_CALL], _TOOLS, False, True)
    if said is None or called is None or _THOUGHT in said or _THOUGHT not in called:
        return
    tags.found = True
    if found := _wrapped(called, False):
        tags.start, tags.end = found
    elif match := _ENDED.search(called):
        tags.end = match["post"]


def _fault_of_calls(render: Render, tags: Tags) -> str:
    """Returns the error that the server gets when it parses the JSON of a tool call, or ""."""
    said = render([_USER, _SAID], _TOOLS, False, True)
    called = render([_USER, _CALLED], _TOOLS, False, True)
    if said is None or called is None:
        return ""
    _, text = difference(said, called)
    if not _NAMED.search(text):
        return ""
    for tag in (tags.start, tags.end):
        text = text.replace(tag, "", 1)
    begin, end = text.find("{"), text.rfind("}")
    try:
        values.parse(text[begin : end + 1] if begin >= 0 else "", "the call")
    except InvalidValueError as e:
        return str(e)
    return ""


def _wrapped(text: str, with_space: bool) -> tuple[str, str] | None:
    """Returns the markers around the reasoning, from which only white space separates them.

    If `with_space`, the second marker includes the white space before it. A regular expression
    would take quadratic time for texts with many brackets.
    """
    last = {opening: text.rfind(closing) for opening, closing in _CLOSING.items()}
    first, found = len(text), None
    at = text.find(_THOUGHT)
    while at >= 0:
        end = at + len(_THOUGHT)
        begin = _opened(text, _skipped(text, at, -1))
        after = _skipped(text, end, 1)
        if 0 <= begin < first and last.get(text[after : after + 1], -1) > after:
            closed = text.find(_CLOSING[text[after]], after) + 1
            post = text[end if with_space else after : _skipped(text, closed, 1)]
            first, found = begin, (text[begin:at], post)
        at = text.find(_THOUGHT, at + 1)
    return found


def _skipped(text: str, at: int, step: int) -> int:
    """Moves a position over white space, forward (step 1) or backward (step -1)."""
    while 0 < at + (step > 0) <= len(text) and text[at if step > 0 else at - 1] in C_SPACES:
        at += step
    return at


def _opened(text: str, end: int) -> int:
    """Returns the start of the marker that ends at `end`, or -1 if there is none."""
    for opening, closing in _CLOSING.items():
        if text.endswith(closing, 0, end):
            return text.find(opening, text.rfind(closing, 0, end - 1) + 1, end)
    return -1


# ---- differences ----

Segment = tuple[bool, str]  # whether it is a marker, and its text
_CLOSING = {"<": ">", "[": "]"}
_OPENING = re.compile(r"[<\[]")


def segments(text: str) -> list[Segment]:
    """Splits a text into markers and the text between them. After an unclosed bracket, all is
    text."""
    found: list[Segment] = []
    at = 0
    while match := _OPENING.search(text, at):
        begin = match.start()
        if begin > at:
            found.append((False, text[at:begin]))
        at = begin
        end = text.find(_CLOSING[match[0]], begin) + 1
        if not end:
            break
        found.append((True, text[begin:end]))
        at = end
    if at < len(text):
        found.append((False, text[at:]))
    return found


def _not_blank(pieces: Iterable[Segment]) -> list[Segment]:
    return [piece for piece in pieces if piece[1].strip(C_SPACES)]


def difference(left: str, right: str) -> tuple[str, str]:
    """Returns both texts without their common prefix and suffix.

    First whole segments are removed from both ends, then characters of text segments. The order
    of the steps is the server's, although odd in places, because it decides what happens to
    segments that are equal at both ends.
    """
    a, b = segments(left), segments(right)
    if not a or not b:
        return left, right
    i, j, m, n = 0, 0, len(a) - 1, len(b) - 1  # the first and last remaining segments
    a_used = b_used = False  # whether the last segment has been removed, too
    while i != m and j != n:
        same_head = a[i] == b[j]
        if same_head:
            i, j = i + 1, j + 1
        same_tail = a[m] == b[n]
        if same_tail:
            m, a_used = (m - 1, a_used) if i != m else (m, True)
            n, b_used = (n - 1, b_used) if j != n else (n, True)
        if not (same_head or same_tail):
            break
    if i == m and j != n:
        if a[i] == b[n]:
            n, a_used = n - 1, True
        elif a[i] == b[j]:
            j, a_used = j + 1, True
    elif j == n and i != m:
        if a[m] == b[j]:
            m, b_used = m - 1, True
        elif a[i] == b[j]:
            i, b_used = i + 1, True
    elif i == m and j == n and a[i] == b[j] and a[i][0]:
        a_used = b_used = True
    texts_at_head = not a[i][0] and not b[j][0]
    texts_at_tail = not a[m][0] and not b[n][0]
    a_rest = "".join(text for _, text in a[i : m + (not a_used)])
    b_rest = "".join(text for _, text in b[j : n + (not b_used)])
    if texts_at_tail:
        k = n_shared(a_rest[::-1], b_rest[::-1])
        a_rest, b_rest = a_rest[: len(a_rest) - k], b_rest[: len(b_rest) - k]
    if texts_at_head:
        k = n_shared(a_rest, b_rest)
        a_rest, b_rest = a_rest[k:], b_rest[k:]
    if not a_rest and b_rest and right.startswith(left):
        b_rest = right[len(left) :]
    return a_rest, b_rest
