"""Hosts that a process keeps."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.web import hosts
from tests.web.hosts import Chromium, Host, Node


@pytest.fixture(scope="session")
def node() -> Iterator[Node]:
    if not hosts.node():
        pytest.skip(hosts.NODE_NEEDED)
    with Node() as node:
        yield node


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    pytest.importorskip("playwright", reason=hosts.CHROMIUM_NEEDED)
    if not shutil.which("chromium"):
        pytest.skip(hosts.CHROMIUM_NEEDED)
    with Chromium() as page:
        yield page


@pytest.fixture(params=["node", pytest.param("chromium", marks=pytest.mark.full)])
def host(request: pytest.FixtureRequest) -> Host:
    found: Host = request.getfixturevalue(request.param)
    return found
