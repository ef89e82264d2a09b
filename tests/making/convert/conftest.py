"""What the tests of conversions share."""

from __future__ import annotations

import pytest

from ggtok.vocabularies.convert import originals


@pytest.fixture(autouse=True)
def _without_transformers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders are compared with their files' own packages, since to import transformers takes
    seconds; test_loader.py is about what it gives."""
    if request.path.name != "test_loader.py":
        find = originals.is_installed
        monkeypatch.setattr(
            originals, "is_installed", lambda name: name != "transformers" and find(name)
        )
