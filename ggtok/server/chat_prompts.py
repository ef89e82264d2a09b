"""Renders the prompts of chat requests. cext/chat/ has the rules, and llama-server's refusals."""

from __future__ import annotations

import os
import secrets
from typing import Any

from ggtok import Tokenizer
from ggtok.chat import api, prompt_ids
from ggtok.chat.options import ChatOptions
from ggtok.errors import GGTokError
from ggtok.native import chat_calls
from ggtok.server.refusals import Refusal

CHAT, ANTHROPIC, RESPONSES = 0, chat_calls.ANTHROPIC, chat_calls.RESPONSES  # the API of a body


def prompt_of(tok: Tokenizer, body: Any) -> str:
    """Returns the prompt that /apply-template answers with. Raises Refusal."""
    text: str = _result_and_media(tok, body, chat_calls.TEXT, CHAT)[0]
    return text


def count_of(
    tok: Tokenizer,
    body: Any,
    image_tokens: int | None = None,
    kind: int = CHAT,
    bits: int = 0,
) -> tuple[int, int]:
    """Returns the number of tokens in the prompt, and the number of images, audio and video that it
    doesn't include; the latter is 0 if `image_tokens`, the number for each, isn't None. Raises
    Refusal."""
    n, n_media = _result_and_media(tok, body, chat_calls.COUNT, kind | bits)
    return (n, n_media) if image_tokens is None else (n + n_media * image_tokens, 0)


def ids_of(tok: Tokenizer, body: Any, kind: int, bits: int) -> tuple[list[int], int]:
    """Returns the prompt's ids, and the number of images, audio and video that they don't include.
    Raises Refusal."""
    return _result_and_media(tok, body, chat_calls.IDS, kind | bits)


def convert_body(body: Any, kind: int) -> Any:
    """Converts the body of another API to one of the chat API. Raises Refusal."""
    if kind == CHAT:
        return body
    made = chat_calls.convert(body, kind)
    if isinstance(made, chat_calls.FailedError):
        raise _refusal(made)
    return made


_RANDOM_MARKER = f"<__media_{secrets.token_hex(16)}__>"  # which no message contains


def media_marker() -> str:
    """Returns the text that represents an image in prompts: LLAMA_MEDIA_MARKER's value, else a
    random text."""
    return os.environ.get("LLAMA_MEDIA_MARKER") or _RANDOM_MARKER


def _result_and_media(tok: Tokenizer, body: Any, want: int, kind: int) -> tuple[Any, int]:
    """Returns the result for a body, and the number of its images, audio and video."""
    bits = chat_calls.TRUSTED | chat_calls.SERVER | kind
    try:
        call = api.ChatCall(
            tok._loaded, ChatOptions(media_marker=media_marker()), prompt_ids.PARSE, bits
        )
    except GGTokError as e:  # llama-server wouldn't start
        raise Refusal(str(e), "server_error") from e
    call.fields = None
    [found], n_media = call.raw([body if isinstance(body, dict) else {}], want)
    if isinstance(found, chat_calls.FailedError):
        raise _refusal(found)
    if isinstance(found, Exception):
        raise Refusal(str(call.public(found)), "server_error")
    return found, n_media


def _refusal(failed: chat_calls.FailedError) -> Refusal:
    status = "invalid_request_error" if chat_calls.is_bad_request(failed) else "server_error"
    return Refusal(str(chat_calls.error_of(failed)), status)
