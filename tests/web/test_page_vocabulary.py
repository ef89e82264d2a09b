"""The page's Vocabulary view: the list's columns and orders, stored forms, files, and the check of
all tokens."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import ggtok
from tests.support.patch import GGUF
from tests.support.vocabularies import fixture

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.web.pages import Shown

VIEW = "document.querySelector('gg-vocabulary-view')"


def open_vocabulary(shown: Shown, name: str) -> ggtok.Tokenizer:
    shown.open(fixture(name))
    shown.view("vocabulary")
    tok = ggtok.load(fixture(name))
    shown.found(tok.n_tokens, tok.n_tokens)
    return tok


def sorted_by(shown: Shown, order: str) -> list[int]:
    """Returns the ids of the whole list, once it is in this order."""
    shown.page.wait_for_function(
        f"order => {VIEW}.app.values['vocabulary.sort'] === order && !{VIEW}.busy", arg=order
    )
    ids: list[int] = shown.page.evaluate(f"{VIEW}.ids")
    shown.page.wait_for_function("() => document.querySelector('.list').scrollTop === 0")
    assert shown.rows == ids[: len(shown.rows)]
    return ids


def header(shown: Shown, name: str) -> Any:
    return shown.page.locator(".token-row.head button", has_text=name)


def test_a_column_sorts_the_list_in_both_orders(shown: Shown) -> None:
    tok = open_vocabulary(shown, "bpe-llama3")
    pieces = [tok.token_to_piece(id) for id in range(tok.n_tokens)]
    header(shown, "Bytes").click()
    expected = sorted(range(tok.n_tokens), key=lambda i: len(pieces[i]))
    assert sorted_by(shown, "bytes") == expected
    header(shown, "Bytes").click()
    expected = sorted(range(tok.n_tokens), key=lambda i: -len(pieces[i]))
    assert sorted_by(shown, "-bytes") == expected
    header(shown, "Text").click()
    assert sorted_by(shown, "text") == sorted(range(tok.n_tokens), key=lambda i: pieces[i])
    assert header(shown, "Text").get_attribute("aria-pressed") == "true"
    assert header(shown, "Bytes").get_attribute("aria-pressed") == "false"
    header(shown, "Id").click()
    header(shown, "Id").click()
    assert sorted_by(shown, "-id") == list(range(tok.n_tokens))[::-1]


def test_ranks_and_parts_are_those_of_the_merges(shown: Shown) -> None:
    tok = open_vocabulary(shown, "bpe-llama3")
    merges = ggtok.vocabulary(fixture("bpe-llama3")).merges
    rank: dict[int, int] = {}
    of = {tok.token_to_piece(id): id for id in range(tok.n_tokens) if not tok.is_control(id)}
    for i, (left, right) in enumerate(merges):
        rank.setdefault(of[left + right], i)
    header(shown, "Rank").click()
    last = len(merges)
    expected = sorted(range(tok.n_tokens), key=lambda i: rank.get(i, last))
    assert sorted_by(shown, "rank") == expected
    header(shown, "Rank").click()
    ranks = [rank.get(id, -1) for id in sorted_by(shown, "-rank")]
    assert ranks == sorted(ranks, reverse=True)
    i, (left, right) = next(
        (i, merge) for i, merge in enumerate(merges) if b"".join(merge).isalpha()
    )
    shown.page.get_by_label("Search in").select_option("Id")
    shown.page.get_by_label("Search", exact=True).fill(str(of[left + right]))
    shown.found(1, tok.n_tokens)
    row = shown.page.locator(".token-row[role=option]")
    assert row.locator(".parts .token").all_text_contents() == [left.decode(), right.decode()]
    assert row.locator(".rank").inner_text() == f"{i:,}"


def test_scores_have_a_column(shown: Shown) -> None:
    tok = open_vocabulary(shown, "spm")
    assert not header(shown, "Rank").count()
    header(shown, "Score").click()
    ids = sorted_by(shown, "score")
    assert ids == sorted(range(tok.n_tokens), key=tok.token_score)


@pytest.mark.parametrize(
    ("name", "query"), [("bpe-llama3", "\u0120the"), ("spm", "\u2581the"), ("wpm", "\u2581the")]
)
def test_stored_forms_are_found(shown: Shown, name: str, query: str) -> None:
    tok = open_vocabulary(shown, name)
    shown.page.get_by_label("Search", exact=True).fill(query)
    shown.page.get_by_label("Match case").check()
    expected = [id for id in range(tok.n_tokens) if b" the" in tok.token_to_piece(id)]
    assert expected
    shown.found(len(expected), tok.n_tokens)
    assert shown.rows == expected[: len(shown.rows)]


def test_a_regular_expression_heeds_case(shown: Shown) -> None:
    tok = open_vocabulary(shown, "bpe-llama3")
    shown.page.get_by_label("Search in").select_option("Regular expression")
    assert not shown.page.get_by_label("Match case").count()
    shown.page.get_by_label("Search", exact=True).fill("^[A-Z]+$")
    pieces = [tok.token_to_piece(id) for id in range(tok.n_tokens)]
    upper = [piece for piece in pieces if piece.isalpha() and piece.isupper()]
    shown.found(len(upper), tok.n_tokens)


@pytest.mark.parametrize("name", ["bpe-llama3", "spm"])
def test_the_tokens_found_are_saved(shown: Shown, name: str) -> None:
    tok = open_vocabulary(shown, name)
    shown.page.get_by_label("Search", exact=True).fill("e")
    ids = [id for id in range(tok.n_tokens) if b"e" in tok.token_to_piece(id).lower()]
    shown.found(len(ids), tok.n_tokens)
    saved: dict[str, Any] = {}
    for kind in ("CSV", "JSON"):
        with shown.page.expect_download() as download:
            shown.page.get_by_role("button", name=f"Save {kind}").click()
        assert download.value.suggested_filename == f"{name}-tokens.{kind.lower()}"
        saved[kind] = Path(download.value.path()).read_bytes().decode()
    tokens = json.loads(saved["JSON"])
    assert [token["id"] for token in tokens] == ids
    pieces = [tok.token_to_piece(id) for id in ids]
    assert [bytes.fromhex(token["bytes"]) for token in tokens] == pieces
    texts = [piece.decode("utf-8", "replace") for piece in pieces]
    assert [token["text"] for token in tokens] == texts
    table = list(csv.DictReader(io.StringIO(saved["CSV"], newline="")))
    assert [int(row["id"]) for row in table] == ids
    assert [json.loads(row["text"]) for row in table] == texts
    assert all(row["text"].startswith('"') for row in table)  # no program reads it as a formula
    assert ("rank" in table[0], "score" in table[0]) == (name == "bpe-llama3", name == "spm")


def test_a_busy_search_says_so(shown: Shown) -> None:
    open_vocabulary(shown, "bpe-llama3")
    shown.page.evaluate(
        """() => {
          window.statuses = [];
          const found = document.querySelector(".found");
          const watch = () => window.statuses.push(found.textContent.trim());
          new MutationObserver(watch).observe(document.querySelector("gg-vocabulary-view"), {
            subtree: true, childList: true, characterData: true });
        }"""
    )
    shown.page.get_by_label("Search", exact=True).fill("the")
    shown.page.wait_for_function("() => window.statuses.some((each) => each.includes(' of '))")
    assert "Searching\u2026" in shown.page.evaluate("window.statuses")


# ---- the check of all tokens ----

# Records, for each message to a worker, the number of bytes of its longest buffer.
WATCH = """() => {
  window.sent = [];
  const { postMessage } = Worker.prototype;
  Worker.prototype.postMessage = function (message, ...rest) {
    const views = (message.args ?? []).flat().filter(ArrayBuffer.isView);
    const sizes = views.map(({ buffer }) => buffer.byteLength);
    window.sent.push([message.method, Math.max(0, ...sizes)]);
    return postMessage.call(this, message, ...rest);
  };
}"""


def start_check(shown: Shown) -> None:
    shown.page.locator("summary", has_text="Unreachable").click()
    shown.page.get_by_role("button", name="Check all tokens").click()


def test_all_tokens_are_checked_with_few_small_messages(shown: Shown) -> None:
    """A message doesn't contain the whole vocabulary."""
    tok = open_vocabulary(shown, "bpe-llama3")
    shown.page.evaluate(WATCH)
    start_check(shown)
    shown.page.wait_for_function(f"() => {VIEW}.checked?.running === false")
    sent = [size for method, size in shown.page.evaluate("window.sent") if method == "encodeBatch"]
    assert len(sent) == 1
    longest = max(len(tok.token_to_piece(id)) for id in range(tok.n_tokens))
    assert 0 < sent[0] <= longest


def test_a_check_stops_when_the_view_is_left_and_can_go_on(shown: Shown, tmp_path: Path) -> None:
    gguf = GGUF.read(fixture("spm"))
    more = [b"x%d" % i for i in range(9000)]
    for key, values in (("tokens", more), ("scores", [-1e9] * 9000), ("token_type", [1] * 9000)):
        gguf.set(f"tokenizer.ggml.{key}", [*gguf.get(f"tokenizer.ggml.{key}"), *values])
    gguf.write(tmp_path / "large.gguf")
    shown.open(tmp_path / "large.gguf")
    shown.view("vocabulary")
    shown.page.wait_for_function(f"() => {VIEW}.ids.length")
    shown.page.evaluate(
        f"""() => {{
          const {{ tok }} = {VIEW}.app.model;
          const {{ encodeBatch }} = tok;
          window.batches = 0;
          tok.encodeBatch = async (...args) => {{
            window.batches += 1;
            if (window.batches === 1) await new Promise((resolve) => (window.goOn = resolve));
            return encodeBatch(...args);
          }};
        }}"""
    )
    start_check(shown)
    shown.page.wait_for_function("() => window.goOn !== undefined")
    shown.view("text")
    shown.page.evaluate("window.goOn()")
    shown.view("vocabulary")
    shown.page.wait_for_function(f"() => {VIEW}.checked.running === false")
    assert shown.page.evaluate("window.batches") == 1
    shown.page.get_by_role("button", name="Check the rest").click()
    tok = ggtok.load(tmp_path / "large.gguf")
    shown.page.wait_for_function(f"() => {VIEW}.checked.done === {VIEW}.checked.all")
    expected = [
        id
        for id, kind in enumerate(gguf.get("tokenizer.ggml.token_type"))
        if kind not in (2, 3, 5, 6)
        and (piece := tok.token_to_piece(id))
        and tok.encode(piece, add_special=False, continuation=True) != [id]
    ]
    assert shown.page.evaluate(f"{VIEW}.checked.found") == expected


def test_the_text_column_is_wide_on_every_screen(browser: Browser) -> None:
    from tests.web.pages import Shown

    for width in (360, 480, 640, 768, 820, 912, 1000, 1001, 1024, 1280):
        context = browser.new_context(viewport={"width": width, "height": 900})
        shown = Shown(context.new_page())
        open_vocabulary(shown, "bpe-llama3")
        cell = shown.page.locator(".token-row[role=option] .piece").first.bounding_box()
        assert cell
        assert cell["width"] >= 110, width
        context.close()
        assert not shown.errors
