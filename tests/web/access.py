"""Puts the page into a state, and runs axe-core to find accessibility problems."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.web.pages import Shown

# Waits until the view shows its results, if it can tell.
SETTLED = """async (name) => {
  const view = document.querySelector(`gg-${name}-view`);
  if (view?.settled === undefined) return false;
  do {
    await new Promise((resolve) => setTimeout(resolve, 5));
    await view.updateComplete;
  } while (!view.settled);
  for (const part of view.querySelectorAll("*")) await part.updateComplete;
  return true;
}"""
AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"


def set_state(shown: Shown, state: dict[str, Any]) -> None:
    shown.page.evaluate("values => document.querySelector('gg-app').app.set(values)", state)
    shown.page.wait_for_selector(f"main[data-view={state['view']}]")
    if not shown.page.evaluate(SETTLED, state["view"]):
        shown.page.wait_for_timeout(400)  # until results from the worker are in the page


def violations(shown: Shown) -> list[str]:
    # The security policy forbids scripts in the page, but not those of the debugger.
    shown.page.evaluate(AXE.read_text(encoding="utf-8"))
    found = shown.page.evaluate("() => axe.run()")["violations"]
    return [
        f"{each['id']}: {node['target']} {node['failureSummary']}"
        for each in found
        for node in each["nodes"]
    ]
