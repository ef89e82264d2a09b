"""Images, audio and video in requests whose tokens are counted."""

from __future__ import annotations

import itertools
import json
import runpy
import secrets
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from starlette.testclient import TestClient

import ggtok
from ggtok import server
from ggtok.server import chat_prompts
from tests.chat import mediafiles
from tests.chat.llamaserver import Servers
from tests.chat.made import TEMPLATES
from tests.chat.requests import AUDIO, IMAGE, VIDEO, says, text, user
from tests.support.llamacpp import LlamaCpp
from tests.support.patch import GGUF
from tests.support.vocabularies import fixture

Serve = Callable[..., TestClient]
CHAT = "/v1/chat/completions/input_tokens"
RESPONSES = "/v1/responses/input_tokens"
ANTHROPIC = "/v1/messages/count_tokens"
SOURCE = {"type": "base64", "media_type": "image/png", "data": "AAAA"}


@pytest.fixture(scope="module")
def tok() -> ggtok.Tokenizer:
    gguf = GGUF.read(fixture("bpe-llama3"))
    gguf.set("tokenizer.chat_template", TEMPLATES["tools"].encode())
    return ggtok.load(gguf.dump())


# Bodies with the same messages for each API: two images and text.
PARTS = [text("What is this?"), IMAGE, text("And this?"), IMAGE]
BODIES: dict[str, dict[str, Any]] = {
    CHAT: {"messages": [user(PARTS)]},
    RESPONSES: {
        "input": [
            user(
                [
                    {"type": "input_text", "text": part["text"]}
                    if part["type"] == "text"
                    else {"type": "input_image", "image_url": IMAGE["image_url"]["url"]}
                    for part in PARTS
                ]
            )
        ]
    },
    ANTHROPIC: {
        "messages": [
            user([p if p["type"] == "text" else {"type": "image", "source": SOURCE} for p in PARTS])
        ]
    },
}


@pytest.mark.parametrize("path", BODIES)
def test_counts(path: str, serve: Serve, tok: ggtok.Tokenizer) -> None:
    n = tok.count_chat([user(PARTS)], trusted=True, image_tokens=0)
    answer = serve({"m": tok}).post(path, json=BODIES[path]).json()
    assert (answer["input_tokens"], answer["uncounted_parts"]) == (n, 2)
    answer = serve({"m": tok}, image_tokens=100).post(path, json=BODIES[path]).json()
    assert answer["input_tokens"] == n + 200
    assert "uncounted_parts" not in answer


def test_requests_without_media_have_no_more_fields(serve: Serve, tok: ggtok.Tokenizer) -> None:
    client = serve({"m": tok})
    assert client.post(CHAT, json={"messages": [user("Hi")]}).json().keys() == {
        "input_tokens",
        "object",
    }
    assert client.post(ANTHROPIC, json={"messages": [user("Hi")]}).json().keys() == {"input_tokens"}
    assert "uncounted_parts" not in client.post("/tokenize", json={"messages": [user("Hi")]}).json()


def test_prompts_have_the_marker_of_props(serve: Serve, tok: ggtok.Tokenizer) -> None:
    client = serve({"m": tok})
    marker = client.get("/props").json()["media_marker"]
    prompt = client.post("/apply-template", json={"messages": [user([AUDIO, VIDEO])]}).json()
    assert marker * 2 in prompt["prompt"]
    # The server's marker is random, so a message can't imitate it.
    answer = client.post(CHAT, json={"messages": [user([IMAGE, text("<__media__>")])]}).json()
    assert answer["uncounted_parts"] == 1


def test_threads_agree_on_the_marker(monkeypatch: pytest.MonkeyPatch) -> None:
    made = itertools.count()

    def slow(_: int) -> str:
        number = next(made)
        time.sleep(0.05)
        return str(number)

    monkeypatch.delenv("LLAMA_MEDIA_MARKER", raising=False)
    monkeypatch.setattr(secrets, "token_hex", slow)
    marker = runpy.run_path(str(chat_prompts.__file__))["media_marker"]
    with ThreadPoolExecutor(2) as pool:
        assert len(set(pool.map(lambda _: marker(), range(2)))) == 1


def test_results_of_tools(serve: Serve, tok: ggtok.Tokenizer) -> None:
    image = {"type": "image", "source": SOURCE}
    result = {"type": "tool_result", "tool_use_id": "c", "content": [text("a"), image]}
    answer = serve({"m": tok}).post(ANTHROPIC, json={"messages": [user([result])]}).json()
    assert answer["uncounted_parts"] == 1


def test_refusals(serve: Serve, tok: ggtok.Tokenizer) -> None:
    """As in llama-server, a media part that isn't in the prompt can't be counted."""
    body = {"messages": [user("Hi"), says("assistant", [text("It is"), IMAGE])]}
    client = serve({"m": tok})
    assert client.post("/apply-template", json=body).status_code == 200
    answer = client.post(CHAT, json=body)
    assert answer.status_code == 500
    assert "0 media markers" in answer.json()["error"]["message"]
    with pytest.raises(ggtok.InvalidValueError, match="image_tokens must not be negative"):
        server.app({"m": tok}, image_tokens=-1)


def test_vllm(serve: Serve, tok: ggtok.Tokenizer) -> None:
    template = (
        "{% for m in messages %}{% for p in m.content %}{% if p.type == 'text' %}{{ p.text }}"
        "{% else %}<{{ p.type }}>{% endif %}{% endfor %}{% endfor %}"
    )
    audio_url = {"type": "audio_url", "audio_url": {"url": "x"}}
    parts = [text("Hi"), IMAGE, AUDIO, VIDEO, audio_url]
    body = {"messages": [user(parts)], "chat_template": template}
    ids = tok.encode("Hi<image><audio><video><audio>", add_special=False, parse_special=True)
    answer = serve({"m": tok}).post("/tokenize", json=body).json()
    assert answer["tokens"] == ids
    assert (answer["count"], answer["uncounted_parts"]) == (len(ids), 4)
    answer = serve({"m": tok}, image_tokens=9).post("/tokenize", json=body).json()
    assert answer["tokens"] == ids
    assert answer["count"] == len(ids) + 36
    assert "uncounted_parts" not in answer


@pytest.mark.full
def test_like_llama_server_with_a_projector(
    serve: Serve, llama: LlamaCpp, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "bpe-llama3"
    template = TEMPLATES["tools"]
    monkeypatch.setenv("LLAMA_MEDIA_MARKER", mediafiles.MARKER)
    gguf = GGUF.read(fixture(name))
    gguf.set("tokenizer.chat_template", template.encode())
    client = serve({"m": ggtok.load(gguf.dump())}, image_tokens=mediafiles.IMAGE_TOKENS)
    source = {**SOURCE, "data": IMAGE["image_url"]["url"].partition(",")[2]}
    image = {"type": "image", "source": source}
    result = {"type": "tool_result", "tool_use_id": "c", "content": [text("a"), image]}
    requests = [
        (CHAT, BODIES[CHAT]),
        (RESPONSES, BODIES[RESPONSES]),
        (ANTHROPIC, {"messages": [user([text("Hi"), image, image])]}),
        (ANTHROPIC, {"messages": [user([result, image])]}),
        (CHAT, {"messages": [user([IMAGE]), says("assistant", [text("a"), IMAGE]), user("b")]}),
        (CHAT, {"messages": [user("Hi"), says("assistant", [text("a"), IMAGE])]}),
        (CHAT, {"messages": [user([IMAGE, text(mediafiles.MARKER)])]}),
        ("/apply-template", {"messages": [user([AUDIO, text("a"), text("b"), VIDEO])]}),
    ]
    with Servers(fixture(name), media=True) as servers, servers.start(template) as theirs:
        for path, body in requests:
            status, answer = theirs.post(path, body)
            ours = client.post(path, content=json.dumps(body))
            assert ours.status_code == status, (path, body, answer, ours.text)
            if status == 200:
                assert ours.json() == answer
