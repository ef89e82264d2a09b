"""Finds models from Hugging Face repositories, in this machine's caches and then on the Hub.

Requests to the Hub use huggingface_hub and its settings: HF_ENDPOINT, HF_TOKEN (or the token saved
by ``hf auth login``), HF_HUB_OFFLINE. If the Hub can't be reached, ggtok uses its own cache.
"""

from __future__ import annotations

import fnmatch
import logging
import os
import re
import threading
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from ggtok._version import __version__
from ggtok.base.escape import one_line, printable
from ggtok.errors import (
    FileError,
    GGTokError,
    InvalidValueError,
    MissingExtraError,
    UnreachableError,
    not_found,
    not_permitted,
)
from ggtok.sources import download_cache, hfcache
from ggtok.sources.hfcache import Repo
from ggtok.sources.model_files import Found, Hint, Source, first, no_model
from ggtok.sources.timeouts import CallTimeout, call_with_timeout, offline_reason, waiting

if TYPE_CHECKING:
    from collections.abc import Callable

_PART = r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?"
_ID = re.compile(rf"{_PART}/{_PART}")
_NAME = re.compile(rf"({_ID.pattern})(?::([A-Za-z0-9_.-]+))?")
_REACH = 10  # seconds allowed for connecting to the Hub
_COMMIT = re.compile(r"[0-9a-f]{40}")
_SYNTAX = "hf://user/repo[@revision]/file.gguf or hf://user/repo[@revision][:quant]"


def parse_repo(name: str) -> Repo | None:
    """Returns the repository that a name refers to, or None if it refers to none."""
    if not name.startswith("hf://"):
        match = _NAME.fullmatch(name)
        if not match or ".gguf/" in name or match[1].endswith(".gguf"):
            return None  # such as models/file.gguf, the path of a missing file
        return Repo(name, match[1], quant=match[2])
    parts = name[len("hf://") :].split("/", 2)
    repo = "/".join(parts[:2])
    file = parts[2] if len(parts) > 2 else None
    quant = None
    if file is None:
        repo, colon, quant = repo.partition(":")
        if colon and not quant:
            raise InvalidValueError(
                f"{printable(name)}: a quantization is missing after ':' ({_SYNTAX})"
            )
    repo, at, revision = repo.partition("@")
    # In a name, a revision such as refs/pr/1 is written with %2F.
    revision = revision.replace("%2F", "/").replace("%2f", "/")
    if not _ID.fullmatch(repo) or (at and not revision) or file == "":
        raise InvalidValueError(
            f"{printable(name)}: not the name of a file or model in a repository ({_SYNTAX})"
        )
    for path in (file or "", revision):
        if path.startswith("/") or ".." in path.split("/"):
            raise InvalidValueError(
                f"{printable(name)}: a path in a repository has no '..' and no empty parts "
                f"({_SYNTAX})"
            )
    return Repo(name, repo, revision or None, first(file) if file else None, quant or None)


def find_in_repo(repo: Repo, did_you_mean: Hint) -> Found:
    """Finds the model on this machine, or else gets its metadata from the Hub."""
    if cached := hfcache.find_cached(repo):
        return Found(Source(repo.name, cached.kind, path=cached.path))
    hub = _Hub(repo, did_you_mean)
    if hub.offline:
        if found := hub.kept():
            return found
        raise not_found(
            f"{printable(repo.name)}: not in the caches of this machine, and {hub.offline} to look "
            "on the Hub"
        )
    try:
        return hub.fetch()
    except UnreachableError:
        if found := hub.kept():
            return found
        raise


# The files in a repository that make up a tokenizer: patterns of their names.
_TOKENIZER_FILES = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("config.json", "generation_config.json", "chat_template.jinja", "chat_template.json"),
    *("tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "*.model.v[0-9]*", "*.spm"),
    *("tiktoken.model", "*.tiktoken", "tekken.json"),
    *("vocab.json", "merges.txt", "encoder.json", "vocab.bpe", "vocab.txt", "tokenizer.jsonl"),
    "rwkv_vocab_v20230424.txt",
)
_MOST, _MOST_FILES = 128 << 20, 32  # limits: bytes per file, number of files


def repository(name: str) -> Repo | None:
    """Returns the repository that `name` identifies, by its name or the URL of its page.

    Returns None if `name` refers to a file or a quantization, or isn't the name of a repository.

    Raises:
        InvalidValueError: a ``hf://`` name is malformed.
    """
    page = re.match(r"https?://(?:www\.)?(?:huggingface\.co|hf\.co)/([^/?#]+/[^/?#]+)", name)
    repo = parse_repo(page[1] if page else name)
    return None if repo is None or repo.file or repo.quant else repo


def tokenizer_folder(name: str) -> str:
    """Returns a folder with a repository's tokenizer files, in huggingface_hub's cache.

    Args:
        name: ``user/repo``, ``hf://user/repo[@revision]``, or the URL of the repository's page.

    Raises:
        FileError: there is no such repository, it has no tokenizer, or it can't be reached.
        InvalidValueError: the name is malformed.
        MissingExtraError: huggingface_hub isn't installed.
    """
    repo = repository(name)
    if repo is None:
        raise InvalidValueError(
            f"{printable(name) or repr(name)}: neither a file or folder nor the name of a "
            "repository (user/repo)"
        )
    return _Hub(repo, lambda _: "").tokenizer_folder()


def _huggingface_hub(name: str) -> Any:
    try:
        import huggingface_hub.constants
        import huggingface_hub.errors
        import huggingface_hub.utils
    except ImportError:
        raise MissingExtraError(
            f"{printable(name)}: no such file, and no such model in the caches of this machine; to "
            "look on the Hugging Face Hub, install the extra: pip install 'ggtok[hub]'"
        ) from None
    return huggingface_hub


def _is_of_tokenizer(name: object) -> bool:
    return isinstance(name, str) and any(
        fnmatch.fnmatchcase(name, pattern) for pattern in _TOKENIZER_FILES
    )


class _Quiet:
    """A context in which huggingface_hub logs only critical messages, for all threads."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # reentrant: a signal handler may fork, or enter the context
        self._inside = 0
        self._level = logging.NOTSET
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self._lock.acquire,
                after_in_parent=self._lock.release,
                after_in_child=self._in_child,
            )

    def _in_child(self) -> None:
        """Resets the state in a forked process, since other threads exist only in the parent."""
        if self._inside:
            logging.getLogger("huggingface_hub").setLevel(self._level)
        self._inside = 0
        self._lock.release()

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                logger = logging.getLogger("huggingface_hub")
                self._level = logger.level
                logger.setLevel(logging.CRITICAL)
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside = max(0, self._inside - 1)
            if not self._inside:
                logging.getLogger("huggingface_hub").setLevel(self._level)


_quiet = _Quiet()


class _Hub:
    """A lookup of one file on the Hub."""

    def __init__(self, repo: Repo, did_you_mean: Hint) -> None:
        self.repo = repo
        self._did_you_mean = did_you_mean
        self.shown = printable(repo.name)
        self._reached = False
        self.hf = _huggingface_hub(repo.name)
        unset = self.hf.constants.HF_HUB_OFFLINE and "HF_HUB_OFFLINE is set: unset it"
        self.offline: str | None = offline_reason() or unset or None
        self._agent = {"library_name": "ggtok", "library_version": __version__}

    def _url(self, file: str) -> str:
        repo = self.repo
        url: str = self._translated(
            lambda: self.hf.hf_hub_url(repo.id, file, revision=repo.revision)
        )
        return url

    def kept(self) -> Found | None:
        """Returns the model's copy in ggtok's cache, or None."""
        prefix = self._url("x")[:-1]
        kept = {
            unquote(entry.url[len(prefix) :]): entry for entry in download_cache.entries(prefix)
        }
        file = self.repo.pick(sorted(kept))
        entry = download_cache.load_entry(kept[file].url) if file else None
        if entry is None:
            return None
        return Found(Source(self.repo.name, "hf", url=entry.url), entry.payload)

    def _reach(self) -> None:
        """Raises an error without delay if there is no network; huggingface_hub would try for 20
        seconds."""
        if self._reached:
            return
        import httpx2

        from ggtok.sources import connect, http

        clock = connect.Clock(min(http.timeout(), _REACH))
        try:
            url = httpx2.URL(self._url("x"))
            with waiting(f"{printable(url.host)} ({self.shown})"), connect.Network() as net:
                net.reach(url, clock)
        except (connect.Late, ConnectionError, httpx2.InvalidURL) as e:
            raise self._unreachable(str(e)) from e
        self._reached = True

    def _unreachable(self, reason: str) -> UnreachableError:
        return UnreachableError(
            f"{self.shown}: not on this machine, and the Hugging Face Hub can't be reached: "
            f"{reason}{self._hint()}"
        )

    def fetch(self) -> Found:
        repo = self.repo
        file = repo.file or self._choose()
        url = self._url(file)
        kept = download_cache.load_entry(url)
        if kept is None or not _COMMIT.fullmatch(repo.revision or ""):  # a commit never changes
            meta = self._ask(lambda: self.hf.get_hf_file_metadata(url, **self._agent))
            if kept is None or not meta.etag or kept.validator != meta.etag:
                kept = download_cache.CacheEntry(url, meta.etag or "", self._read(url))
                if kept.validator:
                    download_cache.store(kept)
        return Found(Source(repo.name, "hf", url=url), kept.payload)

    def tokenizer_folder(self) -> str:
        """Implements :func:`tokenizer_folder`. Uses the Hub's cache if the Hub can't be reached."""
        if not self.offline:
            try:
                return self._download()
            except UnreachableError:
                folder = self._downloaded()
                if folder is None:
                    raise
                return folder
        folder = self._downloaded()
        if folder is None:
            raise not_found(
                f"{self.shown}: not in huggingface_hub's cache, and {self.offline} to look on the "
                "Hub"
            )
        return folder

    def _downloaded(self) -> str | None:
        try:
            with _quiet:
                folder: str = self.hf.snapshot_download(
                    self.repo.id, revision=self.repo.revision, local_files_only=True
                )
        except Exception:  # of several types, all of which mean that it isn't cached
            return None
        return folder if any(map(_is_of_tokenizer, os.listdir(folder))) else None

    def _download(self) -> str:
        repo, api = self.repo, self.hf.HfApi(**self._agent)
        entries = self._ask(lambda: list(api.list_repo_tree(repo.id, revision=repo.revision)))
        sizes = {e.path: getattr(e, "size", None) for e in entries if _is_of_tokenizer(e.path)}
        if not sizes:
            raise not_found(f"{self.shown}: the repository has no tokenizer files")
        if len(sizes) > _MOST_FILES:
            raise FileError(
                f"{self.shown}: {len(sizes)} files are like those of tokenizers: too many for one"
            )
        path = ""
        for file, size in sizes.items():
            if not isinstance(size, int) or size > _MOST:
                raise FileError(
                    f"{self.shown}: {printable(file)} has more than {_MOST} bytes: too large for a "
                    "tokenizer"
                )
            download = partial(self.hf.hf_hub_download, repo.id, file, revision=repo.revision)
            with waiting(f"the Hugging Face Hub ({self.shown})"):
                path = self._translated(partial(download, **self._agent))
        return os.path.dirname(path)

    def _choose(self) -> str:
        repo = self.repo
        api = self.hf.HfApi(**self._agent)
        files = self._ask(lambda: api.list_repo_files(repo.id, revision=repo.revision))
        file = repo.pick(files)
        if file is None:
            raise not_found(no_model(repo.name, files, repo.quant))
        return file

    def _read(self, url: str) -> bytes:
        from ggtok.sources.connect import Network
        from ggtok.sources.http import UrlReader

        headers = self.hf.utils.build_hf_headers(**self._agent)
        with UrlReader(Network(), self.repo.name, url, headers) as reader:
            data: bytes = self._translated(reader.read)
        return data

    def _ask(self, request: Callable[[], Any]) -> Any:
        """Calls request(), which uses huggingface_hub, with the time limit."""
        from ggtok.sources.http import timeout

        self._reach()
        seconds = timeout()
        with waiting(f"the Hugging Face Hub ({self.shown})"):
            try:
                return call_with_timeout(seconds, lambda: self._translated(request))
            except CallTimeout:
                raise self._unreachable(
                    f"no answer within {seconds} seconds (GGTOK_HTTP_TIMEOUT)"
                ) from None

    def _hint(self) -> str:
        return self._did_you_mean(self.repo.name)

    def _translated(self, request: Callable[[], Any]) -> Any:
        """Calls request() with logging turned off, and translates its errors to ggtok's."""
        name, errors = self.shown, self.hf.errors
        try:
            with _quiet:
                return request()
        except GGTokError:
            raise
        except errors.GatedRepoError as e:
            raise not_permitted(
                f"{name}: this repository is gated, so access must be granted: ask for it on its "
                f"page, then set HF_TOKEN or run 'hf auth login': {one_line(e)}"
            ) from e
        except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError) as e:
            raise not_found(
                f"{name}: no such file, nor such a repository or revision on the Hub (if it is "
                f"private, set HF_TOKEN or run 'hf auth login'): {one_line(e)}{self._hint()}"
            ) from e
        except errors.EntryNotFoundError as e:
            raise not_found(f"{name}: no such file in the repository: {one_line(e)}") from e
        except errors.HfHubHTTPError as e:
            failed = FileError if e.response.status_code in range(400, 429) else UnreachableError
            raise failed(f"{name}: the Hub answers with an error: {one_line(e)}") from e
        except errors.HFValidationError as e:
            raise InvalidValueError(f"{name}: {one_line(e)}") from e
        except Exception as e:
            # Exceptions from huggingface_hub's HTTP library, whose types depend on its version.
            raise self._unreachable(one_line(e)) from e
