"""Compares the server's answers with those of llama-server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.chat.llamaserver import write_model
from tests.chat.made import TEMPLATES
from tests.server import parity
from tests.server.generate import Generator
from tests.server.written import REQUESTS
from tests.support.llamacpp import LlamaCpp
from tests.support.vocabularies import fixture

pytestmark = pytest.mark.filterwarnings("ignore::ggtok.VocabWarning")


def check(result: parity.Result) -> None:
    assert not result.failures, "\n".join(result.shown)


@pytest.mark.parametrize("name", parity.RECORDED)
def test_recorded_answers(name: str, tmp_path: Path) -> None:
    """The answers equal those that llama-server gave to the handwritten requests (answers.json)."""
    answers = json.loads(parity.ANSWERS.read_text("utf-8"))[name]
    assert len(answers) == len(REQUESTS), "run python -m tests.server.parity --record"
    template = TEMPLATES[parity.PAIRS[name]].encode()
    path = tmp_path / "ggtok-server-x" / "model.gguf"
    path.parent.mkdir()
    result = parity.Result()
    write_model(fixture(name), path, {"tokenizer.chat_template": template})
    with parity.serving(path) as client:
        for request, (status, body) in zip(REQUESTS, answers, strict=True):
            ours, data = parity.ask(client, request)
            portable = json.dumps(parity.portable(json.loads(data))).encode()
            parity.compare(request, (ours, portable), (status, json.dumps(body).encode()), result)
    check(result)
    assert result.counts["same body"] > 150
    assert result.counts["same error and message"] > 100


@pytest.mark.parametrize("name", parity.PAIRS)
def test_live_answers(name: str, llama: LlamaCpp) -> None:
    generator = Generator(41, 400)
    result = parity.Result()
    parity.run(name, [generator.request() for _ in range(150)], result)
    check(result)
    assert result.counts["same body"] > 50


@pytest.mark.full
@pytest.mark.parametrize("name", parity.PAIRS)
def test_many_live_answers(name: str, llama: LlamaCpp) -> None:
    generator = Generator(42, 400)
    result = parity.Result()
    parity.run(name, [*REQUESTS, *(generator.request() for _ in range(1000))], result)
    check(result)


def test_differences_are_noticed() -> None:
    """The comparison itself notices differences."""
    request = REQUESTS[0]
    result = parity.Result()

    def kind(ours: object, theirs: object, statuses: tuple[int, int] = (200, 200)) -> str:
        result.counts.clear()
        pair = [(n, json.dumps(b).encode()) for n, b in zip(statuses, (ours, theirs), strict=True)]
        parity.compare(request, *pair, result)
        return next(iter(result.counts))

    error = {"error": {"code": 400, "message": "m", "type": "t"}}
    assert kind({"a": [1]}, {"a": [1]}) == "same body"
    assert kind({"a": [1]}, {"a": [1.0]}) == "other body"
    assert kind({"a": [1]}, {"a": [True]}) == "other body"
    assert kind({"a": [1]}, {"a": [1, 2]}) == "other body"
    assert kind({"a": 1, "b": 2}, {"a": 1}) == "other body"
    assert kind({"a": 1}, error, (200, 400)) == "other status"
    assert kind(error, error, (400, 400)) == "same error and message"
    assert kind({"error": {**error["error"], "message": "n"}}, error, (400, 400)) == "same error"
    assert kind({"error": {**error["error"], "type": "u"}}, error, (400, 400)) == "other error"
    assert result.failures == 6
