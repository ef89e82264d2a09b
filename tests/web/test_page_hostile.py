"""Files, texts and templates from a stranger: nothing in them runs, and nothing hangs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import numpy as np
import pytest

import ggtok
from tests.support.patch import GGUF
from tests.support.vocabularies import FIXTURES, fixture
from tests.web.hostile import MARKUP, vocabulary

if TYPE_CHECKING:
    from tests.web.pages import Shown

MOST_NODES = 6000  # elements of the page, whatever a file or a link contains

MAP_SETTLED = "() => document.querySelector('gg-vocabulary-map')?.settled"


def nothing_ran(shown: Shown) -> None:
    assert shown.page.evaluate("window.ran") is None
    assert shown.page.locator("main img, main script, main svg").count() == 0


def test_markup_is_text(shown: Shown, tmp_path: Path) -> None:
    path = vocabulary(
        tmp_path / "<img src=x onerror=window.ran=1>.gguf",
        [text.encode() for text in MARKUP],
        "<img src=x onerror=window.ran=1>",
    )
    shown.open(path)
    text = " ".join(MARKUP).replace("\x00", "")
    shown.type(text)
    assert "<script>window.ran=1</script>" in "".join(shown.pieces)
    assert "U+202E" in "".join(shown.pieces)
    nothing_ran(shown)
    for view in ("vocabulary", "chat", "file", "models"):
        shown.view(view)
        shown.page.wait_for_timeout(300)
        nothing_ran(shown)
    shown.view("file")
    assert shown.fact("Name") == "<img src=x onerror=window.ran=1>"
    shown.view("vocabulary")
    for panel in ("Charts", "Map of prefixes"):
        shown.page.locator(".segments label", has_text=panel).click()
        shown.page.wait_for_timeout(300)
        nothing_ran(shown)


def test_markup_in_a_link_is_text(shown: Shown) -> None:
    link = shown.page.url + "#vocabulary?vocabulary.query=<img src=x onerror=window.ran=1>"
    link += "&model=<script>window.ran=1</script>&chat.messages=[{]&text.split=1e99&view=x"
    shown.page.goto("about:blank")
    shown.page.goto(link + "&vocabulary.picked=-1,999999999999,__proto__&__proto__=1")
    shown.page.locator(".note", has_text="<script>window.ran=1</script>").wait_for()
    shown.open(fixture("spm"))
    for view in ("text", "vocabulary", "chat", "file"):
        shown.view(view)
        shown.page.wait_for_timeout(200)
    nothing_ran(shown)


def test_a_vocabulary_of_300_000_tokens_is_usable(shown: Shown, tmp_path: Path) -> None:
    path = vocabulary(tmp_path / "many.gguf", [b"t%d" % i for i in range(300_000)])
    shown.open(path)
    shown.view("vocabulary")
    shown.page.locator(".found", has_text="300,259 tokens").wait_for()
    assert shown.page.locator(".token-row[role=option]").count() < 200
    shown.page.get_by_label("Search", exact=True).fill("t299999")
    shown.page.locator(".found", has_text="1 of 300,259 tokens").wait_for()
    shown.page.locator(".segments label", has_text="Map of prefixes").click()
    shown.page.wait_for_function(MAP_SETTLED, timeout=60_000)
    assert shown.page.locator("*").count() < MOST_NODES


def test_a_token_of_a_megabyte_is_shortened(shown: Shown, tmp_path: Path) -> None:
    long = b"ab" * (1 << 19)
    path = vocabulary(tmp_path / "long.gguf", [long, b"ab"])
    shown.open(path)
    shown.view("vocabulary")
    shown.page.get_by_label("Order").select_option("Longest first")
    row = shown.page.locator(".token-row[role=option]").first
    row.locator(".more", has_text="1,048,376 bytes").wait_for()
    row.click()
    shown.page.locator(".facts", has_text="1,048,576 bytes in all").wait_for()
    shown.page.locator(".segments label", has_text="Map of prefixes").click()
    shown.page.wait_for_function(MAP_SETTLED)


@pytest.mark.parametrize("share", [0, 0.01, 0.3, 0.9, 0.999])
def test_truncated_files_are_refused(shown: Shown, share: float) -> None:
    data = fixture("bpe-llama3").read_bytes()
    buffer = data[: int(len(data) * share)]
    shown.open({"name": "cut.gguf", "mimeType": "", "buffer": buffer})
    assert shown.error.startswith("Cannot open cut.gguf: ")
    shown.open(fixture("spm"))  # the page still works
    shown.type("the")
    assert shown.ids == ggtok.load(fixture("spm")).encode("the")


def test_malformed_files_open_or_are_refused(shown: Shown) -> None:
    """Files with flipped bytes: each opens, or the page says why not."""
    data = fixture("bpe-llama3").read_bytes()
    random = np.random.default_rng(43)
    for i in range(20):
        bytes_ = bytearray(data)
        for at in random.integers(0, len(data) // 8, 6):
            bytes_[at] = random.integers(256)
        shown.open({"name": f"flipped{i}.gguf", "mimeType": "", "buffer": bytes(bytes_)})
    shown.open(fixture("spm"))
    shown.type("the")
    assert shown.ids == ggtok.load(fixture("spm")).encode("the")


BOMBS = {
    "loops": "{% for a in range(99999) %}{% for b in range(99999) %}{{ b }}{% endfor %}"
    "{% endfor %}",
    "memory": "{% set ns = namespace(x='a' * 1000) %}{% for i in range(99) %}"
    "{% set ns.x = ns.x ~ ns.x %}{% endfor %}{{ ns.x }}",
    "recursion": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "nesting": "{{ " + "(" * 50_000 + ")" * 50_000 + " }}",
}


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.parametrize("like", ["llama.cpp", "transformers"])
def test_template_bombs_are_stopped(shown: Shown, name: str, like: str) -> None:
    shown.open(FIXTURES / "chat.gguf")
    shown.page.evaluate(
        "values => document.querySelector('gg-app').app.set(values)",
        {"view": "chat", "chat.template": BOMBS[name], "chat.like": like},
    )
    assert shown.error
    # The page still responds, and the model still works.
    shown.page.get_by_role("button", name="Restore the file's template").click()
    shown.page.locator("gg-chat-view pre .origin").first.wait_for(timeout=30_000)
    shown.view("text")
    shown.type("Hi")
    assert shown.ids == ggtok.load(FIXTURES / "chat.gguf").encode("Hi")


def test_a_regular_expression_bomb_is_stopped(shown: Shown, tmp_path: Path) -> None:
    shown.open(vocabulary(tmp_path / "a.gguf", [b"a" * 4000 + b"!"]))
    shown.view("vocabulary")
    shown.page.get_by_label("Search in").select_option("Regular expression")
    shown.page.get_by_label("Search", exact=True).fill("^(a+)+$")
    assert "took too long" in shown.error
    shown.page.get_by_label("Search", exact=True).fill("^a+!$")
    shown.page.locator(".found", has_text="1 of 260 tokens").wait_for()


def test_hostile_metadata_is_shown_as_text(shown: Shown, tmp_path: Path) -> None:
    gguf = GGUF.read(fixture("spm"))
    gguf.set("general.<b>name</b>", b"\xff\xfe<script>window.ran=1</script>", "str")
    gguf.set("general.long", b"x" * 1_000_000, "str")
    path = tmp_path / "metadata.gguf"
    gguf.write(path)
    shown.open(path)
    shown.view("file")
    shown.page.get_by_label("Filter keys").fill("general.")
    row = shown.page.locator(".metadata tr", has_text="<b>name</b>")
    assert "<script>window.ran=1</script>" in row.inner_text()
    assert len(shown.page.locator(".metadata").inner_text()) < 10_000
    nothing_ran(shown)


def nodes(shown: Shown) -> int:
    return int(shown.page.evaluate("document.querySelectorAll('*').length"))


def test_a_file_of_30_000_keys_is_usable(shown: Shown, tmp_path: Path) -> None:
    gguf = GGUF.read(fixture("spm"))
    for i in range(30_000):
        gguf.set(f"k{i}", i, "u32")
    for i in range(1000):
        gguf.set(f"tokenizer.chat_template.n{i}", "{{ 1 }}", "str")
        gguf.set(f"tokenizer.ggml.unknown{i}", 1, "u32")
    path = tmp_path / "keys.gguf"
    gguf.write(path)
    shown.open(path)
    shown.view("file")
    shown.page.locator(".parts-bar", has_text="1\u2013200 of ").wait_for()
    assert nodes(shown) < MOST_NODES
    shown.page.get_by_role("button", name="Next part").click()
    shown.page.locator(".parts-bar", has_text="201\u2013400 of ").wait_for()
    shown.page.get_by_label("Filter keys").fill("k29999")
    shown.page.locator(".metadata tbody tr", has_text="k29999").wait_for()
    assert shown.page.locator(".metadata tbody tr").count() == 1
    shown.view("chat")
    shown.page.locator(".template summary").click()
    shown.page.get_by_role("combobox", name="Template").wait_for()
    assert nodes(shown) < MOST_NODES


def follow(shown: Shown, values: dict[str, str]) -> None:
    """Opens a link with these settings of the Chat view, in the page with the model."""
    query = "&".join(f"{name}={quote(value)}" for name, value in values.items())
    shown.page.evaluate("hash => { location.hash = hash; }", f"#chat?{query}")


def test_a_link_with_3000_messages_shows_some(shown: Shown) -> None:
    shown.open(FIXTURES / "chat.gguf")
    follow(shown, {"chat.messages": "[" + ",".join("1" * 3000) + "]"})
    shown.page.locator(".parts-bar", has_text="1\u201330 of 3,000").wait_for()
    assert shown.page.locator(".message:not(.origin)").count() == 30
    assert nodes(shown) < MOST_NODES
    messages = [{"role": "user", "content": f"m{i}"} for i in range(2500)]
    follow(shown, {"chat.messages": json.dumps(messages), "chat.show": "origins"})
    bar = shown.page.locator(".output .parts-bar", has_text="Part 1 of ")
    bar.wait_for()
    assert nodes(shown) < MOST_NODES
    bar.get_by_role("button", name="Next part").click()
    shown.page.locator(".output .parts-bar", has_text="Part 2 of ").wait_for()
    shown.page.get_by_role("button", name="Add message").click()
    shown.page.get_by_label("Content of message 2501", exact=True).wait_for()


NESTED = "[" * 20_000 + "]" * 20_000
DEEP = {
    "messages": f"[{NESTED}]",
    "tools": NESTED,
    "variables": f'{{"a": {NESTED}}}',
}


@pytest.mark.parametrize("name", DEEP)
def test_nested_brackets_in_a_link_are_an_error(shown: Shown, name: str) -> None:
    shown.open(FIXTURES / "chat.gguf")
    follow(shown, {f"chat.{name}": DEEP[name]})
    assert "nested too deep" in shown.error
    shown.view("text")
    shown.type("Hi")
    assert shown.ids == ggtok.load(FIXTURES / "chat.gguf").encode("Hi")


ROLES = ['{"toString": 1, "valueOf": 1}', "null", "[[]]", json.dumps("x" * 50_000)]


@pytest.mark.parametrize("role", ROLES)
def test_roles_of_any_type_are_shown(shown: Shown, role: str) -> None:
    shown.open(FIXTURES / "chat.gguf")
    messages = f'[{{"role": {role}, "content": "a"}}, {{"role": "user", "content": "b"}}]'
    follow(shown, {"chat.messages": messages, "chat.show": "origins"})
    shown.page.get_by_label("Content of message 2", exact=True).wait_for()
    text = shown.page.get_by_label("Role of message 1", exact=True).inner_text()
    assert len(text) < 200


def test_long_settings_of_a_link_are_ignored(shown: Shown) -> None:
    shown.open(fixture("spm"))
    follow(shown, {"text": "a" * 100_001, "vocabulary.query": "b"})
    shown.page.locator(".toast", has_text="more than 100,000 characters").wait_for()
    values = shown.page.evaluate("document.querySelector('gg-app').app.values")
    assert values["text"].startswith("Hello, world!")  # the sample
    assert values["vocabulary.query"] == "b"


@pytest.mark.parametrize("mode", ["Text", "Bytes (hex)"])
def test_searching_repetitive_pieces_takes_linear_time(
    shown: Shown, tmp_path: Path, mode: str
) -> None:
    """A naive search compares 8 x 10^10 bytes, for which the browser would need minutes."""
    shown.open(vocabulary(tmp_path / "a.gguf", [b"a" * 3_000_000, b"b" + b"a" * 40_000 + b"c"]))
    shown.view("vocabulary")
    shown.page.get_by_label("Search in").select_option(mode)
    wanted = "a" * 30_000 + "c"
    query = wanted if mode == "Text" else wanted.encode().hex()
    shown.page.get_by_label("Search", exact=True).fill(query)
    shown.page.locator(".found", has_text="1 of 261 tokens").wait_for()
