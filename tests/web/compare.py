"""Compares a tokenizer in JavaScript with the library."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import ggtok
from ggtok.chat import api, media
from ggtok.inspect.parity.compare import special_of, words_of
from ggtok.inspect.parity.texts import texts as generated
from ggtok.native import chat_calls
from tests.chat.conversations import CONVERSATIONS, SETTINGS
from tests.chat.generate import Generator
from tests.support.patch import GGUF
from tests.web.hosts import JsError, Tokenizer

UNITS = ("byte", "char", "utf16")
# Options for encode: in JavaScript, and the same in Python.
ENCODE = (
    ({}, {}),
    ({"addSpecial": False}, {"add_special": False}),
    ({"parseSpecial": True}, {"parse_special": True}),
    (
        {"addSpecial": False, "parseSpecial": True, "continuation": True},
        {"add_special": False, "parse_special": True, "continuation": True},
    ),
)
# Options for decode, likewise.
DECODE = (
    ({}, {}),
    ({"removeSpecial": True}, {"remove_special": True}),
    ({"unparseSpecial": False}, {"unparse_special": False}),
    ({"cleanSpaces": True}, {"clean_spaces": True}),
    ({"cleanSpaces": False}, {"clean_spaces": False}),
)
NOW = datetime(2026, 7, 26, 12, 34, 56)
JS_NOW = {"$date": [2026, 6, 26, 12, 34, 56]}
FLAGS = ("add_bos", "add_eos", "add_sep", "add_space_prefix")
TYPES = ("undefined", "normal", "unknown", "control", "user_defined", "unused", "byte")
# The bit of TokenAttr for each token type.
_BITS = (0, 4, 1, 8, 16, 2, 32)


def texts(tok: ggtok.Tokenizer, n: int, seed: int = 1) -> list[bytes]:
    special = [tok.token_text(id) for id in special_of(tok)]
    return list(generated(seed, n, words_of(tok), special))


def attempt(call: Any, *args: Any, **options: Any) -> Any:
    """Returns the call's result, or None if ggtok raises an error."""
    with contextlib.suppress(ggtok.GGTokError):
        return call(*args, **options)


def _without_errors(answers: Sequence[Any]) -> list[Any]:
    """Returns the answers, with None for each error, which must be one of ggtok's."""
    for answer in answers:
        if isinstance(answer, JsError):
            assert answer.data["isGgtok"], answer.data
    return [None if isinstance(answer, JsError) else answer for answer in answers]


def compare_texts(tok: ggtok.Tokenizer, js: Tokenizer, some: Sequence[bytes]) -> int:
    """Compares ids, counts, spans, decoded text and bytes; returns the number of comparisons."""
    strings = [text.decode("utf-8", "replace") for text in some]
    compared = 0
    for theirs, ours in ENCODE:
        # Some vocabularies don't support continuation.
        ids = [attempt(tok.encode, text, **ours) for text in some]
        assert _without_errors(js.each("encode", [(text, theirs) for text in some])) == ids
        encodable = [text for text, found in zip(some, ids, strict=True) if found is not None]
        batch = js.encodeBatch(encodable, theirs)
        bounds = zip(batch["offsets"], batch["offsets"][1:], strict=False)
        split = [batch["ids"][begin:end] for begin, end in bounds]
        assert split == [found for found in ids if found is not None]
        counts = [None if found is None else len(found) for found in ids]
        assert _without_errors(js.each("count", [(text, theirs) for text in some])) == counts
        compared += 2 * len(some)
        for unit in UNITS:
            given: Sequence[Any] = strings if unit != "byte" else some
            expected = [attempt(_spans, tok, text, unit, ours) for text in given]
            found = js.each("spans", [(text, {**theirs, "unit": unit}) for text in given])
            assert _without_errors(found) == expected
            compared += len(some)
    ids = [tok.encode(text, parse_special=True) for text in some]
    ids += [[(i * 7919 + k) % tok.n_tokens for k in range(20)] for i in range(20)]
    for theirs, ours in DECODE:
        expected = [tok.decode_bytes(one, **ours) for one in ids]
        assert js.each("decodeBytes", [(one, theirs) for one in ids]) == expected
        expected = [tok.decode(one, **ours) for one in ids]
        assert js.each("decode", [(one, theirs) for one in ids]) == expected
        compared += 2 * len(ids)
    for i, text in enumerate(some):
        compared += compare_growth(tok, js, text, i)
    for one in ids[-25:]:
        for unparse in (True, False):
            # Python's decoder returns some parts of malformed text later, so only the joined texts
            # are compared.
            stream = tok.stream_decoder(unparse_special=unparse)
            expected = "".join([*map(stream.feed, one), stream.finish()])
            found = js.stream(one, unparseSpecial=unparse)
            assert len(found) == len(one) + 1
            assert "".join(found) == expected
            compared += len(found)
    return compared


def compare_growth(tok: ggtok.Tokenizer, js: Tokenizer, text: bytes, seed: int) -> int:
    """Compares a text that grows by random parts, as bytes and as a string; returns the number of
    comparisons."""
    rng = random.Random(seed)
    string = text.decode("utf-8", "replace")
    given: bytes | str
    for given in (text, string):
        cuts = sorted(rng.randrange(len(given) + 1) for _ in range(rng.randrange(6)))
        parts = [given[a:b] for a, b in pairwise([0, *cuts, len(given)])]
        stream = tok.stream_encoder(parse_special=True)
        n = sum(len(stream.feed(part)) for part in parts)
        found = js.grow(parts, parseSpecial=True)
        assert found["n"] == n, (given, cuts)
        assert found["whole"] == tok.encode(given, parse_special=True), (given, cuts)
        for part, ids in zip((*cuts, len(given)), found["after"], strict=True):
            assert ids == tok.encode(given[:part], parse_special=True), (given, part)
    return 2


def _spans(tok: ggtok.Tokenizer, text: Any, unit: Any, options: dict[str, Any]) -> dict[str, Any]:
    ids, spans = tok.encode_with_offsets(text, unit=unit, **options)
    return {"ids": ids, "starts": spans[:, 0].tolist(), "ends": spans[:, 1].tolist()}


def compare_vocabulary(tok: ggtok.Tokenizer, js: Tokenizer) -> int:
    """Compares the facts about the vocabulary and each token; returns the number of tokens."""
    info, n = js.info, tok.n_tokens
    assert info["type"] == tok.vocab_type.lower()
    assert (info["model"], info["pre"], info["tokens"]) == (tok.model, tok.pre, n)
    for name in FLAGS:
        words = name.split("_")
        assert info[words[0] + "".join(map(str.title, words[1:]))] == getattr(tok, name), name
    assert info["special"] == {name: getattr(tok, f"{name}_id") for name in info["special"]}
    assert len(info["special"]) == 15
    assert info["eog"] == sorted(tok.eog_ids)
    assert info["suppress"] == list(tok.suppress_tokens)
    assert info["name"] == tok.metadata.get("general.name")
    found = js.pieces()
    offsets = found["offsets"]
    cut = [found["bytes"][a:b] for a, b in pairwise(offsets)]
    assert cut == [tok.token_to_piece(id) for id in range(n)]
    types = [_type(int(tok.token_attr(id))) for id in range(n)]
    assert list(found["types"]) == types
    scores = [tok.token_score(id) for id in range(n)]
    assert _floats(found["scores"]) == _floats(scores)
    some = [(id,) for id in range(0, n, n // 200 + 1)]
    assert js.each("piece", some) == [cut[id] for (id,) in some]
    plain = [tok.token_to_piece(id, special=False) for (id,) in some]
    assert js.each("piece", [(id, {"special": False}) for (id,) in some]) == plain
    stored = [tok.token_text(id) for (id,) in some]
    assert js.each("tokenBytes", some) == stored
    assert js.each("token", some) == [text.decode("utf-8", "replace") for text in stored]
    assert js.each("type", some) == [TYPES[types[id]] for (id,) in some]
    assert _floats(js.each("score", some)) == _floats([scores[id] for (id,) in some])
    wanted = [*stored, b"", b"no such token \xff"]
    assert js.each("find", [(text,) for text in wanted]) == [tok.text_to_token(t) for t in wanted]
    return n


def _type(attr: int) -> int:
    return next((i for i, bit in enumerate(_BITS) if attr & bit), 0)


def compare_file(tok: ggtok.Tokenizer, js: Tokenizer, path: Path) -> None:
    """Compares keys, values and merges with an independent reader's."""
    gguf = GGUF.read(path)
    entries = js.metadata({"items": 1 << 31})
    assert [entry["key"].encode() for entry in entries] == list(gguf.raw)
    for entry in entries:
        value, found = gguf.get(entry["key"]), entry["value"]
        if entry["type"] == "array":
            assert entry["length"] == len(found)
        else:
            value, found = [value], [found]
        kind = entry.get("elementType", entry["type"])
        if kind.startswith("f"):
            assert _floats(found) == _floats(value), entry["key"]
        else:
            assert found == [_text(item) for item in value], entry["key"]
    assert [len(e["value"]) for e in js.metadata() if e["type"] == "array"] == [
        min(8, e["length"]) for e in entries if e["type"] == "array"
    ]
    merges = gguf.get("tokenizer.ggml.merges") if b"tokenizer.ggml.merges" in gguf.raw else []
    expected = []
    for merge in merges:
        at = merge.find(b" ", 1)
        left, right = merge[:at], merge[at + 1 :]
        parts = (left, right, left + right)
        expected += [-1] * 3 if at < 0 else [_id(tok, part) for part in parts]
    assert js.merges() == expected
    assert js.templates() == tok.chat_templates


def _floats(values: Sequence[Any]) -> list[str]:
    """Returns floats in a comparable form: NaN equals itself, and -0.0 isn't 0.0."""
    return [repr(float(value)) for value in values]


def _text(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _id(tok: ggtok.Tokenizer, text: bytes) -> int:
    id = tok.text_to_token(text)
    return -1 if id is None else id


# ---- chat ----


def compare_bodies(
    tok: ggtok.Tokenizer, js: Tokenizer, template: str, n: int, seed: int
) -> tuple[int, int]:
    """Compares random bodies of requests to llama-server; returns how many were rendered, and how
    many were rejected."""
    generator = Generator(seed)
    bodies = [generator.body() for _ in range(n)]

    def both(body: Any) -> Any:
        wanted = (chat_calls.TEXT, chat_calls.IDS)
        given: Any = {"template": template, "clock": lambda: NOW}
        return tuple(api.run_body(tok._loaded, body, want, **given) for want in wanted)

    expected = [attempt(both, body) for body in bodies]
    options = {"template": template, "now": JS_NOW}
    answers = _without_errors(
        js.each("encodeChat", [(json.dumps(body), options) for body in bodies])
    )
    for body, ours_, theirs in zip(bodies, expected, answers, strict=True):
        found = None if theirs is None else (theirs["text"], theirs["ids"])
        assert found == ours_, json.dumps(body)
        if theirs is not None:
            assert theirs["uncountedParts"] == len(media.parts_of(body["messages"]))
    refused = expected.count(None)
    return n - refused, refused


def compare_transformers(tok: ggtok.Tokenizer, js: Tokenizer, template: str) -> tuple[int, int]:
    """Compares conversations rendered as in transformers; returns how many were rendered, and how
    many were rejected."""
    requests, expected = [], []
    for messages in CONVERSATIONS.values():
        for tools, variables in SETTINGS.values():
            for end in (
                {"add_generation_prompt": True},
                {"continue_final_message": True},
                {"continue_final_message": "reasoning_content"},
                {},
            ):
                arguments = {
                    "like": "transformers",
                    "template": template,
                    "tools": tools,
                    "chat_template_kwargs": variables,
                    "clock": lambda: NOW,
                    "add_generation_prompt": False,
                    **end,
                }
                expected.append(attempt(_both, tok, messages, arguments))
                requests.append(
                    {
                        "messages": messages,
                        "tools": tools,
                        "chat_template_kwargs": variables,
                        **end,
                    }
                )
    options = {"template": template, "now": JS_NOW, "like": "transformers"}
    # Send JSON text, which distinguishes 1.0 from 1.
    answers = _without_errors(js.each("encodeChat", [(json.dumps(r), options) for r in requests]))
    for request, ours, theirs in zip(requests, expected, answers, strict=True):
        found = None if theirs is None else (theirs["text"], theirs["ids"])
        assert found == ours, json.dumps(request)
    refused = expected.count(None)
    return len(requests) - refused, refused


def _both(tok: ggtok.Tokenizer, messages: Any, arguments: dict[str, Any]) -> Any:
    text = tok.apply_chat_template(messages, **arguments)
    return text, tok.encode_chat(messages, **arguments)
