"""The page opens models that it offers, addresses and links; its policy limits what it may load."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import ggtok
from tests.support.patch import GGUF
from tests.support.servers import File, Server
from tests.support.vocabularies import FIXTURES, fixture

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Browser

    from tests.web.pages import Shown

EMPTY = '<script type="application/json" id="ggtok-models">{"models": []}</script>'


def html(models: dict[str, Any] | None = None) -> bytes:
    """Returns the page with models that it offers."""
    from tests.web.pages import HTML

    text = HTML.read_text(encoding="utf-8")
    assert text.count(EMPTY) == 1
    data = json.dumps(models or {"models": []}).replace("<", "\\u003c")
    return text.replace(EMPTY, EMPTY.replace('{"models": []}', data)).encode()


def embedded(name: str) -> dict[str, str]:
    packed = gzip.compress(fixture(name).read_bytes())
    return {"name": name, "data": base64.b64encode(packed).decode()}


def allow_others(_: int, headers: dict[str, str]) -> int:
    headers["Access-Control-Allow-Origin"] = "*"
    headers["Access-Control-Expose-Headers"] = "Content-Range, ETag"
    return _


@pytest.fixture
def at(browser: Browser) -> Any:
    """Returns a function that opens the page at an address."""
    from tests.web.pages import Shown

    contexts = []

    def at(address: str) -> Shown:
        context = browser.new_context()
        contexts.append(context)
        return Shown(context.new_page(), address)

    yield at
    for context in contexts:
        context.close()


def test_a_page_with_vocabularies_is_one_file(at: Callable[[str], Shown], tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_bytes(html({"models": [embedded("spm"), embedded("bpe-llama3")]}))
    shown = at(f"{path.as_uri()}#text")
    shown.page.wait_for_selector("gg-text-view")
    shown.type("the")
    assert shown.ids == ggtok.load(fixture("spm")).encode("the")
    shown.page.get_by_label("Model", exact=True).select_option(label="bpe-llama3")
    shown.page.wait_for_function(
        "() => document.querySelector('gg-text-view').result.model.name === 'bpe-llama3'"
    )
    assert shown.ids == ggtok.load(fixture("bpe-llama3")).encode("the")
    assert not shown.errors


def test_the_page_opens_models_of_its_server(at: Callable[[str], Shown]) -> None:
    with Server() as server:
        models = {"models": [{"name": "<b>a</b>", "url": "vocabularies/a"}], "server": "v1/ggtok/"}
        server.files["/"] = File(html(models), lie=as_html)
        server.files["/vocabularies/a"] = File(fixture("spm"))
        finding = {
            "code": "x",
            "severity": "error",
            "title": "A title",
            "detail": "<i>detail</i>",
            "means": "It means this.",
            "advice": "Do that.",
            "ids": [],
        }
        server.json["/v1/ggtok/doctor"] = {"findings": [finding]}
        shown = at(server.url("/"))
        shown.page.wait_for_selector("gg-text-view")
        assert shown.page.get_by_label("Model", exact=True).inner_text() == "<b>a</b>"
        shown.view("file")
        # The tests' server only answers GET.
        shown.page.route(
            "**/v1/ggtok/doctor", lambda route: route.fulfill(json={"findings": [finding]})
        )
        with shown.page.expect_request("**/v1/ggtok/doctor") as sent:
            shown.page.get_by_role("button", name="Run the doctor").click()
        assert sent.value.post_data_json == {"model": "<b>a</b>"}
        item = shown.page.locator(".findings li")
        assert item.inner_text().splitlines() == [
            "A title",
            "<i>detail</i>",
            "It means this. Do that.",
        ]
        assert not shown.errors


def as_html(status: int, headers: dict[str, str]) -> int:
    headers["Content-Type"] = "text/html; charset=utf-8"
    return status


def test_an_address_opens_a_model(shown: Shown) -> None:
    with Server() as server:
        server.files["/m/model.gguf"] = File(fixture("bpe-llama3"), lie=allow_others)
        field = shown.page.get_by_label("Or open an address")
        field.fill(server.url("/m/model.gguf"))
        field.press("Enter")
        shown.page.wait_for_selector("gg-text-view")
        assert shown.page.get_by_label("Model", exact=True).inner_text() == "model"
        shown.type("the")
        shown.page.get_by_role("button", name="Copy link").click()
        shown.page.get_by_text("Link copied").wait_for()
        link = shown.page.evaluate("() => navigator.clipboard.readText()")

        # The server in a linked address isn't contacted before the user clicks.
        asked = len(server.requests)
        shown.page.goto("about:blank")
        shown.page.goto(link)
        shown.page.locator(".note", has_text=server.origin).wait_for()
        assert len(server.requests) == asked
        shown.page.locator(".note button").click()
        shown.page.wait_for_selector("gg-text-view")
        shown.settled("the")
        assert shown.ids == ggtok.load(fixture("bpe-llama3")).encode("the")


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("javascript:alert(1)", "complete address"),
        ("file:///etc/passwd", "complete address"),
        ("model.gguf", "complete address"),
        ("{server}/missing.gguf", "404"),
        ("{server}/page.html", "Cannot open page.html"),
        ("{server}/%E0%A4%A.gguf", "Cannot open %E0%A4%A"),
    ],
)
def test_an_address_that_fails_has_a_message(shown: Shown, address: str, message: str) -> None:
    with Server() as server:
        server.files["/page.html"] = File(b"<!doctype html>", lie=allow_others)
        server.files["/missing.gguf"] = File(
            b"", statuses=[(404, {"Access-Control-Allow-Origin": "*"})]
        )
        shown.expected = ["404"]
        shown.page.fill("#model-url", address.replace("{server}", server.origin))
        shown.page.evaluate("document.querySelector('form.url').noValidate = true")
        shown.page.press("#model-url", "Enter")
        assert message in shown.error


def test_a_server_that_forbids_other_sites_has_a_message(shown: Shown) -> None:
    with Server() as server:
        server.files["/model.gguf"] = File(fixture("spm"))
        shown.expected = ["CORS", "Failed to load resource"]
        shown.page.fill("#model-url", server.url("/model.gguf"))
        shown.page.press("#model-url", "Enter")
        assert "Cannot open model" in shown.error
        host = server.origin.removeprefix("http://")
        assert f"{host} answers, but doesn't allow pages of other sites" in shown.error
        address = server.url("/model.gguf")
    # Nothing listens at this port any more.
    shown.expected.append("ERR_CONNECTION_REFUSED")
    shown.page.fill("#model-url", address)
    shown.page.press("#model-url", "Enter")
    shown.page.locator(".error", has_text=f"{host} can't be reached.").wait_for()


def test_all_models_that_are_given_are_opened_and_compared(
    at: Callable[[str], Shown], tmp_path: Path
) -> None:
    path = tmp_path / "page.html"
    names = ["spm", "bpe-llama3", "wpm"]
    path.write_bytes(html({"models": [embedded(name) for name in names]}))
    shown = at(path.as_uri())
    shown.page.wait_for_selector("main[data-view=compare]")
    shown.page.locator(".compared > section").nth(2).wait_for()
    headings = shown.page.locator(".compared > section h2").all_inner_texts()
    assert headings == names
    assert shown.page.get_by_label("Model", exact=True).input_value() == "0"
    assert not shown.errors
    # A link's view is shown instead.
    shown = at(f"{path.as_uri()}#text?text=the&model=wpm")
    shown.page.wait_for_selector("gg-text-view")
    shown.settled("the")
    assert shown.ids == ggtok.load(fixture("wpm")).encode("the")
    # Of many models, only the first is opened.
    path.write_bytes(html({"models": [{**embedded("spm"), "name": str(i)} for i in range(5)]}))
    shown = at(path.as_uri())
    shown.page.wait_for_selector("gg-text-view")
    shown.page.wait_for_timeout(500)
    assert shown.page.evaluate("document.querySelector('gg-app').app.models.length") == 1


def test_the_vocabulary_of_the_server_is_fetched_in_one_request(
    at: Callable[[str], Shown],
) -> None:
    """So that it may be compressed: requests for ranges can't be."""
    with Server() as server:
        models = [{"name": "a", "url": "vocabularies/a", "whole": True}]
        server.files["/"] = File(html({"models": models, "server": "v1/ggtok/"}), lie=as_html)
        server.files["/vocabularies/a"] = File(fixture("bpe-llama3"))
        shown = at(server.url("/"))
        shown.page.wait_for_selector("gg-text-view")
        asked = [each for each in server.requests if each.path == "/vocabularies/a"]
        assert len(asked) == 1
        assert "range" not in {name.lower() for name in asked[0].headers}
        shown.type("the")
        assert shown.ids == ggtok.load(fixture("bpe-llama3")).encode("the")
        del server.files["/vocabularies/a"]
        shown.expected = ["404"]
        shown.page.reload()
        assert "the server answered 404" in shown.error


# ---- calls that take too long ----


# A template may take more steps if its input is longer: with a BOS of 8 MB, this template takes
# several seconds.
SEARCHES = (
    "{% set r = range(1000) %}{% for a in r %}{% for b in r %}"
    "{% if bos_token.find('xxxxxxxxxxxxy') %}{% endif %}{% endfor %}{% endfor %}"
)


def test_a_call_beyond_its_budget_restarts_the_worker(
    at: Callable[[str], Shown], tmp_path: Path
) -> None:
    """The page ends the worker, says so, and starts another one."""
    gguf = GGUF.read(FIXTURES / "chat.gguf")
    tokens = list(gguf.get("tokenizer.ggml.tokens"))
    tokens[gguf.get("tokenizer.ggml.bos_token_id")] = b"x" * (8 << 20)
    gguf.set("tokenizer.ggml.tokens", tokens)
    gguf.write(tmp_path / "slow.gguf")
    tok = ggtok.load(tmp_path / "slow.gguf")
    page = tmp_path / "page.html"
    # Far less than the template's searches take until they exceed the limit of steps.
    page.write_bytes(html({"models": [], "budget": 250}))
    shown = at(page.as_uri())
    shown.open(tmp_path / "slow.gguf")
    shown.page.evaluate(
        "values => document.querySelector('gg-app').app.set(values)",
        {
            "view": "chat",
            "chat.template": SEARCHES,
            "chat.like": "transformers",
            "chat.show": "tokens",
        },
    )
    shown.page.locator(".error", has_text="The template took too long and was stopped.").wait_for()
    # A call while the next worker loads gets its result.
    shown.view("text")
    shown.type("Hi")
    assert shown.ids == tok.encode("Hi")
    shown.view("chat")
    shown.page.get_by_label("Template", exact=True).fill("{{ messages[0].content }}")
    shown.page.locator("gg-chat-view gg-tokens [role=option]").first.wait_for()
    assert shown.ids == tok.encode("You are a helpful assistant.")
    assert not shown.errors


# ---- the security policy ----


def test_the_policy_allows_only_what_the_page_needs() -> None:
    text = html().decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)
    assert policy
    rules = dict(rule.split(" ", 1) for rule in policy[1].split("; "))
    assert rules["default-src"] == "'none'"
    assert re.fullmatch(r"'sha256-[\w+/=]{44}' 'wasm-unsafe-eval'", rules["script-src"])
    assert re.fullmatch(r"'sha256-[\w+/=]{44}'", rules["style-src"])
    assert rules["worker-src"] == "blob:"
    assert rules["base-uri"] == rules["form-action"] == "'none'"
    assert set(rules) == {
        *("default-src", "script-src", "style-src", "worker-src", "connect-src", "img-src"),
        *("base-uri", "form-action"),
    }


def test_the_policy_blocks_other_scripts(shown: Shown) -> None:
    shown.expected = ["Content Security Policy", "violates the following"]
    blocked = shown.page.evaluate(
        """async () => {
          const violated = new Promise((resolve) => {
            const seen = (event) => resolve(event.effectiveDirective);
            addEventListener("securitypolicyviolation", seen);
          });
          const script = document.createElement("script");
          script.textContent = "window.ran = true";
          document.body.append(script);
          return [await violated, window.ran];
        }"""
    )
    assert blocked == ["script-src-elem", None]


# ---- a file of 40 GB ----


def test_only_the_beginning_of_a_huge_file_is_read(shown: Shown, tmp_path: Path) -> None:
    """Only the beginning of a file is read."""
    path = tmp_path / "huge.gguf"
    path.write_bytes(fixture("bpe-llama3").read_bytes())
    with path.open("r+b") as file:
        file.truncate(40 << 30)
    shown.open(path)
    shown.type("the")
    assert shown.ids == ggtok.load(fixture("bpe-llama3")).encode("the")
    assert (
        shown.page.evaluate("document.querySelector('gg-app').app.model.info.bytesRead") < 1 << 22
    )
