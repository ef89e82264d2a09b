"""Endpoints that were proposed for Ollama (in its pull request 12030), but that Ollama lacks."""

from __future__ import annotations

import time
from typing import Any

from ggtok.server.endpoints import Call, Endpoint
from ggtok.server.fields import kind, object_of, token_ids
from ggtok.server.llama_server import joined_pieces
from ggtok.server.refusals import Refusal
from ggtok.server.registry import Served


def error_body(refusal: Refusal) -> dict[str, Any]:
    return {"error": refusal.message}


def tokenize(call: Call) -> object:
    """Encodes a text without BOS, parsing control tokens, as Ollama's runner does."""
    begin = time.perf_counter_ns()
    model = _model(call)
    loaded = time.perf_counter_ns()
    content = call.body.get("content", call.body.get("text"))
    if not isinstance(content, str):
        raise Refusal(f"content must be a string, not {kind(content)}")
    ids = model.tok.encode(content, add_special=False, parse_special=True)
    return {"model": model.name, "tokens": ids, **_times(begin, loaded)}


def detokenize(call: Call) -> object:
    begin = time.perf_counter_ns()
    model = _model(call)
    loaded = time.perf_counter_ns()
    try:
        content = joined_pieces(call, model.tok, token_ids(call.body.get("tokens"), "tokens"))
    except Refusal as e:
        raise Refusal(e.message, status=413 if e.status == 413 else 0) from None
    return {"model": model.name, "content": content, **_times(begin, loaded)}


def _model(call: Call) -> Served:
    if object_of(call.body).get("media_type") not in ("", "text", None):
        raise Refusal("media_type must be 'text'")
    return call.model()


def _times(begin: int, loaded: int) -> dict[str, int]:
    """Returns the durations in nanoseconds, as in Ollama's other answers."""
    return {"total_duration": time.perf_counter_ns() - begin, "load_duration": loaded - begin}


ENDPOINTS = (
    Endpoint("POST", ("/api/tokenize",), tokenize, light=True, errors=error_body),
    Endpoint("POST", ("/api/detokenize",), detokenize, light=True, errors=error_body),
)
