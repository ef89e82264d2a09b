"""Models by the names they have where they live.

:func:`ggtok.load` comes here with a ``str`` that is no file's path:

===================================== ====================================================
``user/repo[:quant]``                 a Hugging Face repository; which of its files is
                                      llama.cpp's choice (:mod:`ggtok.sources.choose`)
``hf://user/repo[@revision][:quant]`` the same, of a revision
``hf://user/repo[@revision]/file``    one of its files
``https://...``                       a GGUF file (``http://`` only from this machine)
``ollama:name[:tag]``                 a model in Ollama's store
``lmstudio:publisher/model[:quant]``  one that LM Studio has downloaded
===================================== ====================================================

What is on this machine goes before what is not. Of a file that is not, only the
metadata is fetched, in growing ranges, and kept (:mod:`ggtok.sources.cache`).
"""

from __future__ import annotations

from dataclasses import dataclass

from ggtok.errors import InvalidValueError

__all__ = ["Found", "Source", "find"]


@dataclass(frozen=True)
class Source:
    """Where a vocabulary came from.

    Attributes:
        name: what was asked for.
        kind: ``"file"``, ``"hf"``, ``"llama.cpp"`` (its own cache), ``"http"``,
            ``"ollama"`` or ``"lmstudio"``.
        path: the file on this machine, if there is one.
        url: the file elsewhere, if it is from there.
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
    """A source, and the file's metadata if it has no path."""

    source: Source
    data: bytes | None = None


def find(name: str) -> Found | None:
    """The model of a name; None: it is no name, just a path that leads nowhere.

    Raises:
        FileError: it can't be found or read.
        InvalidValueError: a name that begins like one and goes on wrongly.
        MissingExtraError: getting it needs a package that isn't installed.
    """
    scheme, colon, rest = name.partition(":")
    if colon and scheme == "ollama":
        from ggtok.sources import ollama

        return ollama.find(name, rest)
    if colon and scheme == "lmstudio":
        from ggtok.sources import lmstudio

        return lmstudio.find(name, rest)
    if rest.startswith("//"):
        if scheme in ("https", "http"):
            from ggtok.sources import http

            return http.find(name)
        if scheme != "hf":
            raise InvalidValueError(
                f"{name}: unknown kind of source (known are hf://, https://, ollama: and lmstudio:)"
            )
    from ggtok.sources import hub

    repo = hub.parse(name)
    return hub.find(repo) if repo else None
