"""The endpoints of llama-cpp-python's server that tokenize, as in its version 0.3.36."""

from __future__ import annotations

from ggtok.server.endpoints import Call, Endpoint
from ggtok.server.fields import object_of, typed_field, valid_ids
from ggtok.server.llama_server import joined_pieces


def tokenize(call: Call) -> object:
    return {"tokens": _encode_input(call)}


def count(call: Call) -> object:
    return {"count": len(_encode_input(call))}


def _encode_input(call: Call) -> list[int]:
    text = typed_field(object_of(call.body), "input", str)
    return call.model().tok.encode(text, parse_special=True)


def detokenize(call: Call) -> object:
    """Decodes ids, without the texts of control tokens, and without one space after BOS."""
    given, tok = object_of(call.body).get("tokens"), call.model().tok
    ids = valid_ids(given, "tokens", tok)
    text = joined_pieces(call, tok, ids, special=False)
    if ids and ids[0] == tok.bos_id:
        text = text.removeprefix(" ")
    return {"text": text}


ENDPOINTS = (
    Endpoint("POST", ("/extras/tokenize",), tokenize, light=True),
    Endpoint("POST", ("/extras/tokenize/count",), count, light=True),
    Endpoint("POST", ("/extras/detokenize",), detokenize, light=True),
)
