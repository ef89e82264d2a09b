"""The fixture that runs the command in the tests' process."""

from __future__ import annotations

import io

import pytest

from ggtok import cli
from tests.cli.command import Result


@pytest.fixture
def run(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch):
    """Returns a function that runs a command line in this process."""

    def run(*argv: str, stdin: bytes = b"") -> Result:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        status = cli.main(argv)
        return Result(status, *capfdbinary.readouterr())

    return run
