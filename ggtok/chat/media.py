"""Images, audio and video in messages, whose tokens only the caller can count.

In llama-server's prompts, a marker represents each of these parts (cext/chat/).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, SupportsIndex, cast

from ggtok.chat import values
from ggtok.errors import InvalidTypeError, InvalidValueError
from ggtok.native.arguments import index

Part = Mapping[str, Any]
ImageTokens = SupportsIndex | Callable[[Part], SupportsIndex]

MARKER = "<__media__>"  # mtmd's default marker
_ARGUMENT = "image_tokens"
KINDS = {
    "image_url": "image",
    "input_audio": "audio",
    "input_video": "video",
    "video_url": "video",
}
# Types of parts that templates for transformers support.
_TRANSFORMERS = frozenset((*KINDS, "image", "audio", "audio_url", "video"))


def parts_of(messages: Iterable[Any], like: str = "llama.cpp") -> list[Part]:
    """Returns the messages' parts that aren't text, in order."""
    types = _TRANSFORMERS if like == "transformers" else KINDS
    found: list[Part] = []
    for message in messages:
        fields = message if type(message) is dict else values.mapping(message)
        content = None if fields is None else fields.get("content")
        if isinstance(content, (list, tuple)):
            parts = map(values.mapping, content)
            found += [part for part in parts if part is not None and _type(part) in types]
    return found


def _type(part: Part) -> str:
    kind = part.get("type")
    return kind if isinstance(kind, str) else ""


def check_marker(marker: object) -> str:
    if not isinstance(marker, str):
        raise InvalidTypeError(f"media_marker must be str, not {type(marker).__name__}")
    if not marker:
        raise InvalidValueError("media_marker must not be empty")
    return values.exact_text(marker, "media_marker")


def check_tokens(image_tokens: object) -> None:
    """Raises an error unless `image_tokens` is a number, a function or None."""
    if image_tokens is not None and not callable(image_tokens):
        _check_count(cast(SupportsIndex, image_tokens), _ARGUMENT)


def tokens(parts: Sequence[Part], image_tokens: ImageTokens) -> int:
    """Returns the number of tokens of these parts."""
    if not callable(image_tokens):
        return _check_count(image_tokens, _ARGUMENT) * len(parts)
    return sum(_check_count(image_tokens(part), "the result of image_tokens") for part in parts)


def _check_count(n: SupportsIndex, what: str) -> int:
    found = index(n, what)
    if found < 0:
        raise InvalidValueError(f"{what} must not be negative, not {found}")
    return found
