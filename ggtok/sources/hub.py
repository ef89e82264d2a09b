"""Models of Hugging Face repositories: the caches of this machine, then the Hub.

The Hub through huggingface_hub, with its settings: HF_ENDPOINT, HF_TOKEN (or the
token that ``hf auth login`` saved), HF_HUB_OFFLINE.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from ggtok.errors import (
    FileError,
    GGTokError,
    InvalidValueError,
    MissingExtraError,
    not_found,
    not_permitted,
)
from ggtok.sources import Found, Source, cache, hfcache
from ggtok.sources.choose import no_model
from ggtok.sources.hfcache import Repo
from ggtok.sources.split import first

if TYPE_CHECKING:
    from collections.abc import Callable

_PART = r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?"
_ID = re.compile(rf"{_PART}/{_PART}")
_NAME = re.compile(rf"({_ID.pattern})(?::([A-Za-z0-9_.-]+))?")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_SYNTAX = "hf://user/repo[@revision]/file.gguf or hf://user/repo[@revision][:quant]"


def parse(name: str) -> Repo | None:
    """The repository that a name means, or None if it means none."""
    if not name.startswith("hf://"):
        match = _NAME.fullmatch(name)
        if not match or ".gguf/" in name or match[1].endswith(".gguf"):
            return None  # models/file.gguf is a path that leads nowhere
        return Repo(name, match[1], quant=match[2])
    parts = name[len("hf://") :].split("/", 2)
    repo = "/".join(parts[:2])
    file = parts[2] if len(parts) > 2 else None
    quant = None
    if file is None:
        repo, colon, quant = repo.partition(":")
        if colon and not quant:
            raise InvalidValueError(f"{name}: a quantization is missing behind ':' ({_SYNTAX})")
    repo, at, revision = repo.partition("@")
    # A revision such as refs/pr/1 is written with %2F.
    revision = revision.replace("%2F", "/").replace("%2f", "/")
    if not _ID.fullmatch(repo) or (at and not revision) or file == "":
        raise InvalidValueError(f"{name}: this is no file of a repository ({_SYNTAX})")
    for path in (file or "", revision):
        if path.startswith("/") or ".." in path.split("/"):
            raise InvalidValueError(f"{name}: '..' and empty names lead nowhere ({_SYNTAX})")
    return Repo(name, repo, revision or None, first(file) if file else None, quant or None)


def find(repo: Repo) -> Found:
    """The model on this machine, else the metadata of the one on the Hub."""
    if cached := hfcache.find(repo):
        return Found(Source(repo.name, cached.kind, path=cached.path))
    hub = _Hub(repo)
    return hub.kept() if hub.offline else hub.fetch()


def _huggingface_hub(name: str) -> Any:
    try:
        import huggingface_hub.constants
        import huggingface_hub.errors
        import huggingface_hub.utils
    except ImportError:
        raise MissingExtraError(
            f"{name}: there is no such file, nor such a model in the caches of this machine; to "
            "look on the Hugging Face Hub install the extra: pip install 'ggtok[hub]'"
        ) from None
    return huggingface_hub


class _Hub:
    """One look at the Hub for one file."""

    def __init__(self, repo: Repo) -> None:
        self.repo = repo
        self.hf = _huggingface_hub(repo.name)
        self.offline: bool = self.hf.constants.HF_HUB_OFFLINE

    def _url(self, file: str) -> str:
        url: str = self.hf.hf_hub_url(self.repo.id, file, revision=self.repo.revision)
        return url

    def kept(self) -> Found:
        """Offline: what an earlier fetch left."""
        prefix = self._url("x")[:-1]
        kept = {unquote(entry.url[len(prefix) :]): entry for entry in cache.entries(prefix)}
        file = self.repo.pick(sorted(kept))
        data = cache.load(kept[file].url) if file else None
        if file is None or data is None:
            raise not_found(
                f"{self.repo.name}: not in the caches of this machine, and HF_HUB_OFFLINE forbids "
                "to look on the Hub"
            )
        return Found(Source(self.repo.name, "hf", url=kept[file].url), data.payload)

    def fetch(self) -> Found:
        repo = self.repo
        file = repo.file or self._choose()
        url = self._url(file)
        kept = cache.load(url)
        if kept is None or not _COMMIT.fullmatch(repo.revision or ""):  # a commit never changes
            meta = self._ask(lambda: self.hf.get_hf_file_metadata(url))
            if kept is None or not meta.etag or kept.validator != meta.etag:
                kept = cache.Entry(url, meta.etag or "", self._read(url, meta))
                cache.store(kept)
        return Found(Source(repo.name, "hf", url=url), kept.payload)

    def _choose(self) -> str:
        repo = self.repo
        api = self.hf.HfApi()
        files = self._ask(lambda: api.list_repo_files(repo.id, revision=repo.revision))
        file = repo.pick(files)
        if file is None:
            raise not_found(no_model(repo.name, files, repo.quant))
        return file

    def _read(self, url: str, meta: Any) -> bytes:
        from ggtok.sources.http import Reader

        client = self.hf.get_session()
        headers = self.hf.utils.build_hf_headers()
        reader = Reader(client, self.repo.name, url, headers, resolved=meta.location)
        data: bytes = self._ask(reader.read)
        return data

    def _ask(self, request: Callable[[], Any]) -> Any:
        """request(), its errors ours."""
        name, errors = self.repo.name, self.hf.errors
        try:
            return request()
        except GGTokError:
            raise
        except errors.GatedRepoError as e:
            raise not_permitted(
                f"{name}: access to this repository must be granted on the Hub first, and a token "
                f"sent (HF_TOKEN, or 'hf auth login'): {_line(e)}"
            ) from e
        except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError) as e:
            raise not_found(
                f"{name}: no such file, nor such a repository or revision on the Hub (a private "
                f"one needs a token: HF_TOKEN, or 'hf auth login'): {_line(e)}"
            ) from e
        except errors.EntryNotFoundError as e:
            raise not_found(f"{name}: no such file in the repository: {_line(e)}") from e
        except errors.HFValidationError as e:
            raise InvalidValueError(f"{name}: {_line(e)}") from e
        except Exception as e:
            # Whatever the HTTP library of its release raises.
            raise FileError(f"{name}: the Hub can't be asked: {_line(e)}") from e


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
