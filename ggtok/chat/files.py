"""The chat templates and special tokens of a tokenizer's file."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ggtok.base.escape import shown
from ggtok.chat.server import Tokens
from ggtok.errors import InvalidValueError, VocabWarning

if TYPE_CHECKING:
    from ggtok.loading.loaded import Loaded


def warn_of_no_template(loaded: Loaded) -> None:
    """Warns once per tokenizer, at the caller's line outside of ggtok."""
    if loaded.memo.get("warned of no template"):
        return
    name = "the file" if loaded.path is None else shown(loaded.path)
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
    loaded.memo["warned of no template"] = True  # not reached if the warning is an error


class File:
    __slots__ = ("templates", "tokens")

    def __init__(self, loaded: Loaded) -> None:
        bos, eos = piece(loaded, loaded.bos_id), piece(loaded, loaded.eos_id)
        self.tokens = Tokens(bos, eos, loaded.flags["add_bos"], loaded.flags["add_eos"])
        self.templates = loaded.chat_templates


def of(loaded: Loaded) -> File:
    file: File | None = loaded.memo.get("chat file")
    if file is None:
        file = loaded.memo["chat file"] = File(loaded)
    return file


def piece(loaded: Loaded, id: int | None) -> str:
    return "" if id is None else loaded.native.piece(id, 0, True).decode("utf-8", "replace")


def find_template(templates: Mapping[str, str], wanted: str) -> str:
    """The file's template with the name `wanted`, or `wanted` itself if it is a template."""
    if wanted in templates:
        return templates[wanted]
    if "{" in wanted or "\n" in wanted:
        return wanted
    names = ", ".join(map(repr, sorted(templates))) or "none"
    raise InvalidValueError(
        f"template: {wanted!r} is neither a template nor the name of one of the file's ({names})"
    )
