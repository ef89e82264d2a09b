"""Compiled templates: their cache, the time at which they are checked, and malformed ones."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

import ggtok
from ggtok import Tokenizer, load
from ggtok.chat import compiled
from tests.chat.made import templated
from tests.chat.requests import user
from tests.support.patch import GGUF
from tests.support.vocabularies import fixture

HI = [user("Hi")]
LIKES = ("llama.cpp", "transformers")


@pytest.fixture(scope="module")
def tok() -> Tokenizer:
    return load(fixture("bpe-qwen2"))


# ---- the cache ----


@pytest.fixture
def empty_cache() -> Iterator[None]:
    compiled._chats.clear()
    compiled._n_bytes = 0
    yield
    compiled._chats.clear()
    compiled._n_bytes = 0


def n_cached() -> int:
    return sum(compiled._size(key, found) for key, found in compiled._chats.items())


@pytest.mark.usefixtures("empty_cache")
def test_the_cache_is_bounded_in_bytes(tok: Tokenizer) -> None:
    """200 templates of 0.3 MB: the compiled ones, with their sources, stay below the bound."""
    sizes = []
    for i in range(200):
        template = f"{{{{ {i} }}}}" + ("some text " * 600 + "{{ 'x' }}") * 50
        assert len(template) > 300_000
        assert tok.count_chat(HI, template=template) > 1
        sizes.append(compiled.chat_of(tok._loaded, "llama.cpp", template, None).size)
        assert n_cached() == compiled._n_bytes <= compiled._MOST_BYTES
    # A compiled template's size includes at least its source.
    assert min(sizes) > 300_000 and sum(sizes) > compiled._MOST_BYTES
    assert 0 < len(compiled._chats) < 200
    newest = [key[2] for key in compiled._chats]
    assert newest[-1] is not None and newest[-1].startswith("{{ 199 }}")


@pytest.mark.usefixtures("empty_cache")
def test_templates_that_are_used_stay_cached(
    tok: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    used, unused = "{{ 'used' }}", "{{ 'unused' }}"
    for template in (used, unused):
        tok.apply_chat_template(HI, template=template)
    one = max(map(compiled._size, *zip(*compiled._chats.items(), strict=True)))
    monkeypatch.setattr(compiled, "_MOST_BYTES", 2 * one)
    for i in range(40):
        tok.apply_chat_template(HI, template=f"{{{{ {i} }}}}")
        tok.apply_chat_template(HI, template=used)
    cached = {key[2] for key in compiled._chats}
    assert used in cached and unused not in cached


@pytest.mark.usefixtures("empty_cache")
def test_a_template_above_the_bound_is_not_cached(
    tok: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "_MOST_BYTES", 1000)
    assert tok.apply_chat_template(HI, template="{{ 'x' }}" * 500) == "x" * 500
    assert not compiled._chats and compiled._n_bytes == 0


@pytest.mark.usefixtures("empty_cache")
def test_failures_are_cached_unless_they_depend_on_the_time(
    tok: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    compile_ = compiled._compile

    def counted(*args: Any) -> Any:
        made.append(args)
        return compile_(*args)

    monkeypatch.setattr(compiled, "_compile", counted)
    for template, n in (("{{ raise_exception('no') }}", 1), (YEARS, 3)):
        made.clear()
        errors = set()
        for _ in range(3):
            with pytest.raises(ggtok.TemplateError) as caught:
                tok.apply_chat_template(HI, template=template, clock=lambda: datetime(2000, 1, 1))
            errors.add((str(caught.value), caught.value.line))
        assert len(made) == n and len(errors) == 1


@pytest.mark.usefixtures("empty_cache")
def test_a_compiled_template_outlives_its_place_in_the_cache(
    tok: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = compiled.chat_of(tok._loaded, "llama.cpp", "{{ 'kept' }}", None)
    compiled._chats.clear()
    compiled._n_bytes = 0
    gc.collect()
    args = (None, None, 2, 0, 0, None, "<M>", None)
    results, *_ = tok._loaded.chat(found.compiled, [HI], *args)
    assert results == ["kept"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.usefixtures("empty_cache")
def test_a_child_process_gets_a_new_lock(tok: Tokenizer) -> None:
    """The lock may be held when the process forks."""
    with compiled._lock:
        child = os.fork()
        if not child:
            signal.alarm(60)
            ok = tok.apply_chat_template(HI, template="{{ 'child' }}") == "child"
            os._exit(0 if ok and compiled._n_bytes == n_cached() > 0 else 1)
    assert os.waitpid(child, 0)[1] == 0


# ---- the time ----

YEARS = (
    "{% set y = strftime_now('%Y') | int %}"
    "{% if y < 2024 or y > 2030 %}{{ raise_exception('no such year') }}{% endif %}{{ y }}"
)


def clock(year: int) -> Callable[[], datetime]:
    return lambda: datetime(year, 6, 1)


@pytest.mark.usefixtures("empty_cache")
@pytest.mark.parametrize("like", LIKES)
def test_templates_are_checked_at_the_request_s_time(tok: Tokenizer, like: Any) -> None:
    """A template may refuse years outside of its table, as Dolphin-Mistral's does."""
    keywords: Any = {"template": YEARS, "like": like}
    for _ in range(2):
        with pytest.raises(ggtok.TemplateError, match=r"line 1: .*no such year"):
            tok.apply_chat_template(HI, clock=clock(2000), **keywords)
        assert tok.apply_chat_template(HI, clock=clock(2026), **keywords) == "2026"
        assert tok.apply_chat_template(HI, clock=clock(2030), **keywords) == "2030"
    years = YEARS.replace("2024", "2000").replace("2030", "2200")
    now = tok.apply_chat_template(HI, template=years, like=like)
    assert abs(int(now) - datetime.now().year) <= 1
    assert templated(default=years).encode_chat(HI, like=like)
    with pytest.raises(ggtok.TemplateError, match="no such year"):
        templated(default=years).encode_chat(HI, like=like, clock=clock(1999))


@pytest.mark.parametrize(
    ("zone", "name", "offset"),
    [
        (timezone.utc, "UTC", "+0000"),
        (timezone(timedelta(hours=1), "CET"), "CET", "+0100"),
        (timezone(timedelta(hours=-3, minutes=-30), "NST"), "NST", "-0330"),
    ],
)
@pytest.mark.parametrize("like", LIKES)
def test_time_zones_are_printed(
    tok: Tokenizer, like: Any, zone: timezone, name: str, offset: str
) -> None:
    def shown(format: str) -> str:
        return tok.apply_chat_template(
            HI,
            template=f"{{{{ strftime_now('{format}') }}}}",
            like=like,
            clock=lambda: datetime(2026, 3, 7, 15, 4, 5, tzinfo=zone),
        )

    assert shown("%Z") == name
    assert shown("%z") == offset
    assert shown("%H:%M %Z (%z)") == f"15:04 {name} ({offset})"


def test_llama_server_has_a_time_zone_and_transformers_has_none(tok: Tokenizer) -> None:
    template = "{{ strftime_now('%Z|%z') }}"
    here = datetime(2026, 3, 7).astimezone().strftime("%Z|%z")
    for now in (lambda: datetime(2026, 3, 7), None):
        shown = [
            tok.apply_chat_template(HI, template=template, like=like, clock=now) for like in LIKES
        ]  # type: ignore[arg-type]
        if now:
            assert shown == [here, "|"]
        assert shown[0].count("|") == 1 and len(shown[0]) > 6 and shown[1] == "|"


# ---- templates that aren't UTF-8 ----


@pytest.mark.parametrize("like", LIKES)
def test_a_template_that_is_not_utf_8_raises_template_error(like: Any) -> None:
    gguf = GGUF.read(fixture("bpe-qwen2"))
    gguf.set("tokenizer.chat_template", b"\xff{{ messages[0].content }}")
    tok = load(gguf.dump())
    pattern = "splits a character" if like == "llama.cpp" else "the template is not UTF-8"
    for call in (
        lambda: tok.apply_chat_template(HI, like=like),
        lambda: tok.encode_chat(HI, like=like),
        lambda: tok.count_chat(HI, like=like),
        lambda: tok.encode_chat_batch([HI], like=like),
        lambda: tok.encode_chat(HI, like=like, template="default"),
    ):
        with pytest.raises(ggtok.TemplateError, match=pattern) as caught:
            call()
        str(caught.value).encode()
    # Other templates of the tokenizer can be used.
    assert tok.apply_chat_template(HI, like=like, template="{{ messages[0].content }}") == "Hi"
    with pytest.raises(ggtok.InvalidValueError, match="template: character 0 is a lone surrogate"):
        tok.apply_chat_template(HI, like=like, template=tok.chat_templates["default"])
