"""KoboldCpp's endpoint for counting tokens."""

from __future__ import annotations

from typing import Any

from ggtok.server.endpoints import Call, Endpoint
from ggtok.server.errors import Refusal
from ggtok.server.fields import anything, has, kind


def error_body(refusal: Refusal) -> dict[str, Any]:
    """Returns an error body with a `value` that KoboldCpp's clients recognize as an error, and an
    `error` for people."""
    return {"value": -1, "error": refusal.message}


def tokencount(call: Call) -> object:
    tok = call.model().tok
    if not isinstance(call.body, dict):
        raise Refusal(f"the body must be an object, not {kind(call.body)}")
    prompt = call.body["prompt"] if has(call.body, "prompt") else ""
    if not isinstance(prompt, str):
        raise Refusal(f"prompt must be a string, not {kind(prompt)}")
    special = bool(anything(call.body, "special", True))
    ids = tok.encode(prompt, add_special=special, parse_special=True)
    return {"value": len(ids), "ids": ids}


ENDPOINTS = (
    Endpoint("POST", ("/api/extra/tokencount",), tokencount, light=True, errors=error_body),
)
