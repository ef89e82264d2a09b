"""Lists the models on this machine, and corrects names that are nearly right.

Only a model's metadata and tensor descriptions are read. They contain the vocabulary's type and
number of tokens, and show whether the file is cut off. No vocabulary is built.

The URL of a model's page, which can have only one meaning, is translated to the model's name. For
other names that aren't found, the error message suggests the most similar models on this machine.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from urllib.parse import unquote

from ggtok.base.escape import printable
from ggtok.base.files import open_regular
from ggtok.errors import GGTokError
from ggtok.native import peek
from ggtok.sources import hfcache, lmstudio, ollama_store, prefix
from ggtok.sources.model_files import Unreadable, files, first, note, scan

_FIRST = 64 << 10  # bytes to read from a file at first


@dataclass(frozen=True)
class ListedModel:
    """A model's file and a summary of its vocabulary.

    Attributes:
        source: ``"hf"``, ``"llama.cpp"``, ``"ollama"``, ``"lmstudio"`` or ``"file"``.
        name: the name for ``ggtok.load``.
        path, size: the file and its size in bytes (the first file of a split model).
        vocab_type, model, pre, n_tokens: as in ``Tokenizer``; None if the file has no such value,
            or `error` is set.
        error: the reason why the file can't be loaded or is incomplete, or None.
    """

    source: str
    name: str
    path: str | None
    size: int | None = None
    vocab_type: str | None = None
    model: str | None = None
    pre: str | None = None
    n_tokens: int | None = None
    error: str | None = None


@dataclass
class Survey:
    """The folders that :func:`models` has searched.

    Attributes:
        looked: the source and path of each folder, in the order of the models. The folder may not
            exist.
        unreadable: folders that can't be read, with the reasons. They may contain more models.
    """

    looked: list[tuple[str, str]] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)

    def lines(self, n_models: int) -> list[str]:
        """Returns lines for the user: the searched folders if no model was found, and the
        unreadable folders."""
        lines = []
        if not n_models:
            lines.append("no models found; ggtok looked in these folders:")
            for source, folder in self.looked:
                missing = "" if os.path.lexists(folder) else " (does not exist)"
                lines.append(f"  {source}: {printable(folder)}{missing}")
        lines += [f"can't read {printable(u.path)}: {printable(u.reason)}" for u in self.unreadable]
        return lines


def _stores() -> Iterator[tuple[str, str]]:
    """Yields the source and path of each folder in which a source stores models."""
    yield from (("hf", folder) for folder in hfcache.hub_folders())
    yield "llama.cpp", hfcache.llamacpp_folder()
    yield from (("ollama", folder) for folder in ollama_store.stores())
    yield from (("lmstudio", folder) for folder in lmstudio.model_folders())


def list_models(folders: Iterable[str] = (), survey: Survey | None = None) -> Iterator[ListedModel]:
    """Yields the models in `folders`, or, if `folders` is empty, the models of every source.

    `survey` is complete when the iteration ends.
    """
    folders = list(folders)
    survey = survey or Survey()
    survey.looked += [("file", folder) for folder in folders] or _stores()
    notes = survey.unreadable
    for _, store in survey.looked:
        try:
            os.scandir(store).close()
        except OSError as e:
            note(notes, store, e)
    if folders:
        for folder in folders:
            for file in files(folder, notes):
                if file.endswith(".gguf") and file == first(file):
                    path = os.path.join(folder, *file.split("/"))
                    yield summed_up("file", path, path)
        return
    every = chain(
        hfcache.list_cached(notes), ollama_store.list_store(notes), lmstudio.list_lmstudio(notes)
    )
    for source, name, found in every:
        if isinstance(found, Exception):
            yield ListedModel(source, name, None, error=_reason(found, name))
        else:
            yield summed_up(source, name, found)


def summed_up(source: str, name: str, path: str) -> ListedModel:
    """Summarizes the model in a file."""
    size = None
    try:
        with open_regular(path) as f:
            size = os.fstat(f.fileno()).st_size
            data, wanted = bytearray(), _FIRST
            while True:
                prefix.fill(f, data, min(wanted, size))
                summary = peek(data, size, path)
                if isinstance(summary, tuple):
                    break
                wanted = max(summary, 2 * len(data))
            try:
                prefix.check_whole(f, data, size, path)
            except GGTokError as e:
                return ListedModel(source, name, path, size, *summary, error=_reason(e, path))
            return ListedModel(source, name, path, size, *summary)
    except (GGTokError, OSError) as e:
        return ListedModel(source, name, path, size, error=_reason(e, path))


def _reason(error: Exception, name: str) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).removeprefix(f"{name}: ")


# ---- names that are nearly right ----

# Hosts of the Hub's and Ollama's pages. A name may begin with a host, with or without https://.
_HUB = ("huggingface.co", "www.huggingface.co", "hf.co")
_OLLAMA = ("ollama.com", "www.ollama.com", "registry.ollama.ai")
# The path of a repository's page: repository, kind of page, revision, file.
_PAGE = re.compile(r"([^/]+/[^/]+)(?:/(tree|blob)/([^/]+)(?:/(.+))?)?/?")
_OTHER_PAGES = ("datasets/", "spaces/", "docs/", "models/", "collections/", "api/")
_SCHEMES = ("ollama:", "lmstudio:")
_TAGGED = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*:[A-Za-z0-9_][A-Za-z0-9_.-]*")
_SUGGESTIONS = 3  # the most names that a message suggests
_ALIKE = 0.7  # the minimum similarity of a suggestion: difflib's ratio, from 0 to 1


def read_as(name: str) -> str | None:
    """Translates the URL of a page on the Hub or at Ollama to ggtok's form of the name.

    ``https://`` may be missing. Returns None for anything else, including the URL of a file
    (``/resolve/``).
    """
    address = name.partition("://")[2] if name.startswith(("https://", "http://")) else name
    host, _, path = address.partition("/")
    if host.lower() in _OLLAMA and path:
        path = path.partition("?")[0].partition("#")[0].strip("/")
        return f"ollama:{path.removeprefix('library/')}"
    endpoint = os.environ.get("HF_ENDPOINT", "").rstrip("/")
    if host.lower() not in _HUB:
        if not endpoint or not name.startswith(endpoint + "/"):
            return None
        path = name[len(endpoint) + 1 :]
    path = path.partition("?")[0].partition("#")[0]
    page = _PAGE.fullmatch(path)
    if not page or path.startswith(_OTHER_PAGES):
        return None
    repo, kind, revision, file = page.groups()
    if kind is None:
        return repo if ":" in repo else f"hf://{repo}"
    at = "" if revision == "main" else f"@{revision}"
    return f"hf://{repo}{at}/{unquote(file)}" if kind == "blob" and file else f"hf://{repo}{at}"


def did_you_mean(name: str) -> str:
    """Returns ``"; did you mean ...?"`` to end the message that `name` isn't found, or ""."""
    meant = _near_files(name) or _near_models(name)
    if not meant and _TAGGED.fullmatch(name) and not name.startswith(_SCHEMES):
        meant = [f"ollama:{name}"]  # `name` has the form that Ollama's own commands use
    if not meant:
        return ""
    *others, last = (printable(m, 200) for m in meant)
    return f"; did you mean {', '.join(others)}{' or ' if others else ''}{last}?"


def _near_files(name: str) -> list[str]:
    """Returns similar files in the missing file's folder."""
    folder, file = os.path.split(name)
    if not folder and not file.lower().endswith(".gguf"):
        return []
    available = {
        entry.name: os.path.join(folder, entry.name)
        for entry in scan(folder or ".")
        if entry.name.lower().endswith(".gguf")
    }
    return [available[near] for near in _nearest(file, {n: n for n in available}, 0.85)]


def _near_models(name: str) -> list[str]:
    """Returns the names of similar models on this machine, as ggtok.load accepts them."""
    bare = _bare(name)
    plain = {known: _bare(known) for known in _known_names()}
    model = bare.partition(":")[0]
    same = [known for known, its in plain.items() if its == bare]
    same += [
        known for known, its in plain.items() if its.partition(":")[0] == model and its != bare
    ]
    return same[:_SUGGESTIONS] or _nearest(bare, plain)


def _nearest(name: str, plain: dict[str, str], alike: float = _ALIKE) -> list[str]:
    """Returns the keys whose values are most similar to `name`, most similar first."""
    import difflib

    by_text: dict[str, str] = {}
    for known, text in plain.items():
        by_text.setdefault(text.lower(), known)
    near = difflib.get_close_matches(name.lower(), by_text, n=_SUGGESTIONS, cutoff=alike)
    return [by_text[text] for text in near]


def _known_names() -> Iterator[str]:
    yield from (known for _, known, found in ollama_store.list_store() if isinstance(found, str))
    repos = (
        known.removeprefix("hf://") for kind, known, _ in hfcache.list_cached() if kind == "hf"
    )
    studios = (known for _, known, _ in lmstudio.list_lmstudio())
    # Suggest repositories and folders rather than single files.
    yield from dict.fromkeys("/".join(known.split("/")[:2]) for known in chain(repos, studios))


def _bare(name: str) -> str:
    """Returns a name in lower case, without its scheme and default parts, for comparison."""
    name = name.lower()
    for scheme in (*_SCHEMES, "hf://"):
        name = name.removeprefix(scheme)
    return name.removeprefix("library/").removesuffix(":latest")
