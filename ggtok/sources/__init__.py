"""Finds models by the names that other tools use.

:func:`ggtok.load` calls :func:`find` with a ``str`` that isn't the path of a file:

===================================== ====================================================
``user/repo[:quant]``                 a file of a Hugging Face repository, chosen as
                                      llama.cpp does (:mod:`ggtok.sources.model_files`)
``hf://user/repo[@revision][:quant]`` the same, in a given revision
``hf://user/repo[@revision]/file``    a given file of a repository
``https://...``                       a GGUF file (``http://`` only from this machine)
``ollama:name[:tag]``                 a model in Ollama's store
``lmstudio:publisher/model[:quant]``  a model that LM Studio has downloaded
===================================== ====================================================

The URL of a model's page, on the Hub (also ``hf.co/user/repo``) or at Ollama, is treated as the
model's name. Local files take precedence over remote files. Of a remote file, only the metadata
is downloaded, in growing ranges, and cached (:mod:`ggtok.sources.download_cache`).
"""

from __future__ import annotations

from dataclasses import replace

from ggtok.base.escape import printable
from ggtok.errors import InvalidValueError, MissingExtraError, not_found
from ggtok.sources.model_files import Found, Source
from ggtok.sources.timeouts import telling

__all__ = ["Found", "Source", "find_model", "telling"]


# tiktoken's encodings, and the models that people name for them.
_ENCODINGS = {
    **{name: name for name in ("cl100k_base", "o200k_base", "p50k_base", "r50k_base")},
    **dict.fromkeys(("gpt-4o", "gpt-4.1", "o1", "o3"), "o200k_base"),
    **dict.fromkeys(("gpt-4", "gpt-3.5-turbo"), "cl100k_base"),
    "o200k_harmony": "o200k_base",
}


def find_model(name: str) -> Found | None:
    """Returns the model with this name, or None if `name` is a path rather than a model's name.

    Raises:
        FileError: the model can't be found or read. The message suggests similar models on
            this machine.
        InvalidValueError: the name is malformed.
        MissingExtraError: downloading the model needs a package that isn't installed.
    """
    from ggtok.sources import listing

    if name in _ENCODINGS:
        encoding = _ENCODINGS[name]
        raise not_found(
            f"{name}: no such file. tiktoken calls an encoding or a model so: 'ggtok convert "
            f"{encoding}.tiktoken' makes a GGUF file of its ranks, which are at "
            f"https://openaipublic.blob.core.windows.net/encodings/{encoding}.tiktoken"
        )
    meant = listing.read_as(name)
    found = _find_by_scheme(meant or name)
    if found is None and (hint := listing.did_you_mean(name)):
        raise not_found(f"{printable(name)}: no such file{hint}")
    if found is not None and meant:
        return replace(found, source=replace(found.source, name=name))
    return found


def _find_by_scheme(name: str) -> Found | None:
    scheme, colon, rest = name.partition(":")
    if colon and scheme == "ollama":
        from ggtok.sources import ollama_store

        return ollama_store.find_in_store(name, rest, _hint)
    if colon and scheme == "lmstudio":
        from ggtok.sources import lmstudio

        return lmstudio.find_in_lmstudio(name, rest, _hint)
    if rest.startswith("//"):
        if scheme in ("https", "http"):
            try:
                from ggtok.sources import http
            except ImportError:
                raise MissingExtraError(
                    f"{printable(name)}: reading over HTTP needs an extra: pip install "
                    "'ggtok[http]'"
                ) from None
            return http.find_url(name)
        if scheme != "hf":
            raise InvalidValueError(
                f"{printable(name)}: unknown kind of source; the kinds are hf://, https://, "
                "ollama: and lmstudio:"
            )
    elif scheme == "hf" and colon:
        raise InvalidValueError(f"{printable(name)}: write hf://user/repo, with two slashes")
    from ggtok.sources import hub

    repo = hub.parse_repo(name)
    return hub.find_in_repo(repo, _hint) if repo else None


def _hint(name: str) -> str:
    from ggtok.sources import listing

    return listing.did_you_mean(name)
