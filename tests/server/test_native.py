"""ggtok's own endpoints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest
from starlette.testclient import TestClient

import ggtok
from ggtok.server import replies
from tests.support.vocabularies import fixture

Serve = Callable[..., TestClient]
TEXTS = ["Hi there", "", "don't <|eot_id|>", "Grüße 👍"]


@pytest.fixture(scope="module")
def tok() -> ggtok.Tokenizer:
    return ggtok.load(fixture("bpe-llama3"))


@pytest.fixture
def ask(serve: Serve) -> Callable[..., Any]:
    client = serve()

    def ask(name: str, **body: object) -> Any:
        answer = client.post(f"/v1/ggtok/{name}", json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    return ask


def test_batches(ask: Callable[..., Any], tok: ggtok.Tokenizer) -> None:
    for flags in {}, {"add_special": False}, {"parse_special": True}:
        ids = tok.encode_batch(TEXTS, **flags)
        assert ask("encode", texts=TEXTS, **flags) == {"ids": ids}
        counts = [len(each) for each in ids]
        assert ask("count", texts=TEXTS, **flags) == {"counts": counts, "total": sum(counts)}
        assert ask("decode", ids=ids) == {"texts": tok.decode_batch(ids)}
    flags = {"remove_special": True, "unparse_special": False, "clean_spaces": True}
    assert ask("decode", ids=ids, **flags) == {"texts": tok.decode_batch(ids, **flags)}
    assert ask("encode", texts=[]) == {"ids": []}


CHAT_MESSAGES = [{"role": "user", "content": "Hi <|eot_id|>"}]
PART = {"type": "image_url", "image_url": {"url": "https://example.com/cat.png"}}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


@pytest.mark.filterwarnings("ignore::ggtok.VocabWarning")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"trusted": True},
        {"trusted": False, "user_defined": "plain"},
        {"tools": [TOOL], "tool_choice": "auto", "parallel_tool_calls": True},
        {"like": "transformers", "add_generation_prompt": False, "template": "{{ messages }}"},
        {"like": "llama.cpp", "add_generation_prompt": False, "continue_final_message": None},
        {"template": "{{ messages[0].content }}{{ x }}", "chat_template_kwargs": {"x": "end"}},
        {"enable_thinking": False, "reasoning_format": "none", "reasoning_effort": "low"},
        {"response_format": {"type": "json_object"}},
    ],
)
def test_count_chat(options: dict[str, Any], ask: Callable[..., Any], tok: ggtok.Tokenizer) -> None:
    n = tok.count_chat(CHAT_MESSAGES, **options)
    answer = ask("count_chat", messages=CHAT_MESSAGES, **options)
    assert answer == {"count": n, "context_length": tok.context_length}


@pytest.mark.filterwarnings("ignore::ggtok.VocabWarning")
def test_count_chat_with_images(serve: Serve, tok: ggtok.Tokenizer) -> None:
    messages = [{"role": "user", "content": [{"type": "text", "text": "What is it?"}, PART, PART]}]
    n = tok.count_chat(messages, image_tokens=0)
    for server_option, field, expected in [
        (None, None, {"count": n, "uncounted_parts": 2}),
        (7, None, {"count": n + 14}),
        (7, 0, {"count": n}),
        (None, 5, {"count": n + 10}),
    ]:
        body = {"messages": messages, "image_tokens": field}
        answer = serve(image_tokens=server_option).post("/v1/ggtok/count_chat", json=body).json()
        assert answer == {**expected, "context_length": tok.context_length}


def test_spans(ask: Callable[..., Any], tok: ggtok.Tokenizer) -> None:
    for unit in "byte", "char", "utf16":
        ids, spans = tok.encode_with_offsets(TEXTS[3], unit=unit)
        assert ask("spans", text=TEXTS[3], unit=unit) == {"ids": ids, "spans": spans.tolist()}
    ids, spans = tok.encode_with_offsets("ab " * 9000)  # long enough for several blocks
    assert ask("spans", text="ab " * 9000) == {"ids": ids, "spans": spans.tolist()}
    assert len(ids) > 9000


def test_answers_that_are_too_long(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replies, "MOST", 100)
    client = serve()
    assert client.post("/v1/ggtok/spans", json={"text": "a"}).status_code == 200
    answer = client.post("/v1/ggtok/spans", json={"text": "a b c d " * 9})
    assert answer.status_code == 413
    assert "bytes, and may have at most 100: send a part" in answer.json()["error"]["message"]


def test_cutting(ask: Callable[..., Any], tok: ggtok.Tokenizer) -> None:
    text = "Hi there, Grüße and don't " * 9
    assert ask("truncate", text=text, n=9) == {"text": tok.truncate(text, 9), "n_tokens": 9}
    left = ask("truncate", text=text, n=9, side="left", add_special=False)["text"]
    assert left == tok.truncate(text, 9, side="left", add_special=False)
    found = tok.chunks(text, 20, overlap=2, prefix="p: ", at=[". ", " "])
    asked = {"text": text, "n": 20, "overlap": 2, "prefix": "p: ", "at": [". ", " "]}
    rows = [chunk._asdict() for chunk in found]
    assert ask("chunks", **asked) == {"chunks": rows}
    texts = [row["text"] for row in ask("chunks", **asked, texts=True)["chunks"]]
    assert texts == [text[chunk.start : chunk.end] for chunk in found]


def test_explain(ask: Callable[..., Any], tok: ggtok.Tokenizer) -> None:
    assert ask("explain", text="Hi there") == asdict(tok.explain("Hi there"))
    tokens = [
        token["text"]
        for fragment in ask("explain", text="\u0e81")["fragments"]
        for word in fragment["words"]
        for token in word["tokens"]
    ]
    assert tokens == [list(tok.token_to_piece(id)) for id in tok.encode("\u0e81")[1:]]


def test_doctor(ask: Callable[..., Any], serve: Serve, tok: ggtok.Tokenizer) -> None:
    findings = [finding.as_dict() for finding in ggtok.doctor(fixture("bpe-llama3"))]
    assert ask("doctor") == {"findings": findings}
    assert ask("doctor") == {"findings": findings}
    answer = serve({"m": tok}).post("/v1/ggtok/doctor", json={})
    assert answer.status_code == 501
    assert answer.json()["error"]["type"] == "not_supported_error"


@pytest.mark.parametrize(
    ("name", "body", "message"),
    [
        ("encode", [], "the body must be an object, not an array"),
        ("encode", {}, "texts is required"),
        ("encode", {"texts": "Hi"}, "texts must be an array, not a string"),
        ("encode", {"texts": ["Hi", 7]}, "texts[1] must be a string, not a number"),
        ("encode", {"texts": [""] * 100_001}, "texts has 100001 items; at most 100000"),
        ("encode", {"texts": [], "parse_specials": True}, "unknown field 'parse_specials'"),
        ("encode", {"texts": [], "add_special": 1}, "add_special must be a boolean"),
        ("count_chat", {}, "messages is required"),
        ("count_chat", {"messages": [7]}, "messages"),
        ("count_chat", {"messages": {}}, "messages must be an array, not an object"),
        ("count_chat", {"messages": [], "prompt": ""}, "unknown field 'prompt'"),
        ("count_chat", {"messages": [], "like": "vllm"}, "like must be"),
        ("count_chat", {"messages": [], "user_defined": "no"}, "user_defined must be"),
        ("count_chat", {"messages": [], "image_tokens": -1}, "must not be negative"),
        ("count_chat", {"messages": [], "image_tokens": 1 << 25}, "at most 16777216 are allowed"),
        ("count_chat", {"messages": [], "template": "{% if"}, "template"),
        ("count_chat", {"messages": [], "trusted": 1}, "trusted must be a boolean"),
        ("decode", {"ids": [1]}, "ids[0] must be an array, not a number"),
        ("decode", {"ids": [[], [10**6]]}, "1000000"),
        ("decode", {"ids": [[2**32 + 1]]}, "4294967297"),
        ("decode", {"ids": [[1, True]]}, "ids[0][1] must be an integer, not True"),
        ("decode", {"ids": [[1], [1, 10**6]]}, "ids[1][1] is 1000000: not a token id"),
        ("decode", {"ids": [[1.5]]}, "ids[0][0] must be an integer, not 1.5"),
        ("decode", {"ids": [["1"]]}, "ids[0][0] must be an integer, not '1'"),
        ("spans", {"text": "Hi", "unit": "bit"}, "unit"),
        ("truncate", {"text": "Hi"}, "n is required"),
        ("truncate", {"text": "Hi", "n": True}, "n must be an integer, not a boolean"),
        ("truncate", {"text": "Hi", "n": 0}, "n is 0"),
        ("truncate", {"text": "Hi", "n": 9, "side": "top"}, "side"),
        ("chunks", {"text": "Hi", "n": 1}, "n"),
        ("chunks", {"text": "Hi", "n": 9, "at": [7]}, "at"),
        ("chunks", {"text": "ab " * 20_001, "n": 1}, "more than 20000 chunks"),
        ("chunks", {"text": "Hi", "n": 8, "overlap": 7}, "7 tokens, and may have at most three"),
        ("chunks", {"text": "Hi", "n": 8, "prefix": "a b c d e f g"}, "at most three quarters"),
        ("explain", {"text": "x" * 20_000}, "explains at most 4096"),
        ("doctor", {"file": "/etc/passwd"}, "unknown field 'file'"),
    ],
)
def test_errors(name: str, body: object, message: str, serve: Serve) -> None:
    answer = serve().post(f"/v1/ggtok/{name}", json=body)
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert error["type"] == "invalid_request_error"
    assert message in error["message"]
