"""Displays tokens in notebooks and terminals."""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape
from typing import NamedTuple
from unicodedata import category

from ggtok.base.escape import number, printable

# Black on cyan, black on yellow, and bold white on magenta: readable on dark and light terminals.
TOKENS = ("\x1b[30;46m", "\x1b[30;43m")
SPECIAL = "\x1b[1;97;45m"
PLAIN = "\x1b[0m"

_LONGEST = 400  # maximum number of bytes to show of a piece, or of dropped text
_HUES = 12
TEMPLATE, OTHER = "template", "other"
# The hue and saturation of each role's background.
ROLES = {
    TEMPLATE: (0, 0),
    "system": (280, 80),
    "user": (210, 80),
    "assistant": (130, 80),
    "tool": (35, 90),
    OTHER: (180, 50),
}
_CLASS = ".ggtok-tokens"
_BACKGROUNDS = {f"h{i}": (i * 5 % _HUES * 360 // _HUES, 80) for i in range(_HUES)} | ROLES
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
        span: the span of the text from which it comes, in bytes of UTF-8, or None if unknown.
        role: in a conversation, the role of the message from which its text comes,
            ``"template"`` for the template's own text, or ``"other"``; otherwise None.
        dropped: the text directly before the token, if it belongs to no token, such as white
            space that the vocabulary removes.
    """

    id: int
    piece: bytes
    special: bool
    span: tuple[int, int] | None = None
    role: str | None = None
    dropped: bytes = b""


class Shown:
    """A display of tokens, from :meth:`ggtok.Tokenizer.show`.

    Notebooks show the tokens in colours, and the id, bytes and span of the token under the
    pointer. ``print`` shows them in colours on a terminal, or separated by ``|`` if the
    environment variable ``NO_COLOR`` is set. White space is visible (``·`` for a space, ``→``
    for a tab, ``↵`` for a line feed). Control characters, direction marks and parts of
    characters are escaped, so that any text is safe to show.

    Attributes:
        tokens: the tokens to show, up to the limit.
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
        return f"<ggtok.Shown: {number(self.count, 'token')}>"

    def __str__(self) -> str:
        plain = bool(os.environ.get("NO_COLOR"))
        out: list[str] = []
        for i, token in enumerate(self.tokens):
            out.append("\n".join(visible_lines(_shorten(token.dropped))))
            lines = visible_lines(_shorten(token.piece))
            out.append("\n".join(lines) + "|" if plain else color_token(lines, i, token.special))
        out += ["\n".join(visible_lines(_shorten(self._rest))), self._more("\n")]
        return "".join(out)

    def _repr_html_(self) -> str:
        used = {token.role for token in self.tokens}
        legend = "".join(f' <bdi class="{role}">{role}</bdi>' for role in ROLES if role in used)
        body = []
        for token in self.tokens:
            kind = (token.role or f"h{token.id % _HUES}") + (" s" if token.special else "")
            title = escape(_title(token))
            body.append(_dropped_html(token.dropped))
            piece = _html(_shorten(token.piece))
            # A final line break goes after the element. Inside, it would put the element's right
            # border on the next line.
            end = "<br>" if piece.endswith("<br>") else ""
            piece = piece.removesuffix("<br>")
            element = f'<bdi class="{kind}" title="{title}">{piece}</bdi>{end}'
            # Lines break around special tokens rather than inside them.
            body.append(f"<wbr>{element}<wbr>" if token.special else element)
        ids = ", ".join(str(token.id) for token in self.tokens)
        return (
            f'<div class="{_CLASS[1:]}" dir="ltr"><style>{_STYLE}</style>'
            f"<div>{number(self.count, 'token')}{legend}</div>"
            f"<div>{''.join(body)}{_dropped_html(self._rest)}{self._more(' ')}</div>"
            f"<details><summary>ids</summary>[{ids}]</details></div>"
        )

    def _more(self, separator: str) -> str:
        more = self.count - len(self.tokens)
        return f"{separator}... and {number(more, 'more token')}" if more else ""


# ---- the appearance of a token ----


def visible_lines(piece: bytes) -> list[str]:
    """Returns the lines of a piece on the screen, with visible characters for white space."""
    lines = [
        "→".join(printable(part).replace(" ", "·") for part in line.split(b"\t"))
        for line in piece.split(b"\n")
    ]
    return [f"{line}↵" for line in lines[:-1]] + lines[-1:]


def color_token(lines: Sequence[str], index: int, special: bool) -> str:
    """Returns the lines of the token with this index, joined, on a coloured background."""
    color = SPECIAL if special else TOKENS[index % 2]
    # An empty line would be coloured up to the edge of the terminal.
    return "\n".join(f"{color}{line}{PLAIN}" if line else "" for line in lines)


def _shorten(piece: bytes) -> bytes:
    return piece if len(piece) <= _LONGEST else piece[:_LONGEST] + b"..."


def _title(token: ShownToken) -> str:
    """Returns the text that appears when the pointer is over the token."""
    data = token.piece[:_LONGEST]
    fields = [f"id {token.id}", repr(printable(data)), f"{number(len(token.piece), 'byte')}:"]
    fields.append(data[:32].hex(" ") + (" ..." if len(token.piece) > 32 else ""))
    if token.span is not None:
        fields.append(f"of text[{token.span[0]}:{token.span[1]}]")
    if token.special:
        fields.append("special")
    if token.role is not None:
        fields.append(token.role)
    return " ".join(fields)


def _html(piece: bytes) -> str:
    """Returns a piece as HTML, with visible white space, escapes and bytes."""
    out: list[str] = []
    for c in piece.decode("utf-8", "surrogateescape"):
        if c == " ":
            out.append("<i>·</i><wbr>")
        elif c == "\t":
            out.append("<i>→</i>\t")
        elif c == "\n":
            out.append("<i>↵</i><br>")
        elif "\udc80" <= c <= "\udcff":
            out.append(f"<kbd>{ord(c) - 0xDC00:02x}</kbd>")
        elif not c.isprintable():
            out.append(f"<kbd>{printable(c)}</kbd>")
        elif not out and category(c)[0] == "M":  # it would be drawn over the previous token
            out.append(f"<kbd>{c.encode('unicode-escape').decode()}</kbd>")
        else:
            out.append(escape(c))
    return "".join(out)


def _dropped_html(text: bytes) -> str:
    return f"<del>{_html(_shorten(text))}</del>" if text else ""
