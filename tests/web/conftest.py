from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.web.pages import Shown


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    from tests.web.pages import chromium

    with chromium() as browser:
        yield browser


@pytest.fixture
def shown(browser: Browser) -> Iterator[Shown]:
    """The page, from a file, in a window of its own."""
    from tests.web.pages import Shown

    context = browser.new_context(
        viewport={"width": 1280, "height": 800}, permissions=["clipboard-read", "clipboard-write"]
    )
    page = Shown(context.new_page())
    yield page
    context.close()
    assert not page.errors
