"""Finds where the tokens of two prompts begin to differ: :func:`compare_prompts`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ggtok import _types as types
from ggtok.chat import api, prompt_ids
from ggtok.chat.prompt import Origin
from ggtok.chat.show import token_spans
from ggtok.errors import InvalidTypeError, InvalidValueError
from ggtok.loading.loaded import Loaded
from ggtok.native import chat_calls, text_bytes
from ggtok.native.arguments import token_ids
from ggtok.tokenizer import Tokenizer

SHOWN = 80  # the maximum number of characters of a side's text
_BLOCK = 4096  # items that are compared together
_TOKENS = 8  # the maximum number of a side's tokens


@dataclass(frozen=True, slots=True)
class PromptSide:
    """One of two prompts, from the first token on that differs.

    Attributes:
        n_tokens: the number of tokens in the whole prompt.
        where: where the difference is: ``"messages[2].content"``; ``"template"`` for text that the
            template writes; ``"request"`` for other values, such as tools; ``"text"`` or ``"ids"``
            if the prompt isn't a request; ``"end"`` if the prompt ends there.
        message: the index of the message, or None.
        field: the message's field, or None.
        text: the text from there on, at most 80 characters.
        ids: the next ids, at most 8.
    """

    n_tokens: int
    where: str
    message: int | None
    field: str | None
    text: str
    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PromptComparison:
    """The result of :func:`compare_prompts`.

    Attributes:
        common: the number of tokens, from the first on, that both prompts have in common.
        lost: the number of tokens of `a` after these: a server that has processed `a` can't use
            them for `b`.
        same_text: whether both prompts have the same text at the difference, but different tokens.
        a, b: the two prompts at the difference.
    """

    common: int
    lost: int
    same_text: bool
    a: PromptSide
    b: PromptSide


@dataclass(slots=True)
class EncodedPrompt:
    """The ids of a prompt and, for a request, the text and the origins of its parts."""

    ids: list[int]
    kind: str = "ids"
    text: bytes = b""
    spans: Callable[[], Sequence[tuple[int, int]]] = list  # of the ids in the text, in bytes
    origins: tuple[Origin, ...] = field(default=())


def compare_prompts(
    tok: Tokenizer,
    a: Any,
    b: Any,
    *,
    times: tuple[datetime, datetime] | None = None,
    template: str | None = None,
    like: types.Like = "llama.cpp",
) -> PromptComparison:
    """Find the first token in which two prompts differ, and where it comes from.

    A server keeps the state of a prompt that it has processed, and continues from there if the
    next prompt begins with the same tokens. This shows how many tokens of `a` can be used for
    `b`, and what prevents more.

    Args:
        tok: the tokenizer.
        a, b: the earlier and the later prompt, each one of

            - a request, as a mapping with ``messages`` (and ``tools``,
              ``chat_template_kwargs``...), or as a list of messages; or its JSON text;
            - a text: any other ``str`` or bytes-like object. Special tokens in it are parsed;
            - token ids.
        times: the times at which the two prompts were rendered, for templates that write the
            date. By default, both are rendered now.
        template, like: as for :meth:`Tokenizer.encode_chat`.

    Raises:
        TemplateError, InvalidTypeError, InvalidValueError: as for :meth:`Tokenizer.encode_chat`.
    """
    if not isinstance(tok, Tokenizer):
        raise InvalidTypeError(f"tok must be a ggtok.Tokenizer, not {type(tok).__name__}")
    now = datetime.now()
    first, second = times or (now, now)
    loaded = tok._loaded
    options = template, like
    return compare_encoded(
        loaded,
        encode_prompt(loaded, a, first, "a", *options),
        encode_prompt(loaded, b, second, "b", *options),
    )


def encode_prompt(
    loaded: Loaded, prompt: Any, time: datetime, name: str, template: str | None, like: types.Like
) -> EncodedPrompt:
    """Returns the ids of a request, text or list of ids; `name` is the argument's."""
    if isinstance(prompt, Mapping):
        return _of_request(loaded, prompt, time, name, template, like)
    if isinstance(prompt, str) or _is_bytes(prompt):
        data = text_bytes(prompt, name)
        request = _request_of(data)
        if request is not None:
            return _of_request(loaded, request, time, name, template, like)
        return EncodedPrompt(loaded.encode(data, True, True, False), "text")
    if isinstance(prompt, (list, tuple)) and prompt and isinstance(prompt[0], Mapping):
        return _of_request(loaded, {"messages": prompt}, time, name, template, like)
    if not isinstance(prompt, Iterable):
        raise InvalidTypeError(
            f"{name} must be a request, a text or token ids, not {type(prompt).__name__}"
        )
    return EncodedPrompt(token_ids(prompt, loaded.n_tokens, name))


def _is_bytes(prompt: Any) -> bool:
    """Whether this is a text in bytes, rather than an array of ids."""
    try:
        return memoryview(prompt).format in ("B", "b", "c")
    except (TypeError, ValueError):
        return False


def _request_of(text: bytes) -> dict[str, Any] | None:
    """Returns the request in a JSON text, or None if the text isn't a request."""
    if not text.lstrip().startswith((b"{", b"[")):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, list) and value and all(map(_is_message, value)):
        return {"messages": value}
    return value if isinstance(value, dict) and "messages" in value else None


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and "role" in value


def _of_request(
    loaded: Loaded,
    request: Mapping[str, Any],
    time: datetime,
    name: str,
    template: str | None,
    like: types.Like,
) -> EncodedPrompt:
    if "messages" not in request:
        raise InvalidValueError(f"{name}: the request has no messages")
    prompt = api.run_body(
        loaded, request, chat_calls.PROMPT, template=template, clock=lambda: time, like=like
    )
    ids, parts = prompt_ids.ids_and_parts(loaded, prompt, False, prompt_ids.PARSE)
    data = prompt.text.encode()
    return EncodedPrompt(
        ids, "request", data, lambda: list(token_spans(loaded, data, ids, parts)), prompt.origins
    )


def compare_encoded(loaded: Loaded, a: EncodedPrompt, b: EncodedPrompt) -> PromptComparison:
    common = n_common(a.ids, b.ids)
    pieces = [b"".join(loaded.piece(id, 0, True) for id in p.ids[common:][:64]) for p in (a, b)]
    shared = n_common(*pieces)
    next_pieces = [loaded.piece(p.ids[common], 0, True) for p in (a, b) if common < len(p.ids)]
    same_text = len(next_pieces) == 2 and shared >= max(map(len, next_pieces))
    same = 0 if same_text else shared
    return PromptComparison(
        common,
        len(a.ids) - common,
        same_text,
        _side(a, common, pieces[0], same),
        _side(b, common, pieces[1], same),
    )


def n_common(a: Sequence[int], b: Sequence[int]) -> int:
    """Returns the length of the longest common prefix of two sequences."""
    n = min(len(a), len(b))
    for at in range(0, n, _BLOCK):
        end = min(at + _BLOCK, n)
        if a[at:end] != b[at:end]:
            return next(i for i in range(at, end) if a[i] != b[i])
    return n


def _side(prompt: EncodedPrompt, common: int, text: bytes, shared: int) -> PromptSide:
    """Describes a prompt from its token number `common` on, whose text begins with `text`; the
    first `shared` bytes of it are the same in the other prompt."""
    ids = tuple(prompt.ids[common : common + _TOKENS])
    shown = text.decode("utf-8", "replace")[:SHOWN]
    n = len(prompt.ids)
    if not ids:
        return PromptSide(n, "end", None, None, "", ())
    if prompt.kind != "request":
        return PromptSide(n, prompt.kind, None, None, shown, ids)
    at = prompt.spans()[common][0]
    # The differing character, unless the piece isn't the text at the token's place.
    if prompt.text[at : at + shared] == text[:shared]:
        at += shared
    origin = next((origin for origin in prompt.origins if origin[0] > at), None)
    message, name = origin[1:] if origin else (None, True)
    if message is None:
        return PromptSide(n, "template" if name is True else "request", None, None, shown, ids)
    own = name if isinstance(name, str) else None
    where = f"messages[{message}]" + (f".{own}" if own else "")
    return PromptSide(n, where, message, own, shown, ids)
