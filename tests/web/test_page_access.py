"""The page's accessibility: axe-core's rules in both themes, the keyboard, narrow screens,
print."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.vocabularies import FIXTURES, fixture
from tests.web.access import set_state, violations

if TYPE_CHECKING:
    from playwright.sync_api import Browser, FileChooser

    from tests.web.pages import Shown

TEXT = "Hello <|eot_id|> \u4f60\u597d\n\n\tthe \u202eend\u200b" * 3

# For each state of a view, the settings that produce it.
STATES: dict[str, dict[str, Any]] = {
    "models": {"view": "models"},
    "text": {"view": "text", "text": TEXT, "text.split": 8, "parseSpecial": True},
    "text-both": {"view": "text", "text": TEXT, "text.display": "both"},
    "text-ids": {"view": "text", "text": TEXT, "text.display": "ids"},
    "ids": {"view": "text", "input": "ids", "ids": "1, 2, 3, x"},
    "why": {"view": "why", "text": TEXT},
    "compare": {"view": "compare", "text": TEXT},
    "vocabulary": {
        "view": "vocabulary",
        "vocabulary.query": "e",
        "vocabulary.picked": "68,330,662",
    },
    "charts": {"view": "vocabulary", "vocabulary.panel": "charts"},
    "map": {"view": "vocabulary", "vocabulary.panel": "map"},
    "chat": {"view": "chat", "chat.show": "tokens", "chat.tools": "[]", "chat.variables": "{}"},
    "chat-origins": {"view": "chat", "chat.show": "origins"},
    "chat-error": {"view": "chat", "chat.template": "a\n{{ messages"},
    "file": {"view": "file"},
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violations(browser: Browser, scheme: Any) -> None:
    from tests.web.pages import Shown

    for width in (1280, 360):
        context = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme, reduced_motion="reduce"
        )
        shown = Shown(context.new_page())
        found = {"start": violations(shown)}
        shown.open(FIXTURES / "chat.gguf")
        for name, state in STATES.items():
            set_state(shown, state)
            found[name] = violations(shown)
        context.close()
        assert not shown.errors
        assert not {name: each for name, each in found.items() if each}, f"{width} pixels"


def test_nothing_is_wider_than_a_phone(browser: Browser) -> None:
    from tests.web.pages import Shown

    context = browser.new_context(viewport={"width": 360, "height": 740})
    shown = Shown(context.new_page())
    wide = "() => document.documentElement.scrollWidth"
    assert shown.page.evaluate(wide) == 360
    shown.open(FIXTURES / "chat.gguf")
    for name, state in STATES.items():
        set_state(shown, state)
        assert shown.page.evaluate(wide) == 360, name
    context.close()


# ---- the keyboard ----


def focused(shown: Shown) -> str:
    describe = """() => {
      const element = document.activeElement;
      return element.id || element.getAttribute("aria-label") || element.textContent.trim();
    }"""
    found: str = shown.page.evaluate(describe)
    return found


def tab_to(shown: Shown, selector: str) -> None:
    """Presses Tab until the element has focus."""
    for _ in range(80):
        if shown.page.evaluate("q => document.activeElement.matches(q)", selector):
            return
        shown.page.keyboard.press("Tab")
    raise AssertionError(f"Tab doesn't reach {selector}; at {focused(shown)}")


@pytest.mark.parametrize("name", STATES)
def test_tab_reaches_everything(shown: Shown, name: str) -> None:
    """Each control can be focused and shows its focus; a composite (tabs, a list) takes one Tab
    stop."""
    shown.open(FIXTURES / "chat.gguf")
    set_state(shown, STATES[name])
    shown.page.evaluate(
        """() => {
          const controls = document.querySelectorAll(
            "button, input, select, textarea, summary, a, [role=listbox], [tabindex]");
          const radios = new Set();
          let n = 0;
          for (const control of controls) {
            const style = getComputedStyle(control);
            if (control.disabled || control.tabIndex < 0 || !control.checkVisibility()) continue;
            if (control.type === "radio" && !control.checked) continue;
            control.dataset.control = n++;
          }
          window.controls = n;
          document.activeElement.blur();
        }"""
    )
    reached = set()
    invisible = []
    for _ in range(shown.page.evaluate("window.controls") + 5):
        shown.page.keyboard.press("Tab")
        at, outline, label = shown.page.evaluate(
            """() => {
              const element = document.activeElement;
              const marked = [element, element.nextElementSibling,
                element.closest(".drop")?.querySelector(".button")];
              const styles = marked.filter(Boolean).map((one) => getComputedStyle(one));
              const outlined = styles.some((style) => style.outlineStyle !== "none");
              return [element.dataset.control, outlined, element.outerHTML.slice(0, 200)];
            }"""
        )
        reached.add(at)
        if at is not None and not outline:
            invisible.append(label)
    controls = {str(i) for i in range(shown.page.evaluate("window.controls"))}
    missing = [
        shown.page.locator(f"[data-control='{n}']").first.evaluate("e => e.outerHTML.slice(0, 200)")
        for n in controls - reached
    ]
    assert not missing
    assert not invisible


def test_the_keyboard_opens_a_file(shown: Shown) -> None:
    choosers: list[FileChooser] = []
    shown.page.on("filechooser", lambda chooser: choosers.append(chooser))
    tab_to(shown, "#model-file")
    for _ in range(20):  # Chromium ignores keys until it has drawn the page
        shown.page.keyboard.press("Enter")
        shown.page.wait_for_timeout(500)
        if choosers:
            break
    choosers[0].set_files(fixture("bpe-llama3"))
    shown.page.wait_for_selector("gg-text-view")


def test_the_keyboard_moves_between_tabs(shown: Shown) -> None:
    shown.open(fixture("bpe-llama3"))
    tab_to(shown, "[role=tab]")
    tabs = shown.page.locator("[role=tab]")
    for i in range(1, tabs.count() + 1):
        before = shown.page.evaluate("document.activeElement.id")
        shown.page.keyboard.press("ArrowRight")
        shown.page.wait_for_function("id => document.activeElement.id !== id", arg=before)
        assert shown.page.evaluate("document.activeElement.ariaSelected") == "true"
        assert i
    shown.page.keyboard.press("Home")
    shown.page.wait_for_function("document.activeElement.id === 'tab-models'")
    shown.page.keyboard.press("End")
    shown.page.wait_for_function("document.activeElement.id === 'tab-file'")


def test_the_keyboard_moves_between_tokens(shown: Shown) -> None:
    shown.open(fixture("bpe-llama3"))
    tab_to(shown, "textarea.editor")
    shown.page.keyboard.press("Control+A")
    shown.page.keyboard.type("one the two")
    shown.settled("one the two")
    tab_to(shown, ".tokens")
    current = "() => document.querySelector('gg-tokens .current')?.dataset.i"
    for key, at in (("Home", "0"), ("ArrowRight", "1"), ("End", None), ("Home", "0")):
        shown.page.keyboard.press(key)
        if at is not None:
            shown.page.wait_for_function(f"at => ({current})() === at", arg=at)
    active = "() => document.querySelector('.tokens').getAttribute('aria-activedescendant')"
    assert shown.page.locator(f"#{shown.page.evaluate(active)}").count() == 1
    assert shown.fact("Type") == "control"
    shown.page.keyboard.press("ArrowRight")
    shown.page.wait_for_function(f"({current})() === '1'")
    shown.page.keyboard.press("Enter")  # selects the token's range in the text
    assert shown.page.evaluate("document.activeElement.tagName") == "TEXTAREA"
    length = "(a => a.selectionEnd - a.selectionStart)(document.activeElement)"
    assert shown.page.evaluate(length) >= 1


def test_the_keyboard_picks_tokens_of_the_vocabulary(shown: Shown) -> None:
    shown.open(fixture("bpe-llama3"))
    shown.view("vocabulary")
    shown.page.locator(".token-row[role=option]").first.wait_for()
    tab_to(shown, ".list")
    shown.page.keyboard.press("PageDown")
    shown.page.keyboard.press("ArrowDown")
    shown.page.keyboard.press("Space")
    shown.page.locator(".chips li").first.wait_for()
    id = int(shown.page.locator(".chips .number").inner_text())
    assert id > 5
    assert shown.fact("Id").split()[0] == str(id)
    shown.page.keyboard.press("End")
    n = shown.page.evaluate("document.querySelector('gg-token-list').ids.length")
    shown.page.locator(f"#vocabulary-{n - 1}").wait_for()
    shown.page.keyboard.press("Space")
    shown.page.wait_for_function("document.querySelectorAll('.chips li').length === 2")


def test_the_skip_link_moves_the_focus(shown: Shown) -> None:
    shown.page.keyboard.press("Tab")
    assert focused(shown) == "Skip to the content"
    shown.page.keyboard.press("Enter")
    assert focused(shown) == "content"


# ---- print, themes ----


def test_print_has_all_tokens(shown: Shown) -> None:
    shown.open(fixture("bpe-llama3"))
    text = "".join(f"line {i}\n" for i in range(300))
    shown.page.evaluate("text => document.querySelector('gg-app').app.set({ text })", text)
    shown.settled(text)
    n = shown.page.evaluate("document.querySelector('gg-tokens').ids.length")
    assert shown.page.locator("gg-tokens [role=option]").count() < n
    shown.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert shown.page.locator("gg-tokens [role=option]").count() == n
    shown.page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert shown.page.locator("gg-tokens [role=option]").count() < n
    pdf = shown.page.pdf()
    assert pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page ") > 3


def test_the_theme_is_stored(shown: Shown) -> None:
    colour = "() => getComputedStyle(document.body).backgroundColor"
    light = shown.page.evaluate(colour)
    shown.page.get_by_label("Theme").select_option("Dark")
    dark = shown.page.evaluate(colour)
    assert dark != light
    shown.page.reload()
    assert shown.page.evaluate(colour) == dark
    shown.page.get_by_label("Theme").select_option("System")
    assert shown.page.evaluate(colour) == light
