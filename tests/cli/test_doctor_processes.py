"""``ggtok doctor`` on several models checks each in one of several processes."""

from __future__ import annotations

import os
import signal
import sys

import pytest

from ggtok.cli.doctor_command import Found, _Pool


def check(model: str) -> Found:
    """Kills its own process for some models, as the system does when memory is full."""
    if model.startswith("dies"):
        os.kill(os.getpid(), signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)
    return model.upper()


@pytest.mark.parametrize("models", [["dies", "a", "b", "c"], ["a", "b", "dies", "c", "dies too"]])
def test_a_process_that_dies_costs_only_its_own_model(models: list[str]) -> None:
    with _Pool(2) as over:
        found = list(over(check, models))
    died = "the process that checked it died; was it killed, or out of memory?"
    assert found == [died if model.startswith("dies") else model.upper() for model in models]
