"""Chat templates that aren't UTF-8: every command, endpoint and edit ends with a result or with an
error that says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient

import ggtok
from ggtok import server
from ggtok.native import jinja
from ggtok.server.openapi import ROWS
from tests.support.patch import GGUF
from tests.support.vocabularies import FIXTURES

MESSAGES = b'[{"role": "user", "content": "Hi"}]'
CHATS = {
    "in text": b"{{ messages[0].content }}\xff",
    "at the start": b"\xff{{ messages[0].content }}",
    "in a tag": b"{{ messages[0].\xff }}",
    "in a string": b"{{ '\xc3' ~ messages[0].content }}",
    "alone": b"\xff",
    "malformed": b"\xff{% if x %}",
}


@pytest.fixture(params=CHATS)
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    gguf = GGUF.read(FIXTURES / "chat.gguf")
    gguf.set("tokenizer.chat_template", CHATS[request.param], "str")
    gguf.set("tokenizer.chat_template.tool_use", CHATS[request.param], "str")
    path = tmp_path / "model.gguf"
    gguf.write(path)
    return path


def commands(model: Path, folder: Path) -> list[list[str]]:
    template = folder / "template.jinja"
    template.write_bytes(b"\xff{{ messages[0].content }}")
    name, out = str(model), str(folder / "out.gguf")
    return [
        *(["chat", name, *like] for like in ([], ["--like", "transformers"])),
        *(["chat", name, "--template", each] for each in ("tool_use", str(template))),
        ["count", "-m", name, "--chat", "-"],
        ["count", "-m", name, "--chat", "-", "--template", str(template)],
        *(["doctor", name, *more] for more in ([], ["--json"])),
        *(["inspect", name, *more] for more in ([], ["--json"], ["--template"])),
        *(["diff", name, str(FIXTURES / "chat.gguf"), *more] for more in ([], ["--json"])),
        ["edit", name, "--template", str(template), "-o", out],
        ["edit", name, "--set", "general.name=x", "--dry-run"],
        ["edit", name, "--fix", "all", "--dry-run"],
        ["edit", name, "--set", "general.name=x", "--in-place"],
        ["edit", name, "--undo"],
        *(["stats", name], ["list", str(folder)], ["tokenize", name, "Hi"]),
        ["export", name, "--to", str(folder / "out.json")],
    ]  # fmt: skip


def test_commands(run, model: Path, tmp_path: Path) -> None:
    for argv in commands(model, tmp_path):
        result = run(*argv, stdin=MESSAGES)
        assert result.status in (0, 1, 2), argv
        assert not any("Traceback" in line for line in result.errors), argv


@pytest.mark.filterwarnings("ignore")
def test_endpoints(model: Path) -> None:
    app = server.app({"m": model})
    with TestClient(app, "http://127.0.0.1", raise_server_exceptions=False) as client:
        for path, row in ROWS.items():
            if row.example is None:
                answer = client.get(path)
            else:
                answer = client.post(path, json={**row.example, "model": "m"})
            assert "Internal Server Error" not in answer.text, path


@pytest.mark.filterwarnings("ignore")
def test_python(model: Path) -> None:
    tok = ggtok.load(model)
    chat = [{"role": "user", "content": "Hi"}]
    tool = {"type": "function", "function": {"name": "f"}}
    for like in ("llama.cpp", "transformers"):
        for call in (
            lambda like=like: tok.encode_chat(chat, like=like),
            lambda like=like: tok.count_chat(chat, like=like, tools=[tool]),
            lambda like=like: tok.apply_chat_template(chat, like=like),
            lambda like=like: tok.encode_chat(chat, like=like, return_assistant_mask=True),
            lambda like=like: tok.encode_chat(chat, like=like, known=(1, [1])),
            lambda like=like: tok.encode_chat_batch([chat], like=like),
            lambda like=like: tok.show(chat, like=like),
            lambda like=like: ggtok.trim_chat(tok, chat, 1, like=like),
        ):
            with pytest.raises(ggtok.GGTokError):
                call()
    assert ggtok.doctor(model)


def test_edits_write_any_bytes(model: Path, tmp_path: Path) -> None:
    key, out = "tokenizer.chat_template", tmp_path / "out.gguf"
    for value in (b"\xff{{ 1 }}", "\udcff{{ 1 }}"):
        ggtok.edit(model, {key: value}, out=out, force=True)
        assert GGUF.read(out).raw[key.encode()].endswith(b"\xff{{ 1 }}")
    with pytest.raises(ggtok.TemplateError, match="endif"):
        ggtok.edit(model, {key: b"\xff{% if y %}"}, out=out)
    with pytest.raises(ggtok.TemplateError, match="character 0 is a lone surrogate"):
        jinja.compile("\ud800", "llama.cpp")
