"""Shows the tokens of a text, of ids or of a conversation: :meth:`ggtok.Tokenizer.show`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from ggtok.base.escape import printable
from ggtok.chat import api, values
from ggtok.errors import InvalidTypeError, InvalidValueError
from ggtok.native.arguments import index, iterate, text_bytes, token_ids
from ggtok.text.shown import OTHER, ROLES, TEMPLATE, Shown, ShownToken

if TYPE_CHECKING:
    from ggtok.chat.prompt import Prompt
    from ggtok.loading.loaded import Loaded
    from ggtok.native import Part

_EXPECTED = "show takes a text, ids, or the messages of a conversation"


def show(
    loaded: Loaded,
    value: Any,
    encode: Callable[[Any], tuple[list[int], Any]],
    limit: int,
    chat: Mapping[str, Any],
) -> Shown:
    """Implements :meth:`ggtok.Tokenizer.show`. `encode` returns a text's ids and their spans in
    bytes; `chat` has the keywords for a conversation."""
    if index(limit, "limit") < 0:
        raise InvalidValueError(f"limit must not be negative, but is {limit}")
    is_text = isinstance(value, str) or _is_buffer(value)
    items = value if is_text or isinstance(value, Sequence) else list(iterate(value, _EXPECTED))
    if not is_text and len(items) and not hasattr(items[0], "__index__"):
        if not isinstance(items[0], Mapping) and not hasattr(items[0], "model_dump"):
            raise InvalidTypeError(f"{_EXPECTED}, not items of type {type(items[0]).__name__}")
        return _of_messages(loaded, items, limit, chat)
    if chat:
        raise InvalidTypeError(f"{next(iter(chat))} is an argument for conversations only")
    if not is_text:
        return _of_ids(loaded, token_ids(items, loaded.n_tokens), limit)
    ids, spans = encode(value)
    return _of_text(loaded, text_bytes(value), ids, spans, limit)


def _is_buffer(value: Any) -> bool:
    """Whether `value` is bytes of text rather than an array of ids."""
    try:
        return memoryview(value).format in ("B", "c", "b")
    except TypeError:
        return False
    except ValueError:  # a memoryview that was released, which `encode` refuses
        return True


# ---- texts ----


def _of_text(loaded: Loaded, text: bytes, ids: Sequence[int], spans: Any, limit: int) -> Shown:
    """Returns a text's tokens. `spans` are in bytes, as ``encode_with_offsets`` returns them."""
    special = loaded.special_ids
    tokens = []
    shown_up_to = 0
    for id, (begin, end) in zip(ids[:limit], spans[:limit].tolist(), strict=True):
        piece = loaded.piece(id, 0, True)
        dropped = text[shown_up_to:begin]
        tokens.append(ShownToken(id, piece, id in special, (begin, end), None, dropped))
        shown_up_to = max(shown_up_to, end)
    return Shown(tokens, len(ids), text[shown_up_to:] if len(ids) <= limit else b"")


def _of_ids(loaded: Loaded, ids: list[int], limit: int) -> Shown:
    special = loaded.special_ids
    pieces = ((id, loaded.piece(id, 0, True)) for id in ids[:limit])
    return Shown([ShownToken(id, piece, id in special) for id, piece in pieces], len(ids))


# ---- conversations ----


def _of_messages(
    loaded: Loaded, messages: Sequence[Any], limit: int, keywords: Mapping[str, Any]
) -> Shown:
    """Returns a conversation's tokens, each with the role of the message from which it comes."""
    prompt, ids, parts = api.prompt_parts(loaded, messages, keywords)
    data = prompt.text.encode()
    roles = _roles(prompt, messages)
    special = loaded.special_ids
    tokens = []
    at = 0
    for id, span in zip(ids[:limit], token_spans(loaded, data, ids, parts), strict=False):
        while at + 1 < len(roles) and roles[at][0] <= span[0]:
            at += 1
        role = roles[at][1] if span[1] > span[0] else TEMPLATE
        piece = loaded.piece(id, 0, True)
        tokens.append(ShownToken(id, piece, id in special, span, role))
    return Shown(tokens, len(ids))


def _roles(prompt: Prompt, messages: Sequence[Any]) -> list[tuple[int, str]]:
    """Divides the prompt into ranges, and returns the end (in bytes) and the role of each."""
    fields = [values.mapping(message) or {} for message in messages]
    found = [message.get("role") for message in fields]
    names = [role if isinstance(role, str) and role in ROLES else OTHER for role in found]
    roles = [
        (end, (TEMPLATE if field is True else OTHER) if index is None else names[index])
        for end, index, field in prompt.origins
    ]
    return roles or [(0, TEMPLATE)]


def token_spans(
    loaded: Loaded, data: bytes, ids: Sequence[int], parts: Sequence[Part]
) -> Iterator[tuple[int, int]]:
    """Yields the span of the prompt, in bytes, from which each token comes. If the pieces of a part
    don't spell its text, each of its tokens gets the whole part."""
    n_done = 0
    at = 0
    for pos, n, first, n_ids, special in parts:
        yield from ((at, at) for _ in range(first - n_done))  # added tokens have empty spans
        at = pos + n
        n_done = first + n_ids
        pieces = [loaded.piece(id, 0, True) for id in ids[first:n_done]]
        text = b"".join(pieces)
        if special or text not in (data[pos:at], b" " + data[pos:at]):
            yield from ((pos, at) for _ in pieces)
            continue
        begin = at - len(text)
        for piece in pieces:
            yield max(begin, pos), begin + len(piece)
            begin += len(piece)
    yield from ((at, at) for _ in ids[n_done:])


def summary(loaded: Loaded) -> str:
    """Returns an HTML table of the vocabulary's main properties."""
    specials = {name: loaded.special(name) for name in ("bos", "eos", "eot", "unk", "pad")}
    rows = {
        "source": loaded.path or "memory",
        "model": loaded.metadata.get("general.name", ""),
        "type": loaded.vocab_type,
        "pre-tokenizer": loaded.pre or "",
        "tokens": f"{loaded.n_tokens:,}",
        **{
            name.upper(): f"{id} {printable(loaded.text(id))}"
            for name, id in specials.items()
            if id is not None
        },
        "adds": ", ".join(
            name[4:] for name, on in loaded.flags.items() if on and name.startswith("add_")
        ),
        "chat template": "yes" if loaded.chat_templates else "no",
    }
    cells = "".join(
        f"<tr><th>{name}</th><td><bdi>{escape(printable(str(value), 200))}</bdi></td></tr>"
        for name, value in rows.items()
        if value
    )
    return f"<table><caption>ggtok.Tokenizer</caption>{cells}</table>"
