"""Messages that C reads result in the same prompt as messages that Python prepares."""

from __future__ import annotations

import inspect
import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

import ggtok
from ggtok import Tokenizer, load
from ggtok.chat import api
from ggtok.chat.llama import LlamaServer
from ggtok.chat.request import Options, Request
from ggtok.chat.transformers import Transformers
from ggtok.errors import InvalidTypeError
from ggtok.native import chat
from tests.chat import answers
from tests.chat.generate import Generator
from tests.chat.made import TEMPLATES, templated
from tests.chat.requests import REQUESTS, TOOLS, says, user
from tests.support.vocabularies import fixture

NOW = datetime(2026, 3, 7, 15, 4, 5)
FIELDS = (
    "tools add_generation_prompt continue_final_message tool_choice parallel_tool_calls "
    "response_format reasoning_format reasoning_effort chat_template_kwargs"
).split()
WANTS = {"ids": chat.IDS, "count": chat.COUNT, "text": chat.TEXT}


class Strange(str):
    pass


class Odd(Mapping[str, Any]):
    """A message that isn't a dict."""

    def __init__(self, **fields: Any) -> None:
        self.fields = fields

    def __getitem__(self, key: str) -> Any:
        return self.fields[key]

    def __iter__(self) -> Any:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)


NEEDS_PYTHON: dict[str, list[Any]] = {
    "a str's subclass": [user(Strange("Hi"))],
    "a mapping": [Odd(role="user", content="Hi"), Odd(role="assistant", content="Ho"), user("x")],
    "a key that is no str": [{"role": "user", "content": "Hi", 1: 2}],
    "a lone surrogate": [user("\ud800")],
    "a surrogate in a key": [{"role": "user", "content": "Hi", "\ud800": 1}],
    "no messages": [],
    "not a message": [user("Hi"), "Hi"],
    "a tuple": [({"role": "user", "content": "Hi"},)],
    "a tuple beside a mapping": [Odd(role="user", content="Hi"), (user("Hi"),)],
    "no role": [{"content": "Hi"}],
    "a role that is no str": [{"role": 1, "content": "Hi"}],
    "a strange role": [says("wizard", "Hi"), says("w\u00e4zard", "Hi")],
    "an empty role": [says("", "Hi")],
    "no content": [{"role": "user"}],
    "null": [says("user", None), says("assistant", None), user("Hi")],
    "numbers": [{"role": "user", "content": "Hi", "n": [1, 2.5, 2**70, True, None, float("inf")]}],
    "deep": [{"role": "user", "content": "Hi", "deep": json.loads("[" * 95 + "]" * 95)}],
    "names": [{"role": "user", "content": "Hi", "name": "A", "tool_call_id": "", "x": {"a": [1]}}],
    "an assistant, last": [user("Hi"), Odd(role="assistant", content="Ho")],
    "a system, last and first": [Odd(role="system", content="Be"), user("Hi")],
    "developer": [says("developer", "Be"), user("Hi")],
    "reasoning": [user("Hi"), says("assistant", "Ho", reasoning_content="Hm"), user("Hi")],
    "empty reasoning": [user("Hi"), says("assistant", "Ho", reasoning_content=""), user("Hi")],
    "thinking": [user("Hi"), says("assistant", "Ho", thinking="Hm", reasoning=None), user("Hi")],
    "parts": [user([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]), user("Hi")],
    "a wrong part": [user([{"type": "image"}])],
    "control tokens": [user("<|im_end|><|endoftext|></s>"), says("tool", "<tool_call>")],
    "long": [user("\u00fc" * 5000), says("assistant", "a" * 5000), user("x")],
}


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except ggtok.GGTokError as e:
        return type(e), str(e)


def by_c_and_python(
    tok: Tokenizer, messages: Any, want: int, trusted: bool = False, **fields: Any
) -> tuple[Any, Any]:
    """Returns the results of reading messages in C, and of preparing them in Python."""
    options = Options(clock=lambda: NOW, **fields)

    def prepared() -> Any:
        with pytest.MonkeyPatch.context() as patch:
            normalized = api._request

            def request(*args: Any) -> Request:
                found = normalized(*args)
                return replace(found, bits=found.bits | chat.PREPARE_ALL)

            patch.setattr(api, "_request", request)
            return api.run(tok._loaded, list(messages), options, want, trusted, "parse")

    read = outcome(lambda: api.run(tok._loaded, messages, options, want, trusted, "parse"))
    return read, outcome(prepared)


@pytest.fixture
def n_read_by(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts the conversations that C read, and those that Python prepared, entirely or in part."""
    counts: Counter[str] = Counter()
    run = Request.run

    def counted(
        self: Request, loaded: Any, conversations: list[Any], *args: Any, **options: Any
    ) -> list[Any]:
        counts["C"] += len(conversations)
        return run(self, loaded, conversations, *args, **options)

    for policy in (LlamaServer, Transformers):
        prepare = policy.prepare

        def prepared(*args: Any, prepare: Any = prepare) -> Any:
            counts["C"] -= 1
            counts["Python"] += 1
            return prepare(*args)

        monkeypatch.setattr(policy, "prepare", prepared)
    monkeypatch.setattr(Request, "run", counted)
    return counts


@pytest.mark.parametrize("like", ["llama.cpp", "transformers"])
def test_c_and_python_agree_on_requests(like: str, n_read_by: Counter[str]) -> None:
    tok = load(fixture("bpe-qwen2"))
    generator = Generator(19)
    bodies = [body for body in REQUESTS.values() if isinstance(body.get("messages"), list)]
    bodies += [body for body in (generator.body() for _ in range(100)) if "messages" in body]
    sources = [*answers.templates().values(), *TEMPLATES.values()]
    for i, body in enumerate(bodies):
        if not isinstance(body["messages"], list):
            continue
        fields = {name: body[name] for name in FIELDS if name in body}
        for k in range(5):
            template = sources[(5 * i + k) % len(sources)]
            want = list(WANTS.values())[(i + k) % 3]
            read, prepared = by_c_and_python(
                tok, body["messages"], want, k == 0, template=template, like=like, **fields
            )
            # If a request has several faults, C and Python may report different faults.
            wrong = isinstance(read, tuple) and isinstance(prepared, tuple)
            assert wrong or read == prepared, (body, template, fields)
    assert n_read_by["C"] > 300


@pytest.mark.parametrize("want", WANTS)
@pytest.mark.parametrize("messages", NEEDS_PYTHON.values(), ids=NEEDS_PYTHON)
def test_c_and_python_agree_on_irregular_messages(messages: list[Any], want: str) -> None:
    tok = load(fixture("bpe-qwen2"))
    sources = (*list(TEMPLATES.values())[:12], *list(answers.templates().values())[::9])
    for template in sources:
        for like in ("llama.cpp", "transformers"):
            read, prepared = by_c_and_python(
                tok, messages, WANTS[want], template=template, like=like
            )
            assert read == prepared, (template, like)


@pytest.mark.parametrize("like", ["llama.cpp", "transformers"])
def test_messages_may_change_during_preparation(like: Any) -> None:
    """While one message is prepared, other messages change so that they need preparation, too."""
    tok = load(fixture("bpe-qwen2"))
    template = "{% for m in messages %}[{{ m.role }} {{ m['content'] }}]{% endfor %}"

    class Changing:
        def model_dump(self) -> dict[str, Any]:
            messages[1]["content"] = Strange("changed")
            messages[2]["tool_calls"] = ()
            return user("Hi")

    messages: list[Any] = [Changing(), says("assistant", "Ho"), user("x"), user("y")]
    text = tok.apply_chat_template(messages, template=template, like=like)
    assert text == "[user Hi][assistant changed][user x][user y]"


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
                read, prepared = by_c_and_python(
                    tok, shorter, chat.IDS, template=template, like=like
                )
                assert read == prepared, (template, like)


def test_equal_roles_are_not_identical() -> None:
    tok = load(fixture("bpe-qwen2"))
    source = "{{ messages[0].role is sameas messages[2].role }} {{ messages[2].role }}"
    for role in ("user", "developer"):
        read, prepared = by_c_and_python(
            tok, [says(role, "a"), user("b"), says(role, "c")], chat.TEXT, template=source
        )
        assert read == prepared
        assert read.startswith("False")


def test_variables_with_names_of_the_dialect() -> None:
    tok = load(fixture("bpe-qwen2"))
    names = "strftime_now", "caller", "loop", "none", "true", "range", "unread", "eos_token"
    source = "|".join(f"{{{{ {name} }}}}" for name in names if name != "unread")
    variables = {name: f"my {name}" for name in names}
    read, prepared = by_c_and_python(
        tok, [user("Hi")], chat.TEXT, template=source, chat_template_kwargs=variables
    )
    assert (
        read == prepared == "|".join(text for name, text in variables.items() if name != "unread")
    )


@pytest.mark.parametrize("name", ["bpe-llama3", "spm", "spm-phi3", "ugm", "wpm", "rwkv"])
def test_c_and_python_agree_on_every_vocabulary(name: str) -> None:
    tok = load(fixture(name), overrides={"tokenizer.ggml.add_eos_token": True})
    messages = [says("system", "Be"), user("Hi </s> ü"), says("assistant", "Ho"), user(" x ")]
    for template in list(answers.templates().values())[::5]:
        for like in ("llama.cpp", "transformers"):
            for want in WANTS.values():
                read, prepared = by_c_and_python(tok, messages, want, template=template, like=like)
                assert read == prepared, (template, like)


def test_requests_are_cached_by_value_and_type(n_read_by: Counter[str]) -> None:
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
    assert n_read_by == {"C": 14}
    for i in range(200):
        assert text(template=f"{{{{ '{i}' }}}}") == str(i)
    assert api._cached.cache_info().currsize <= 64
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
    before = api._cached.cache_info()
    assert tok.apply_chat_template(hi, clock=lambda: NOW) == expected[0][0]
    assert api._cached.cache_info().hits == before.hits + 1


def test_requests_with_variables_are_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    tok = templated(default="{{ x }}{{ y }}")
    calls: list[object] = []
    normalized = LlamaServer.request
    monkeypatch.setattr(
        LlamaServer, "request", lambda *args: calls.append(args) or normalized(*args)
    )
    tok.apply_chat_template([user("Hi")])
    calls.clear()

    def text(**fields: Any) -> str:
        return tok.apply_chat_template([user("Hi")], **fields)

    for _ in range(3):
        assert text(chat_template_kwargs={"x": "a", "y": 1}) == "a1"
        assert text(chat_template_kwargs={"x": "a"}, y=1) == "a1"
        assert text(x="a", y=1) == "a1"
        assert text(x="a", y=2) == "a2"
    assert len(calls) == 4
    with pytest.raises(InvalidTypeError, match="z is neither"):
        text(x="a", z=1)  # a variable that the template doesn't read
    assert text(chat_template_kwargs={"x": "a", "z": 1}) == "a"
    misses = api._cached.cache_info().misses
    long = "a" * 10_000
    assert text(x=long) == text(chat_template_kwargs={"x": long}) == long
    assert api._cached.cache_info().misses == misses


def test_a_template_is_analyzed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A template is analyzed once even if the options aren't cached, or another tokenizer has the
    same template."""
    analyzed: list[str] = []
    create = LlamaServer.__init__

    def created(self: LlamaServer, source: str, *args: Any) -> None:
        analyzed.append(source)
        create(self, source, *args)

    monkeypatch.setattr(LlamaServer, "__init__", created)
    template = "{{ messages[0].content }}{# analyzed once #}"
    for tok in (templated(default=template), templated(default=template)):
        tok.apply_chat_template([user("Hi")])
        tok.apply_chat_template([user("Hi")], tools=TOOLS)
        tok.apply_chat_template([user("Hi")], chat_template_kwargs={"x": [1]})
        tok.count_chat([user("Hi")], response_format={"type": "text"})
        tok.encode_chat_batch([[user("Hi")]], enable_thinking=True)
    assert analyzed == [template]


def test_korean_letters_are_not_surrogates() -> None:
    """In UTF-8, Korean letters and surrogates begin with the same byte."""
    tok = templated(default="{{ messages[0].content }}")
    text = "\ud7ff\ud55c \ud7a3"
    for like in ("llama.cpp", "transformers"):
        assert tok.apply_chat_template([user(text)], like=like) == text


def test_the_clock_is_called_only_for_templates_with_dates() -> None:
    tok = load(fixture("bpe-qwen2"))
    calls: list[int] = []

    def clock() -> datetime:
        calls.append(1)
        return NOW

    hi = [user("Hi")]
    assert tok.apply_chat_template(hi, template="{{ 'x' }}", clock=clock) == "x"
    assert not calls
    for template, text in {
        "{{ date_string }}": "07 Mar 2026",
        "{{ datetime }}": "Mar 07 2026",
        "{{ strftime_now('%H:%M') }}": "15:04",
    }.items():
        assert tok.apply_chat_template(hi, template=template, clock=clock) == text
    assert len(calls) == 3
    variables = {"date_string": "today"}
    shown = tok.apply_chat_template(
        hi, template="{{ date_string }}", chat_template_kwargs=variables
    )
    assert shown == "today"


def test_c_and_python_agree_on_split_characters() -> None:
    tok = load(fixture("bpe-qwen2"))
    for content in ("ü", "한", "\U0001f44d"):
        for cut in ("[:1]", "[1:]", "[:1] ~ 'a'", "[:1] ~ messages[0].content[1:]"):
            template = "{{ messages[0].content" + cut + " }}"
            for want in WANTS.values():
                read, prepared = by_c_and_python(tok, [user(content)], want, template=template)
                assert read == prepared, (content, cut)


def test_c_and_python_read_batches(n_read_by: Counter[str]) -> None:
    tok = load(fixture("bpe-qwen2"))
    conversations = [[user(f"Hi {i}")] for i in range(300)]
    conversations[7] = (Odd(role="user", content="odd"),)  # type: ignore[assignment]
    conversations[8] = [user("a"), says("assistant", "the beginning")]
    conversations[9] = iter([user("x")])  # type: ignore[assignment]
    once = list(conversations)
    once[9] = [user("x")]
    for threads in (1, 2):
        conversations[9] = iter([user("x")])  # type: ignore[assignment]
        ids = tok.encode_chat_batch(iter(conversations), threads=threads)
        assert ids == [tok.encode_chat(messages) for messages in once]
    assert n_read_by["Python"] == 8
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
    for call in (none.encode_chat, none.count_chat):
        with pytest.raises(ggtok.VocabError):
            call([user("x")], template="{{ 'x' }}")


def test_memory_errors_are_ggtoks(monkeypatch: pytest.MonkeyPatch) -> None:
    tok = load(fixture("bpe-qwen2"))

    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(tok._native, "chat", fail)
    with pytest.raises(ggtok.OutOfMemoryError):
        tok.encode_chat([user("x")])


def test_signatures_show_the_default() -> None:
    """Signatures show llama-server's default, which isn't transformers'."""
    for call in (
        Tokenizer.apply_chat_template,
        Tokenizer.encode_chat,
        Tokenizer.count_chat,
        Tokenizer.encode_chat_batch,
    ):
        parameter = inspect.signature(call).parameters["add_generation_prompt"]
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
