"""Finds the assistant's text in a prompt, for masks.

A template may mark it with ``{% generation %}``. For other templates, the origins of the prompt's
parts show where each message's text is, and the text that the template adds to it counts, too, if
the model generates it:

    <|im_start|>assistant\\n<call>{"name": "f"}</call><|im_end|>\\n
    ------- opening -------=================================
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ggtok.chat.prompt import Prompt, Ranges, n_shared
from ggtok.errors import GGTokError
from ggtok.native import chat_calls

if TYPE_CHECKING:
    from ggtok.loading.loaded import Loaded
    from ggtok.native import Part

_GENERATION = re.compile(r"\{%[-+]?\s*generation\s*[-+]?%\}")


def marks_generation(source: str) -> bool:
    """Whether a template marks the assistant's text."""
    return _GENERATION.search(source) is not None


def opening(rendered: Callable[[list[Any], bool], Prompt]) -> bytes:
    """Returns the text before an answer that the model doesn't generate: the generation prompt or,
    if the template has none, the text after a question; cut to the prefix it shares with a finished
    answer. Returns b"" if the template refuses the conversations that show it.

    Args:
        rendered: returns the prompt for messages, with or without a generation prompt.
    """
    question, answer = {"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}
    try:
        asked = _after_question(rendered([question], True))
        closed = _after_question(rendered([question], False))
        answered = _after_question(rendered([question, answer], False))
    except GGTokError:
        return b""
    shared = asked[: n_shared(asked, answered)]
    return (shared.removeprefix(closed) or shared).encode()


def _after_question(prompt: Prompt) -> str:
    """Returns the text after the first message's, up to the second's."""
    begin = end = 0
    for end_of_part, message, _ in prompt.origins:
        if message == 1:
            break
        end = end_of_part
        begin = end if message == 0 else begin
    return prompt.text.encode()[begin:end].decode()


class _Run(NamedTuple):
    """A range of the prompt that begins and ends with text of one message. `is_repeated`: whether
    it only repeats text of calls from an earlier run, such as a name beside a result."""

    begin: int
    end: int
    message: int
    is_repeated: bool


class _Controls:
    """The control tokens in the template's own text."""

    def __init__(self, loaded: Loaded, ids: Sequence[int], parts: Sequence[Part]) -> None:
        special, eog = loaded.special_ids, loaded.eog_ids
        found = [
            (pos, pos + n, ids[first] in eog)
            for pos, n, first, _, is_special in parts
            if is_special and ids[first] in special
        ]
        self._begins = [begin for begin, _, _ in found]
        self._ends = [end for _, end, _ in found]
        self._eog = [(begin, end) for begin, end, ends_turn in found if ends_turn]

    def first_eog(self, begin: int, end: int) -> int | None:
        """Returns the end of the first token between `begin` and `end` that ends generation."""
        i = bisect_left(self._eog, (begin, 0))
        return self._eog[i][1] if i < len(self._eog) and self._eog[i][0] < end else None

    def closing(self, begin: int, end: int, is_last: bool) -> int:
        """Returns the end of the token that closes an answer's text, which ends at `begin`; another
        message's text begins at `end`. Returns `begin` if no token closes it.

        If no token ends generation, it is the first of several, because the last may open the
        other message.
        """
        found = self.first_eog(begin, end)
        if found is not None:
            return found
        i, j = bisect_left(self._begins, begin), bisect_left(self._begins, end)
        return self._ends[i] if j - i >= (1 if is_last else 2) else begin


def answers(
    loaded: Loaded,
    prompt: Prompt,
    ids: Sequence[int],
    parts: Sequence[Part],
    messages: Sequence[Any],
    opening: bytes,
) -> Ranges:
    """Returns the ranges of the assistant's answers in a prompt. `ids` and `parts` are those of the
    prompt, and `messages` those of the request."""
    data = prompt.text.encode()
    controls = _Controls(loaded, ids, parts)
    runs = list(_runs(prompt, controls))
    ranges = []
    for i, (begin, end, message, is_repeated) in enumerate(runs):
        if is_repeated or not _is_answer(messages[message]):
            continue
        before = runs[i - 1].end if i else 0
        is_last = i + 1 == len(runs)
        after = len(data) if is_last else runs[i + 1].begin
        at = data.rfind(opening, before, begin) if opening else -1
        begin = begin if at < 0 else at + len(opening)
        ranges.append((begin, controls.closing(end, after, is_last)))
    return tuple(ranges)


def _runs(prompt: Prompt, controls: _Controls) -> Iterator[_Run]:
    """Yields the runs of a prompt. Text of one message on both sides of a token that ends
    generation is in two runs."""
    run: _Run | None = None
    data = prompt.text.encode()
    written: dict[tuple[int, bytes], int] = {}  # the first run with a text of a message's calls
    number = at = 0
    for end, message, field in prompt.origins:
        if message is not None:
            continues = (
                run is not None and run.message == message and not controls.first_eog(run.end, at)
            )
            number += not continues
            is_call = field == "tool_calls"
            is_repeated = is_call and written.setdefault((message, data[at:end]), number) != number
            if run is not None and continues and (is_call or not run.is_repeated):
                run = run._replace(end=end, is_repeated=run.is_repeated and is_repeated)
            else:
                if run is not None:
                    yield run
                run = _Run(at, end, message, is_repeated)
        at = end
    if run is not None:
        yield run


def _is_answer(message: Any) -> bool:
    fields = chat_calls.mapping(message) or {}
    return fields.get("role") == "assistant"
