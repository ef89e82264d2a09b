"""The endpoints of llama-server, build b11549.

vLLM, too, has /tokenize and /detokenize: a body with ``prompt`` or ``messages`` gets vLLM's answer
(:mod:`ggtok.server.vllm`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ggtok import Tokenizer
from ggtok.server import model_facts, vllm
from ggtok.server.chat_prompts import ANTHROPIC, CHAT, RESPONSES, count_of, prompt_of
from ggtok.server.decoded import check_decoded_size
from ggtok.server.endpoints import Call, Endpoint
from ggtok.server.fields import flag, has, kind, token_id, token_ids
from ggtok.server.refusals import Refusal


def health(call: Call) -> object:
    return {"status": "ok"}


def tokenize(call: Call) -> object:
    body = call.body
    if not has(body, "content"):
        if has(body, "prompt") or has(body, "messages"):
            return vllm.tokenize(call)
        return {"tokens": [], "count": 0}
    tok = call.model().tok
    special, parse = flag(body, "add_special"), flag(body, "parse_special", True)
    content, with_pieces = body["content"], flag(body, "with_pieces")
    if isinstance(content, str) and not with_pieces:
        # An array takes half as long as a list, mostly because it is faster to write as JSON.
        array = tok.encode_array(content, add_special=special, parse_special=parse)
        return {"tokens": array, "count": len(array)}
    ids = mixed_ids(tok, content, add_special=special, parse_special=parse)
    tokens: object = ids
    if with_pieces:
        rows = {id: {"id": id, "piece": _piece(tok, id)} for id in set(ids)}
        tokens = [rows[id] for id in ids]  # tokens share their rows, to save memory
    return {"tokens": tokens, "count": len(ids)}


def detokenize(call: Call) -> object:
    """Decodes ids. This is also vLLM's endpoint, whose answer calls the text `prompt`."""
    text = ""
    if has(call.body, "tokens"):
        text = joined_pieces(call, call.model().tok, token_ids(call.body["tokens"], "tokens"), 2)
    return {"content": text, "prompt": text}


def mixed_ids(tok: Tokenizer, content: Any, *, add_special: bool, parse_special: bool) -> list[int]:
    """Encodes a text, or an array of texts and ids.

    BOS and EOS are added only to the first item, if it is a text.
    """
    if isinstance(content, str):
        return tok.encode(content, add_special=add_special, parse_special=parse_special)
    if not isinstance(content, list):
        raise Refusal(
            f"content must be a string or an array of strings and ids, not {kind(content)}"
        )
    ids: list[int] = []
    for i, part in enumerate(content):
        if isinstance(part, str):
            special = add_special and not i
            ids += tok.encode(part, add_special=special, parse_special=parse_special)
        else:
            ids.append(token_id(part))
    return ids


def joined_pieces(
    call: Call, tok: Tokenizer, ids: list[int], copies: int = 1, special: bool = True
) -> str:
    """Decodes ids for an answer that contains the text `copies` times. Without `special`, control
    tokens have no text."""
    check_ids(tok, ids)
    check_decoded_size(call, tok, [ids], copies)
    return tok.decode(ids, clean_spaces=False, unparse_special=special)


def check_ids(tok: Tokenizer, ids: list[int]) -> None:
    """Raises Refusal if any of the ids is outside the vocabulary."""
    if ids and not 0 <= min(ids) <= max(ids) < tok.n_tokens:
        wrong = next(id for id in ids if not 0 <= id < tok.n_tokens)
        raise Refusal(f"no token {wrong}: the ids are 0 to {tok.n_tokens - 1}", "server_error")


def _piece(tok: Tokenizer, id: int) -> object:
    """Returns a token's piece as text, or as a list of bytes if it isn't UTF-8."""
    check_ids(tok, [id])
    piece = tok.token_to_piece(id)
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return list(piece)


def apply_template(call: Call) -> object:
    return {"prompt": prompt_of(call.model().tok, call.body)}


def counter(api: int, openai: bool) -> Callable[[Call], object]:
    """Returns the function for an endpoint that counts the tokens of a prompt of this API."""

    def count(call: Call) -> object:
        n, uncounted = count_of(call.model().tok, call.body, call.image_tokens, api)
        answer: dict[str, object] = {"input_tokens": n}
        if openai:
            answer["object"] = "response.input_tokens"
        if uncounted:
            answer["uncounted_parts"] = uncounted
        return answer

    return count


def models(call: Call, upstream: Any = None) -> dict[str, Any]:
    """Lists the models. If there is only one model, loads it for that; otherwise, loads none.

    Args:
        upstream: the list of the server to which other requests go. Its models precede ours.
    """
    registry = call.registry
    registry.require_scan(call.ready)
    # The upstream server has the names that the alias * stands for.
    offered = registry.offered(any_name=upstream is None)
    rows = []
    for model in offered:
        served = None
        if model.tok is not None or len(registry.models) == 1:
            with suppress(Refusal):
                served = registry.get(model.name, call.ready)
        rows.append(model_facts.model_row(model, served))
    answer = {
        "models": [model_facts.details(model) for model in offered],
        "object": "list",
        "data": rows,
    }
    return answer if upstream is None else model_facts.merge_model_lists(answer, upstream)


def props(call: Call) -> object:
    return model_facts.props(call.model())


MODELS = Endpoint("GET", ("/v1/models", "/models"), models)
ENDPOINTS = (
    Endpoint("GET", ("/health", "/v1/health"), health, light=True, public=True),
    Endpoint("POST", ("/tokenize",), tokenize, light=True),
    Endpoint("POST", ("/detokenize",), detokenize, light=True),
    Endpoint("POST", ("/apply-template",), apply_template),
    Endpoint(
        "POST",
        ("/v1/chat/completions/input_tokens", "/chat/completions/input_tokens"),
        counter(CHAT, openai=True),
    ),
    Endpoint(
        "POST",
        ("/v1/responses/input_tokens", "/responses/input_tokens"),
        counter(RESPONSES, openai=True),
    ),
    Endpoint("POST", ("/v1/messages/count_tokens",), counter(ANTHROPIC, openai=False)),
    MODELS,
    Endpoint("GET", ("/props",), props),
)
