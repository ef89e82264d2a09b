"""ggtok's own endpoints, under /v1/ggtok/. Each does what the Tokenizer's method with the same name
does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from itertools import pairwise
from typing import Any

import ggtok
from ggtok.chat import api
from ggtok.chat.media import check_tokens
from ggtok.chat.options import ChatOptions
from ggtok.chat.prompt_ids import flags_of
from ggtok.errors import GGTokError
from ggtok.native import chat_calls
from ggtok.server import bodies
from ggtok.server.chat_prompts import media_marker
from ggtok.server.decoded import check_decoded_size
from ggtok.server.endpoints import Call, Endpoint
from ggtok.server.fields import kind, object_of, optional, quote_value, valid_ids
from ggtok.server.refusals import Refusal
from ggtok.server.registry import unreadable
from ggtok.server.vllm import keeps_template

Json = dict[str, Any]
_MOST_TEXTS = 100_000  # the most texts in a batch
_MOST_CHUNKS = 20_000  # the most chunks for a text; each takes about 0.1 ms
_MOST_SEPARATORS = 64  # the most separators for chunks; each chunk tries all of them
_MOST_EXPLAINED = 4096  # bytes of the longest text to explain, since plain Python is slow
_MOST_IMAGE_TOKENS = 1 << 24  # for each image; JSON has no integers of more than 64 bits
_DOCTOR = "doctor's findings"  # the key in the `memo` of a loaded vocabulary


class _TypedBody:
    """A body with typed fields. Unknown fields are refused, since a misspelled name would otherwise
    go unnoticed."""

    def __init__(self, call: Call, *names: str) -> None:
        self.fields = object_of(call.body)
        known = {"model", *names}
        for name in self.fields:
            if name not in known:
                raise Refusal(
                    f"unknown field {quote_value(name)}; the fields are {', '.join(sorted(known))}"
                )

    def get(self, name: str, wanted: type, default: Any) -> Any:
        value = optional(self.fields, name, wanted)
        if value is None and default is _REQUIRED:
            raise Refusal(f"{name} is required")
        return default if value is None else value

    def text(self, name: str = "text", default: Any = None) -> str:
        found: str = self.get(name, str, _REQUIRED if default is None else default)
        return found

    def texts(self, name: str = "texts") -> list[str]:
        found: list[str] = self.get(name, list, _REQUIRED)
        if len(found) > _MOST_TEXTS:
            raise Refusal(f"{name} has {len(found)} items; at most {_MOST_TEXTS} are allowed")
        for i, text in enumerate(found):
            if not isinstance(text, str):
                raise Refusal(f"{name}[{i}] must be a string, not {kind(text)}")
        return found

    def flags(self) -> Json:
        """Returns the keyword arguments for the encode methods."""
        return {
            "add_special": self.get("add_special", bool, True),
            "parse_special": self.get("parse_special", bool, False),
        }


_REQUIRED: Any = object()
_FLAGS = ("add_special", "parse_special")
# The arguments of Tokenizer.count_chat that choose how a conversation is rendered.
_RENDERING = {
    "tools": list,
    "like": str,
    "add_generation_prompt": bool,
    "continue_final_message": bool,
    "template": str,
    "enable_thinking": bool,
    "tool_choice": str,
    "parallel_tool_calls": bool,
    "response_format": dict,
    "reasoning_format": str,
    "reasoning_effort": str,
    "chat_template_kwargs": dict,
}


def encode(call: Call) -> object:
    body = _TypedBody(call, "texts", *_FLAGS)
    found = call.model().tok.encode_batch_arrays(body.texts(), **body.flags(), threads=1)
    ids, offsets = found[0], found[1].tolist()
    return {"ids": [ids[begin:end] for begin, end in pairwise(offsets)]}


def count(call: Call) -> object:
    body = _TypedBody(call, "texts", *_FLAGS)
    counts = call.model().tok.count_batch(body.texts(), **body.flags(), threads=1)
    return {"counts": counts, "total": sum(counts)}


def count_chat(call: Call) -> object:
    """Counts the tokens of a conversation, as Tokenizer.count_chat with the same arguments."""
    body = _TypedBody(call, "messages", "trusted", "user_defined", "image_tokens", *_RENDERING)
    tok, trusted = call.model().tok, body.get("trusted", bool, False)
    given = {name: body.get(name, wanted, None) for name, wanted in _RENDERING.items()}
    options = ChatOptions(**{**given, "like": given["like"] or "llama.cpp"})
    options.media_marker = media_marker()
    flags = flags_of(trusted, body.text("user_defined", "parse"))
    image_tokens = body.get("image_tokens", int, call.image_tokens)
    check_tokens(image_tokens)
    if (image_tokens or 0) > _MOST_IMAGE_TOKENS:
        raise Refusal(f"image_tokens is {image_tokens}; at most {_MOST_IMAGE_TOKENS} are allowed")
    rendering = api.ChatCall(
        tok._loaded,
        options,
        flags,
        chat_calls.TRUSTED if trusted else 0,
        keeps_template(call, tok, options.template),
    )
    n, n_media = rendering.run_one(body.get("messages", list, _REQUIRED), chat_calls.COUNT)
    answer = {"count": n + n_media * (image_tokens or 0), "context_length": tok.context_length}
    if n_media and image_tokens is None:
        answer["uncounted_parts"] = n_media
    return answer


def decode(call: Call) -> object:
    body = _TypedBody(call, "ids", "remove_special", "unparse_special", "clean_spaces")
    tok = call.model().tok
    given = body.get("ids", list, _REQUIRED)
    lists = [valid_ids(ids, f"ids[{i}]", tok) for i, ids in enumerate(given)]
    check_decoded_size(call, tok, lists)
    texts = tok.decode_batch(
        lists,
        remove_special=body.get("remove_special", bool, False),
        unparse_special=body.get("unparse_special", bool, True),
        clean_spaces=body.get("clean_spaces", bool, None),
    )
    return {"texts": texts}


def spans(call: Call) -> object:
    body = _TypedBody(call, "text", "unit", *_FLAGS)
    ids, found = call.model().tok.encode_with_offsets(
        body.text(), **body.flags(), unit=body.get("unit", str, "byte")
    )
    return {"ids": ids, "spans": bodies.rows(found)}


def truncate(call: Call) -> object:
    body = _TypedBody(call, "text", "n", "side", "add_special")
    tok, special = call.model().tok, body.get("add_special", bool, True)
    text = tok.truncate(
        body.text(),
        body.get("n", int, _REQUIRED),
        side=body.get("side", str, "right"),
        add_special=special,
    )
    return {"text": text, "n_tokens": tok.count(text, add_special=special)}


def chunks(call: Call) -> object:
    body = _TypedBody(call, "text", "n", "overlap", "prefix", "add_special", "at", "texts")
    tok, text, n = call.model().tok, body.text(), body.get("n", int, _REQUIRED)
    overlap, prefix = body.get("overlap", int, 0), body.text("prefix", "")
    repeated = overlap + (tok.count(prefix, add_special=False) if prefix else 0)
    if repeated > n - n // 4:
        raise Refusal(
            f"overlap and prefix have {repeated} tokens, and may have at most three quarters of "
            f"n, which is {n}; otherwise, there could be too many chunks"
        )
    most = _MOST_CHUNKS * max(n - repeated, 1)
    if len(text) > most and tok.count(text) > most:
        raise Refusal(
            f"the text has more than {most} tokens, so more than {_MOST_CHUNKS} chunks: choose a "
            "greater n, or send a part of the text"
        )
    at = body.get("at", list, [])
    if len(at) > _MOST_SEPARATORS:
        raise Refusal(f"at has {len(at)} separators; at most {_MOST_SEPARATORS} are allowed")
    found = tok.chunks(
        text,
        n,
        overlap=overlap,
        prefix=prefix,
        add_special=body.get("add_special", bool, True),
        at=at,
    )
    rows = [chunk._asdict() for chunk in found]
    if body.get("texts", bool, False):
        for row, chunk in zip(rows, found, strict=True):
            row["text"] = text[chunk.start : chunk.end]
    return {"chunks": rows}


def explain(call: Call) -> object:
    body = _TypedBody(call, "text", *_FLAGS)
    text, size = body.text(), len(body.text().encode())
    if size > _MOST_EXPLAINED:
        raise Refusal(
            f"the text has {size} bytes, and the server explains at most {_MOST_EXPLAINED}: send "
            "the part in question"
        )
    return _texts_as_bytes(asdict(call.model().tok.explain(text, **body.flags())))


def _texts_as_bytes(value: Any) -> Any:
    """Converts an explanation's texts that aren't UTF-8 to lists of bytes, as in /tokenize."""
    if isinstance(value, dict):
        return {name: _texts_as_bytes(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_texts_as_bytes(item) for item in value]
    if isinstance(value, str) and not value.isascii():
        data = value.encode("utf-8", "surrogateescape")
        return value if data.decode("utf-8", "replace") == value else list(data)
    return value


def doctor(call: Call) -> object:
    _TypedBody(call)
    served = call.model()
    if not served.source:
        raise Refusal(
            f"{served.name} is served from memory, and the doctor reads files",
            "not_supported_error",
        )
    memo = served.tok._loaded.memo
    if _DOCTOR not in memo:  # the checks of a large vocabulary take seconds
        try:
            memo[_DOCTOR] = [finding.as_dict() for finding in ggtok.doctor(served.source)]
        except GGTokError as e:
            raise unreadable(served, e) from e
    return {"findings": memo[_DOCTOR]}


def _endpoint(answer: Callable[[Call], object], light: bool = False) -> Endpoint:
    return Endpoint("POST", (f"/v1/ggtok/{answer.__name__}",), answer, light=light)


ENDPOINTS = (
    _endpoint(encode, light=True),
    _endpoint(count, light=True),
    _endpoint(count_chat),
    _endpoint(decode, light=True),
    _endpoint(spans, light=True),
    _endpoint(truncate, light=True),
    _endpoint(chunks),
    _endpoint(explain),
    _endpoint(doctor),
)
