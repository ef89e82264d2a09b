"""Fixtures: a copy of the sources, and the distributions built from it."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.package.running import NOT_SOURCES, ROOT, run


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copies the sources, without anything that was built."""
    copy = tmp_path_factory.mktemp("checkout") / "ggtok"
    if (ROOT / ".git").exists():
        names = run("git", "ls-files", "-z", cwd=ROOT).split("\0")
    else:
        names = [path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*")]
        names = [name for name in names if not NOT_SOURCES.search(name)]
    for name in names:
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    return copy


@pytest.fixture(scope="session")
def sdist(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("sdist")
    code = "import sys; from setuptools.build_meta import build_sdist; build_sdist(sys.argv[1])"
    run(sys.executable, "-c", code, out, cwd=checkout)
    (path,) = out.iterdir()
    return path


@pytest.fixture(scope="session")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builds a wheel offline from the source distribution."""
    out = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-index", "--no-deps"]
    run(*pip, "-w", out, sdist, cwd=out)
    (path,) = out.iterdir()
    return path
