"""The page that lists the endpoints."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from html import unescape
from html.parser import HTMLParser

import pytest
from starlette.testclient import TestClient

from ggtok.server.openapi import ROWS
from tests.server.running import ask
from tests.server.upstreams import Other, other, passing, tok
from tests.support.vocabularies import fixture

__all__ = ["other", "tok"]  # fixtures
pytestmark = pytest.mark.filterwarnings("ignore::ggtok.VocabWarning")


class Page(HTMLParser):
    """Collects the elements, links and identifiers of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attributes:
            assert not name.startswith("on")
            if name in ("href", "src"):
                self.links.append(value or "")
            elif name == "id":
                self.ids.append(value or "")


def test_the_page_lists_the_endpoints(serve: Callable[..., TestClient]) -> None:
    """Its examples work, and its links stay inside the page."""
    client = serve(api_keys=["k"])
    answer = client.get("/docs")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    page = Page(answer.text)
    assert {link for link in page.links if link != "openapi.json"} == {f"#{i}" for i in page.ids}
    assert len(page.ids) == len({*page.ids}) == len(ROWS)
    commands = [shlex.split(unescape(text)) for text in re.findall("<pre>(.*?)</pre>", answer.text)]
    assert [command[1].removeprefix("$URL") for command in commands] == [*ROWS]
    for path, command in zip(ROWS, commands, strict=True):
        body = ROWS[path].example
        assert command[2:] == ([] if body is None else ["-d", json.dumps(body)])
        for name in (ROWS[path].request or {}).get("properties", ()):
            assert f"<code>{name}</code>" in answer.text


def test_the_page_fetches_nothing(serve: Callable[..., TestClient]) -> None:
    answer = serve().get("/docs")
    assert answer.headers["content-security-policy"].startswith("default-src 'none'; style-src")
    assert Page(answer.text).tags.isdisjoint({"script", "link", "img", "iframe", "form", "base"})
    assert "url(" not in answer.text and "@import" not in answer.text


def test_the_page_without_a_key(serve: Callable[..., TestClient], other: Other) -> None:
    client = serve(api_keys=["k"])
    assert client.get("/openapi.json").status_code == 200
    assert client.get("/v1/models").status_code == 401
    with passing(other, fixture("spm"), api_keys=["k"]) as url:
        assert ask(url, "GET", "/docs")[0] == ask(url, "GET", "/openapi.json")[0] == 200
        assert ask(url, "POST", "/docs")[0] == 401
    assert not other.requests
