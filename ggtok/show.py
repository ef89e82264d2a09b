"""Shows the tokens of a text, of ids or of a conversation, in notebooks and terminals."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from ggtok.base.escape import number, shown
from ggtok.chat import api
from ggtok.errors import InvalidTypeError, InvalidValueError
from ggtok.native.arguments import iterated, text_bytes, token_ids

if TYPE_CHECKING:
    from ggtok.chat.prompt import Ranges
    from ggtok.loading.loaded import Loaded
    from ggtok.native import Part

# Black on cyan and on yellow, and bold white on magenta: readable on dark and light terminals.
TOKENS = ("\x1b[30;46m", "\x1b[30;43m")
SPECIAL = "\x1b[1;97;45m"
PLAIN = "\x1b[0m"

_EXPECTED = "show takes a text, ids, or the messages of a conversation"
_LONGEST = 400  # bytes of a piece, or of dropped text, that are shown
_HUES = 12
_TEMPLATE, _OTHER = "template", "other"
# The hue and saturation of a role's background.
_ROLES = {
    _TEMPLATE: (0, 0),
    "system": (280, 80),
    "user": (210, 80),
    "assistant": (130, 80),
    "tool": (35, 90),
    _OTHER: (180, 50),
}
_CLASS = ".ggtok-tokens"
_BACKGROUNDS = {f"h{i}": (i * 5 % _HUES * 360 // _HUES, 80) for i in range(_HUES)} | _ROLES
# Translucent backgrounds and inherited text colours suit light and dark pages.
_STYLE = "".join(
    f"{_CLASS}{rule}"
    for rule in (
        "{line-height:1.9;overflow-wrap:anywhere;font-family:monospace}",
        " bdi{padding:.1em 0;border-radius:.2em;border-right:1px solid #8888}",
        " .s{font-weight:bold;outline:1px solid}",
        " i{opacity:.55;font-style:normal}",
        " kbd{font-size:.75em;padding:0 .1em;border:1px dotted}",
        *(
            f" .{name}{{background:hsl({hue} {saturation}% 50%/.3)}}"
            for name, (hue, saturation) in _BACKGROUNDS.items()
        ),
    )
)


class ShownToken(NamedTuple):
    """A token of :class:`Shown`.

    Attributes:
        id: the token's id.
        piece: its bytes, as :meth:`ggtok.Tokenizer.token_to_piece` returns them.
        special: whether it is one of :attr:`ggtok.Tokenizer.special_ids`.
        span: the bytes of the text, as UTF-8, that it comes from, or None if unknown.
        role: in a conversation: the role of the message that its text comes from,
            ``"template"`` for the template's own text, or ``"other"``. Else None.
        dropped: bytes of the text before the token that belong to no token, such as white
            space that the vocabulary removes.
    """

    id: int
    piece: bytes
    special: bool
    span: tuple[int, int] | None = None
    role: str | None = None
    dropped: bytes = b""


class Shown:
    """Tokens to look at, from :meth:`ggtok.Tokenizer.show`.

    Notebooks show the tokens in colours, and the id, bytes and span of the token under the
    pointer. ``print`` shows them in colours on a terminal, or separated by ``|`` if the
    environment variable ``NO_COLOR`` is set. White space is visible (``·`` for a space, ``→``
    for a tab, ``↵`` for a line feed). Control characters, direction marks and parts of
    characters are escaped, so that any text is safe to show.

    Attributes:
        tokens: the tokens that are shown, up to the limit.
        count: the number of all tokens.
    """

    __slots__ = ("_rest", "count", "tokens")

    def __init__(self, tokens: Sequence[ShownToken], count: int, rest: bytes = b"") -> None:
        self.tokens = tuple(tokens)
        self.count = count
        self._rest = rest  # the end of the text, if it belongs to no token

    @property
    def ids(self) -> list[int]:
        """The ids of :attr:`tokens`."""
        return [token.id for token in self.tokens]

    def __len__(self) -> int:
        return len(self.tokens)

    def __repr__(self) -> str:
        return f"<ggtok.show.Shown: {number(self.count, 'token')}>"

    def __str__(self) -> str:
        plain = bool(os.environ.get("NO_COLOR"))
        out: list[str] = []
        for i, token in enumerate(self.tokens):
            out.append("\n".join(visible_lines(_cut(token.dropped))))
            lines = visible_lines(_cut(token.piece))
            out.append("\n".join(lines) + "|" if plain else colored(lines, i, token.special))
        out += ["\n".join(visible_lines(_cut(self._rest))), self._more("\n")]
        return "".join(out)

    def _repr_html_(self) -> str:
        used = {token.role for token in self.tokens}
        legend = "".join(f' <bdi class="{role}">{role}</bdi>' for role in _ROLES if role in used)
        body = []
        for token in self.tokens:
            kind = (token.role or f"h{token.id % _HUES}") + (" s" if token.special else "")
            title = escape(_title(token))
            body.append(_dropped(token.dropped))
            body.append(f'<bdi class="{kind}" title="{title}">{_html(_cut(token.piece))}</bdi>')
        ids = ", ".join(str(token.id) for token in self.tokens)
        return (
            f'<div class="{_CLASS[1:]}" dir="ltr"><style>{_STYLE}</style>'
            f"<div>{number(self.count, 'token')}{legend}</div>"
            f"<div>{''.join(body)}{_dropped(self._rest)}{self._more(' ')}</div>"
            f"<details><summary>ids</summary>[{ids}]</details></div>"
        )

    def _more(self, separator: str) -> str:
        more = self.count - len(self.tokens)
        return f"{separator}... and {number(more, 'more token')}" if more else ""


def of(
    loaded: Loaded,
    value: Any,
    encode: Callable[[Any], tuple[list[int], Any]],
    limit: int,
    chat: Mapping[str, Any],
) -> Shown:
    """:meth:`ggtok.Tokenizer.show`. `encode` returns a text's ids and their spans in bytes;
    `chat` has the keywords of a conversation."""
    if limit < 0:
        raise InvalidValueError(f"limit must not be negative, not {limit}")
    is_text = isinstance(value, str) or _is_buffer(value)
    items = value if is_text or isinstance(value, Sequence) else list(iterated(value, _EXPECTED))
    if not is_text and len(items) and not hasattr(items[0], "__index__"):
        if not isinstance(items[0], Mapping) and not hasattr(items[0], "model_dump"):
            raise InvalidTypeError(f"{_EXPECTED}, not {type(items[0]).__name__}s")
        return _of_messages(loaded, items, limit, chat)
    if chat:
        raise InvalidTypeError(f"{next(iter(chat))} is an argument for conversations only")
    if not is_text:
        return _of_ids(loaded, token_ids(items, loaded.n_tokens), limit)
    ids, spans = encode(value)
    return _of_text(loaded, text_bytes(value), ids, spans, limit)


def _is_buffer(value: Any) -> bool:
    """Whether `value` is text as bytes, not an array of ids."""
    try:
        return memoryview(value).format in ("B", "c", "b")
    except TypeError:
        return False


# ---- texts ----


def _of_text(loaded: Loaded, text: bytes, ids: Sequence[int], spans: Any, limit: int) -> Shown:
    """The tokens of a text; `spans` are in bytes, as ``encode_with_offsets`` returns them."""
    special = loaded.special_ids
    tokens = []
    done = 0
    for id, (begin, end) in zip(ids[:limit], spans[:limit].tolist(), strict=True):
        piece = loaded.native.piece(id, 0, True)
        dropped = text[done:begin]
        tokens.append(ShownToken(id, piece, id in special, (begin, end), None, dropped))
        done = max(done, end)
    return Shown(tokens, len(ids), text[done:] if len(ids) <= limit else b"")


def _of_ids(loaded: Loaded, ids: list[int], limit: int) -> Shown:
    special = loaded.special_ids
    pieces = ((id, loaded.native.piece(id, 0, True)) for id in ids[:limit])
    return Shown([ShownToken(id, piece, id in special) for id, piece in pieces], len(ids))


# ---- conversations ----


def _of_messages(
    loaded: Loaded, messages: Sequence[Any], limit: int, keywords: Mapping[str, Any]
) -> Shown:
    """The tokens of a conversation, each with the role that its text comes from.

    A range of the prompt that isn't the template's own has the role of the first message, in
    order, that contains its text.
    """
    prompt, ids, parts = api.prompt_parts(loaded, messages, keywords)
    data = prompt.text.encode()
    roles = _roles(data, prompt.ranges, messages)
    special = loaded.special_ids
    tokens = []
    at = 0
    for id, span in zip(ids[:limit], _spans(loaded, data, ids, parts), strict=False):
        while at + 1 < len(roles) and roles[at][0] <= span[0]:
            at += 1
        role = roles[at][1] if span[1] > span[0] else _TEMPLATE
        piece = loaded.native.piece(id, 0, True)
        tokens.append(ShownToken(id, piece, id in special, span, role))
    return Shown(tokens, len(ids))


def _roles(data: bytes, own: Ranges, messages: Sequence[Any]) -> list[tuple[int, str]]:
    """The prompt in ranges: the end of each, and its role."""
    texts = [(message.get("role"), list(_strings(message))) for message in messages]
    ranges: list[tuple[int, str]] = []
    at = next_message = 0
    for begin, end in (*own, (len(data), len(data))):
        if begin > at:
            text = data[at:begin].decode(errors="replace").strip()
            role = _OTHER
            for i in range(next_message, len(texts)):
                if any(text in string for string in texts[i][1]):
                    role = texts[i][0] if texts[i][0] in _ROLES else _OTHER
                    next_message = i
                    break
            ranges.append((begin, role))
        if end > begin:
            ranges.append((end, _TEMPLATE))
        at = end
    return ranges or [(0, _TEMPLATE)]


def _strings(value: Any) -> Iterator[str]:
    """All strings in a JSON value."""
    stack = [value]
    while stack:
        value = stack.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, Mapping):
            stack.extend(value.values())
        elif isinstance(value, (list, tuple)):
            stack.extend(value)


def _spans(
    loaded: Loaded, data: bytes, ids: Sequence[int], parts: Sequence[Part]
) -> Iterator[tuple[int, int]]:
    """The bytes of the prompt that each token comes from. If the pieces of a part don't spell its
    text, each of its tokens has the whole part."""
    done = 0
    at = 0
    for pos, n, first, n_ids, special in parts:
        yield from ((at, at) for _ in range(first - done))  # added tokens
        at = pos + n
        done = first + n_ids
        pieces = [loaded.native.piece(id, 0, True) for id in ids[first:done]]
        text = b"".join(pieces)
        if special or text not in (data[pos:at], b" " + data[pos:at]):
            yield from ((pos, at) for _ in pieces)
            continue
        begin = at - len(text)
        for piece in pieces:
            yield max(begin, pos), begin + len(piece)
            begin += len(piece)
    yield from ((at, at) for _ in ids[done:])


# ---- how a token looks ----


def visible_lines(piece: bytes) -> list[str]:
    """A piece with marks for white space, in the lines that it takes on a screen."""
    lines = [
        "→".join(shown(part).replace(" ", "·") for part in line.split(b"\t"))
        for line in piece.split(b"\n")
    ]
    return [f"{line}↵" for line in lines[:-1]] + lines[-1:]


def colored(lines: Sequence[str], index: int, special: bool) -> str:
    """The lines of the token with this index, on a coloured background."""
    color = SPECIAL if special else TOKENS[index % 2]
    # An empty line would be coloured up to the edge of the terminal.
    return "\n".join(f"{color}{line}{PLAIN}" if line else "" for line in lines)


def _cut(piece: bytes) -> bytes:
    return piece if len(piece) <= _LONGEST else piece[:_LONGEST] + b"..."


def _title(token: ShownToken) -> str:
    """The text shown for the token under the pointer."""
    data = token.piece[:_LONGEST]
    fields = [f"id {token.id}", repr(shown(data)), f"{number(len(token.piece), 'byte')}:"]
    fields.append(data[:32].hex(" ") + (" ..." if len(token.piece) > 32 else ""))
    if token.span is not None:
        fields.append(f"of text[{token.span[0]}:{token.span[1]}]")
    if token.special:
        fields.append("special")
    if token.role is not None:
        fields.append(token.role)
    return " ".join(fields)


def _html(piece: bytes) -> str:
    """A piece as HTML, with marks for white space, escapes and bytes."""
    out = []
    for c in piece.decode("utf-8", "surrogateescape"):
        if c == " ":
            out.append("<i>·</i><wbr>")
        elif c == "\t":
            out.append("<i>→</i>\t")
        elif c == "\n":
            out.append("<i>↵</i><br>")
        elif "\udc80" <= c <= "\udcff":
            out.append(f"<kbd>{ord(c) - 0xDC00:02x}</kbd>")
        elif c.isprintable():
            out.append(escape(c))
        else:
            out.append(f"<kbd>{shown(c)}</kbd>")
    return "".join(out)


def _dropped(text: bytes) -> str:
    return f"<del>{_html(_cut(text))}</del>" if text else ""


def summary(loaded: Loaded) -> str:
    """A table of the vocabulary's main properties, as HTML."""
    specials = {name: loaded.special(name) for name in ("bos", "eos", "eot", "unk", "pad")}
    rows = {
        "source": loaded.path or "memory",
        "model": loaded.metadata.get("general.name", ""),
        "type": loaded.vocab_type,
        "pre-tokenizer": loaded.pre or "",
        "tokens": f"{loaded.n_tokens:,}",
        **{
            name.upper(): f"{id} {shown(loaded.native.text(id))}"
            for name, id in specials.items()
            if id is not None
        },
        "adds": ", ".join(
            name[4:] for name, on in loaded.flags.items() if on and name.startswith("add_")
        ),
        "chat template": "yes" if loaded.chat_templates else "no",
    }
    cells = "".join(
        f"<tr><th>{name}</th><td><bdi>{escape(shown(str(value), 200))}</bdi></td></tr>"
        for name, value in rows.items()
        if value
    )
    return f"<table><caption>ggtok.Tokenizer</caption>{cells}</table>"
