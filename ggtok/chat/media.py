"""Images, audio and video in messages, as llama-server and its library mtmd treat them.

In the prompt, a marker represents each of these parts. If a request has such parts, the texts
between the markers are tokenized separately, and the model gets the tokens of each part in place of
its marker. A vocabulary doesn't say how many tokens a part has, so they are counted only if the
caller says how many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, SupportsIndex, cast

from ggtok.base.escape import number, shown
from ggtok.chat import values
from ggtok.errors import Argument, InvalidTypeError, InvalidValueError, Wording
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


class Marker(str):
    """The marker that represents a part of a message that isn't text."""


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
        raise InvalidValueError(Wording(Argument("media_marker"), " must not be empty"))
    return values.text(marker, "media_marker")


def ranges(text: str, marker: str, n_parts: int) -> tuple[tuple[int, int], ...]:
    """Returns the markers' byte ranges in a prompt. There must be as many markers as parts."""
    pieces = text.split(marker)
    if len(pieces) - 1 != n_parts:
        raise InvalidValueError(
            Wording(
                f"the prompt has {number(len(pieces) - 1, 'media marker')} ({shown(marker, 80)}) "
                f"for {number(n_parts, 'image, audio or video part')}, which llama-server refuses: "
                "the template drops or repeats some, or a text contains the marker (",
                Argument("media_marker", "TEXT"),
                " chooses another)",
            )
        )
    size = len(marker.encode())
    found, at = [], 0
    for piece in pieces[:-1]:
        at += len(piece.encode())
        found.append((at, at + size))
        at += size
    return tuple(found)


def check_tokens(image_tokens: object) -> None:
    """Raises an error unless `image_tokens` is a number, a function or None."""
    if image_tokens is not None and not callable(image_tokens):
        _checked(cast(SupportsIndex, image_tokens), _ARGUMENT)


def tokens(parts: Sequence[Part], image_tokens: ImageTokens) -> int:
    """Returns the number of tokens of these parts."""
    if not callable(image_tokens):
        return _checked(image_tokens, _ARGUMENT) * len(parts)
    return sum(_checked(image_tokens(part), "the result of image_tokens") for part in parts)


def _checked(n: SupportsIndex, what: str) -> int:
    found = index(n, what)
    if found < 0:
        name = Argument(what) if what == _ARGUMENT else what
        raise InvalidValueError(Wording(name, f" must not be negative, not {found}"))
    return found
