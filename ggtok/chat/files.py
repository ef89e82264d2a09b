"""What a tokenizer's file says of its chats: templates and the texts of special tokens."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from ggtok.base.escape import shown
from ggtok.chat.server import Tokens
from ggtok.errors import InvalidValueError, VocabWarning

if TYPE_CHECKING:
    from ggtok._attributes import Attributes


def warn_of_no_template(tok: Attributes) -> None:
    """Once for each tokenizer, on the line outside of ggtok that calls it."""
    if tok._warned_of_no_template:
        return
    name = "the file" if tok._path is None else shown(tok._path)
    level, frame = 1, sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith("ggtok."):
        level, frame = level + 1, frame.f_back  # type: ignore[assignment]
    warnings.warn(
        f"{name} has no chat template: ChatML is used instead, as in llama-server, but that is "
        "not what the model was trained on; pass the model's template with template= (on the "
        "command line, --template)",
        VocabWarning,
        stacklevel=level,
    )
    tok._warned_of_no_template = True  # not if the warning was raised


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
