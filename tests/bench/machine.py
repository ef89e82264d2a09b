"""Describes the machine and the software versions used for the measurements."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from pathlib import Path

from tests.bench.peers import PEERS


def machine() -> dict[str, str | int | float]:
    facts: dict[str, str | int | float] = {
        "cpu": _cpu(),
        "cores": os.cpu_count() or 0,
        "os": f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}",
        "libc": " ".join(platform.libc_ver()),
        "python": platform.python_version(),
    }
    if hasattr(os, "getloadavg"):
        facts["load_average_before"] = round(os.getloadavg()[0], 2)
    return facts


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    facts = dict(line.split(":", 1) for line in lines if ":" in line)
    facts = {key.strip(): value.strip() for key, value in facts.items()}
    if "model name" not in facts:
        return platform.machine()
    # The model name alone may be as vague as "AMD EPYC".
    return (
        f"{facts['model name']} (family {facts.get('cpu family', '?')}, "
        f"model {facts.get('model', '?')}, stepping {facts.get('stepping', '?')})"
    )


def version(peer: str) -> str:
    try:
        return importlib.metadata.version(PEERS[peer].package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
