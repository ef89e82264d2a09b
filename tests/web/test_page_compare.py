"""The page's Compare view."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import ggtok
from tests.support.vocabularies import fixture
from tests.web.access import set_state, violations

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.web.pages import Shown

pytestmark = pytest.mark.filterwarnings("ignore::ggtok.VocabWarning")

TEXT = "Hello there, it's 12345 \u2603\n the kettle, na\u00efve \U0001f44b"
NAMES = ["bpe-llama3", "ugm", "spm"]

SETTLED = """async () => {
  const view = document.querySelector("gg-compare-view");
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 5));
    await view.updateComplete;
    if (view.settled) break;
  }
  for (const part of view.querySelectorAll("gg-tokens")) await part.updateComplete;
}"""
TOKENS = """column => [...column.querySelectorAll("[role=option]")].map((one) =>
  [Number(one.getAttribute("aria-label").split(" ").at(-1)), one.classList.contains("differs")])"""
CELLS = "rows => rows.map((row) => [...row.children].map((cell) => cell.innerText.trim()))"


def show(shown: Shown, **values: Any) -> None:
    shown.page.evaluate("values => document.querySelector('gg-app').app.set(values)", values)
    shown.page.evaluate(SETTLED)


def columns(shown: Shown) -> list[list[list[Any]]]:
    """Returns for each model the id of each token, and whether the token is highlighted."""
    return [column.evaluate(TOKENS) for column in shown.page.locator(".compared > section").all()]


def expected(names: list[str], text: str, base: int = 0, **flags: bool) -> list[list[list[Any]]]:
    found = []
    for name in names:
        ids, spans = ggtok.load(fixture(name)).encode_with_offsets(text, unit="utf16", **flags)
        found.append((ids, [tuple(span) for span in spans.tolist()]))
    sets = [set(spans) for _, spans in found]
    against = [sets if i == base else [sets[base]] for i in range(len(names))]
    return [
        [
            [id, span[0] != span[1] and not all(span in spans for spans in others)]
            for id, span in zip(ids, spans_of, strict=True)
        ]
        for (ids, spans_of), others in zip(found, against, strict=True)
    ]


def test_differing_spans_are_marked(shown: Shown) -> None:
    for name in NAMES:
        shown.open(fixture(name))
    shown.view("compare")
    show(shown, text=TEXT)
    want = expected(NAMES, TEXT)
    assert columns(shown) == want
    assert any(marked for column in want for _, marked in column)
    table = shown.page.locator(".summary tbody tr").evaluate_all(CELLS)
    size = len(TEXT.encode())
    for name, column, row in zip(NAMES, want, table, strict=True):
        is_base = name == NAMES[0]
        differ = "\u2013" if is_base else str(sum(marked for _, marked in column))
        more = len(column) / len(want[0]) - 1
        to_base = (
            "\u2013" if is_base else f"{more:+.1%}".replace("-", "\u2212").replace("%", "\u00a0%")
        )
        per_token = f"{size / len(column):.2f}"
        row[2] = row[2].split("\n")[0]  # a second line has the number of unknown tokens
        assert row[1:6] == [name, str(len(column)), to_base, per_token, differ]
    # The lowest number of tokens is bold, of those without unknown tokens.
    bold = shown.page.locator(".summary strong").all_inner_texts()
    unknown = [ggtok.load(fixture(name)).unk_id for name in NAMES]
    known = [column for column, unk in zip(want, unknown, strict=True) if unk not in dict(column)]
    assert set(bold) == {str(min(map(len, known)))}
    show(shown, addSpecial=False)
    assert columns(shown) == expected(NAMES, TEXT, add_special=False)
    # Another base.
    shown.page.get_by_label("Compare with spm").check()
    shown.page.evaluate(SETTLED)
    assert columns(shown) == expected(NAMES, TEXT, base=2, add_special=False)


def test_a_result_with_unknown_tokens_is_marked(shown: Shown) -> None:
    """A short result isn't the best one if its vocabulary can't represent the text."""
    for name in ("wpm", "bpe-llama3"):
        shown.open(fixture(name))
    shown.view("compare")
    text = "\u2603 \u2604 \u2605"
    show(shown, text=text, addSpecial=False)
    ids = ggtok.load(fixture("wpm")).encode(text, add_special=False)
    assert len(ids) < len(ggtok.load(fixture("bpe-llama3")).encode(text, add_special=False))
    cell = shown.page.locator(".summary tbody tr").first.locator("td").nth(1)
    assert cell.inner_text().split("\n") == [str(len(ids)), f"{len(ids)} unknown"]
    assert not cell.locator("strong").count()
    assert shown.page.locator(".summary strong").count() == 1
    assert "can't represent this text" in shown.page.locator(".compare-view .note").inner_text()
    show(shown, text="the")
    assert not shown.page.locator(".compare-view .note").count()


def test_models_are_chosen(shown: Shown) -> None:
    for name in [*NAMES, "bpe-gpt2", "rwkv"]:
        shown.open(fixture(name))
    shown.view("compare")
    show(shown, text=TEXT)
    assert shown.page.locator(".compared > section").count() == 4
    box = shown.page.locator(".choice")
    assert box.get_by_label("rwkv").is_disabled()
    box.get_by_label("ugm").uncheck()
    box.get_by_label("spm").press("Space")
    shown.page.evaluate(SETTLED)
    assert columns(shown) == expected(["bpe-llama3", "bpe-gpt2", "rwkv"], TEXT)
    box.get_by_label("rwkv").uncheck()
    box.get_by_label("bpe-gpt2").uncheck()
    shown.page.evaluate(SETTLED)
    # If other models are deselected, the first of the remaining ones are compared.
    assert [row[1] for row in shown.page.locator(".summary tbody tr").evaluate_all(CELLS)] == [
        "bpe-llama3"
    ]


def test_equal_models_have_no_differences(shown: Shown) -> None:
    shown.open(fixture("bpe-gpt2"))
    shown.view("compare")
    show(shown, text="the kettle")
    assert "Open two or more models" in shown.page.locator(".compare-view .note").inner_text()
    shown.open(fixture("bpe-gpt2"))
    shown.view("compare")
    show(shown, text="the kettle")
    assert "All models divide the text alike." in shown.page.locator("main").inner_text()
    assert shown.page.locator(".differs").count() == 0


def test_the_error_of_one_model_is_shown(shown: Shown) -> None:
    for name in "wpm", "bpe-gpt2":
        shown.open(fixture(name))
    shown.view("compare")
    show(shown, text="the kettle", continuation=True)
    assert "can't encode a text as a continuation" in shown.error
    assert [row[1] for row in shown.page.locator(".summary tbody tr").evaluate_all(CELLS)] == [
        "bpe-gpt2"
    ]


def test_the_same_position_is_shown_in_each_model(shown: Shown) -> None:
    for name in NAMES:
        shown.open(fixture(name))
    shown.view("compare")
    show(shown, text="the kettle")
    lists = shown.page.locator(".compared gg-tokens")
    first = lists.first.locator("[role=listbox]")
    first.focus()
    first.press("End")
    shown.page.evaluate(SETTLED)
    for i in range(3):
        assert lists.nth(i).locator(".current").count() == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_view_is_accessible_and_fits_a_phone(browser: Browser, scheme: Any) -> None:
    from tests.web.pages import Shown

    for width in 1280, 360:
        context = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme, reduced_motion="reduce"
        )
        shown = Shown(context.new_page())
        for name in NAMES:
            shown.open(fixture(name))
        set_state(shown, {"view": "compare", "text": TEXT})
        shown.page.evaluate(SETTLED)
        assert not violations(shown), f"{width} pixels"
        assert shown.page.evaluate("document.documentElement.scrollWidth") == width
        context.close()
        assert not shown.errors
