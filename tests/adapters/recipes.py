"""python -m tests.adapters.recipes: runs docs/integrations.md with the real libraries.

    python -m tests.adapters.recipes                  # all libraries that are installed
    python -m tests.adapters.recipes LangChain duckdb # only these
    python -m tests.adapters.recipes --write          # updates the examples' output in the page

llama-cpp-python isn't compiled; its Python files use the llama.cpp in xllamacpp. Prints a row for
each recipe; the exit status is 1 if one doesn't print what the page shows.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

from fixtures.fetch import REQUIREMENT, _download
from tests.docs.pages import ROOT, Block, run_page, surroundings

PAGE = ROOT / "docs" / "integrations.md"
# The distribution and the module that each recipe needs.
PACKAGES = {
    "transformers": ("transformers", "transformers"),
    "LangChain": ("langchain-text-splitters", "langchain_text_splitters"),
    "llama-index": ("llama-index-core", "llama_index.core"),
    "semchunk": ("semchunk", "semchunk"),
    "chonkie": ("chonkie", "chonkie"),
    "semantic-text-splitter": ("semantic-text-splitter", "semantic_text_splitter"),
    "Haystack": ("haystack-ai", "haystack"),
    "litellm": ("litellm", "litellm"),
    "lm-evaluation-harness": ("lm-eval", "lm_eval"),
    "datasets": ("datasets", "datasets"),
    "polars": ("polars", "polars"),
    "duckdb": ("duckdb", "duckdb"),
    "llguidance": ("llguidance", "llguidance"),
    "Outlines": ("outlines-core", "outlines_core"),
    "xgrammar": ("xgrammar", "xgrammar"),
    "llama-cpp-python": ("llama-cpp-python", "llama_cpp"),
    "smolagents": ("smolagents", "smolagents"),
}
# Without these variables, litellm downloads prices, and datasets checks for new versions.
ENVIRONMENT = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "HF_DATASETS_OFFLINE": "1"}
# Recipes that also need transformers.
NEEDS_TRANSFORMERS = ("LangChain", "chonkie", "lm-evaluation-harness", "datasets")


class Section(NamedTuple):
    name: str
    text: str
    begin: int  # the heading's offset on the page


def sections() -> tuple[str, list[Section]]:
    """Splits the page into the text before the first recipe, and the recipes."""
    text = PAGE.read_text("utf-8")
    found = list(re.finditer(r"^## (.+)\n", text, re.MULTILINE))
    ends = [other.start() for other in found[1:]] + [len(text)]
    parts = [
        Section(heading[1], text[heading.start() : end], heading.start())
        for heading, end in zip(found, ends, strict=True)
    ]
    return text[: found[0].start()], parts


def is_installed(name: str) -> bool:
    modules = [PACKAGES[name][1]]
    modules += ["transformers"] if name in NEEDS_TRANSFORMERS else []
    try:
        return all(importlib.util.find_spec(module) is not None for module in modules)
    except ModuleNotFoundError:
        return False


def run(section: Section, folder: Path) -> list[tuple[Block, str]]:
    """Runs the code at the top of the page, then a recipe, in a folder."""
    beginning, _ = sections()
    page = folder / "page.md"
    page.write_text(beginning + section.text, "utf-8")
    surroundings(folder)
    before = Path.cwd()
    os.chdir(folder)
    try:
        return run_page(page, folder)
    finally:
        os.chdir(before)


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(PACKAGES[name][0])
    except importlib.metadata.PackageNotFoundError:
        return REQUIREMENT.partition("==")[2]


@contextmanager
def llama_cpp_python() -> Iterator[None]:
    """Adds llama-cpp-python's Python files to the path, and makes them load xllamacpp's library."""
    with tempfile.TemporaryDirectory(prefix="ggtok-recipes-") as folder:
        with tarfile.open(_download(Path(folder))) as archive:
            members = [member for member in archive if re.match(r"[^/]+/llama_cpp/", member.name)]
            archive.extractall(folder, members, filter="data")
        sources = list(Path(folder).glob("*/llama_cpp/*.py"))
        library = Path(folder, "lib")
        library.mkdir()
        _build(library, {name for path in sources for name in _functions(path)})
        os.environ["LLAMA_CPP_LIB_PATH"] = str(library)
        sys.path[:0] = [str(path.parent) for path in Path(folder).glob("*/llama_cpp")]
        yield


def _functions(path: Path) -> list[str]:
    """Returns the names of the C functions that a module declares."""
    return re.findall(
        r'@ctypes_function(?:_for_shared_library)?\(\s*"(\w+)"', path.read_text("utf-8")
    )


def _build(folder: Path, names: set[str]) -> None:
    """Builds libraries that forward to xllamacpp's library. Functions that it lacks do nothing."""
    from tests.support.llamacpp import shared_object

    there = ctypes.CDLL(str(shared_object()))
    missing = sorted(name for name in names if not hasattr(there, name))
    source = folder / "missing.c"
    source.write_text("".join(f"void {name}(void) {{}}\n" for name in missing))
    for name in "llama", "ggml", "mtmd":
        command = [
            "gcc",
            "-shared",
            "-fPIC",
            "-w",
            "-Wl,--no-as-needed",
            "-o",
            f"{folder}/lib{name}.so",
            str(source),
        ]
        subprocess.run([*command, str(shared_object())], check=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.adapters.recipes",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PACKAGES))
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    if unknown := set(args.names) - set(PACKAGES):
        parser.error(f"no such recipe: {', '.join(sorted(unknown))}")
    os.environ |= ENVIRONMENT
    names = args.names or list(PACKAGES)
    with llama_cpp_python() if "llama-cpp-python" in names else nullcontext():
        return _run_all(names, write=args.write)


def _run_all(names: list[str], *, write: bool) -> int:
    clean = True
    beginning, recipes = sections()
    changes: dict[int, tuple[Block, str]] = {}  # blocks with new texts, by offset
    for section in recipes:
        if section.name not in names:
            continue
        if not is_installed(section.name):
            print(f"{section.name}: not installed")
            continue
        with tempfile.TemporaryDirectory(prefix="ggtok-recipes-") as folder:
            results = run(section, Path(folder))
        wrong = [(block, shown) for block, shown in results if block.text != shown]
        for block, shown in wrong:
            moved = section.begin - len(beginning) if block.begin >= len(beginning) else 0
            changes[block.begin + moved] = block, shown
        print(f"{section.name} {_version(section.name)}: {'differs' if wrong else 'as shown'}")
        for _, shown in wrong:
            print(shown)
        clean &= not wrong
    if write:
        text = PAGE.read_text("utf-8")
        for at, (block, shown) in sorted(changes.items(), reverse=True):
            text = text[:at] + shown + text[at + len(block.text) :]
        PAGE.write_text(text, "utf-8")
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(main())
