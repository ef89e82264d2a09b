"""Links to the page's views, the browser's history, and what the page says about itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import ggtok
from ggtok import page
from tests.support.vocabularies import fixture

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.web.pages import Shown

APP = "document.querySelector('gg-app').app"
PUSHED = f"view => history.state?.view === view && history.state.model === {APP}.model?.id"


def entered(shown: Shown, view: str) -> None:
    """Waits until the history has an entry for the view and the current model."""
    shown.page.wait_for_function(PUSHED, arg=view)


def showing(shown: Shown, view: str, model: str) -> None:
    shown.page.wait_for_selector(f"main[data-view={view}]")
    shown.page.wait_for_function(f"name => {APP}.model.name === name", arg=model)


def test_back_goes_back_to_views_and_models(shown: Shown) -> None:
    shown.open(fixture("bpe-llama3"))
    entered(shown, "text")
    shown.type("one")
    shown.view("vocabulary")
    entered(shown, "vocabulary")
    shown.view("text")
    entered(shown, "text")
    shown.type("one two")
    shown.open(fixture("spm"))
    shown.view("text")
    entered(shown, "text")
    entries = shown.page.evaluate("history.length")
    shown.type("one two three")
    shown.page.wait_for_function("() => location.hash.includes('three')")
    assert shown.page.evaluate("history.length") == entries  # a text isn't an entry
    shown.page.go_back()
    shown.page.wait_for_selector("main[data-view=models]")
    while shown.page.evaluate("document.querySelector('main').dataset.view") == "models":
        shown.page.go_back()
    showing(shown, "text", "bpe-llama3")
    shown.page.go_back()
    showing(shown, "vocabulary", "bpe-llama3")
    shown.page.go_back()
    showing(shown, "text", "bpe-llama3")
    # What was typed isn't lost.
    assert shown.page.input_value("textarea.editor") == "one two three"
    shown.settled("one two three")
    assert shown.ids == ggtok.load(fixture("bpe-llama3")).encode("one two three")
    shown.page.go_forward()
    showing(shown, "vocabulary", "bpe-llama3")


def test_an_address_in_the_same_window_sets_everything(shown: Shown) -> None:
    shown.open(fixture("bpe-llama3"))
    entered(shown, "text")
    shown.page.evaluate("location.hash = '#file?file.filter=merges'")
    shown.page.wait_for_selector("main[data-view=file]")
    assert shown.page.get_by_label("Filter keys").input_value() == "merges"
    shown.page.wait_for_timeout(600)
    shown.page.go_back()
    showing(shown, "text", "bpe-llama3")


def test_a_link_says_what_it_cannot_carry(shown: Shown) -> None:
    shown.open(fixture("bpe-llama3"))
    shown.type("x" * 5000)
    shown.page.get_by_role("button", name="Copy link").click()
    message = shown.page.locator(".toast")
    message.get_by_text("Link copied").wait_for()
    text = message.inner_text()
    assert "whoever opens it needs the file bpe-llama3" in text
    assert "The text is too long" in text
    assert "only on this computer" in text  # the page is a file
    link = shown.page.evaluate("() => navigator.clipboard.readText()")
    shown.page.goto("about:blank")
    shown.page.goto(link)
    assert "made with bpe-llama3" in shown.page.locator(".note").inner_text()


def test_the_page_says_what_it_is(shown: Shown) -> None:
    assert shown.page.title() == "ggtok: look inside a model's vocabulary"
    about = shown.page.locator("meta[name=description]").get_attribute("content") or ""
    assert "vocabulary" in about
    assert len(about) < 160
    icon = shown.page.locator("link[rel=icon]").get_attribute("href") or ""
    assert icon.startswith("data:image/svg+xml;base64,")
    size = shown.page.evaluate(
        """async (href) => {
          const image = new Image();
          image.src = href;
          await image.decode();
          return image.width;
        }""",
        icon,
    )
    assert size > 0
    link = shown.page.locator("footer a")
    assert link.inner_text() == f"ggtok {ggtok.__version__}"
    assert link.get_attribute("href") == "https://github.com/ggtok/ggtok"
    shown.open(fixture("bpe-llama3"))
    shown.page.wait_for_function("() => document.title === 'bpe-llama3 \u00b7 Text \u00b7 ggtok'")
    shown.view("file")
    shown.page.wait_for_function("() => document.title === 'bpe-llama3 \u00b7 File \u00b7 ggtok'")


def test_a_written_page_says_where_it_comes_from(browser: Browser, tmp_path: Path) -> None:
    from tests.web.pages import Shown

    source = "<i>model</i>.gguf"
    model = page.embed_model("a", fixture("spm").read_bytes(), source)
    path = tmp_path / "page.html"
    path.write_bytes(page.html([model], writer="ggtok view 1.2.3"))
    context = browser.new_context()
    shown = Shown(context.new_page(), path.as_uri())
    shown.page.wait_for_selector("gg-text-view")
    written = f"This page was written by ggtok view 1.2.3 from {source}."
    assert written in shown.page.locator("footer").inner_text()
    context.close()
    assert not shown.errors
