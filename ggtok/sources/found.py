"""The result of looking up a model's name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

# Returns the end of a "not found" message, which suggests similar names on this machine.
Hint = Callable[[str], str]


@dataclass(frozen=True)
class Source:
    """The origin of a vocabulary.

    Attributes:
        name: the requested name.
        kind: ``"file"``, ``"hf"``, ``"llama.cpp"`` (llama.cpp's own cache), ``"http"``,
            ``"ollama"`` or ``"lmstudio"``.
        path: the path of a local file, or None.
        url: the URL from which the file was downloaded, or None.
        template: the text of an Ollama model's template layer (Go's ``text/template``, unlike
            ``Tokenizer.chat_template``, which is Jinja), or None.
    """

    name: str
    kind: str
    path: str | None = None
    url: str | None = None
    template: str | None = None


@dataclass(frozen=True)
class Found:
    """A source; if it has no path, also the metadata, and possibly some tensor descriptions."""

    source: Source
    data: bytes | None = None
