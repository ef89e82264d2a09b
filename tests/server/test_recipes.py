"""The recipe of docs/serving.md for Open WebUI."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

import ggtok
from tests.server.running import running
from tests.support.vocabularies import fixture

SERVING = Path(__file__).resolve().parents[2] / "docs" / "serving.md"
MESSAGES = [{"role": "user", "content": "Is it?"}, {"role": "assistant", "content": "Yes."}]


@pytest.mark.filterwarnings("ignore::ggtok.VocabWarning")
@pytest.mark.parametrize("length", [None, 8192])
def test_the_gauge_of_open_webui(length: int | None, tmp_path: Path) -> None:
    [code] = re.findall(r"```python\n(import asyncio.*?)```", SERVING.read_text("utf-8"), re.S)
    names: dict[str, Any] = {}
    exec(code, names)
    gauge, shown = names["Filter"](), list[Any]()

    async def emit(event: object) -> None:
        shown.append(event)

    def show(model: str) -> str:
        # Open WebUI's messages have more fields.
        messages = [{**message, "id": "1", "timestamp": 7} for message in MESSAGES]
        body = {"model": model, "messages": messages, "chat_id": "c"}
        assert asyncio.run(gauge.outlet(body, emit)) is body
        event = shown.pop()
        assert (event["type"], event["data"]["done"], shown) == ("status", True, [])
        text: str = event["data"]["description"]
        return text

    path = fixture("bpe-llama3")
    if length is not None:
        path = tmp_path / "m.gguf"
        ggtok.edit(fixture("bpe-llama3"), {"llama.context_length": length}, out=path)
    tok = ggtok.load(path)
    assert tok.context_length == length
    with running({"m": tok}, api_keys=["k"]) as url:
        gauge.url = gauge.url.replace("http://127.0.0.1:8484", url)
        assert "key" in show("m").lower()
        gauge.key = "k"
        n = tok.count_chat(MESSAGES, add_generation_prompt=False)
        assert show("m") == f"{n} of {length or 'an unknown number of'} tokens"
        assert show("other") == "unknown model 'other'; known: m"
