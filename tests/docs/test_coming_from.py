"""docs/coming-from.md: its examples, and its rows about llama-server, beside the server itself."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ggtok
from fixtures.build import CHAT, CHAT_TEMPLATE
from tests.chat.llamaserver import Server, Servers
from tests.docs.pages import MESSAGES, ROOT, run_page, surroundings

PAGE = ROOT / "docs" / "coming-from.md"
TEXT = "Hello, the kettle<|eot_id|>"


@pytest.mark.full
@pytest.mark.skipif(sys.platform == "win32" or not shutil.which("bash"), reason="needs bash")
def test_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in "transformers", "tokenizers", "tiktoken":
        pytest.importorskip(package, exc_type=ImportError)
    surroundings(tmp_path)
    monkeypatch.chdir(tmp_path)
    for block, shown in run_page(PAGE, tmp_path):
        assert shown == block.text, f"coming-from.md, line {block.line}"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    if sys.platform != "linux":
        pytest.skip("llama-server comes with a package for Linux")
    pytest.importorskip("xllamacpp", exc_type=ImportError)
    with Servers(CHAT) as servers:
        yield servers.start(CHAT_TEMPLATE)


def rows() -> list[tuple[str, str, str]]:
    """Path, body and expression of each row of the table about llama-server."""
    found = re.findall(r"^\| `(/\S+) (\{.*?\})` \| `([^`]+)`", PAGE.read_text("utf-8"), re.M)
    assert len(found) == 7
    return found


@pytest.mark.parametrize(("path", "body", "expression"), rows())
def test_rows_about_llama_server(server: Server, path: str, body: str, expression: str) -> None:
    tok = ggtok.load(CHAT)
    names: dict[str, Any] = {"tok": tok, "text": TEXT, "messages": MESSAGES}
    names["ids"] = tok.encode(TEXT, add_special=False, parse_special=True)
    for name in "text", "ids", "messages":
        body = re.sub(rf": {name}\b", f": {json.dumps(names[name])}".replace("\\", r"\\"), body)
    status, answer = server.post(path, json.loads(body))
    assert status == 200, answer
    (value,) = (
        v for k, v in answer.items() if k in ("tokens", "content", "prompt", "input_tokens")
    )
    if "with_pieces" in body:
        assert [token["id"] for token in value] == names["ids"]
        value = [token["piece"].encode() for token in value]
    assert value == eval(expression, names)
