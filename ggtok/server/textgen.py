"""The endpoints of text-generation-webui that tokenize, as for its llama.cpp loader."""

from __future__ import annotations

from ggtok.server import model_facts
from ggtok.server.endpoints import Call, Endpoint
from ggtok.server.fields import object_of, typed_field, valid_ids
from ggtok.server.llama_server import joined_pieces


def encode(call: Call) -> object:
    ids = _encode_prompt(call)
    return {"tokens": ids, "length": len(ids)}


def token_count(call: Call) -> object:
    return {"length": len(_encode_prompt(call))}


def _encode_prompt(call: Call) -> list[int]:
    """Encodes a text with BOS, unless the text begins with it."""
    text = typed_field(object_of(call.body), "text", str)
    tok = call.model().tok
    bos = model_facts.piece(tok, tok.bos_id)
    has_bos = bool(bos) and text.startswith(bos or "")
    return tok.encode(text, add_special=not has_bos, parse_special=True)


def decode(call: Call) -> object:
    given, tok = object_of(call.body).get("tokens"), call.model().tok
    return {"text": joined_pieces(call, tok, valid_ids(given, "tokens", tok))}


ENDPOINTS = (
    Endpoint("POST", ("/v1/internal/encode",), encode, light=True),
    Endpoint("POST", ("/v1/internal/decode",), decode, light=True),
    Endpoint("POST", ("/v1/internal/token-count",), token_count, light=True),
)
