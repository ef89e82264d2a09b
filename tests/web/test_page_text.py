"""The page's Text view, and opening models."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

import ggtok
from ggtok.inspect.parity.compare import special_of, words_of
from ggtok.inspect.parity.texts import texts
from tests.support.samples import thinned, times
from tests.support.vocabularies import FIXTURES, fixture, fixture_names

if TYPE_CHECKING:
    from tests.web.pages import Shown

pytestmark = pytest.mark.filterwarnings("ignore::ggtok.VocabWarning")

TOKENIZERS = [name for name in fixture_names() if name != "none"]

# Encodes texts on the page, one after the other. Returns, for each text, the ids in the view's
# result, and [index, id] of each token that the list shows.
ENCODE = """async ([texts, options]) => {
  const { app } = document.querySelector("gg-app");
  const view = document.querySelector("gg-text-view");
  const results = [];
  for (const text of texts) {
    app.set({ ...options, text });
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve));
      await view.updateComplete;
      if (view.result.text === text && view.settled) break;
    }
    const list = document.querySelector("gg-tokens");
    await list.updateComplete;
    const shown = [...list.querySelectorAll("[role=option]")].map((one) => [
      Number(one.dataset.i), Number(one.getAttribute("aria-label").split(" ").at(-1))]);
    results.push([Array.from(view.result.ids), shown]);
  }
  return results;
}"""


@pytest.mark.parametrize("name", TOKENIZERS)
def test_ids_are_those_of_encode(shown: Shown, name: str) -> None:
    tok = ggtok.load(fixture(name))
    shown.open(fixture(name))
    special = [tok.token_text(id) for id in special_of(tok)]
    raw = texts(43, times(30, 150), words_of(tok), special)
    sample = [text for text in (each.decode("utf-8", "replace") for each in thinned(raw)) if text]
    for add_special in (True, False):
        for parse_special in (True, False):
            options = {"addSpecial": add_special, "parseSpecial": parse_special}
            results = shown.page.evaluate(ENCODE, [sample, options])
            for text, (ids, in_list) in zip(sample, results, strict=True):
                expected = tok.encode(text, add_special=add_special, parse_special=parse_special)
                assert ids == expected, text
                assert in_list or not expected
                assert all(expected[i] == id for i, id in in_list)


def test_a_file_without_a_vocabulary_has_a_message(shown: Shown) -> None:
    shown.open(fixture("none"))
    shown.view("text")
    shown.page.fill("textarea.editor", "Hi")
    assert "the file has no vocabulary" in shown.error
    assert not shown.ids


def test_typing_shows_tokens(shown: Shown) -> None:
    tok = ggtok.load(fixture("bpe-llama3"))
    shown.open(fixture("bpe-llama3"))
    text = "Hi  there\n\t\u4f60<|eot_id|>"
    shown.type(text)
    assert shown.ids == tok.encode(text)
    assert shown.stat("tokens") == str(len(tok.encode(text)))
    assert shown.stat("characters") == str(len(text))
    assert shown.stat("bytes") == str(len(text.encode()))
    assert shown.page.locator("gg-tokens i.space").count() == 2
    assert shown.page.locator("gg-tokens i.byte").all_text_contents() == ["E4", "BD", "A0"]
    assert shown.pieces[0] == "<|begin_of_text|>"
    shown.page.get_by_label("Parse special tokens").check()
    shown.page.wait_for_function("document.querySelectorAll('gg-tokens .special').length === 2")
    assert shown.ids == tok.encode(text, parse_special=True)
    shown.page.get_by_label("Add special tokens").uncheck()
    shown.page.wait_for_function("document.querySelectorAll('gg-tokens .special').length === 1")
    assert shown.ids == tok.encode(text, parse_special=True, add_special=False)


def test_a_sample_is_shown_on_arrival_with_a_token_selected(shown: Shown) -> None:
    tok = ggtok.load(fixture("bpe-llama3"))
    shown.open(fixture("bpe-llama3"))
    shown.page.wait_for_selector("gg-tokens .current")
    text = shown.page.input_value("textarea.editor")
    assert len(text) > 50
    assert shown.ids == tok.encode(text)
    id = int(shown.fact("Id").split()[0])
    assert len(tok.token_to_piece(id)) > 1
    assert not tok.is_control(id)
    # A cleared text stays so in a link.
    shown.type("")
    shown.page.wait_for_function("() => location.hash.includes('text=')")
    shown.page.reload()
    shown.open(fixture("bpe-llama3"))
    shown.page.wait_for_selector("gg-text-view")
    assert shown.page.input_value("textarea.editor") == ""


COLOURS = """() => [...document.querySelectorAll("gg-tokens [role=option]")].map(
  (one) => getComputedStyle(one).backgroundColor)"""


@pytest.mark.parametrize("name", ["bpe-llama3", "spm", "ugm", "rwkv"])
def test_neighbours_differ_in_colour(shown: Shown, name: str) -> None:
    shown.open(fixture(name))
    words = [word.decode("utf-8", "replace") for word in words_of(ggtok.load(fixture(name)))]
    words = [word for word in words if word.isprintable()]
    shown.page.get_by_label("Parse special tokens").check()
    shown.type(
        "aaaa 0000 the the the <|eot_id|><|eot_id|><|eot_id|></s></s> " + "".join(words[:150])
    )
    colours = shown.page.evaluate(COLOURS)
    assert len(colours) > 50
    assert all(left != right for left, right in pairwise(colours))


# For each token, the number of rectangles that it is drawn in, apart from its line feeds.
PIECES = """() => [...document.querySelectorAll("gg-tokens [role=option]")].map((one) => {
  const drawn = [...one.getClientRects()].filter(({ width }) => width > 0);
  const tops = new Set(drawn.map(({ top }) => Math.round(top / 10)));
  return [one.textContent, tops.size];
})"""


@pytest.mark.parametrize("display", ["text", "both", "ids"])
def test_a_token_is_not_broken_at_the_end_of_a_line(shown: Shown, display: str) -> None:
    """The token's id is beside it."""
    shown.open(fixture("bpe-llama3"))
    shown.page.evaluate(
        "display => document.querySelector('gg-app').app.set({ 'text.display': display })", display
    )
    shown.type("the quick brown fox jumps over 1234567890 lazy dogs " * 20)
    pieces = shown.page.evaluate(PIECES)
    assert len(pieces) > 100
    assert [piece for piece in pieces if piece[1] != 1] == []


def test_characters_are_code_points_everywhere(shown: Shown) -> None:
    shown.open(fixture("bpe-llama3"))
    text = "\U0001f600" * 60_000
    shown.page.evaluate("text => document.querySelector('gg-app').app.set({ text })", text)
    shown.settled(text)
    assert shown.stat("characters") == "60,000"
    part = shown.page.locator(".parts-bar").inner_text()
    assert "to 10,000 of 60,000" in part


def test_one_of_each_is_singular(shown: Shown) -> None:
    shown.open(fixture("bpe-llama3"))
    shown.page.get_by_label("Add special tokens").uncheck()
    shown.type("a")
    for name in ("token", "character", "byte"):
        assert shown.stat(name) == "1"
    shown.page.get_by_label("Split every").fill("1")
    shown.page.get_by_label("Split every").press("Tab")
    assert shown.stat("part") == "1"
    assert shown.page.locator("label", has_text="Split every").inner_text().endswith("token")


def test_continuation_changes_the_ids(shown: Shown) -> None:
    tok = ggtok.load(fixture("spm"))
    shown.open(fixture("spm"))
    shown.type("the")
    before = shown.ids
    shown.page.get_by_label("Continuation").check()
    expected = tok.encode("the", continuation=True)
    assert expected != before
    shown.page.wait_for_function(
        "n => document.querySelectorAll('gg-tokens [role=option]').length === n",
        arg=len(expected),
    )
    assert shown.ids == expected


def test_the_facts_of_a_token_are_shown(shown: Shown) -> None:
    tok = ggtok.load(fixture("bpe-llama3"))
    shown.open(fixture("bpe-llama3"))
    shown.type("\u00e9 the")
    ids = tok.encode("\u00e9 the")
    shown.page.hover("gg-tokens [role=option] >> nth=-1")
    assert shown.fact("Id").split()[0] == str(ids[-1])
    assert shown.fact("Bytes") == "20 74 68 65"
    assert shown.fact("Type") == "normal"
    assert shown.fact("Stored as") == "\u0120the"
    assert shown.fact("Span") == "characters 1\u20135, bytes 2\u20136"
    shown.page.hover("gg-tokens [role=option] >> nth=0")
    shown.page.locator(".facts", has_text="control").wait_for()
    assert shown.fact("Span") == "none: the tokenizer added it"


def test_a_token_selects_its_text(shown: Shown) -> None:
    shown.open(fixture("bpe-llama3"))
    shown.type("one the two")
    shown.page.locator("gg-tokens [role=option]", has_text=" the").click()
    selected = """() => {
      const { value, selectionStart, selectionEnd } = document.querySelector("textarea");
      return value.slice(selectionStart, selectionEnd);
    }"""
    assert shown.page.evaluate(selected) == " the"
    # The token at the caret becomes the current one.
    shown.page.evaluate("document.querySelector('textarea').setSelectionRange(1, 1)")
    shown.page.wait_for_function("document.querySelector('gg-tokens .current')?.dataset.i !== '5'")
    current = shown.page.locator("gg-tokens .current").text_content() or ""
    assert "n" in current


def test_ids_become_text(shown: Shown) -> None:
    tok = ggtok.load(fixture("bpe-llama3"))
    shown.open(fixture("bpe-llama3"))
    ids = tok.encode("Hi there")
    shown.page.locator(".input .segments label", has_text="Ids").click()
    shown.page.get_by_label("Token ids to decode").fill(str(ids))
    shown.page.locator(".decoded", has_text="there").wait_for()
    assert shown.page.locator(".decoded").inner_text() == tok.decode(ids)
    assert shown.ids == ids
    shown.page.get_by_label("Token ids to decode").fill("1, x")
    assert "x" in shown.error
    shown.page.get_by_label("Token ids to decode").fill("999999999")
    shown.page.locator(".error", has_text="no token 999999999").wait_for()


def test_ids_and_json_are_copied(shown: Shown) -> None:
    tok = ggtok.load(fixture("bpe-llama3"))
    shown.open(fixture("bpe-llama3"))
    shown.type("Hi \u4f60")
    clipboard = "() => navigator.clipboard.readText()"
    shown.page.get_by_role("button", name="Copy ids").click()
    shown.page.get_by_text("Ids copied").wait_for()
    assert json.loads(f"[{shown.page.evaluate(clipboard)}]") == tok.encode("Hi \u4f60")
    shown.page.get_by_role("button", name="Copy JSON").click()
    shown.page.get_by_text("JSON copied").wait_for()
    copied = json.loads(shown.page.evaluate(clipboard))
    assert copied["ids"] == tok.encode("Hi \u4f60")
    assert copied["text"] == "Hi \u4f60"


def test_parts_begin_after_n_tokens(shown: Shown) -> None:
    shown.open(fixture("bpe-llama3"))
    shown.type("one two three four five six")
    n = len(shown.ids)
    shown.page.get_by_label("Split every").fill("4")
    shown.page.keyboard.press("Tab")
    shown.page.locator(".part").first.wait_for()
    assert shown.page.locator(".part").count() == -(-n // 4)
    assert shown.stat("parts") == str(-(-n // 4))


OVERLAPS = """() => {
  const rows = [...document.querySelectorAll("gg-tokens .row")].map((row) =>
    row.getBoundingClientRect());
  rows.sort((a, b) => a.top - b.top);
  return rows.slice(1).filter((row, i) => row.top < rows[i].bottom - 1).length;
}"""


def test_lines_do_not_overlap_after_the_window_changes_on_another_tab(shown: Shown) -> None:
    shown.open(fixture("bpe-llama3"))
    shown.type("".join(f"{n}: {'some words ' * 9}\n" for n in range(12)))
    shown.view("file")
    shown.page.set_viewport_size({"width": 390, "height": 800})
    shown.page.wait_for_selector("gg-file-view")
    shown.view("text")
    shown.page.wait_for_selector("gg-tokens .row")
    assert shown.page.locator("gg-tokens .row").count() > 5
    shown.page.wait_for_function(f"() => ({OVERLAPS})() === 0")


def test_the_options_fit_a_phone(shown: Shown) -> None:
    shown.page.set_viewport_size({"width": 390, "height": 800})
    shown.open(fixture("bpe-llama3"))
    for label in "Add special tokens", "Parse special tokens", "Continuation":
        box = shown.page.locator("label.check", has_text=label).bounding_box()
        assert box and box["x"] >= 0 and box["x"] + box["width"] <= 390
    token = shown.page.locator("gg-tokens [role=option]").first.bounding_box()
    assert token and token["y"] + token["height"] < 800  # without scrolling


def test_a_long_text_is_shown_in_parts(shown: Shown) -> None:
    """For a megabyte of text, the page contains only a few rows of the list, and the editor only a
    part of the text."""
    tok = ggtok.load(fixture("bpe-llama3"))
    shown.open(fixture("bpe-llama3"))
    text = "".join(f"line {i} of the text\n" for i in range(50_000))
    shown.page.evaluate("text => document.querySelector('gg-app').app.set({ text })", text)
    shown.settled(text)
    expected = tok.encode(text)
    assert shown.stat("tokens") == f"{len(expected):,}"
    assert 0 < shown.page.locator("gg-tokens [role=option]").count() < 5000
    assert len(shown.page.input_value("textarea.editor")) < 100_000
    shown.page.get_by_role("button", name="Next part").click()
    shown.page.focus("textarea.editor")
    shown.page.keyboard.press("Control+Home")
    shown.page.keyboard.type("X")
    value = "document.querySelector('gg-app').app.values.text"
    changed = shown.page.evaluate(value)
    assert len(changed) == len(text) + 1
    at = changed.index("X")
    assert at > 0
    assert changed == text[:at] + "X" + text[at:]
    # A long text is pasted at the caret, after the X.
    pasted = "0123456789\n" * 6_000
    shown.page.evaluate("text => navigator.clipboard.writeText(text)", pasted)
    shown.page.keyboard.press("Control+v")
    assert shown.page.evaluate(value) == text[:at] + "X" + pasted + text[at:]
    assert len(shown.page.input_value("textarea.editor")) < 100_000
    shown.page.keyboard.type("Y")
    changed = text[:at] + "X" + pasted + "Y" + text[at:]
    assert shown.page.evaluate(value) == changed
    shown.settled(changed)
    shown.page.focus("gg-tokens .tokens")
    shown.page.keyboard.press("End")
    n = len(tok.encode(changed))
    shown.page.wait_for_function(
        "i => document.querySelector('gg-tokens .current')?.dataset.i === i", arg=str(n - 1)
    )


@pytest.mark.parametrize("view", ["text", "vocabulary", "chat", "file"])
def test_a_link_has_the_state(shown: Shown, view: str) -> None:
    shown.open(fixture("bpe-llama3"))
    shown.type("linked text & more")
    shown.page.get_by_label("Parse special tokens").check()
    shown.view(view)
    shown.page.get_by_role("button", name="Copy link").click()
    shown.page.get_by_text("Link copied").wait_for()
    link = shown.page.evaluate("() => navigator.clipboard.readText()")
    shown.page.goto("about:blank")
    shown.page.goto(link)
    shown.open(fixture("bpe-llama3"))
    assert shown.page.evaluate("document.querySelector('gg-app').app.values.view") == view
    shown.view("text")
    assert shown.page.input_value("textarea.editor") == "linked text & more"
    assert shown.page.get_by_label("Parse special tokens").is_checked()


def test_several_models_can_be_open(shown: Shown) -> None:
    shown.open(fixture("bpe-llama3"))
    shown.open(fixture("spm"))
    select = shown.page.get_by_label("Model", exact=True)
    assert select.locator("option").all_text_contents() == ["bpe-llama3", "spm"]
    shown.view("text")
    shown.type("the")
    assert shown.ids == ggtok.load(fixture("spm")).encode("the")
    select.select_option(label="bpe-llama3")
    expected = ggtok.load(fixture("bpe-llama3")).encode("the")
    shown.page.wait_for_function(
        "name => document.querySelector('gg-text-view').result.model.name === name",
        arg="bpe-llama3",
    )
    assert shown.ids == expected
    shown.view("models")
    shown.page.get_by_role("button", name="Close bpe-llama3").click()
    assert select.locator("option").all_text_contents() == ["spm"]


def test_a_file_that_is_not_gguf_is_refused(shown: Shown) -> None:
    shown.open(FIXTURES / "__init__.py")
    assert "Cannot open __init__.py" in shown.error


def test_a_dropped_file_is_opened(shown: Shown) -> None:
    data = fixture("bpe-llama3").read_bytes()
    shown.page.evaluate(
        """bytes => {
          const files = new DataTransfer();
          files.items.add(new File([new Uint8Array(bytes)], "dropped.gguf"));
          const how = { dataTransfer: files, bubbles: true, cancelable: true };
          const event = new DragEvent("drop", how);
          document.body.dispatchEvent(event);
        }""",
        list(data),
    )
    shown.page.wait_for_selector("gg-text-view")
    assert shown.page.get_by_label("Model", exact=True).inner_text() == "dropped"
