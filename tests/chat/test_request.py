"""A request is the same as plain dicts, as other objects and as JSON text; options, batches."""

from __future__ import annotations

import inspect
import time
from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

import ggtok
from ggtok import InvalidTypeError, Tokenizer, load
from ggtok.chat import compiled
from ggtok.native import chat_calls
from tests.chat import answers, calls
from tests.chat.calls import NOW, outcome
from tests.chat.generate import Generator
from tests.chat.made import TEMPLATES, templated
from tests.chat.requests import REQUESTS, TOOLS, call, says, user
from tests.support.vocabularies import fixture

WANTS = {
    "ids": chat_calls.IDS,
    "count": chat_calls.COUNT,
    "text": chat_calls.TEXT,
    "prompt": chat_calls.PROMPT,
}
LIKES = ("llama.cpp", "transformers")


class Strange(str):
    pass


class Items(list[Any]):
    pass


class Odd(Mapping[str, Any]):
    """A mapping that isn't a dict."""

    def __init__(self, **fields: Any) -> None:
        self.fields = fields

    def __getitem__(self, key: str) -> Any:
        return self.fields[key]

    def __iter__(self) -> Any:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)


class Fields(dict[str, Any]):
    pass


class Model:
    """An object as pydantic makes it."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields = fields

    def model_dump(self) -> Any:
        return self.fields


def odd(value: Any, level: int = 0) -> Any:
    """Returns an equal value made of other types."""
    if isinstance(value, dict):
        fields = {Strange(key): odd(item, level + 1) for key, item in value.items()}
        if level % 3 == 0:
            return Odd(**fields)
        # model_dump() is asked for the fields that are set, and None isn't.
        return Fields(fields) if level % 3 == 1 or None in value.values() else Model(fields)
    if isinstance(value, list):
        return Items(odd(item, level + 1) for item in value)
    return Strange(value) if isinstance(value, str) else value


def as_tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: as_tuples(item) for key, item in value.items()}
    return tuple(map(as_tuples, value)) if isinstance(value, list) else value


def in_each_form(body: dict[str, Any]) -> dict[str, Any]:
    forms = {"plain": body, "odd": {key: odd(value) for key, value in body.items()}}
    return {**forms, "JSON": calls.as_json(body)}


def results(tok: Tokenizer, body: dict[str, Any], want: int, **options: Any) -> dict[str, Any]:
    return {
        form: outcome(lambda given=given: calls.run(tok, given, want, **options))
        for form, given in in_each_form(body).items()
    }


def assert_same(tok: Tokenizer, body: dict[str, Any], want: int, **options: Any) -> Any:
    found = results(tok, body, want, **options)
    for form, result in found.items():
        assert result == found["plain"], (form, body, options)
    return found["plain"]


@pytest.mark.parametrize("like", LIKES)
def test_each_form_of_a_request_is_read_alike(like: str) -> None:
    """Text, ids, ranges, origins and errors are the same."""
    tok = load(fixture("bpe-qwen2"))
    generator = Generator(19)
    bodies = [*REQUESTS.values(), *(generator.body() for _ in range(100))]
    sources = [*answers.templates().values(), *TEMPLATES.values()]
    rendered = refused = 0
    for i, body in enumerate(bodies):
        for k in range(4):
            template = sources[(5 * i + k) % len(sources)]
            want = list(WANTS.values())[(i + k) % 4]
            result = assert_same(tok, body, want, template=template, like=like)
            is_error = isinstance(result, tuple)
            rendered, refused = rendered + (not is_error), refused + is_error
    assert rendered > 300 and refused > 100


IRREGULAR: dict[str, list[Any]] = {
    "no messages": [],
    "not a message": [user("Hi"), "Hi"],
    "no role": [{"content": "Hi"}],
    "a role that is no str": [{"role": 1, "content": "Hi"}],
    "a strange role": [says("wizard", "Hi"), says("w\u00e4zard", "Hi")],
    "an empty role": [says("", "Hi")],
    "no content": [{"role": "user"}],
    "null": [says("user", None), says("assistant", None), user("Hi")],
    "numbers": [{"role": "user", "content": "Hi", "n": [1, 2.5, 2**70, True, None]}],
    "names": [{"role": "user", "content": "Hi", "name": "A", "tool_call_id": "", "x": {"a": [1]}}],
    "an assistant, last": [user("Hi"), says("assistant", "Ho")],
    "a system, last and first": [says("system", "Be"), user("Hi")],
    "developer": [says("developer", "Be"), user("Hi")],
    "reasoning": [user("Hi"), says("assistant", "Ho", reasoning_content="Hm"), user("Hi")],
    "empty reasoning": [user("Hi"), says("assistant", "Ho", reasoning_content=""), user("Hi")],
    "thinking": [user("Hi"), says("assistant", "Ho", thinking="Hm", reasoning=None), user("Hi")],
    "parts": [user([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]), user("Hi")],
    "a wrong part": [user([{"type": "image"}])],
    "control tokens": [user("<|im_end|><|endoftext|></s>"), says("tool", "<tool_call>")],
    "long": [user("\u00fc" * 5000), says("assistant", "a" * 5000), user("x")],
    "calls": [user(), says("assistant", "", tool_calls=[call("1", "f", {"a": [1]})]), user()],
    "calls that are no list": [user(), says("assistant", "", tool_calls={"a": 1}), user()],
}


@pytest.mark.parametrize("want", WANTS)
@pytest.mark.parametrize("messages", IRREGULAR.values(), ids=IRREGULAR)
def test_irregular_messages_are_read_alike(messages: list[Any], want: str) -> None:
    tok = load(fixture("bpe-qwen2"))
    for template in (*list(TEMPLATES.values())[:12], *list(answers.templates().values())[::9]):
        for like in LIKES:
            assert_same(tok, {"messages": messages}, WANTS[want], template=template, like=like)


@pytest.mark.parametrize("messages", IRREGULAR.values(), ids=IRREGULAR)
def test_the_methods_take_each_form(messages: list[Any]) -> None:
    tok = load(fixture("bpe-qwen2"))
    for template in list(answers.templates().values())[::17]:
        for like in LIKES:
            options: Any = {"template": template, "like": like, "clock": lambda: NOW}
            for method in (tok.apply_chat_template, tok.encode_chat, tok.count_chat):
                expected = outcome(lambda m=method, o=options: m(messages, **o))
                for form in (odd(messages), calls.as_json(messages), iter(messages)):
                    assert outcome(lambda m=method, f=form, o=options: m(f, **o)) == expected


def test_tuples_are_lists_in_llama_server() -> None:
    tok = load(fixture("bpe-qwen2"))
    for name in ("parts", "tools", "parallel calls", "variables"):
        body = REQUESTS[name]
        for template in list(TEMPLATES.values())[::5]:
            found = [
                outcome(lambda b=form, t=template: calls.prompt(tok, b, template=t))
                for form in (body, as_tuples(body))
            ]
            assert found[0] == found[1]


# Values that JSON text can't contain, or that have other errors there.
ONLY_PYTHON: dict[str, Any] = {
    "a key that is no str": ({"role": "user", "content": "Hi", 1: 2}, "a key is int, not str"),
    "a lone surrogate": (user("a\ud800"), "character 1 is a lone surrogate"),
    "a surrogate in a key": ({"role": "user", "content": "Hi", "\ud800": 1}, "lone surrogate"),
    "infinity": (
        {"role": "user", "content": "Hi", "tool_calls": [call("", "", float("inf"))]},
        "inf can't be written as JSON",
    ),
    "a set": ({"role": "user", "content": {1}}, r"\['content'\]: must be str, .* not set"),
}


@pytest.mark.parametrize(("message", "pattern"), ONLY_PYTHON.values(), ids=ONLY_PYTHON)
def test_objects_that_no_json_text_contains(message: Any, pattern: str) -> None:
    tok = load(fixture("bpe-qwen2"))
    for like in LIKES:
        if like == "transformers" and "inf" in pattern:
            continue  # transformers passes the number to the template
        for first in (message, Odd(**message) if 1 not in message else message):
            with pytest.raises((ggtok.InvalidTypeError, ggtok.InvalidValueError), match=pattern):
                tok.encode_chat([first], like=like, template="{{ 'x' }}")  # type: ignore[call-overload]


# ---- objects that run Python code while they are read ----


def changing(change: Any, form: str) -> Any:
    """Returns a message that calls `change` while it is read."""

    class Changing:
        def model_dump(self) -> Any:
            change()
            return user("new")

    class ChangingItems(Odd):
        def items(self) -> Any:
            change()
            return super().items()

        def keys(self) -> Any:
            change()
            return super().keys()

    return Changing() if form == "model_dump" else ChangingItems(**user("new"))


@pytest.mark.parametrize("form", ["model_dump", "items"])
@pytest.mark.parametrize("like", LIKES)
def test_objects_may_change_what_is_read(like: Any, form: str) -> None:
    """A list or dict changes at each level while it is read: no crash, and no text of freed
    objects."""
    tok = load(fixture("bpe-qwen2"))
    template = "{% for m in messages %}<{{ m.content }}>{% endfor %}"
    allowed = {"new", "a", "b", "", "None", "[]", "{}", "grown"}
    for i in range(300):
        big = "y" * (i % 7)
        message: dict[str, Any] = {"role": "user", "content": "a"}
        content: list[Any] = [{"type": "text", "text": "a"}, None, {"type": "text", "text": "b"}]
        arguments: dict[str, Any] = {"x": 1, "y": None}
        called = says("assistant", content, tool_calls=[call("1", "f", arguments)])
        messages: list[Any] = [message, called, None, {"role": "user", "content": "b"}]
        targets: list[Any] = [messages, message, content, arguments, called]

        def change(targets: Any = targets, i: int = i, big: str = big) -> None:
            for k, target in enumerate(targets):
                if (i >> k) % 2 == 0:
                    continue
                if isinstance(target, list):
                    if i % 3 == 0:
                        target.clear()
                    elif i % 3 == 1:
                        target.extend([{"role": "user", "content": "grown"}] * (i % 50))
                    else:
                        target[:] = [{"role": "user", "content": "grown"}]
                elif i % 3 == 0:
                    target.clear()
                else:
                    target.update({f"k{big}{n}": [n] for n in range(i % 40)})

        place = i % 4
        hostile = changing(change, form)
        if place == 0:
            messages[2] = hostile
        elif place == 1:
            content[1] = hostile
        elif place == 2:
            arguments["y"] = hostile
        else:
            message["extra"] = hostile
        options: Any = {"template": template, "like": like}
        result = outcome(lambda m=messages, o=options: tok.apply_chat_template(m, **o))
        if isinstance(result, str) and like == "llama.cpp":
            texts = set(result.replace("\n", "").strip("<>").split("><"))
            assert texts <= allowed | {"ab", "anewb"}, texts


@pytest.mark.parametrize("like", LIKES)
@pytest.mark.parametrize("place", ["message", "part", "arguments", "tool", "variable"])
def test_exceptions_of_objects_pass_through(like: Any, place: str) -> None:
    tok = load(fixture("bpe-qwen2"))

    class Failing:
        def __init__(self, error: type[BaseException]) -> None:
            self.error = error

        def model_dump(self) -> Any:
            raise self.error("mine")

    for error in (ZeroDivisionError, KeyboardInterrupt, MemoryError, RecursionError):
        bad = Failing(error)
        messages = {
            "message": [user(), bad],
            "part": [user([bad])],
            "arguments": [user(), says("assistant", "", tool_calls=[call("", "f", {"x": bad})])],
        }.get(place, [user()])
        more: dict[str, Any] = {}
        if place == "tool":
            more["tools"] = [bad]
        if place == "variable":
            more["chat_template_kwargs"] = {"x": bad}
        expected = ggtok.OutOfMemoryError if error is MemoryError else error
        for _ in range(50):
            for method in (tok.apply_chat_template, tok.encode_chat, tok.count_chat):
                with pytest.raises(expected):
                    method(messages, template="{{ messages[0].content }}", like=like, **more)


@pytest.mark.parametrize("like", LIKES)
def test_endless_objects_are_refused(like: Any) -> None:
    tok = load(fixture("bpe-qwen2"))

    class Endless:
        def model_dump(self) -> Any:
            return {"role": "user", "content": [Endless()], "x": Endless()}

    class Itself(Odd):
        def __getitem__(self, key: str) -> Any:
            return self

    cyclic: dict[str, Any] = user()
    cyclic["content"] = [cyclic]
    for message in (Endless(), Itself(role=1, content=2), cyclic):
        for _ in range(20):
            with pytest.raises(ggtok.GGTokError):
                tok.encode_chat([message], template="{{ messages[0].content }}", like=like)
    arguments: list[Any] = []
    arguments.append(arguments)
    messages = [user(), says("assistant", "", tool_calls=[call("", "f", arguments)]), user()]
    with pytest.raises(ggtok.InvalidValueError, match="nested more than 93 deep"):
        tok.encode_chat(messages, template="{{ messages[1].tool_calls }}", like=like)


def test_an_object_may_use_the_tokenizer_that_reads_it() -> None:
    tok = load(fixture("bpe-qwen2"))
    template = "{% for m in messages %}{{ m.content }}{% endfor %}"

    class Recursive:
        def __init__(self, level: int) -> None:
            self.level = level

        def model_dump(self) -> Any:
            inner = [Recursive(self.level - 1)] if self.level else [user("x")]
            text = tok.apply_chat_template(inner, template=template)
            assert len(tok.encode_chat(inner, template=template)) == tok.count(text)
            return user(text + "!")

    assert tok.apply_chat_template([Recursive(6)], template=template) == "x" + "!" * 7


@pytest.mark.parametrize("same", [True, False])
def test_recurring_roles_are_read_like_new_ones(same: bool) -> None:
    """A role recurs as the same or another object, and after more roles than are cached."""
    tok = load(fixture("bpe-qwen2"))
    turns = "system user assistant user assistant developer tool user system developer user".split()
    objects = {role: role for role in turns}
    messages = [
        says(objects[role] if same else "".join(list(role)), f"{i} {role}")
        for i, role in enumerate(turns)
    ]
    source = "{% for m in messages %}[{{ m.role }} {{ m['content'] }}]{% endfor %}"
    text = tok.apply_chat_template(messages, template=source)
    assert text == "".join(
        f"[{role.replace('developer', 'system')} {i} {role}]" for i, role in enumerate(turns)
    )
    for template in (source, *list(answers.templates().values())[::7]):
        for like in ("llama.cpp", "transformers"):
            for shorter in (messages, messages[1:-1], messages[2:-3]):
                assert_same(
                    tok, {"messages": shorter}, chat_calls.IDS, template=template, like=like
                )


def test_equal_roles_are_not_identical() -> None:
    tok = load(fixture("bpe-qwen2"))
    source = "{{ messages[0].role is sameas messages[2].role }} {{ messages[2].role }}"
    for role in ("user", "developer"):
        body = {"messages": [says(role, "a"), user("b"), says(role, "c")]}
        assert assert_same(tok, body, chat_calls.TEXT, template=source).startswith("False")


def test_variables_with_names_of_the_dialect() -> None:
    tok = load(fixture("bpe-qwen2"))
    names = "strftime_now", "caller", "loop", "none", "true", "range", "unread", "eos_token"
    source = "|".join(f"{{{{ {name} }}}}" for name in names if name != "unread")
    variables = {name: f"my {name}" for name in names}
    body = {"messages": [user("Hi")], "chat_template_kwargs": variables}
    text = assert_same(tok, body, chat_calls.TEXT, template=source)
    assert text == "|".join(text for name, text in variables.items() if name != "unread")


@pytest.mark.parametrize("name", ["bpe-llama3", "spm", "spm-phi3", "ugm", "wpm", "rwkv"])
def test_each_form_gives_the_same_ids_with_every_vocabulary(name: str) -> None:
    tok = load(fixture(name), overrides={"tokenizer.ggml.add_eos_token": True})
    messages = [says("system", "Be"), user("Hi </s> ü"), says("assistant", "Ho"), user(" x ")]
    for template in list(answers.templates().values())[::5]:
        for like in ("llama.cpp", "transformers"):
            for want in WANTS.values():
                assert_same(tok, {"messages": messages}, want, template=template, like=like)


def test_options_keep_their_values_and_types() -> None:
    tok = templated(
        default="{{ add_generation_prompt }}{{ x }}{{ tools | length }}{{ enable_thinking }}"
    )
    hi = [user("Hi")]

    def text(**fields: Any) -> str:
        return tok.apply_chat_template(hi, **fields)

    assert text(chat_template_kwargs={"x": 1}) == "True10False"
    assert text(chat_template_kwargs={"x": True}) == "TrueTrue0False"
    assert text(chat_template_kwargs={"x": 1.0}) == "True1.00False"
    assert text(chat_template_kwargs={"x": [1]}) == "True10False"
    assert text(x=1) == "True10False"
    assert text(chat_template_kwargs=MappingProxyType({"x": 1})) == "True10False"
    assert text(tools=TOOLS) == "True2False"
    assert text(tools=TOOLS[:1]) == "True1False"
    assert text(tools=iter(TOOLS)) == "True2False"
    assert text(tools=[]) == text(tools=None) == text() == "True0False"
    assert text(enable_thinking=True) == "True0True"
    assert text(add_generation_prompt=False) == "0False"
    for i in range(200):
        assert text(template=f"{{{{ '{i}' }}}}") == str(i)
    with pytest.raises(InvalidTypeError, match="add_generation_prompt must be True or False"):
        text(add_generation_prompt=1)
    assert text(add_generation_prompt=np.bool_(False)) == "0False"
    assert text(like=Strange("llama.cpp"), template=Strange("{{ x }}"), x=Strange("a")) == "a"


def test_each_request_gets_its_own_options() -> None:
    names = "add_generation_prompt", "enable_thinking", "reasoning_effort", "tools is defined"
    source = "".join(f"{{{{ {name} }}}} " for name in names)
    source += "{% for message in messages %}[{{ message.content }}]{% endfor %}"
    tok = templated(default=source)
    other = templated(default="{{ messages[0].role }}")
    hi, ho = [user("Hi")], [user("Hi"), says("assistant", "Ho")]
    options: list[dict[str, Any]] = [
        {},
        {"enable_thinking": True},
        {"add_generation_prompt": False},
        {"template": "{{ messages[0].role }}{{ eos_token }}"},
        {"continue_final_message": False},
        {"reasoning_effort": "low"},
        {"like": "transformers", "add_generation_prompt": True},
        {"tools": TOOLS},
        {"chat_template_kwargs": {"enable_thinking": True}},
        {"like": "transformers"},
        # These requests aren't cached.
        {"tool_choice": "none", "tools": TOOLS},
        {"tool_choice": "wrong"},
        {"parallel_tool_calls": "wrong"},
        {"response_format": "wrong"},
        {"reasoning_format": "wrong"},
    ]

    def texts(tok: Tokenizer, fields: dict[str, Any]) -> list[Any]:
        return [outcome(lambda m=m: tok.apply_chat_template(m, **fields)) for m in (hi, ho)]

    expected = [texts(templated(default=source), fields) for fields in options]
    assert len(set(map(str, expected))) >= 11
    for first, wanted in zip(options, expected, strict=True):
        for then, wanted_then in zip(options, expected, strict=True):
            for _ in range(2):
                assert texts(tok, first) == wanted
                assert other.apply_chat_template(hi) == "user"
            assert texts(tok, then) == wanted_then
    assert tok.apply_chat_template(hi, clock=lambda: NOW) == expected[0][0]


def test_variables_are_named_or_in_kwargs() -> None:
    tok = templated(default="{{ x }}{{ y }}")

    def text(**fields: Any) -> str:
        return tok.apply_chat_template([user("Hi")], **fields)

    for _ in range(3):
        assert text(chat_template_kwargs={"x": "a", "y": 1}) == "a1"
        assert text(chat_template_kwargs={"x": "a"}, y=1) == "a1"
        assert text(x="a", y=1) == "a1"
        assert text(x="a", y=2) == "a2"
    with pytest.raises(InvalidTypeError, match="z is neither"):
        text(x="a", z=1)  # a variable that the template doesn't read
    assert text(chat_template_kwargs={"x": "a", "z": 1}) == "a"
    long = "a" * 10_000
    assert text(x=long) == text(chat_template_kwargs={"x": long}) == long


def test_a_template_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A template is compiled once, whatever the options, and for all tokenizers with the same
    templates."""
    made: list[Any] = []
    compile_ = compiled._compile

    def counted(*args: Any) -> Any:
        made.append(args)
        return compile_(*args)

    monkeypatch.setattr(compiled, "_compile", counted)
    template = "{{ messages[0].content }}{# compiled once #}"
    for tok in (templated(default=template), templated(default=template)):
        tok.apply_chat_template([user("Hi")])
        tok.apply_chat_template([user("Hi")], tools=TOOLS)
        tok.apply_chat_template([user("Hi")], chat_template_kwargs={"x": [1]})
        tok.count_chat([user("Hi")], response_format={"type": "text"})
        tok.encode_chat_batch([[user("Hi")]], enable_thinking=True)
    assert len(made) == 1
    tok.apply_chat_template([user("Hi")], like="transformers")
    assert len(made) == 2


def test_korean_letters_are_not_surrogates() -> None:
    """In UTF-8, Korean letters and surrogates begin with the same byte."""
    tok = templated(default="{{ messages[0].content }}")
    text = "\ud7ff\ud55c \ud7a3"
    for like in ("llama.cpp", "transformers"):
        assert tok.apply_chat_template([user(text)], like=like) == text


def test_the_clock_is_called_only_for_templates_with_dates() -> None:
    tok = load(fixture("bpe-qwen2"))
    asked: list[int] = []

    def clock() -> datetime:
        asked.append(1)
        return NOW

    hi = [user("Hi")]
    assert tok.apply_chat_template(hi, template="{{ 'x' }}", clock=clock) == "x"
    assert not asked
    for _ in range(2):
        asked.clear()
        for template, text in {
            "{{ date_string }}": "07 Mar 2026",
            "{{ datetime }}": "Mar 07 2026",
            "{{ strftime_now('%H:%M') }}": "15:04",
        }.items():
            assert tok.apply_chat_template(hi, template=template, clock=clock) == text
    assert len(asked) == 3  # once for each prompt, and for each new template
    variables = {"date_string": "today"}
    shown = tok.apply_chat_template(
        hi, template="{{ date_string }}", chat_template_kwargs=variables
    )
    assert shown == "today"


def test_a_naive_time_is_local_only_for_llama_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """llama-server prints its time zone; transformers formats a time that has none."""
    tok = load(fixture("bpe-qwen2"))
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    for month, zone in ((1, "CET +0100"), (7, "CEST +0200")):
        shown = {
            like: tok.apply_chat_template(
                [user("Hi")],
                like=like,
                template="{{ strftime_now('%Z %z') }}",
                clock=lambda month=month: datetime(2026, month, 3),
            )
            for like in ("llama.cpp", "transformers")
        }
        assert shown == {"llama.cpp": zone, "transformers": " "}
    monkeypatch.undo()
    time.tzset()


def test_split_characters_are_refused_alike() -> None:
    tok = load(fixture("bpe-qwen2"))
    for content in ("ü", "한", "\U0001f44d"):
        for cut in ("[:1]", "[1:]", "[:1] ~ 'a'", "[:1] ~ messages[0].content[1:]"):
            template = "{{ messages[0].content" + cut + " }}"
            for want in WANTS.values():
                assert_same(tok, {"messages": [user(content)]}, want, template=template)


def test_batches_take_each_form() -> None:
    tok = load(fixture("bpe-qwen2"))
    conversations = [[user(f"Hi {i}")] for i in range(300)]
    conversations[7] = (Odd(role="user", content="odd"),)  # type: ignore[assignment]
    conversations[8] = [user("a"), says("assistant", "the beginning")]
    conversations[9] = iter([user("x")])  # type: ignore[assignment]
    conversations[10] = calls.as_json([user("Hi"), says("assistant", "Ho")])  # type: ignore[call-overload]
    once = list(conversations)
    once[9] = [user("x")]
    for threads in (1, 2):
        conversations[9] = iter([user("x")])  # type: ignore[assignment]
        ids = tok.encode_chat_batch(iter(conversations), threads=threads)
        assert ids == [tok.encode_chat(messages) for messages in once]
    conversations[9] = [user("x" * 10), "x"]  # type: ignore[list-item]
    with pytest.raises(ggtok.InvalidTypeError) as caught:
        tok.encode_chat_batch(conversations, threads=2)
    assert caught.value.__notes__ == ["in conversations[9]"]
    conversations[9] = 3  # type: ignore[assignment]
    with pytest.raises(ggtok.InvalidTypeError) as caught:
        tok.encode_chat_batch(conversations)
    assert caught.value.__notes__ == ["in conversations[9]"]


def test_large_batches_are_split() -> None:
    tok = load(fixture("bpe-qwen2"))
    conversations = [[user("word " * 60_000)] for _ in range(9)]
    ids = tok.encode_chat_batch(conversations, threads=1)
    assert ids == [tok.encode_chat(conversations[0])] * 9


def test_errors_of_the_template_and_of_the_vocabulary() -> None:
    tok = load(fixture("bpe-qwen2"))
    failing = "{% if messages[0].content == 'no' %}{{ raise_exception('never') }}{% endif %}"
    assert tok.encode_chat([user("yes")], template=failing) == []
    for _ in range(2):
        with pytest.raises(ggtok.TemplateError, match="never") as caught:
            tok.encode_chat([user("no")], template=failing)
        assert caught.value.line == 1
    with pytest.raises(ggtok.TemplateError, match="never"):
        tok.encode_chat_batch([[user("yes")], [user("no")]], template=failing)
    none = load(fixture("none"))
    for method in (none.encode_chat, none.count_chat):
        with pytest.raises(ggtok.VocabError):
            method([user("x")], template="{{ 'x' }}")


def test_memory_errors_are_ggtoks(monkeypatch: pytest.MonkeyPatch) -> None:
    tok = load(fixture("bpe-qwen2"))

    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(tok._loaded, "chat", fail)
    with pytest.raises(ggtok.OutOfMemoryError):
        tok.encode_chat([user("x")])


def test_signatures_show_the_default() -> None:
    """Signatures show llama-server's default, which isn't transformers'."""
    for method in (
        Tokenizer.apply_chat_template,
        Tokenizer.encode_chat,
        Tokenizer.count_chat,
        Tokenizer.encode_chat_batch,
    ):
        parameter = inspect.signature(method).parameters["add_generation_prompt"]
        assert str(parameter).endswith(" = True")
        assert parameter.default == True  # noqa: E712
    tok = load(fixture("bpe-qwen2"))
    shown = "{{ 'yes' if add_generation_prompt else 'no' }}"
    for like, default in (("llama.cpp", "yes"), ("transformers", "no")):
        hi = [user("x")]
        assert tok.apply_chat_template(hi, template=shown, like=like) == default  # type: ignore[arg-type]
        for passed, text in ((True, "yes"), (False, "no"), (None, default)):
            found = tok.apply_chat_template(
                hi,
                template=shown,
                like=like,  # type: ignore[arg-type]
                add_generation_prompt=passed,
            )
            assert found == text


def test_long_integers_in_messages_have_a_limit() -> None:
    tok = load(fixture("bpe-qwen2"))
    template = "{{ messages[0].n }}"

    def shown(n: int) -> str:
        message = {"role": "user", "content": "", "n": n}
        return tok.apply_chat_template([message], template=template, like="transformers")

    assert shown(10**30) == str(10**30)
    with pytest.raises(ggtok.InvalidValueError, match=r"\['n'\]: an integer that is too long"):
        shown(10**5000)
