"""Compares the prompts of llama-server and transformers: renders the file's chat template under
both policies, with the conversations in :mod:`~ggtok.inspect.doctor.battery`.

To find the reason for a difference, one thing is changed at a time: llama-server's request is
rendered in jinja2's dialect instead of llama.cpp's, or transformers' request gets llama-server's
variables.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Literal

from ggtok.base.escape import number, printable
from ggtok.chat import api
from ggtok.chat.options import ChatOptions
from ggtok.chat.prompt import n_shared
from ggtok.errors import GGTokError, TemplateError
from ggtok.inspect.doctor import battery, traces
from ggtok.inspect.doctor.battery import Chat
from ggtok.inspect.doctor.codes import Finding, finding
from ggtok.inspect.doctor.file import File
from ggtok.native import chat_calls, jinja

_NOW = datetime(2026, 7, 26, 12, 34, 56)
_SECONDS = 5.0  # the time limit for all renderings; typical templates need a hundredth of it
_SMALLER = 200  # the most attempts to make a conversation smaller
_MOST = 6  # the most differences that a finding's text lists
# The most characters that a finding's text quotes of a prompt before a difference (and twice as
# many after it), of a tag, of an error, and of a conversation.
_CONTEXT, _TAG, _ERROR, _CHAT = 24, 80, 160, 400

Json = dict[str, Any]
Like = Literal["llama.cpp", "transformers"]
PROGRAMS: dict[Like, str] = {"llama.cpp": "llama-server", "transformers": "transformers"}
_DIALECTS = "llama.cpp's Jinja and jinja2 differ"
_SETS = "llama-server sets"
_PREFILL = "llama-server writes other text before the beginning of an answer"
SLOW = "the template is so slow that not every conversation was compared"
_OWN = ("bos_token", "eos_token", "tools", "messages", "add_generation_prompt")


def check_engines(file: File) -> Iterator[Finding]:
    if file.tok.chat_template is None or file.tok.vocab_type == "NONE":
        return
    comparison = EngineComparison(file)
    found = comparison.differences()
    if not comparison.renders("llama.cpp"):
        return  # GGT207 reports this
    if not comparison.renders("transformers"):
        yield _finding("GGT208", found[:1], comparison)
        return
    groups: dict[str, list[PromptDifference]] = {}
    for difference in found:
        groups.setdefault(_code(difference), []).append(difference)
    for code, differences in sorted(groups.items()):
        yield _finding(code, differences, comparison)


@dataclass(frozen=True)
class EngineResult:
    """A program's result for a conversation: a text, or an error."""

    text: str | None
    error: str = ""
    line: int | None = None


@dataclass(frozen=True)
class PromptDifference:
    """A conversation for which the programs' prompts differ, or that one of the programs refuses.

    Attributes:
        chat: the shortest conversation that was found.
        name: the name of the battery's conversation from which `chat` was made.
        one, other: the results of llama-server and transformers.
        reason: the reason, as a phrase; "" if llama-server refuses the conversation.
        line: the line of the template at which the results diverge, or None if unknown.
        tag: the template's tag at which they diverge, or "".
    """

    chat: Chat
    name: str
    one: EngineResult
    other: EngineResult
    reason: str
    line: int | None
    tag: str = ""

    @property
    def kind(self) -> tuple[object, ...]:
        """A key that is equal for differences with the same cause."""
        refuses = self.one.text is None, self.other.text is None
        return refuses, self.reason, self.line, self.one.error if self.line is None else ""

    @property
    def sets_variables(self) -> bool:
        return self.reason.startswith(_SETS)

    def is_plain(self) -> bool:
        return self.name in battery.PLAIN


class EngineComparison:
    """A comparison of the two programs on a file's chat template, with a time limit."""

    def __init__(self, file: File) -> None:
        self._loaded = file.tok._loaded
        self._until = time.monotonic() + _SECONDS
        self.complete = True
        #: The results for each conversation of the battery.
        self.rendered: dict[str, tuple[EngineResult, EngineResult]] = {}

    def differences(self) -> list[PromptDifference]:
        """Returns one difference of each kind, with its conversation made as small as possible."""
        found: dict[tuple[object, ...], PromptDifference] = {}
        for name, each in (battery.PLAIN | battery.OTHERS).items():
            if self.is_late():
                break
            difference = self._compare(each, name)
            if difference is None:
                continue
            known = found.get(difference.kind)
            if known is None or (
                difference.is_plain() >= known.is_plain() and each.size() < known.chat.size()
            ):
                found[difference.kind] = difference
        smaller = [self._smallest(each) for each in found.values()]
        return sorted(smaller, key=lambda each: (not each.is_plain(), each.chat.size()))

    def is_late(self) -> bool:
        """Whether the time limit has passed, so that no more conversations are rendered."""
        if time.monotonic() > self._until:
            self.complete = False
        return not self.complete

    def _compare(self, conversation: Chat, name: str) -> PromptDifference | None:
        one, other = (self.render(conversation, like) for like in PROGRAMS)
        if conversation in (battery.PLAIN | battery.OTHERS).values():
            self.rendered[name] = one, other
        if one.text == other.text:
            return None
        if one.text is None or other.text is None:
            line = other.line if one.text is not None else one.line
            reason = self._reason_of_refusal(conversation) if other.text is None else ""
            return PromptDifference(conversation, name, one, other, reason, line)
        reason, given = self._reason(conversation, one.text, other.text)
        if given:  # show what still differs with the same variables
            other = self.render(conversation, "transformers", given)
        line, tag = None, ""
        if reason != _PREFILL:
            line, tag = self._line(conversation, one.text, str(other.text), given)
        return PromptDifference(conversation, name, one, other, reason, line, tag)

    def _smallest(self, difference: PromptDifference) -> PromptDifference:
        left = _SMALLER
        while True:
            for smaller in difference.chat.smaller():
                left -= 1
                if left < 0 or self.is_late():
                    return difference
                found = self._compare(smaller, difference.name)
                if found is not None and found.kind == difference.kind:
                    difference = found
                    break
            else:
                return difference

    def renders(self, like: Like) -> bool:
        """Whether the program could render any of the conversations."""
        at = list(PROGRAMS).index(like)
        return any(pair[at].text is not None for pair in self.rendered.values())

    # ---- renderings ----

    def render(self, conversation: Chat, like: Like, more: Json | None = None) -> EngineResult:
        """Renders a conversation, with the additional variables `more`."""
        try:
            return self._run(self._call(conversation, like, more), conversation)
        except TemplateError as e:
            return EngineResult(None, str(e.args[0]), e.line)
        except GGTokError as e:
            return EngineResult(None, str(e))

    def _call(self, conversation: Chat, like: Like, more: Json | None = None) -> api.ChatCall:
        """Returns a call that keeps BOS and EOS in the prompt, since :mod:`.template` checks
        them."""
        continues = like == "transformers" and conversation.prefill
        options = ChatOptions(
            list(conversation.tools) or None,
            like,
            None if conversation.prefill and not continues else not continues,
            continue_final_message=continues or None if conversation.prefill else False,
            clock=lambda: _NOW,
            chat_template_kwargs=more,
        )
        return api.ChatCall(self._loaded, options, bits=chat_calls.KEEP_ENDS)

    def _run(self, call: api.ChatCall, conversation: Chat) -> EngineResult:
        return EngineResult(
            call.run_one(_client_messages(conversation, call.options.like), chat_calls.TEXT)[0]
        )

    def _text(self, call: api.ChatCall, conversation: Chat) -> str | None:
        try:
            return self._run(call, conversation).text
        except GGTokError:
            return None

    # ---- reasons and lines ----

    def _reason(self, conversation: Chat, one: str, other: str) -> tuple[str, Json]:
        """Returns why the prompts differ, and the variables that transformers needs to show what
        else differs."""
        made = self._variables(conversation)
        given = {k: v for k, v in made.items() if k not in _OWN}
        changing = {
            name: value
            for name, value in given.items()
            if self.render(conversation, "transformers", {name: value}).text != other
        }
        if changing:
            rest = self.render(conversation, "transformers", changing).text
            if rest == one:
                listed = " and ".join(f"{k} to {_as_json(v)}" for k, v in changing.items())
                return f"{_SETS} {listed}, and transformers doesn't", {}
            if rest is None:
                changing = {}
        ours, theirs = _by_dialects(self._source(conversation), made)
        if ours != theirs:
            return _DIALECTS, changing
        if conversation.prefill:
            return _PREFILL, changing
        return _preparation(conversation, made["messages"]), changing

    def _reason_of_refusal(self, conversation: Chat) -> str:
        """Returns why transformers refuses a conversation that llama-server renders."""
        made, source = self._variables(conversation), self._source(conversation)
        if _by_dialects(source, made)[1] is None:
            return _DIALECTS
        if not conversation.tools and _by_dialects(source, {**made, "tools": None})[1] is None:
            return "transformers defines tools as none, llama-server doesn't define it"
        return _preparation(conversation, made["messages"])

    def _variables(self, conversation: Chat) -> Json:
        """Returns the variables that llama-server passes to the template."""
        call = self._call(conversation, "llama.cpp")
        made: Json = call.run_one(
            _client_messages(conversation, "llama.cpp"), chat_calls.VARIABLES
        )[0]
        return {"messages": [], **made}

    def _source(self, conversation: Chat, like: Like = "llama.cpp") -> str:
        call = self._call(conversation, like)
        return call.chat.facts_for(has_tools=call.options.has_tools()).source

    def _render_source(
        self, call: api.ChatCall, source: str, dialect: jinja.Dialect, conversation: Chat
    ) -> str | None:
        try:
            call.template = _compile(source, dialect).compiled
        except TemplateError:
            return None
        return self._text(call, conversation)

    def _line(
        self, conversation: Chat, one: str, other: str, given: Json
    ) -> tuple[int | None, str]:
        """Returns the line of the template at which the prompts diverge, and the tag there."""
        calls = {
            like: self._call(conversation, like, given if like == "transformers" else None)
            for like in PROGRAMS
        }
        for inner in (True, False):
            texts: list[str] = []
            made = None
            for like, expected in zip(PROGRAMS, (one, other), strict=True):
                made = traces.insert_markers(self._source(conversation, like), inner)
                if made is None:
                    break
                text = self._render_source(calls[like], made.source, like, conversation)
                if text is None or traces.plain(text) != expected:
                    break
                texts.append(text)
            if made is not None and len(texts) == len(PROGRAMS):
                tag = traces.divergence(*texts)
                return (None, "") if tag is None else (made.lines[tag], made.tags[tag])
        return None, ""


@lru_cache(16)
def _compile(source: str, dialect: jinja.Dialect) -> jinja.Template:
    return jinja.compile(source, dialect)


def _by_dialects(source: str, variables: Json) -> tuple[str | bytes | None, ...]:
    """Returns the texts that the two dialects of Jinja render with the same variables; None for an
    error."""
    given = {"add_generation_prompt": True, **variables}
    texts: list[str | bytes | None] = []
    for dialect in PROGRAMS:
        try:
            texts.append(_compile(source, dialect).render(given, _NOW).text)
        except TemplateError:
            texts.append(None)
    return tuple(texts)


def _client_messages(conversation: Chat, like: str) -> list[Json]:
    """Returns the messages in the form that the program's clients send."""
    messages = conversation.messages
    return list(messages) if like == "transformers" else [_as_sent(each) for each in messages]


def _preparation(conversation: Chat, made: list[Json]) -> str:
    """Describes in a phrase what llama-server changes in the messages before it renders them."""
    before = conversation.messages
    if len(made) != len(before):
        return "llama-server joins messages"
    pairs = list(zip(before, made, strict=True))
    for key in ("content", *dict.fromkeys(key for pair in pairs for each in pair for key in each)):
        for one, other in pairs:
            if one.get(key) != other.get(key):
                return f"llama-server {_change(key, one.get(key), other.get(key))}"
    return "llama-server changes the prompt for this family of templates"


def _as_sent(message: Json) -> Json:
    """Converts a message to the form that clients send to llama-server: the arguments of calls are
    JSON text."""
    calls = message.get("tool_calls")
    if not calls:
        return message
    sent = []
    for call in calls:
        function = call["function"]
        text = json.dumps(function["arguments"], ensure_ascii=False)
        sent.append({**call, "function": {**function, "arguments": text}})
    return {**message, "tool_calls": sent}


def _change(key: str, before: Any, after: Any) -> str:
    """Describes in a phrase how llama-server changes a field of a message."""
    if key == "content":
        if isinstance(before, list):
            return "joins the parts of a message" if isinstance(after, str) else "changes parts"
        if isinstance(after, list):
            return "makes a part of a message's text"
        if before is None:
            return "gives the template '' for a content that is null"
        return "trims contents" if str(before).strip() == after else "changes contents"
    if key == "tool_calls":
        texts = [call["function"]["arguments"] for call in after or [] if "function" in call]
        if texts and all(isinstance(text, str) for text in texts):
            return "gives the template a call's arguments as JSON text"
        return "changes calls"
    if after is None:
        return f"drops {key}"
    return f"changes {key}" if before is not None else f"adds {key}"


def _as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


# ---- findings ----


def _code(difference: PromptDifference) -> str:
    if difference.one.text is None or difference.other.text is None:
        return "GGT211"
    if difference.reason == _DIALECTS and difference.is_plain():
        return "GGT209"
    return "GGT210" if difference.sets_variables else "GGT212"


def _finding(
    code: str, differences: list[PromptDifference], comparison: EngineComparison
) -> Finding:
    texts = [_describe_difference(difference) for difference in differences[:_MOST]]
    left = len(differences) - len(texts)
    if left:
        texts.append(f"and {number(left, 'other cause')}")
    if not comparison.complete:
        texts.append(SLOW)
    lines = {difference.line for difference in differences if difference.line is not None}
    return finding(code, "\n".join(texts), lines=tuple(sorted(lines)))


def _describe_difference(difference: PromptDifference) -> str:
    where = "" if difference.line is None else f"line {difference.line}"
    if difference.tag:
        where += f" ('{printable(difference.tag, _TAG)}')"
    one, other = difference.one, difference.other
    if one.text is None:
        what = f"llama-server refuses it: {printable(one.error, _ERROR)}"
    elif other.text is None:
        what = f"transformers refuses it: {printable(other.error, _ERROR)}"
    else:
        first, second = around_difference(one.text, other.text)
        what = f"llama-server writes {first}, transformers {second}"
    because = f" ({difference.reason})" if difference.reason else ""
    begin = f"{where}, for " if where else "for "
    return f"{begin}{printable(difference.chat.as_json(), _CHAT)}, {what}{because}"


def around_difference(one: str, other: str) -> tuple[str, str]:
    """Returns excerpts of both texts around their first difference."""
    at = n_shared(one, other)
    begin = max(0, at - _CONTEXT)
    first, second = (
        ("..." if begin else "")
        + text[begin : at + 2 * _CONTEXT]
        + ("..." if len(text) > at + 2 * _CONTEXT else "")
        for text in (one, other)
    )
    return f"'{printable(first)}'", f"'{printable(second)}'"
