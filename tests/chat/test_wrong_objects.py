"""Every chat call with every kind of wrong object, at every place of a request, raises an error of
ggtok's, or TypeError."""

from __future__ import annotations

import json
from collections import UserString
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import ggtok
from ggtok.chat import media
from ggtok.native import chat_calls
from tests.chat.calls import outcome, run, variables
from tests.chat.made import templated
from tests.chat.requests import call, says, user
from tests.support.samples import sampled
from tests.support.vocabularies import FIXTURES
from tests.support.wrong import wrong_values

pytestmark = pytest.mark.filterwarnings("ignore")
LIKES = ("llama.cpp", "transformers")
OPTIONS = ("tools", "template", "clock", "tool_choice", "response_format", "reasoning_format")
OPTIONS += ("add_generation_prompt", "continue_final_message", "enable_thinking", "media_marker")
OPTIONS += ("reasoning_effort", "chat_template_kwargs", "parallel_tool_calls", "trusted")
OPTIONS += ("user_defined", "like", "variable")
FIELDS = ("role", "content", "tool_calls", "reasoning_content", "name", "tool_call_id", "other")


class Dumped:
    """An object whose model_dump() returns any value."""

    def __init__(self, value: object) -> None:
        self.value = value

    def model_dump(self) -> object:
        return self.value


def more_values() -> list[object]:
    """Returns values that are wrong in requests."""
    itself: list[Any] = []
    itself += [itself, itself]
    cycle: dict[str, Any] = {}
    cycle["a"] = cycle
    dumped = Dumped(None)
    dumped.value = {"role": dumped, "content": dumped}
    return [
        *(itself, cycle, dumped, Dumped(None), Dumped(7), {1, 2}, iter([1]), UserString("abc")),
        *({"\ud800": 1}, {"role": "\ud800"}, [{"role": ["user"], "content": "x"}], 2**64, -(2**70)),
        *([{"role": "user", "content": "x", "\ud800": 1}], {"type": "a", "id": 1, "function": 2}),
        [{"role": "user", "content": [{"type": "text", "text": "a", "\ud800": 2}]}],
    ]


def places(value: Any) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yields messages and options with the value at each place."""
    hi = [user("x")]
    yield value, {}
    yield [value], {}
    for field in FIELDS:
        yield [{"role": "assistant", "content": "x", field: value}, user("x")], {}
    yield [says("assistant", "", tool_calls=[call("", "f", value)]), user("x")], {}
    yield [{"role": "user", "content": [value, {"type": "text", "text": value}]}], {}
    for option in OPTIONS:
        yield hi, {option: value}
    yield hi, {"chat_template_kwargs": {"a": value}}
    yield hi, {"tools": [value]}
    yield hi, {"tools": [{"type": "function", "function": {"name": "f", "parameters": value}}]}
    yield hi, {"known": (value, [1])}
    yield hi, {"known": (1, value)}
    yield hi, {"image_tokens": value}


CALLS: dict[str, Callable[..., object]] = {
    "count_chat": ggtok.Tokenizer.count_chat,
    "show": ggtok.Tokenizer.show,
    "trim_chat": lambda tok, messages, **options: ggtok.trim_chat(tok, messages, 100, **options),
    "encode_chat_batch": lambda tok, messages, **options: tok.encode_chat_batch(
        [messages], **options
    ),
}


@pytest.mark.parametrize("like", LIKES)
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.full if n in ("show", "trim_chat") else ()) for n in CALLS],
)
def test_wrong_objects(name: str, like: str) -> None:
    tok = ggtok.load(FIXTURES / "chat.gguf")
    for value in wrong_values() + more_values():
        for messages, options in places(value):
            try:
                CALLS[name](tok, messages, **{"like": like, **options})
            except (ggtok.GGTokError, TypeError):
                pass
            except Exception as e:
                raise AssertionError(f"{name}: {type(value)} in {[*options]}") from e


def test_known_messages_in_json_may_nest_too_deeply() -> None:
    tok = ggtok.load(FIXTURES / "chat.gguf")
    with pytest.raises(ggtok.InvalidValueError, match="nested too deeply"):
        tok.encode_chat(b"[" * 100_000, known=(1, [1]))


@pytest.mark.parametrize("like", sampled(LIKES, 2))
def test_shared_lists_count_as_often_as_they_occur(like: Any) -> None:
    """40 lists of two items stand for 10^12 values."""
    tok = templated(default="{{ messages[0].content }}")
    shared: Any = "x"
    for _ in range(40):
        shared = [shared, shared]
    with pytest.raises(ggtok.InvalidValueError, match="more than 16777216 values"):
        tok.count_chat([user("x")], like=like, chat_template_kwargs={"a": shared})


@pytest.mark.full
def test_shared_texts_count_as_often_as_they_occur() -> None:
    tok = templated(default="{{ messages[0].content }}")
    texts = ["x" * (1 << 20)] * 2000
    with pytest.raises(ggtok.InvalidValueError, match="more than 1 GiB"):
        tok.count_chat([user("x")], chat_template_kwargs={"a": texts})


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("like", LIKES)
@pytest.mark.parametrize("levels", [90, 91])
def test_json_and_objects_nest_equally_deep(like: str, levels: int) -> None:
    tok = templated(default="{{ messages[0].content }}{{ x }}")
    deep = nested(levels)
    function = {"name": "f", "parameters": deep}
    bodies: list[dict[str, Any]] = [
        {"messages": [{"role": "user", "content": deep, "other": deep}]},
        {"messages": [user("a")], "chat_template_kwargs": {"x": deep}},
        {"messages": [user("a")], "chat_template_kwargs": {"x": nested(levels + 1)}},
        {"messages": [user("a")], "tools": [{"type": "function", "function": function}]},
        {"messages": [user("a")], "x": nested(levels + 2)},
    ]
    refused = 0
    for body in bodies:
        found = [
            outcome(lambda given=given: variables(tok, given, like=like))
            for given in (body, json.dumps(body).encode())
        ]
        deep_errors = ["nested more than 93 deep" in str(each) for each in found]
        assert deep_errors[0] == deep_errors[1], (body, found)
        refused += deep_errors[1]
    assert refused == {90: 1, 91: 4}[levels]


@pytest.mark.parametrize("key", ["a", "type", "id", "function"])
def test_tool_calls_may_be_an_object_for_the_server(key: str) -> None:
    """llama-server uses the object's values."""
    template = "{% for c in messages[0].tool_calls %}[{{ c.function.name }}]{% endfor %}"
    tok = templated(default=template)
    calls = {key: call("", "f", {}), "b": call("", "g", {})}
    body = {"messages": [says("assistant", "", tool_calls=calls), user("x")]}
    assert run(tok, body, chat_calls.TEXT, bits=chat_calls.SERVER) == "[f][g]"


def test_messages_split_no_character() -> None:
    """Whatever the length of a quoted text is, its shown part ends between characters."""
    tok = templated(default="{{ messages[0].content }}")
    for n in range(4):
        long = "x" * n + "€" * 300
        wrong: list[dict[str, Any]] = [
            {"tool_choice": long},
            {"response_format": {"type": long}},
            {"reasoning_format": long},
            {"template": long},
            {"template": "{% " + long + " %}"},
            {"template": "{{ raise_exception(messages[0].content) }}", "content": long},
            {"template": "{{ 1 | " + long + " }}"},
            {"media_marker": long, "content": [{"type": "text", "text": long}, IMAGE]},
        ]
        for options in wrong:
            for like in LIKES:
                given = {"like": like, **options}
                messages = [{"role": "user", "content": given.pop("content", "x")}]
                found = str(outcome(lambda m=messages, g=given: tok.count_chat(m, **g)))
                assert "\ufffd" not in found and "\\x" not in found, (options, like)


IMAGE = {"type": next(iter(media.KINDS)), "image_url": {"url": "data:,"}}


def test_roles_that_are_lists_are_shown() -> None:
    tok = templated(default="{{ messages[0].content }}")
    shown = tok.show([{"role": ["user"], "content": "Hi"}], like="transformers")
    assert {token.role for token in shown.tokens} <= {"template", "other"}


class EmptiesItsDict(int):
    """An integer whose method, called while a dict is read, removes all from the dict."""

    inside: dict[Any, Any]

    def bit_length(self) -> int:
        self.inside.clear()
        return 70


def test_objects_that_empty_their_dict_while_it_is_read() -> None:
    tok = templated(default="{{ messages[0].content }}")
    for _ in range(50):
        value = EmptiesItsDict(2**70)
        value.inside = {"".join(["k", "ey"]): value, "other": 1}
        messages = [{"role": "user", "content": "x", "more": value.inside}]
        del value
        assert tok.apply_chat_template(messages, like="transformers") == "x"


class NamedByANumber(type):
    __name__ = property(lambda cls: 5)  # type: ignore[assignment]


class Key(metaclass=NamedByANumber):
    """A key whose class has no name that is a text."""


@pytest.mark.parametrize("like", LIKES)
def test_keys_whose_class_has_no_name(like: str) -> None:
    tok = templated(default="{{ messages[0].content }}")
    parts = [{"type": "text", "text": "x", Key(): 1}]
    with pytest.raises(ggtok.InvalidTypeError, match="a key is"):
        tok.apply_chat_template([{"role": "user", "content": parts}], like=like)
