"""The page in Firefox, driven through WebDriver BiDi, which Firefox serves itself."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

from tests.support.waits import until

SECONDS = 60  # the longest wait for an answer of the browser

# Collects violations of the security policy, which Firefox doesn't report as log entries.
WATCH = """() => addEventListener("securitypolicyviolation", ({ effectiveDirective, blockedURI }) =>
  (window.violations ??= []).push(`${effectiveDirective}: ${blockedURI}`))"""


def command() -> str | None:
    return shutil.which("firefox") or shutil.which("firefox-esr")


class Firefox:
    """A browser window with a page. `log` has the errors in the page's scripts and console."""

    def __init__(self, profile: Path) -> None:
        self.log: list[str] = []
        self.numbers = count()
        self.ended = ExitStack()
        words = ["--headless", "--no-remote", "--profile", str(profile)]
        self.process = subprocess.Popen(
            [command() or "firefox", *words, "--remote-debugging-port", "0"],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        try:
            self.socket = self._connect()
            self.call("session.new", capabilities={})
            self.call("session.subscribe", events=["log.entryAdded"])
            self.call("script.addPreloadScript", functionDeclaration=WATCH)
            [window] = self.call("browsingContext.getTree")["contexts"]
            self.window: str = window["context"]
        except BaseException:
            self.close()
            raise

    def _connect(self) -> ClientConnection:
        assert self.process.stderr
        for line in self.process.stderr:
            if found := re.search(r"WebDriver BiDi listening on (ws://\S+)", line):
                session = connect(f"{found[1]}/session", max_size=None)
                return self.ended.enter_context(session)
        raise AssertionError(f"firefox ended with status {self.process.wait()}")

    def close(self) -> None:
        self.ended.close()
        self.process.kill()
        self.process.wait()
        assert self.process.stderr
        self.process.stderr.close()

    def call(self, method: str, **parameters: Any) -> Any:
        """Returns the result of a command of the protocol."""
        number = next(self.numbers)
        command = {"id": number, "method": method, "params": parameters}
        self.socket.send(json.dumps(command))
        while True:
            message = json.loads(self.socket.recv(SECONDS))
            if message.get("id") == number:
                assert message["type"] == "success", message
                return message["result"]
            if message.get("method") == "log.entryAdded" and message["params"]["level"] == "error":
                self.log.append(message["params"]["text"])

    def open(self, address: str) -> None:
        self.call("browsingContext.navigate", context=self.window, url=address, wait="complete")

    def run(self, function: str, *arguments: Any) -> Any:
        """Calls a JavaScript function in the page and returns its result. Values are JSON."""
        values = ", ".join(map(json.dumps, arguments))
        found = self.call(
            "script.evaluate",
            expression=f"(async () => JSON.stringify(await ({function})({values})))()",
            target={"context": self.window},
            awaitPromise=True,
        )
        assert found["type"] == "success", found
        value = found["result"].get("value")
        return None if value is None else json.loads(value)

    def wait(self, function: str, *arguments: Any) -> Any:
        """Calls a JavaScript function until its result is true, and returns the result."""
        found: list[Any] = []

        def happened() -> object:
            found[:] = [self.run(function, *arguments)]
            return found[0]

        try:
            until(happened)
        except TimeoutError as error:
            raise AssertionError((function, self.log)) from error
        return found[0]

    def choose(self, selector: str, path: Path) -> None:
        """Chooses a file in the file field that matches the selector."""
        locator = {"type": "css", "value": selector}
        found = self.call("browsingContext.locateNodes", context=self.window, locator=locator)
        element = {"sharedId": found["nodes"][0]["sharedId"]}
        self.call("input.setFiles", context=self.window, element=element, files=[str(path)])

    def type(self, text: str) -> None:
        """Types a text, key by key."""
        keys = [{"type": kind, "value": key} for key in text for kind in ("keyDown", "keyUp")]
        source = {"type": "key", "id": "keyboard", "actions": keys}
        self.call("input.performActions", context=self.window, actions=[source])
