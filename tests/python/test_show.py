"""Tokenizer.show displays tokens as HTML, safely for any text."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from shutil import which

import numpy as np
import pytest

import ggtok
from ggtok.text.shown import _html
from tests.support.vocabularies import fixture_names

Load = Callable[[str], ggtok.Tokenizer]

ELEMENTS = {"div", "style", "bdi", "i", "kbd", "wbr", "br", "del", "details", "summary"}
ATTRIBUTES = {"class", "dir", "title"}
HOSTILE = [
    "<script>document.title='ran'</script>",
    '"><img src=x onerror="document.title=\'ran\'">',
    "</bdi></div></style><style>*{display:none}</style>",
    "' title='x' onmouseover='document.title=1'",
    "&lt;b&gt; &#60;script&#62; ]]> <!-- --> <![CDATA[",
    "\u202eevil\u2066\u2069\u200f\u061c abc",
    "\x00\x07\x1b]0;title\x07\x1b[2J\r\n\v\f\x85\u2028\u2029",
    "😀👩‍👩‍👧‍👦\ufeff\U000e0041 e\u0301\u0301\u0301",
]


class Page(HTMLParser):
    """Parses the generated HTML; fails on an unexpected element or attribute."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.titles: list[str] = []
        self.open: list[str] = []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ELEMENTS
        assert {name for name, _ in attrs} <= ATTRIBUTES
        self.titles += [value or "" for name, value in attrs if name == "title"]
        if tag not in ("br", "wbr"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open and "summary" not in self.open:
            self.texts.append(data)

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(decl)

    handle_comment = unknown_decl = handle_pi = handle_decl


@pytest.mark.parametrize("name", [name for name in fixture_names() if name != "no-vocab"])
def test_any_text_is_safe(load_fixture: Load, name: str) -> None:
    tok = load_fixture(name)
    if tok.vocab_type == "NONE":
        pytest.skip("nothing to encode with")
    for text in HOSTILE:
        shown = tok.show(text, parse_special=True)
        assert shown.ids == tok.encode(text, parse_special=True)
        page = Page(shown._repr_html_())
        assert all(part.isprintable() for part in page.texts), page.texts
        assert all(title.isprintable() for title in page.titles)
        assert len(page.titles) == len(shown) == shown.count
        plain = re.sub(r"\x1b\[[0-9;]+m", "", str(shown))
        assert all(c.isprintable() or c == "\n" for c in plain)


def test_tokens_and_dropped_bytes(load_fixture: Load) -> None:
    text = " two  spaces \N{GRINNING FACE}\n"
    for name in ("bpe-llama3", "spm", "ugm", "wpm"):
        tok = load_fixture(name)
        shown = tok.show(text)
        ids, spans = tok.encode_with_offsets(text)
        assert [(t.id, t.span) for t in shown.tokens] == [
            (id, tuple(span)) for id, span in zip(ids, spans.tolist(), strict=True)
        ]
        assert [t.piece for t in shown.tokens] == [tok.token_to_piece(id) for id in ids]
        assert [t.special for t in shown.tokens] == [id in tok.special_ids for id in ids]
        # Each byte of the text is either in a span or dropped.
        data = text.encode()
        covered = bytearray(len(data))
        for token in shown.tokens:
            begin, end = token.span or (0, 0)
            covered[begin:end] = b"\1" * (end - begin)
            assert data[begin - len(token.dropped) : begin] == token.dropped
            covered[begin - len(token.dropped) : begin] = b"\1" * len(token.dropped)
        assert covered.rstrip(b"\0").count(0) == 0
        assert data[len(covered.rstrip(b"\0")) :] == shown._rest


def test_show_accepts_ids_and_bytes(load_fixture: Load) -> None:
    tok = load_fixture("bpe-llama3")
    ids = tok.encode("a b")
    for value in (ids, tuple(ids), np.array(ids), iter(ids)):
        assert tok.show(value).ids == ids
    assert tok.show(b"a b").ids == tok.show(bytearray(b"a b")).ids == ids
    assert tok.show([]).ids == []
    assert repr(tok.show([1])) == "<ggtok.Shown: 1 token>"


def test_html_of_lines_and_combining_characters(load_fixture: Load) -> None:
    tok = load_fixture("bpe-llama3")
    html = tok.show("a\nb", add_special=False)._repr_html_()
    assert "<i>↵</i></bdi><br><bdi" in html  # the line break is outside of the token
    assert _html("\u0301a\u0301".encode()) == "<kbd>\\u0301</kbd>a\u0301"
    html = tok.show("<|eot_id|>a", add_special=False, parse_special=True)._repr_html_()
    assert '<wbr><bdi class="' in html
    assert html.count("<wbr>") == 2


def test_the_limit_bounds_the_tokens_shown(load_fixture: Load) -> None:
    tok = load_fixture("bpe-llama3")
    shown = tok.show("x " * 100, limit=3)
    assert (len(shown), shown.count) == (3, len(tok.encode("x " * 100)))
    more = f"... and {shown.count - 3} more tokens"
    assert more in str(shown)
    assert more in shown._repr_html_()
    assert tok.show([1, 2, 3], limit=2).ids == [1, 2]


def test_size_is_bounded(load_fixture: Load) -> None:
    tok = load_fixture("bpe-llama3")
    assert len(tok.show("<&>\x00" * 250_000)._repr_html_()) < 3 << 20


def test_messages_have_roles(load_fixture: Load) -> None:
    tok = load_fixture("bpe-harmony")
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello <b>"},
        {"role": "assistant", "content": "Hello"},
        {"role": "user", "content": "Hello"},
    ]
    shown = tok.show(messages, template="chatml")
    assert shown.ids == tok.encode_chat(messages, template="chatml")
    roles: list[tuple[str | None, bytes]] = []
    for token in shown.tokens:
        if token.role != "template" and not token.special:
            if roles and roles[-1][0] == token.role:
                roles[-1] = token.role, roles[-1][1] + token.piece
            else:
                roles.append((token.role, token.piece))
    assert roles == [(m["role"], m["content"].encode()) for m in messages]
    Page(shown._repr_html_())


def test_wrong_arguments(load_fixture: Load) -> None:
    tok = load_fixture("bpe-llama3")
    for value in (1.5, None, [1.5], ["a"], [None]):
        with pytest.raises(ggtok.InvalidTypeError):
            tok.show(value)  # type: ignore[arg-type]
    with pytest.raises(ggtok.InvalidValueError, match="limit must not be negative"):
        tok.show("a", limit=-1)
    with pytest.raises(ggtok.InvalidTypeError, match="tools is an argument for conversations"):
        tok.show("a", tools=[])
    with pytest.raises(ggtok.TokenIdError):
        tok.show([tok.n_tokens])


def test_plain_output(load_fixture: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    tok = load_fixture("bpe-llama3")
    assert str(tok.show("a\tb\n", add_special=False)) == "a|→|b|↵\n|"


@pytest.mark.parametrize("name", fixture_names())
def test_a_tokenizer_is_shown_as_a_table(load_fixture: Load, name: str) -> None:
    html = load_fixture(name)._repr_html_()
    assert html.startswith("<table>")
    assert f"{load_fixture(name).n_tokens:,}" in html


@pytest.mark.full
@pytest.mark.skipif(which("chromium") is None, reason="needs Chromium")
def test_nothing_runs_in_a_browser(load_fixture: Load, tmp_path: Path) -> None:
    tok = load_fixture("bpe-llama3")
    parts = "".join(tok.show(text)._repr_html_() for text in [*HOSTILE, "<&\n " * 250_000])
    page = tmp_path / "page.html"
    head = "<!doctype html><meta charset=utf-8><title>still</title>"
    page.write_text(f"{head}{parts}<p id=end>end</p>", encoding="utf-8")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-quic"]
    flags += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    command = ["chromium", *flags, f"--user-data-dir={tmp_path}/user", "--dump-dom", page.as_uri()]
    dom = subprocess.run(command, capture_output=True, timeout=120, check=True).stdout.decode()
    assert "<title>still</title>" in dom
    assert "<script" not in dom
    assert "<img" not in dom
    assert '<p id="end">end</p></body>' in dom
