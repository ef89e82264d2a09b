"""Fixtures for the tests of conversions."""

from __future__ import annotations

import pytest

from ggtok.vocabularies.convert import originals


@pytest.fixture(autouse=True)
def _without_transformers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hides transformers, which is slow to import, so that a converted folder is compared with the
    package that wrote its files. Only test_loader.py tests the comparison with transformers."""
    if request.path.name != "test_loader.py":
        find = originals.is_installed
        monkeypatch.setattr(
            originals, "is_installed", lambda name: name != "transformers" and find(name)
        )
