"""Fixtures: the JavaScript hosts, each started once per test process, and the page."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.web import hosts
from tests.web.hosts import Chromium, Host, Node

if TYPE_CHECKING:
    from tests.web.pages import Shown


@pytest.fixture(scope="session")
def node() -> Iterator[Node]:
    if not hosts.node():
        pytest.skip(hosts.NODE_NEEDED)
    with Node() as node:
        yield node


@pytest.fixture(scope="session")
def playwright() -> Iterator[Any]:
    """Returns Playwright, which a process can start only once."""
    api = pytest.importorskip("playwright.sync_api", reason=hosts.CHROMIUM_NEEDED)
    if not shutil.which("chromium"):
        pytest.skip(hosts.CHROMIUM_NEEDED)
    with api.sync_playwright() as playwright:
        yield playwright


@pytest.fixture(scope="session")
def chromium(playwright: Any) -> Iterator[Chromium]:
    with Chromium(playwright) as page:
        yield page


@pytest.fixture(params=["node", pytest.param("chromium", marks=pytest.mark.full)])
def host(request: pytest.FixtureRequest) -> Host:
    found: Host = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="session")
def browser(playwright: Any) -> Iterator[Any]:
    from tests.web import pages

    browser = pages.launch(playwright)
    yield browser
    browser.close()


@pytest.fixture
def shown(browser: Any) -> Iterator[Shown]:
    """Opens the page from a file in a separate window."""
    from tests.web.pages import Shown

    context = browser.new_context(
        viewport={"width": 1280, "height": 800}, permissions=["clipboard-read", "clipboard-write"]
    )
    page = Shown(context.new_page())
    yield page
    context.close()
    assert not page.errors
