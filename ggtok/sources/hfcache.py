"""Finds models from Hugging Face repositories in this machine's caches.

There are two layouts: that of huggingface_hub, which current versions of llama.cpp use, too
(huggingface_hub's "Understand caching", llama.cpp's ``common/hf-cache.cpp``):

    models--USER--REPO/refs/REVISION            a commit's hash
    models--USER--REPO/snapshots/COMMIT/FILE    a link to ../../blobs/HASH, or a file

and that of older versions of llama.cpp (``common_params_handle_model``):

    USER_REPO_FILE.gguf     USER/REPO/FILE.gguf with each / replaced by _
    USER_REPO_FILE.gguf.json    {"url": ...}; in later versions .etag, without a URL

Like llama.cpp, ggtok reads these folders itself, so that finding a cached model needs neither the
package huggingface_hub nor the time to import it.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from ggtok.base.files import read_regular
from ggtok.sources.model_files import Notes, choose, files, first, in_any_case, scan

_COMMIT = re.compile(r"[0-9a-f]{40}")
# The most bytes to read from a ref, and from llama.cpp's JSON file.
_REF_MOST = 1 << 10
_ABOUT_MOST = 1 << 16


@dataclass(frozen=True)
class Repo:
    """A request for a file in a repository, or for the repository's model with a quantization."""

    name: str
    id: str  # USER/REPO
    revision: str | None = None
    file: str | None = None
    quant: str | None = None

    def pick(self, paths: list[str]) -> str | None:
        """Returns the path of the requested file, which is one of `paths`, or None."""
        if self.file is None:
            return choose(paths, self.quant)
        return self.file if self.file in paths else None


@dataclass(frozen=True)
class Cached:
    """A file from a repository in a local cache."""

    repo: str
    revision: str
    file: str
    path: str
    kind: str


# ---- the caches' folders ----


def _variable(name: str, *below: str) -> str | None:
    value = os.environ.get(name)
    return os.path.join(os.path.expanduser(value), *below) if value else None


def _home(*below: str) -> str:
    return os.path.join(os.path.expanduser("~"), *below)


def hub_folders() -> list[str]:
    """Returns the folders of caches in huggingface_hub's layout.

    They are llama.cpp's folder, if LLAMA_CACHE is set, and the Hub's folder. The first of the Hub's
    variables that is set defines the latter.
    """
    hub = (
        _variable("HF_HUB_CACHE")
        or _variable("HUGGINGFACE_HUB_CACHE")
        or _variable("HF_HOME", "hub")
        or _variable("XDG_CACHE_HOME", "huggingface", "hub")
        or _home(".cache", "huggingface", "hub")
    )
    llama = _variable("LLAMA_CACHE")
    return [llama, hub] if llama and llama != hub else [hub]


def llamacpp_folder() -> str:
    """Returns the folder of llama.cpp's own cache, like ``fs_get_cache_directory``."""
    if sys.platform == "win32":
        base = _variable("LOCALAPPDATA", "llama.cpp")
    elif sys.platform == "darwin":
        base = _home("Library", "Caches", "llama.cpp")
    else:
        base = _variable("XDG_CACHE_HOME", "llama.cpp")
    return _variable("LLAMA_CACHE") or base or _home(".cache", "llama.cpp")


# ---- finding ----


def find_cached(repo: Repo) -> Cached | None:
    """Returns the requested file if a cache has it, else None."""
    for folder in hub_folders():
        if cached := _in_hub_cache(folder, repo):
            return cached
    if repo.revision is None:
        return _in_llamacpp_cache(llamacpp_folder(), repo)
    return None


def _commit(repo_folder: str, revision: str | None, notes: Notes = None) -> str | None:
    """Returns the commit that a revision refers to; a commit's hash refers to itself.

    If `revision` is None, main or else any ref is used, as in llama.cpp's get_cached_ref.
    """
    refs = os.path.join(repo_folder, "refs")
    if revision is not None and _COMMIT.fullmatch(revision):
        return revision
    names = [revision or "main"]
    if revision is None:
        names += sorted(entry.name for entry in scan(refs, notes) if entry.is_file())
    for name in names:
        try:
            ref = read_regular(os.path.join(refs, *name.split("/")), _REF_MOST)
            commit = ref.partition(b"\n")[0].decode("ascii").strip()
        except (OSError, ValueError):
            continue
        if _COMMIT.fullmatch(commit):
            return commit
    return None


def _in_hub_cache(folder: str, repo: Repo) -> Cached | None:
    repo_folder = in_any_case(folder, "models--" + repo.id.replace("/", "--"))
    commit = _commit(repo_folder, repo.revision)
    if commit is None:
        return None
    snapshot = os.path.join(repo_folder, "snapshots", commit)
    file = repo.pick(sorted(files(snapshot)))
    if file is None:
        return None
    path = os.path.join(snapshot, *file.split("/"))
    return Cached(repo.id, repo.revision or "main", file, path, "hf")


def _in_llamacpp_cache(folder: str, repo: Repo) -> Cached | None:
    prefix = repo.id.replace("/", "_") + "_"
    names = {
        entry.name[len(prefix) :]: entry.path
        for entry in scan(folder)
        if entry.name.startswith(prefix) and entry.name.endswith(".gguf") and _is_of(entry, repo)
    }
    file = repo.file.replace("/", "_") if repo.file else choose(sorted(names), repo.quant)
    path = names.get(file) if file else None
    if not file or not path:
        return None
    return Cached(repo.id, "main", file, path, "llama.cpp")


def _is_of(entry: os.DirEntry[str], repo: Repo) -> bool:
    """Whether a file may come from the repository: USER_A_B may come from repository A or A_B."""
    try:
        url = json.loads(read_regular(entry.path + ".json", _ABOUT_MOST))["url"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return True
    return f"/{repo.id}/resolve/" in str(url)


# ---- listing ----


def list_cached(notes: Notes = None) -> Iterator[tuple[str, str, str]]:
    """Yields the kind, loadable name and path of each possible model in the caches."""
    for folder in hub_folders():
        for entry in scan(folder, notes):
            if not entry.name.startswith("models--"):
                continue
            commit = _commit(entry.path, None, notes)
            if commit is None:
                continue
            id = entry.name[len("models--") :].replace("--", "/")
            snapshot = os.path.join(entry.path, "snapshots", commit)
            for file in sorted(files(snapshot, notes)):
                if file == first(file) and file.endswith(".gguf"):
                    yield "hf", f"hf://{id}/{file}", os.path.join(snapshot, *file.split("/"))
    for entry in scan(llamacpp_folder(), notes):
        # Use the path as the name, since the repository's name can't be told from the file name.
        if entry.name.endswith(".gguf") and entry.name == first(entry.name):
            yield "llama.cpp", entry.path, entry.path
