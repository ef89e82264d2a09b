"""What a name stands for: a source, and what was read of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

# The end of a message that there is no model of a name: what is on this machine and like it.
Hint = Callable[[str], str]


@dataclass(frozen=True)
class Source:
    """Where a vocabulary came from.

    Attributes:
        name: what was asked for.
        kind: ``"file"``, ``"hf"``, ``"llama.cpp"`` (its own cache), ``"http"``,
            ``"ollama"`` or ``"lmstudio"``.
        path: the file on this machine, or None.
        url: where the file was fetched from, or None.
        template: of an Ollama model, the text of its template layer (Go's
            ``text/template``, not the Jinja of ``Tokenizer.chat_template``), or None.
    """

    name: str
    kind: str
    path: str | None = None
    url: str | None = None
    template: str | None = None


@dataclass(frozen=True)
class Found:
    """A source, and the file's metadata if it has no path, after which descriptions of tensors
    may follow, all or some."""

    source: Source
    data: bytes | None = None
