"""The page for everybody: axe-core's rules in both themes, the keyboard, narrow screens, print."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.vocabularies import FIXTURES, fixture

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.web.pages import Shown

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"

TEXT = "Hello <|eot_id|> \u4f60\u597d\n\n\tthe \u202eend\u200b" * 3

# For each state of a view, the settings that bring it about.
STATES: dict[str, dict[str, Any]] = {
    "models": {"view": "models"},
    "text": {"view": "text", "text": TEXT, "text.split": 8, "parseSpecial": True},
    "text-both": {"view": "text", "text": TEXT, "text.display": "both"},
    "text-ids": {"view": "text", "text": TEXT, "text.display": "ids"},
    "ids": {"view": "text", "input": "ids", "ids": "1, 2, 3, x"},
    "vocabulary": {
        "view": "vocabulary",
        "vocabulary.query": "e",
        "vocabulary.picked": "68,330,662",
    },
    "charts": {"view": "vocabulary", "vocabulary.panel": "charts"},
    "forest": {"view": "vocabulary", "vocabulary.panel": "forest"},
    "chat": {"view": "chat", "chat.tools": "[]", "chat.variables": "{}"},
    "chat-origins": {"view": "chat", "chat.show": "origins"},
    "chat-error": {"view": "chat", "chat.template": "a\n{{ messages"},
    "file": {"view": "file"},
}


def set_state(shown: Shown, state: dict[str, Any]) -> None:
    shown.page.evaluate("values => document.querySelector('gg-app').app.set(values)", state)
    shown.page.wait_for_selector(f"main[data-view={state['view']}]")
    shown.page.wait_for_timeout(400)  # until results from the worker are in the page


def violations(shown: Shown) -> list[str]:
    # The security policy forbids scripts in the page, not those of the debugger.
    shown.page.evaluate(AXE.read_text(encoding="utf-8"))
    found = shown.page.evaluate("() => axe.run()")["violations"]
    return [
        f"{each['id']}: {node['target']} {node['failureSummary']}"
        for each in found
        for node in each["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe(browser: Browser, scheme: Any) -> None:
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
