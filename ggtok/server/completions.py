"""Counts the tokens in the prompts of completion requests, which an upstream server answers.

A prompt too long for the model's context is refused with the API's own wording, which its clients
recognize.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any, NamedTuple

from ggtok import Tokenizer
from ggtok.native import chat_calls
from ggtok.server import ollama
from ggtok.server.bodies import Pairs
from ggtok.server.chat_prompts import ANTHROPIC, CHAT, RESPONSES, convert_body, count_of, ids_of
from ggtok.server.fields import anything, flag, kind, text_field
from ggtok.server.llama_server import mixed_ids
from ggtok.server.refusals import ErrorBody, Refusal, llama_server


class Prompts(NamedTuple):
    """The numbers of tokens in a request's longest prompt, and in all of its prompts. `ids` are
    those of the only prompt, if they were wanted and it has no images, audio or video."""

    longest: int
    total: int
    ids: array[int] | None = None


Measure = Callable[[Tokenizer, Any, "int | None", bool], Prompts]


class Completion(NamedTuple):
    """A path that answers with completions.

    Attributes:
        measure: counts the prompts' tokens, given the tokenizer, the body, the number of tokens in
            an image or None, and whether the ids are wanted. Raises Refusal or GGTokError if it
            can't.
        errors: creates the body for a refusal.
        too_long: creates the refusal for a long prompt, given the number of its tokens, the limit
            and `field`.
        field: the body's field that contains the prompt.
        texts: returns the parts of a body that `measure` counts.
        num_ctx: whether the body may ask for a context length, as in Ollama's API.
    """

    measure: Measure
    errors: ErrorBody
    too_long: Callable[[int, int, str], Refusal]
    field: str
    texts: Callable[[Any], Any]
    num_ctx: bool = False


# ---- counting ----


def longest_possible(
    completion: Completion, tok: Tokenizer, body: Any, everything: Any, found: Prompts
) -> int:
    """Returns an upper limit for the tokens of a request's longest prompt.

    Besides the fields that ggtok counts, the upstream server may put any other text of the body
    into the prompt: Ollama has fields that others lack, and ignores the case of names. So all
    other texts and ids count as well.

    Args:
        body: the request's body.
        everything: the same, from `bodies.parse_all`.
        found: the prompts as `completion.measure` counts them.
    """
    counted = _count_texts(tok, completion.texts(body))
    others = _count_texts(tok, everything) - counted
    # A template of the upstream server's own may use texts that the file's template leaves out.
    one = max(found.longest, counted) if found.longest == found.total else found.longest
    return one + max(others, 0)


def _count_texts(tok: Tokenizer, value: Any) -> int:
    """Counts the tokens of all texts and ids in a value, except images, audio and video."""
    texts: list[str] = []
    ids = 0
    left = [value]
    while left:
        value = left.pop()
        if isinstance(value, str):
            texts.append(value)
        elif isinstance(value, (dict, Pairs)):
            kind = dict(value).get("type")
            binary = _BINARY.get(kind) if isinstance(kind, str) else None
            for name, item in value.items() if isinstance(value, dict) else value:
                short = isinstance(item, str) and len(item) <= _SHORT and name in _NO_TEXTS
                if name not in ("images", binary) and not short:
                    left.append(item)
        elif isinstance(value, list):
            left += [item for item in value if isinstance(item, (str, dict, list))]
            ids += sum(isinstance(item, int) for item in value)
    return ids + sum(tok.count_batch(texts, add_special=False, parse_special=True, threads=1))


# Fields whose short texts choose something, and aren't in prompts unless the template says so.
_NO_TEXTS = {
    *("model", "role", "type", "id", "name", "status", "detail", "format", "keep_alive", "user"),
    *("call_id", "tool_call_id", "tool_choice", "reasoning_effort", "effort", "service_tier"),
}
_SHORT = 64  # characters
# The field of a part with data that isn't text, by the part's type.
_BINARY = {
    "image_url": "image_url",
    "input_image": "image_url",
    "input_audio": "input_audio",
    "input_video": "input_video",
    "video_url": "video_url",
    "image": "source",
}


def _chat(api: int) -> Measure:
    def count(tok: Tokenizer, body: Any, image_tokens: int | None, want_ids: bool) -> Prompts:
        skips = chat_calls.SKIP_MEDIA if image_tokens is None else chat_calls.SKIP_UNKNOWN
        if want_ids:
            ids, n_media = ids_of(tok, body, api, skips)
            n = len(ids) + n_media * (image_tokens or 0)
            return Prompts(n, n, None if n_media else array("i", ids))
        n, _ = count_of(tok, body, image_tokens, api, skips)
        return Prompts(n, n)

    return count


def _count_prompts(tok: Tokenizer, body: Any, image_tokens: int | None, want_ids: bool) -> Prompts:
    """Counts the tokens in the prompts for /completions, which are interpreted as by llama-server:
    a text, an array of prompts, or an array of ids and texts that form one prompt."""
    prompt = anything(body, "prompt")
    several = isinstance(prompt, list) and not any(
        isinstance(part, int) and not isinstance(part, bool) for part in prompt
    )
    prompts = prompt if several else [prompt]
    if want_ids and len(prompts) == 1 and not isinstance(prompts[0], dict):
        ids = array("i", mixed_ids(tok, prompts[0], add_special=True, parse_special=True))
        return Prompts(len(ids), len(ids), ids)
    counts = [_count_one(tok, one) for one in prompts]
    return Prompts(max(counts, default=0), sum(counts))


def _count_one(tok: Tokenizer, prompt: Any) -> int:
    if isinstance(prompt, dict):  # a prompt with images
        prompt = prompt.get("prompt_string")
    if isinstance(prompt, str):
        return tok.count(prompt, parse_special=True)
    return len(mixed_ids(tok, prompt, add_special=True, parse_special=True))


def _ollama_prompt(tok: Tokenizer, body: Any, image_tokens: int | None, want_ids: bool) -> Prompts:
    """Counts the tokens in the prompt for Ollama's /api/generate."""
    prompt = anything(body, "prompt", "")
    if not isinstance(prompt, str):
        raise Refusal(f"prompt must be a string, not {kind(prompt)}")
    if flag(body, "raw"):
        return _count_prompts(tok, {"prompt": prompt}, None, want_ids)
    messages = [{"role": "user", "content": prompt}]
    if text_field(body, "system"):
        messages.insert(0, {"role": "system", "content": text_field(body, "system")})
    return _chat(CHAT)(tok, {"messages": messages}, image_tokens, want_ids)


def _chat_texts(api: int) -> Callable[[Any], Any]:
    def texts(body: Any) -> Any:
        request = convert_body(body, api)
        names = ("reasoning_content", "tool_calls")
        messages = anything(request, "messages", [])
        return [
            anything(request, "tools"),
            [_content_texts(m) for m in messages],
            [[anything(m, name) for name in names] for m in messages],
        ]

    return texts


def _content_texts(message: Any) -> Any:
    """Returns a message's content, without parts that aren't text."""
    content = anything(message, "content")
    if not isinstance(content, list):
        return content
    return [part for part in content if text_field(part, "type") == "text"]


def _field_texts(*names: str) -> Callable[[Any], Any]:
    return lambda body: [anything(body, name) for name in names]


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


def _chat_api(
    api: int,
    errors: ErrorBody,
    too_long: Callable[[int, int, str], Refusal],
    field: str = "messages",
    num_ctx: bool = False,
) -> Completion:
    return Completion(_chat(api), errors, too_long, field, _chat_texts(api), num_ctx)


_CHAT = _chat_api(CHAT, llama_server, _openai_too_long)
_RESPONSES = _chat_api(RESPONSES, llama_server, _openai_too_long, "input")
_TEXT = Completion(_count_prompts, llama_server, _openai_too_long, "prompt", _field_texts("prompt"))
_ANTHROPIC = _chat_api(ANTHROPIC, anthropic_error, _anthropic_too_long)
_OLLAMA_CHAT = _chat_api(CHAT, ollama.error_body, _ollama_too_long, num_ctx=True)
_OLLAMA_TEXT = Completion(
    _ollama_prompt,
    ollama.error_body,
    _ollama_too_long,
    "prompt",
    _field_texts("prompt", "system"),
    num_ctx=True,
)

COMPLETIONS = {
    "/v1/chat/completions": _CHAT,
    "/chat/completions": _CHAT,
    "/api/v0/chat/completions": _CHAT,
    "/api/v0/completions": _TEXT,
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
    if path.startswith("/api/") and not path.startswith("/api/v0/"):
        return ollama.error_body
    return anthropic_error if path.startswith("/v1/messages") else llama_server
