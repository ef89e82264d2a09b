"""The endpoints of tabbyAPI that tokenize."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from ggtok import Tokenizer
from ggtok.server import bodies, model_facts
from ggtok.server.decoded import check_decoded_size
from ggtok.server.endpoints import Call, Endpoint
from ggtok.server.fields import anything, kind, object_of, optional, text_field, truth, valid_ids
from ggtok.server.refusals import NotReady, Refusal
from ggtok.server.vllm import render_prompt

# The fields of a message that templates see.
_MESSAGE = ("content", "reasoning_content", "tool_calls", "tool_call_id")


def encode(call: Call) -> object:
    body = object_of(call.body)
    given = body.get("text")
    tok = call.model().tok
    if isinstance(given, list):
        if not call.wait:
            raise NotReady  # rendering a template may take long
        prompt = _prompt(call, tok, body, given)
    elif isinstance(given, str):
        prompt = given
    else:
        raise Refusal(f"text must be a string or an array of messages, not {kind(given)}")
    ids = tok.encode(
        prompt, add_special=False, parse_special=truth(body, "encode_special_tokens", True)
    )
    # tabbyAPI adds BOS even if the vocabulary doesn't ask for it.
    if truth(body, "add_bos_token", True) and tok.bos_id is not None:
        ids.insert(0, tok.bos_id)
    return {"tokens": ids, "length": len(ids)}


def _prompt(call: Call, tok: Tokenizer, body: dict[str, Any], messages: list[Any]) -> str:
    """Returns the prompt of messages, without the start of an answer, and without BOS."""
    tool_calls = [each for message in messages for each in _tool_calls(message)]
    bodies.check_parts([_arguments(each).encode() for each in tool_calls])
    name = "template_vars" if "template_vars" in body else "chat_template_kwargs"
    prompt = render_prompt(
        call,
        tok,
        [_message(message) for message in messages],
        add_generation_prompt=False,
        chat_template_kwargs=optional(body, name, dict),
    )
    return prompt.removeprefix(model_facts.piece(tok, tok.bos_id) or "")


def _message(message: Any) -> dict[str, Any]:
    """Converts a message to the form in which tabbyAPI passes it to templates: the text of its
    parts as one text, and the arguments of tool calls as objects."""
    if not isinstance(message, dict):
        raise Refusal(f"a message must be an object, not {kind(message)}")
    made = {name: message[name] for name in _MESSAGE if message.get(name) is not None}
    made["role"] = text_field(message, "role", "user")
    if isinstance(made.get("content"), list):
        parts = [part for part in made["content"] if text_field(part, "type", "text") == "text"]
        made["content"] = "".join(text_field(part, "text") for part in parts)
    if _tool_calls(message):
        made["tool_calls"] = [_parse_arguments(tool_call) for tool_call in _tool_calls(message)]
    return made


def _tool_calls(message: Any) -> list[Any]:
    calls = anything(message, "tool_calls")
    return calls if isinstance(calls, list) else []


def _arguments(tool_call: Any) -> str:
    return text_field(anything(tool_call, "function"), "arguments")


def _parse_arguments(tool_call: Any) -> Any:
    """Returns a tool call with its arguments as an object, if they are JSON."""
    with suppress(Refusal):
        arguments = bodies.parse_body(_arguments(tool_call).encode())
        return {**tool_call, "function": {**tool_call["function"], "arguments": arguments}}
    return tool_call


def decode(call: Call) -> object:
    body = object_of(call.body)
    tok = call.model().tok
    ids = valid_ids(body.get("tokens"), "tokens", tok)
    check_decoded_size(call, tok, [ids])
    special = truth(body, "decode_special_tokens", True)
    return {"text": tok.decode(ids, unparse_special=special)}


ENDPOINTS = (
    Endpoint("POST", ("/v1/token/encode",), encode, light=True),
    Endpoint("POST", ("/v1/token/decode",), decode, light=True),
)
