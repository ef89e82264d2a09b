"""KoboldCpp's endpoint for counting tokens."""

from __future__ import annotations

from typing import Any

from ggtok.server.endpoints import Call, Endpoint
from ggtok.server.fields import anything, object_of, typed_field
from ggtok.server.refusals import Refusal


def error_body(refusal: Refusal) -> dict[str, Any]:
    """Returns an error body with a `value` that KoboldCpp's clients recognize as an error, and an
    `error` for people."""
    return {"value": -1, "error": refusal.message}


def tokencount(call: Call) -> object:
    tok = call.model().tok
    prompt = typed_field({"prompt": "", **object_of(call.body)}, "prompt", str)
    special = bool(anything(call.body, "special", True))
    ids = tok.encode(prompt, add_special=special, parse_special=True)
    return {"value": len(ids), "ids": ids}


ENDPOINTS = (
    Endpoint("POST", ("/api/extra/tokencount",), tokencount, light=True, errors=error_body),
)
