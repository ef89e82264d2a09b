"""The page's Why view: its steps are those of `explain`, and everything works with the keyboard."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING, Any

import pytest

import ggtok
from ggtok.explain.steps import Merge, Token, Word
from tests.support.samples import some, thinned
from tests.support.vocabularies import fixture
from tests.web.access import set_state, violations

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.web.pages import Shown

pytestmark = pytest.mark.filterwarnings("ignore::ggtok.VocabWarning")

NAMES = "bpe-llama3 bpe-neox bpe-gemma4 bpe-whitespace spm ugm wpm rwkv plamo2 plamo3".split()
TEXT = "Hello there, it's 12345 \u2603\n the<|eot_id|> na\u00efve kettle"
VIEW = "gg-why-view"

# Waits until the view shows the current text and token.
SETTLED = """async () => {
  const view = document.querySelector("gg-why-view");
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 5));
    await view.updateComplete;
    if (view.settled) break;
  }
  for (const part of view.querySelectorAll("gg-merges, gg-tokens")) await part.updateComplete;
}"""
CELLS = "rows => rows.map((row) => [...row.children].map((cell) => cell.innerText.trim()))"


def settled(shown: Shown) -> None:
    shown.page.evaluate(SETTLED)


def show(shown: Shown, **values: Any) -> None:
    shown.page.evaluate("values => document.querySelector('gg-app').app.set(values)", values)
    settled(shown)


def rows(shown: Shown, table: str) -> list[list[str]]:
    cells: list[list[str]] = shown.page.locator(f"{table} tbody tr").evaluate_all(CELLS)
    return cells


def places(found: Any) -> list[tuple[Token, Word | None]]:
    """Returns each token with its word."""
    all: list[tuple[Token, Word | None]] = [(token, None) for token in found.before]
    for fragment in found.fragments:
        if fragment.special:
            all.append((fragment.special, None))
        all += [(token, word) for word in fragment.words for token in word.tokens]
    return all + [(token, None) for token in found.after]


def priority(merge: Merge) -> str:
    if merge.rank is not None:
        return f"{merge.rank:,}"
    return number(merge.score or 0)


def number(x: float) -> str:
    """Formats a number with six significant digits, as the page does."""
    digits = Decimal(x + 0.0)
    if digits:
        digits = digits.quantize(Decimal(1).scaleb(digits.adjusted() - 5), ROUND_HALF_UP)
    return f"{float(digits):g}"


@pytest.mark.parametrize("name", NAMES)
def test_steps_are_those_of_explain(shown: Shown, name: str) -> None:
    tok = ggtok.load(fixture(name))
    shown.open(fixture(name))
    shown.view("why")
    show(shown, text=TEXT, parseSpecial=True)
    found = tok.explain(TEXT, parse_special=True)
    all = places(found)
    assert [token.id for token, _ in all] == found.ids
    assert shown.ids == found.ids
    for i in thinned(some(range(len(all)), 12)):
        show(shown, **{"why.token": i})
        token, word = all[i]
        head = shown.page.locator("#why-of-token").inner_text()
        assert f"Token {i + 1} of {len(all)}" in head
        assert shown.page.locator("#why-of-token strong").inner_text() == str(token.id)
        assert token.why in head
        if word is None:
            assert shown.page.locator("#why-word").count() == 0
            continue
        rules = rows(shown, ".rules")
        assert rules == [
            [r.scanner, (r.expression or "between two matches").strip()] for r in word.rules
        ]
        shown_ids = [row[0] for row in rows(shown, "section[aria-labelledby=why-tokens]")]
        assert shown_ids == [str(each.id) for each in word.tokens]
        assert shown.page.locator("section[aria-labelledby=why-tokens] tr.current").count() == 1
        if word.symbols and len(word.symbols) <= 32:
            merges = rows(shown, ".merge-table")
            assert [row[4] for row in merges] == list(map(priority, word.merges))
            bars = shown.page.locator(".explained .bars > span")
            assert bars.count() == len(word.symbols) + len(word.merges)
        elif word.symbols:  # a long word: the symbols of the current token
            bars = shown.page.locator(".explained .bars > span.bar-symbol")
            text = "".join(bars.locator("bdi").all_text_contents())
            assert token.how == "byte" or text.replace("\u2581", " ").strip() == token.text.strip()
        if word.lattice:
            lattice = rows(shown, ".lattice")
            assert [row[:1] + row[3:5] for row in lattice] == [
                [f"{place.at:,}", number(place.score), number(place.total)]
                for place in word.lattice
            ]
            on_path = [row[2] for row in lattice if row[5] == "result"]
            # Consecutive unknown characters become one token, and several bytes represent one
            # character.
            assert len(on_path) >= len({token.id for token in word.tokens}) / 4
            known = [str(each.id) for each in word.tokens if each.how == "best path"]
            assert [id for id in on_path if id in known] == known


def test_merges_are_unwound_step_by_step(shown: Shown) -> None:
    shown.open(fixture("bpe-llama3"))
    shown.view("why")
    show(shown, text=" there", addSpecial=False)
    page = shown.page
    panel = page.locator(".explained gg-merges")
    slider = panel.get_by_role("slider")
    waiting = panel.locator(".bars .waiting")

    def said() -> str:
        assert panel.locator(".said").inner_text().split(":")[0] in spoken()
        return spoken()

    def spoken() -> str:
        return slider.get_attribute("aria-valuetext") or ""

    assert said() == "Merge 4 of 4: \u2420t + he rank 74"
    assert waiting.count() == 0
    panel.get_by_role("button", name="Back", exact=True).click()
    assert said() == "Merge 3 of 4: r + e rank 39"
    assert waiting.all_text_contents() == [" the74"]
    picture = panel.locator(".bars")
    assert picture.get_attribute("aria-label") == "Symbols now: \u2420t | he | re"
    panel.get_by_role("button", name="Start", exact=True).press("Enter")
    assert waiting.count() == 4
    assert said() == "Before the first of 4 merges."
    slider.focus()
    slider.press("ArrowRight")
    slider.press("ArrowRight")
    assert said() == "Merge 2 of 4: h + e rank 34"
    panel.get_by_role("button", name="Go to merge 1").press("Enter")
    assert said() == "Merge 1 of 4: \u2420 + t rank 21"
    assert panel.locator("tr.current").count() == 1
    panel.get_by_role("button", name="Next", exact=True).press("Enter")
    panel.get_by_role("button", name="End", exact=True).press("Enter")
    assert waiting.count() == 0


def test_the_tree_of_merges_is_first(shown: Shown) -> None:
    """It is above the rules and above what happens before merging, also for a word that is a token
    under ignore_merges."""
    tok = ggtok.load(fixture("bpe-llama3"))
    shown.open(fixture("bpe-llama3"))
    shown.view("why")
    for text, how in ((" there", "merged"), (" the", "whole word")):
        show(shown, text=text, addSpecial=False, **{"why.token": 0})
        found = tok.explain(text, add_special=False)
        (word,) = (word for fragment in found.fragments for word in fragment.words)
        assert word.tokens[0].how == how
        tops = [
            shown.page.locator(f".explained {part}").first.bounding_box()
            for part in ("h2", "gg-merges", ".rules", "#why-tokens", "#why-fragment")
        ]
        places = [top["y"] for top in tops if top]
        assert len(places) == 5 and places == sorted(places)
        merges = word.merges if word.symbols else tok.merge_tree(found.ids[0]).merges
        shown_merges = rows(shown, ".explained .merge-table")
        assert [row[4] for row in shown_merges] == list(map(priority, merges))
    note = shown.page.locator(".explained").get_by_text("(ignore_merges). These merges")
    assert note.count() == 1
    show(shown, text="123", **{"why.token": 0})
    assert note.count() == 0


def test_the_first_token_of_the_text_is_explained(shown: Shown) -> None:
    """The view begins with it, not with BOS, which the tokenizer adds."""
    shown.open(fixture("bpe-llama3"))
    shown.view("why")
    show(shown, text="Hi there")
    heading = shown.page.locator("#why-token")
    assert heading.inner_text() == f"Token 2 of {len(shown.ids)}"
    tree = shown.page.get_by_role("button", name="Merge tree of this token")
    assert shown.page.locator("#why-word").count() == tree.count() == 1
    shown.page.click("gg-tokens [data-i='0']")
    settled(shown)
    assert heading.inner_text().startswith("Token 1 of ")
    assert shown.page.locator("#why-word").count() == tree.count() == 0


def test_the_keyboard_chooses_a_token(shown: Shown) -> None:
    shown.open(fixture("bpe-llama3"))
    shown.view("why")
    show(shown, text="Hi there", addSpecial=False)
    heading = shown.page.locator("#why-token")
    tokens = shown.page.locator("gg-tokens [role=listbox]")
    n = len(shown.ids)
    tokens.focus()
    tokens.press("ArrowRight")
    settled(shown)
    assert heading.inner_text() == f"Token 2 of {n}"
    tokens.press("End")
    settled(shown)
    assert heading.inner_text() == f"Token {n} of {n}"
    # Pointing at a token doesn't select it; a click does.
    shown.page.hover("gg-tokens [data-i='0']")
    settled(shown)
    assert heading.inner_text() == f"Token {n} of {n}"
    shown.page.click("gg-tokens [data-i='0']")
    settled(shown)
    assert heading.inner_text() == f"Token 1 of {n}"


@pytest.mark.parametrize("name", ["bpe-llama3", "spm"])
def test_any_token_has_a_merge_tree(shown: Shown, name: str) -> None:
    tok = ggtok.load(fixture(name))
    shown.open(fixture(name))
    shown.view("why")
    panel = shown.page.locator(".any-token")
    for id in thinned(some(range(tok.n_tokens), 12)):
        tree = tok.merge_tree(id)
        field = panel.get_by_role("searchbox")
        field.fill(str(id))
        field.press("Enter")
        settled(shown)
        assert panel.locator("strong").first.inner_text() == str(id)
        merges = rows(shown, ".any-token .merge-table")
        assert [row[4] for row in merges] == list(map(priority, tree.merges))
        text = panel.inner_text()
        if not tree.reached:
            assert "Merging its own text doesn't result in this token." in text
        for note in tree.notes:
            assert note.partition(":")[0] in text or "split by the pre-tokenizer" in note
        assert ("(ignore_merges)" in text) == tree.whole_word
    field.fill("no such token")
    field.press("Enter")
    assert "\u201cno such token\u201d is neither an id" in shown.error
    settled(shown)
    field.fill(tok.token_text(tok.n_tokens - 50).decode())
    field.press("Enter")
    settled(shown)
    assert panel.locator("strong").first.inner_text() == str(tok.n_tokens - 50)


def test_types_without_merges_have_no_trees(shown: Shown) -> None:
    shown.open(fixture("wpm"))
    shown.view("why")
    show(shown, text="na\u00efve", **{"why.token": 1})
    assert shown.page.locator(".any-token").count() == 0
    assert "strip_accents: accents are dropped" in shown.page.locator(".explained").inner_text()


def test_only_the_beginning_of_a_long_text_is_explained(shown: Shown) -> None:
    shown.open(fixture("bpe-gpt2"))
    shown.view("why")
    show(shown, text="\u00e9 " * 9000)
    assert "Only the first 16 KiB" in shown.page.locator(".why-view .note").inner_text()
    tok = ggtok.load(fixture("bpe-gpt2"))
    n = len(tok.encode("\u00e9 " * 5461 + "\u00e9"))
    show(shown, **{"why.token": 10**9})
    assert shown.page.locator("#why-token").inner_text() == f"Token {n:,} of {n:,}"


def test_markup_and_directions_stay_text(shown: Shown) -> None:
    shown.open(fixture("bpe-gpt2"))
    shown.view("why")
    text = "<img src=x onerror=alert(1)><b>\u202ebold</b>"
    for i in 0, 5:
        show(shown, text=text, **{"why.token": i})
        assert shown.page.locator("main img, main b:not(.id)").count() == 0
        assert "<img" in shown.page.locator(".explained").inner_text()


def test_a_link_selects_the_token(shown: Shown) -> None:
    shown.open(fixture("bpe-llama3"))
    shown.view("why")
    show(shown, text="Hi there", **{"why.token": 3, "why.of": "330"})
    shown.page.wait_for_function("() => location.hash.includes('why.token=3')")
    fragment = shown.page.evaluate("location.hash")
    shown.page.get_by_role("button", name="Copy link").click()
    shown.page.get_by_text("Link copied").wait_for()
    link = shown.page.evaluate("() => navigator.clipboard.readText()")
    assert link.endswith("&text=Hi+there&why.token=3&why.of=330")  # after the model's name
    assert fragment.startswith("#why") and "why.of=330" in fragment
    show(shown, text="", **{"why.token": 0, "why.of": ""})
    shown.page.wait_for_function("before => location.hash !== before", arg=fragment)
    shown.page.evaluate("fragment => { location.hash = fragment; }", fragment)
    shown.page.wait_for_function(
        "() => document.querySelector('#why-token')?.textContent.startsWith('Token 4')"
    )
    settled(shown)
    assert shown.page.locator(".any-token strong").first.inner_text() == "330"


STATE = {"view": "why", "text": TEXT, "why.token": 6, "why.of": "330"}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["bpe-llama3", "ugm"])
def test_the_view_is_accessible_and_fits_a_phone(browser: Browser, scheme: Any, name: str) -> None:
    from tests.web.pages import Shown

    for width in 1280, 360:
        context = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme, reduced_motion="reduce"
        )
        shown = Shown(context.new_page())
        shown.open(fixture(name))
        set_state(shown, STATE)
        settled(shown)
        assert not violations(shown), f"{name}, {width} pixels"
        assert shown.page.evaluate("document.documentElement.scrollWidth") == width
        context.close()
        assert not shown.errors
