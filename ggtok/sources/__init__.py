"""Models by the names that their own tools give them.

:func:`ggtok.load` comes here with a ``str`` that isn't the path of a file:

===================================== ====================================================
``user/repo[:quant]``                 a Hugging Face repository; which of its files is
                                      llama.cpp's choice (:mod:`ggtok.sources.choose`)
``hf://user/repo[@revision][:quant]`` the same, of a revision
``hf://user/repo[@revision]/file``    one of its files
``https://...``                       a GGUF file (``http://`` only from this machine)
``ollama:name[:tag]``                 a model in Ollama's store
``lmstudio:publisher/model[:quant]``  one that LM Studio has downloaded
===================================== ====================================================

The address of a model's page, on the Hub (also ``hf.co/user/repo``) or at Ollama, is
read as the model's name. What is on this machine takes precedence over what is not. Of a
file that is elsewhere only the metadata is fetched, in growing ranges, and kept
(:mod:`ggtok.sources.cache`).
"""

from __future__ import annotations

from dataclasses import replace

from ggtok.base.escape import shown
from ggtok.errors import InvalidValueError, not_found
from ggtok.sources.found import Found, Source
from ggtok.sources.timeouts import telling

__all__ = ["Found", "Source", "find", "telling"]


def find(name: str) -> Found | None:
    """The model of a name; None: it is not a name but a path, and there is no such file.

    Raises:
        FileError: it can't be found or read. If something like it is on this machine, the
            message says so.
        InvalidValueError: it begins like a name, but is malformed.
        MissingExtraError: fetching it needs a package that isn't installed.
    """
    from ggtok.sources import suggest

    meant = suggest.read_as(name)
    found = _find(meant or name)
    if found is None and (hint := suggest.did_you_mean(name)):
        raise not_found(f"{shown(name)}: no such file{hint}")
    if found is not None and meant:
        return replace(found, source=replace(found.source, name=name))
    return found


def _find(name: str) -> Found | None:
    scheme, colon, rest = name.partition(":")
    if colon and scheme == "ollama":
        from ggtok.sources import ollama

        return ollama.find(name, rest, _hint)
    if colon and scheme == "lmstudio":
        from ggtok.sources import lmstudio

        return lmstudio.find(name, rest, _hint)
    if rest.startswith("//"):
        if scheme in ("https", "http"):
            from ggtok.sources import http

            return http.find(name)
        if scheme != "hf":
            raise InvalidValueError(
                f"{shown(name)}: unknown kind of source; the kinds are hf://, https://, ollama: "
                "and lmstudio:"
            )
    from ggtok.sources import hub

    repo = hub.parse(name)
    return hub.find(repo, _hint) if repo else None


def _hint(name: str) -> str:
    from ggtok.sources import suggest

    return suggest.did_you_mean(name)
