"""The constants from cext/python/chat.h, for ``Native.chat``, and the errors of chat requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ggtok.base.escape import printable
from ggtok.errors import (
    GGTokError,
    InvalidTypeError,
    InvalidValueError,
    OutOfMemoryError,
    TemplateError,
    VocabError,
)
from ggtok.native.library import lib

# Values of `want`: what Native.chat returns for each conversation.
IDS: int = lib.GGTOK_CHAT_IDS
COUNT: int = lib.GGTOK_CHAT_COUNT
TEXT: int = lib.GGTOK_CHAT_TEXT
PROMPT: int = lib.GGTOK_CHAT_PROMPT
VARIABLES: int = lib.GGTOK_CHAT_VARIABLES

# Flags that control how requests are read, rendered and encoded.
TRUSTED: int = lib.GGTOK_CHAT_TRUSTED
NO_PREFILL: int = lib.GGTOK_CHAT_NO_PREFILL
ALLOW_EMPTY: int = lib.GGTOK_CHAT_ALLOW_EMPTY
BEFORE_MORE: int = lib.GGTOK_CHAT_BEFORE_MORE
KEEP_ENDS: int = lib.GGTOK_CHAT_KEEP_ENDS
SERVER: int = lib.GGTOK_CHAT_SERVER
ANTHROPIC: int = lib.GGTOK_CHAT_ANTHROPIC
RESPONSES: int = lib.GGTOK_CHAT_RESPONSES
SKIP_UNKNOWN: int = lib.GGTOK_CHAT_SKIP_UNKNOWN
SKIP_MEDIA: int = lib.GGTOK_CHAT_SKIP_MEDIA
UNTRACKED: int = lib.GGTOK_CHAT_UNTRACKED

LIKES = {"llama.cpp": 0, "transformers": 1}  # ggtok_chat_like

_WRONG_TYPE: int = lib.CHAT_WRONG_TYPE
_BAD_REQUEST: int = lib.CHAT_BAD_REQUEST


class FailedError(Exception):
    """Raised by the C functions, with (status, message, line number or None, text of that line,
    fault, path of the field at fault)."""


def error_of(failed: FailedError) -> GGTokError:
    """Returns the public exception."""
    status, message, line, source, fault, key = failed.args
    message = printable(message)
    if status == lib.GGTOK_ERR_MEMORY:
        return OutOfMemoryError(message)
    if status == lib.GGTOK_ERR_TEMPLATE:
        return TemplateError(f"{message}, in: {source}" if source else message, line)
    if status == lib.GGTOK_ERR_VOCAB:
        return VocabError(message)
    error = InvalidTypeError(message) if fault & _WRONG_TYPE else InvalidValueError(message)
    error.key = key or None
    return error


def is_memory_error(failed: FailedError) -> bool:
    return bool(failed.args[0] == lib.GGTOK_ERR_MEMORY)


def is_bad_request(failed: FailedError) -> bool:
    """Whether llama-server answers the request with status 400, not 500."""
    return bool(failed.args[4] & _BAD_REQUEST)


def plain(value: Any) -> Any:
    """Converts an object of a request to an exact dict, list or tuple; NotImplemented if it is
    neither a mapping nor a sequence."""
    fields = mapping(value)
    if fields is not None:
        return dict(fields.items())
    if isinstance(value, (list, tuple)):
        return list(value) if isinstance(value, list) else tuple(value)
    return NotImplemented


def mapping(value: Any) -> Mapping[str, Any] | None:
    """Returns a mapping unchanged, the mapping from an object's model_dump(), or None for others.

    model_dump() returns all fields, so the fields that are None are dropped, except the content.
    """
    if isinstance(value, (dict, Mapping)):
        return value
    if isinstance(value, type) or not callable(getattr(value, "model_dump", None)):
        return None
    fields = value.model_dump()
    if not isinstance(fields, Mapping):
        return None
    return {k: v for k, v in fields.items() if v is not None or k == "content"}


_functions: list[Any] = []
if not lib.ggtok_chat_bind(id(_functions), id(plain)):
    raise OutOfMemoryError("out of memory")  # pragma: no cover
#: Converts the body of another API (ANTHROPIC or RESPONSES) to one of the chat API, as llama-server
#: does; returns a FailedError for a body that it refuses.
convert = _functions[0]
