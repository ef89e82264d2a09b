"""Corrects names that are nearly right.

Names with only one possible meaning (the URL of a model's page) are translated. For others, the
error message suggests the most similar models on this machine.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import chain
from urllib.parse import unquote

from ggtok.base.escape import shown
from ggtok.sources import hfcache, lmstudio, ollama
from ggtok.sources.files import scan

# Hosts of the Hub's and Ollama's pages. Names may begin with a host, with or without https://.
_HUB = ("huggingface.co", "www.huggingface.co", "hf.co")
_OLLAMA = ("ollama.com", "www.ollama.com", "registry.ollama.ai")
# A repository's page: repository, kind of page, revision, file.
_PAGE = re.compile(r"([^/]+/[^/]+)(?:/(tree|blob)/([^/]+)(?:/(.+))?)?/?")
_OTHER_PAGES = ("datasets/", "spaces/", "docs/", "models/", "collections/", "api/")
_SCHEMES = ("ollama:", "lmstudio:")
_TAGGED = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*:[A-Za-z0-9_][A-Za-z0-9_.-]*")
_MOST = 3  # suggestions
_ALIKE = 0.7  # difflib's ratio, from 0 to 1


def read_as(name: str) -> str | None:
    """Translates the URL of a page on the Hub or at Ollama to ggtok's form of the name.

    ``https://`` may be missing. None: it isn't such a URL. The URL of a file (``/resolve/``)
    isn't translated.
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
    """``"; did you mean ...?"``, the end of a message that `name` isn't found; or ""."""
    meant = _near_files(name) or _near_models(name)
    if not meant and _TAGGED.fullmatch(name) and not name.startswith(_SCHEMES):
        meant = [f"ollama:{name}"]  # the form of names in Ollama's own commands
    if not meant:
        return ""
    *others, last = (shown(m, 200) for m in meant)
    return f"; did you mean {', '.join(others)}{' or ' if others else ''}{last}?"


def _near_files(name: str) -> list[str]:
    """Similar files in the folder of the missing one."""
    folder, file = os.path.split(name)
    if not folder and not file.lower().endswith(".gguf"):
        return []
    there = {
        entry.name: os.path.join(folder, entry.name)
        for entry in scan(folder or ".")
        if entry.name.lower().endswith(".gguf")
    }
    return [there[near] for near in _nearest(file, {n: n for n in there}, 0.85)]


def _near_models(name: str) -> list[str]:
    """Similar models on this machine, by the names that load them."""
    bare = _bare(name)
    plain = {known: _bare(known) for known in _known()}
    model = bare.partition(":")[0]
    same = [known for known, its in plain.items() if its == bare]
    same += [
        known for known, its in plain.items() if its.partition(":")[0] == model and its != bare
    ]
    return same[:_MOST] or _nearest(bare, plain)


def _nearest(name: str, plain: dict[str, str], alike: float = _ALIKE) -> list[str]:
    """The keys whose values are most similar to `name`, most similar first."""
    import difflib

    by_text: dict[str, str] = {}
    for known, text in plain.items():
        by_text.setdefault(text.lower(), known)
    near = difflib.get_close_matches(name.lower(), by_text, n=_MOST, cutoff=alike)
    return [by_text[text] for text in near]


def _known() -> Iterator[str]:
    yield from (known for _, known, found in ollama.models() if isinstance(found, str))
    repos = (known.removeprefix("hf://") for kind, known, _ in hfcache.models() if kind == "hf")
    studios = (known for _, known, _ in lmstudio.models())
    # Repositories and folders, not single files.
    yield from dict.fromkeys("/".join(known.split("/")[:2]) for known in chain(repos, studios))


def _bare(name: str) -> str:
    """A name in lower case without its scheme and default parts, for comparison."""
    name = name.lower()
    for prefix in (*_SCHEMES, "hf://"):
        name = name.removeprefix(prefix)
    return name.removeprefix("library/").removesuffix(":latest")
