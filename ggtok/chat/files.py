"""What a tokenizer's file says of its chats: templates and the texts of special tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from ggtok.chat.server import Tokens
from ggtok.errors import InvalidValueError

if TYPE_CHECKING:
    from ggtok._attributes import Attributes


class File:
    __slots__ = ("templates", "tokens")

    def __init__(self, tok: Attributes) -> None:
        bos, eos = piece(tok, tok.bos_id), piece(tok, tok.eos_id)
        self.tokens = Tokens(bos, eos, tok.add_bos, tok.add_eos)
        self.templates = tok.chat_templates


_files: WeakKeyDictionary[Attributes, File] = WeakKeyDictionary()


def of(tok: Attributes) -> File:
    file = _files.get(tok)
    if file is None:
        file = _files[tok] = File(tok)
    return file


def piece(tok: Attributes, id: int | None) -> str:
    return "" if id is None else tok.token_to_piece(id).decode("utf-8", "replace")


def find_template(templates: Mapping[str, str], wanted: str) -> str:
    """One of the file's templates by its name, or the text itself."""
    if wanted in templates:
        return templates[wanted]
    if "{" in wanted or "\n" in wanted:
        return wanted
    names = ", ".join(map(repr, sorted(templates))) or "none"
    raise InvalidValueError(
        f"template: {wanted!r} is neither a template nor the name of one of the file's ({names})"
    )
