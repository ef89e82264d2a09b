"""Counts the tokens in the prompts of completion requests, which an upstream server answers.

A prompt too long for the model's context is refused with the API's own wording, which its clients
recognize.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ggtok import Tokenizer
from ggtok.native import chat
from ggtok.server import ollama
from ggtok.server.chat import ANTHROPIC, CHAT, RESPONSES, count_of
from ggtok.server.errors import ErrorBody, Refusal, llama_server
from ggtok.server.fields import anything, flag, kind, text
from ggtok.server.llama_server import mixed_ids


class Prompts(NamedTuple):
    """The numbers of tokens in a request's longest prompt, and in all of its prompts."""

    longest: int
    total: int


Measure = Callable[[Tokenizer, Any, "int | None"], Prompts]


class Completion(NamedTuple):
    """A path that answers with completions.

    Attributes:
        measure: counts the prompts' tokens, given the tokenizer, the body, and the number of
            tokens in an image or None. Raises Refusal or GGTokError if it can't.
        errors: creates the body for a refusal.
        too_long: creates the refusal for a long prompt, given the number of its tokens, the limit
            and `field`.
        field: the body's field that contains the prompt.
    """

    measure: Measure
    errors: ErrorBody
    too_long: Callable[[int, int, str], Refusal]
    field: str


# ---- counting ----


def _chat(api: int) -> Measure:
    def count(tok: Tokenizer, body: Any, image_tokens: int | None) -> Prompts:
        skips = chat.SKIP_MEDIA if image_tokens is None else chat.SKIP_UNKNOWN
        n, _ = count_of(tok, body, image_tokens, api, skips)
        return Prompts(n, n)

    return count


def _texts(tok: Tokenizer, body: Any, image_tokens: int | None) -> Prompts:
    """Counts the tokens in the prompts for /completions, which are interpreted as by llama-server:
    a text, an array of prompts, or an array of ids and texts that form one prompt."""
    prompt = anything(body, "prompt")
    several = isinstance(prompt, list) and not any(
        isinstance(part, int) and not isinstance(part, bool) for part in prompt
    )
    counts = [_count_one(tok, one) for one in (prompt if several else [prompt])]
    return Prompts(max(counts, default=0), sum(counts))


def _count_one(tok: Tokenizer, prompt: Any) -> int:
    if isinstance(prompt, dict):  # a prompt with images
        prompt = prompt.get("prompt_string")
    if isinstance(prompt, str):
        return tok.count(prompt, parse_special=True)
    return len(mixed_ids(tok, prompt, add_special=True, parse_special=True))


def _ollama_prompt(tok: Tokenizer, body: Any, image_tokens: int | None) -> Prompts:
    """Counts the tokens in the prompt for Ollama's /api/generate."""
    prompt = anything(body, "prompt", "")
    if not isinstance(prompt, str):
        raise Refusal(f"prompt must be a string, not {kind(prompt)}")
    if flag(body, "raw"):
        n = tok.count(prompt, parse_special=True)
        return Prompts(n, n)
    messages = [{"role": "user", "content": prompt}]
    if text(body, "system"):
        messages.insert(0, {"role": "system", "content": text(body, "system")})
    return _chat(CHAT)(tok, {"messages": messages}, image_tokens)


# ---- refusing ----


def anthropic_error(refusal: Refusal) -> dict[str, Any]:
    kind = "api_error" if refusal.status >= 500 else refusal.type
    return {"type": "error", "error": {"type": kind, "message": refusal.message}}


def _openai_too_long(n: int, most: int, field: str) -> Refusal:
    refusal = Refusal(
        f"This model's maximum context length is {most} tokens. However, your {field} resulted in "
        f"{n} tokens, and the answer needs room too. Please reduce the length of the {field}."
    )
    refusal.body = lambda refusal: {
        "error": {
            "message": refusal.message,
            "type": refusal.type,
            "param": field,
            "code": "context_length_exceeded",
        }
    }
    return refusal


def _anthropic_too_long(n: int, most: int, field: str) -> Refusal:
    return Refusal(f"prompt is too long: {n} tokens > {most} maximum")


def _ollama_too_long(n: int, most: int, field: str) -> Refusal:
    return Refusal(f"the {field} has {n} tokens, and the context has only {most}")


# ---- the table ----


def _openai(count: Measure, field: str) -> Completion:
    return Completion(count, llama_server, _openai_too_long, field)


_CHAT = _openai(_chat(CHAT), "messages")
_RESPONSES = _openai(_chat(RESPONSES), "input")
_TEXT = _openai(_texts, "prompt")
_ANTHROPIC = Completion(_chat(ANTHROPIC), anthropic_error, _anthropic_too_long, "messages")
_OLLAMA_CHAT = Completion(_chat(CHAT), ollama.error_body, _ollama_too_long, "messages")
_OLLAMA_TEXT = Completion(_ollama_prompt, ollama.error_body, _ollama_too_long, "prompt")

COMPLETIONS = {
    "/v1/chat/completions": _CHAT,
    "/chat/completions": _CHAT,
    "/v1/responses": _RESPONSES,
    "/responses": _RESPONSES,
    "/v1/completions": _TEXT,
    "/completions": _TEXT,
    "/completion": _TEXT,
    "/v1/messages": _ANTHROPIC,
    "/api/chat": _OLLAMA_CHAT,
    "/api/generate": _OLLAMA_TEXT,
}


def errors_of(path: str) -> ErrorBody:
    """Returns the function that creates error bodies which this path's clients understand."""
    if path.startswith("/api/"):
        return ollama.error_body
    return anthropic_error if path.startswith("/v1/messages") else llama_server
