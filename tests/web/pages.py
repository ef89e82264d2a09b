"""Opens the page in Chromium, uses it as a user would, and reads what it shows."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, FilePayload, Page, Playwright

import ggtok

HTML = Path(ggtok.__file__).parent / "page" / "page.html"

# Stop the browser's background requests, and resolve no addresses except the tests' servers.
ARGUMENTS = (
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


def launch(playwright: Playwright) -> Browser:
    path = shutil.which("chromium")
    return playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))


class Shown:
    """A page in a browser. The test fails if a script fails or the security policy blocks
    something."""

    def __init__(self, page: Page, address: str = HTML.as_uri()) -> None:
        self.page = page
        self.errors: list[str] = []
        self.expected: list[str] = []  # parts of console messages that the test expects
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._console)
        page.goto(address)

    def _console(self, message: Any) -> None:
        if message.type == "error" and not any(part in message.text for part in self.expected):
            self.errors.append(message.text)

    def open(self, path: Path | FilePayload) -> None:
        """Opens a file from a path, or from its name and bytes."""
        if self.page.locator("[role=tab]").count():
            self.view("models")
        models = self.page.locator(".models tbody tr").count()
        self.page.set_input_files("#model-file", path)
        name = path["name"] if isinstance(path, dict) else path.name
        self.page.wait_for_function(
            "([name, n]) => document.querySelector('gg-app').app.models.length > n"
            " || document.querySelector('.models .error')?.textContent.includes(name)",
            arg=[name, models],
            timeout=60_000,
        )

    def view(self, name: str) -> None:
        self.page.click(f"#tab-{name}")

    @property
    def error(self) -> str:
        """Waits for an error message on the page and returns it."""
        shown = self.page.locator(".error:not(:empty)").first
        shown.wait_for(timeout=30_000)
        return shown.inner_text()

    def type(self, text: str) -> None:
        self.page.fill("textarea.editor", text)
        self.settled(text)

    def settled(self, text: str) -> None:
        """Waits until the tokens shown are those of the text."""
        self.page.wait_for_function(
            "text => { const view = document.querySelector('gg-text-view');"
            " return view.result.text === text && !view.isUpdatePending; }",
            arg=text,
            timeout=30_000,
        )

    @property
    def ids(self) -> list[int]:
        """Returns the ids in the list of tokens."""
        tokens = self.page.locator("gg-tokens [role=option]")
        labels = tokens.evaluate_all("all => all.map((one) => one.getAttribute('aria-label'))")
        return [int(label.rsplit(" ", 1)[1]) for label in labels]

    @property
    def pieces(self) -> list[str]:
        """Returns the texts of the tokens in the list, as they are drawn."""
        return self.page.locator("gg-tokens [role=option]").all_text_contents()

    @property
    def rows(self) -> list[int]:
        """Returns the ids in the list of the vocabulary, for the rows that are in the page."""
        cells = self.page.locator(".token-row[role=option] .number:nth-child(2)")
        return [int(text) for text in cells.all_text_contents()]

    def found(self, n: int, of: int) -> None:
        """Waits until the vocabulary's list has n of all tokens."""
        text = f"{n:,} of {of:,} tokens" if n != of else f"{n:,} tokens"
        self.page.locator(".found").get_by_text(text, exact=True).wait_for()

    def stat(self, name: str) -> str:
        term = self.page.locator("#stats dt").get_by_text(name, exact=True)
        return term.locator("xpath=preceding-sibling::dd").inner_text()

    def fact(self, name: str, within: str = "main") -> str:
        term = self.page.locator(f"{within} .facts dt", has_text=name).first
        return term.locator("xpath=following-sibling::dd[1]").inner_text()
