"""docs/highlight.md's page of colours shows all of a text, whatever the vocabulary drops of it."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from typing import Any

import pytest

import ggtok
from tests.docs.pages import ROOT, blocks

TEXTS = ["a <b>", "  two  spaces, \n", "caf\u00e9 \U0001f98a \t", "", " "]


@pytest.mark.parametrize("name", ["bpe-llama3", "spm", "ugm", "wpm"])
def test_page(name: str, load_fixture: Callable[[str], ggtok.Tokenizer]) -> None:
    sessions = [block.text for block in blocks(ROOT / "docs" / "highlight.md")]
    (session,) = [text for text in sessions if "def page(" in text]
    program = re.findall(r"^(?:>>>|\.\.\.) (?!page\()(.*)", session, re.M)
    names: dict[str, Any] = {"tok": load_fixture(name)}
    exec("\n".join(program), names)
    for text in TEXTS:
        page = names["page"](text)
        assert html.unescape(re.sub("<[^>]*>", "", page)) == text
