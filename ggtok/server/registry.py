"""The models that a server answers for: an allow list. Each is loaded on first use.

Loading a model and checking its file can block, so neither happens while a request is answered:
:meth:`Registry.get` raises NotReady instead. Then the server calls :meth:`Registry.ready` on
another thread, and passes its result to `get`.
"""

from __future__ import annotations

import logging
import os
import time
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from threading import Lock

import ggtok
from ggtok.errors import FileError, GGTokError, InvalidTypeError, InvalidValueError
from ggtok.server.fields import quote_value
from ggtok.server.folders import ServedFolder
from ggtok.server.refusals import NotReady, Refusal, UnknownModel

ANY = "*"  # the alias of a model that is used for every other name
CHECK_SECONDS = 1.0  # between two checks of a model's file
MAX_LOADED = 16
_LISTED = 20  # the most names in an error message
_LOADS = 3  # the most attempts to load a file that changes while it is read

Stamp = tuple[int, int, int, int]

logger = logging.getLogger("ggtok.server.models")


@dataclass(eq=False)
class AllowedModel:
    """A model in the allow list.

    Attributes:
        name: the model's alias.
        shown: the name that the server reports: the alias or, if that is ``*``, the file's name.
        source: the argument for :func:`ggtok.load`; "" if the caller passed a tokenizer.
        is_file: whether the source was a file when the server started.
        created: when the tokenizer was loaded, in seconds since 1970.
    """

    name: str
    shown: str
    source: str
    tok: ggtok.Tokenizer | None = None
    is_file: bool = False
    fixed: bool = False  # whether the caller passed the tokenizer, which is never reloaded
    created: int = 0
    stamp: Stamp | None = None
    checked: float = -inf
    error: str = ""  # why loading failed; requests get this error until the next check
    lock: Lock = field(default_factory=Lock)  # held while the model is loaded

    def served(self, tok: ggtok.Tokenizer) -> Served:
        return Served(self.shown, self.source, tok, self.created)

    def is_due(self) -> bool:
        """Whether the file must be checked again."""
        return time.monotonic() - self.checked >= CHECK_SECONDS


@dataclass(frozen=True)
class Served:
    """A loaded model. The tokenizer stays valid when the registry drops or reloads the model."""

    name: str
    source: str
    tok: ggtok.Tokenizer
    created: int


@dataclass(frozen=True)
class Ready:
    """What was done for a request before it is answered: a model was loaded or checked, or the
    folder was scanned.

    Attributes:
        model: the model that was loaded or checked, or None.
        result: the model, or the refusal if it can't be loaded.
        scanned: whether the folder was scanned.
    """

    model: AllowedModel | None = None
    result: Served | Refusal | None = None
    scanned: bool = False


class Registry:
    """Models by name. Any number of threads may use it.

    Args:
        models: names or paths of models, or a mapping of aliases to names, paths or tokenizers.
            The alias ``*`` matches every other name.
        max_loaded: the maximum number of models in memory; if there are more, the least recently
            used one is unloaded.
        folder: a folder whose .gguf files are models, too. The folder is scanned again when a
            request names an unknown model, or lists the models.

    Raises:
        FileError: the folder can't be listed.
        InvalidValueError: two of `models` have the same name, or the folder has no .gguf file.
    """

    def __init__(
        self, models: object, max_loaded: int = MAX_LOADED, folder: str | None = None
    ) -> None:
        self._given = _models(models)
        if max_loaded < 1:
            raise InvalidValueError(f"max_loaded must be at least 1, not {max_loaded}")
        self.max_loaded = max_loaded
        self.folder = None if folder is None else ServedFolder(folder)
        self._not_served = set[str]()  # the paths of the folder's files whose names are taken
        found: list[AllowedModel] = []
        if self.folder is not None:
            found = _models_in(self.folder)
            if not found:
                raise InvalidValueError(f"{self.folder.path}: has no .gguf file")
            self.folder.postpone()
        self._set_found(found)
        self._lock = Lock()  # protects _loaded
        self._loaded: OrderedDict[str, AllowedModel] = OrderedDict()  # most recently used last
        self.loads = self.failures = self.unloads = 0  # counts since the start

    @property
    def names(self) -> list[str]:
        return [model.name for model in self.models]

    def offered(self, *, any_name: bool = True) -> list[AllowedModel]:
        """Returns the models of lists. With `any_name`, that includes the model with the alias
        ``*``, unless another one has the name that is shown for it."""
        names = {model.name for model in self.models}
        return [
            model
            for model in self.models
            if model.name != ANY or (any_name and model.shown not in names)
        ]

    def n_loaded(self) -> int:
        return sum(model.tok is not None for model in self.models)

    def model_named(self, name: object = None, ready: Ready | None = None) -> AllowedModel:
        """Returns the model with this alias, path or name. None means the only model, or the one
        with the alias ``*``.

        Raises:
            UnknownModel: there is no such model, or there are several and none is named.
            NotReady: there is none, but the folder must be scanned first.
        """
        if name is None:
            if len(self.models) == 1:
                return self.models[0]
            if ANY in self._names:
                return self._names[ANY]
            self.require_scan(ready)
            message = f"several models are served, so the request must name one: {self._listed()}"
            if not self.models:
                message = "no model is served"
            raise UnknownModel(message, False)
        if not isinstance(name, str):
            raise Refusal(f"model must be a string, not {quote_value(name)}")
        found = self._names.get(name)
        if found is None:
            self.require_scan(ready)
            found = self._names.get(ANY)
        if found is None:
            message = f"unknown model {quote_value(name, 200)}; known: {self._listed() or 'none'}"
            raise UnknownModel(message, True)
        return found

    def require_scan(self, ready: Ready | None) -> None:
        """Raises NotReady if the folder must be scanned before the models are known."""
        if self.folder is not None and self.folder.is_due() and not (ready and ready.scanned):
            raise NotReady(self.folder)

    def scan(self, folder: ServedFolder) -> None:
        """Adds models for new files of the folder, and removes those of files that are gone. Can
        take long. The caller makes sure that only one thread does this at a time."""
        folder.postpone()
        before = self.models[len(self._given) :]
        known = {model.source: model for model in before}
        try:
            found = [known.get(new.source, new) for new in _models_in(folder)]
        except GGTokError as e:
            logger.warning("folder not scanned", extra={"fields": {"error": str(e)}})
            return
        self._set_found(found)
        after = {model.source: model for model in self.models[len(self._given) :]}
        for new in after.values():
            if new.source not in known:
                _log("model added", new)
        for gone in before:
            if gone.source not in after:
                with self._lock:
                    if self._loaded.get(gone.name) is gone:
                        del self._loaded[gone.name]
                _log("model removed", gone)

    def _set_found(self, found: list[AllowedModel]) -> None:
        """Sets the models: the ones named at the start, and the ones found in the folder. A
        file whose name another model has isn't served."""
        models = {model.name: model for model in self._given}
        not_served = [new for new in found if models.setdefault(new.name, new) is not new]
        for new in not_served:
            if new.source not in self._not_served:
                _log("model not served: another has its name", new)
        self._not_served = {new.source for new in not_served}
        self.models: list[AllowedModel] = [*models.values()]
        self._names = _names(self.models)

    def _listed(self) -> str:
        models = self.offered()
        listed = ", ".join(model.shown for model in models[:_LISTED])
        more = len(models) - _LISTED
        return listed if more <= 0 else f"{listed} and {more} more (GET /v1/models lists them)"

    def get(self, name: object = None, ready: Ready | None = None) -> Served:
        """Returns the model with this name. `ready` is a model that was just loaded or checked.

        Raises:
            UnknownModel: there is no such model.
            Refusal: the model can't be loaded.
            NotReady: the model must first be loaded, or its file checked.
        """
        model = self.model_named(name, ready)
        if ready is not None and ready.model is model:
            if isinstance(ready.result, Served):
                return ready.result
            raise ready.result or NotReady(model)
        tok = model.tok
        if tok is None or (not model.fixed and model.is_due()):
            raise NotReady(model)
        if not model.fixed:
            self._keep(model)
        return model.served(tok)

    def ready(self, model: AllowedModel) -> Ready:
        """Loads a model if necessary, and checks whether its file has changed. Can take long."""
        with model.lock:
            while True:
                if model.is_due() or (model.tok is None and not model.error):
                    self._refresh(model)
                tok = model.tok  # another thread may have just unloaded it
                if tok is not None:
                    self._keep(model)
                    return Ready(model, model.served(tok))
                if model.error:
                    return Ready(model, Refusal(model.error, "unavailable_error"))

    def _keep(self, model: AllowedModel) -> None:
        """Marks a model as just used, and unloads the least recently used if there are too many.
        Does nothing if the model was removed while it was loaded."""
        unloaded = []
        with self._lock:
            if self._names.get(model.name) is not model:
                return
            self._loaded[model.name] = model
            self._loaded.move_to_end(model.name)
            while len(self._loaded) > self.max_loaded:
                _, dropped = self._loaded.popitem(last=False)
                dropped.tok = None
                unloaded.append(dropped)
            self.unloads += len(unloaded)
        for dropped in unloaded:
            _log("model unloaded", dropped)

    def _refresh(self, model: AllowedModel) -> None:
        """Loads a model, or reloads it if its file has changed. The caller holds the model's lock.

        A file that changes while it is read is read again. If a changed file can't be loaded, the
        model stays as it was until the file changes once more.
        """
        for _ in range(_LOADS):
            stamp = _stamp(model)
            if model.tok is not None and stamp in (model.stamp, None):
                break
            action = "loaded" if model.tok is None else "reloaded"
            begin = time.perf_counter()
            try:
                # Another thread may drop model.tok at any time.
                tok = model.tok = ggtok.load(model.source)
            except GGTokError as e:
                self._count(failed=True)
                reason = _reason(e)
                _log(f"model not {action}", model, logging.WARNING, error=reason)
                model.error = f"{model.shown}: {reason}"
                model.stamp = stamp
                break
            model.error = ""
            self._count(failed=False)
            seconds = round(time.perf_counter() - begin, 3)
            _log(f"model {action}", model, seconds=seconds, tokens=tok.n_tokens)
            model.created = int(time.time())
            model.stamp = _stamp(model) if stamp is None else stamp
        model.checked = time.monotonic()

    def _count(self, failed: bool) -> None:
        with self._lock:
            self.loads += not failed
            self.failures += failed


def unreadable(served: Served, error: GGTokError) -> Refusal:
    """Returns the refusal for a request that needs a loaded model's file, which can't be read any
    more."""
    return Refusal(f"{served.name}: {_reason(error)}", "unavailable_error")


def _reason(error: GGTokError) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)


def _log(message: str, model: AllowedModel, level: int = logging.INFO, **more: object) -> None:
    """Logs an event of a model. `more` may have an error's message, because errors about models
    don't quote texts from requests."""
    fields = {"model": model.name, "source": model.source, **more}
    logger.log(level, message, extra={"fields": fields})


def _stamp(model: AllowedModel) -> Stamp | None:
    """Returns values that identify the version of a model's file, or None if there is no file."""
    path, tok = model.source, model.tok
    if tok is not None and tok.source is not None and tok.source.path:
        path = tok.source.path
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _models(given: object) -> list[AllowedModel]:
    if isinstance(given, (str, os.PathLike, ggtok.Tokenizer)):
        given = [given]
    pairs: list[tuple[str | None, object]]
    if isinstance(given, Mapping):
        pairs = [(str(name), source) for name, source in given.items()]
    elif isinstance(given, Iterable):
        pairs = [(None, source) for source in given]
    else:
        raise InvalidTypeError(
            f"models must be a list of models or a mapping of aliases to them, "
            f"not {type(given).__name__}"
        )
    models = [_model(alias, source) for alias, source in pairs]
    _check_names(models)
    return models


def _models_in(folder: ServedFolder) -> list[AllowedModel]:
    """Returns a model for each .gguf file of a folder. Raises FileError."""
    try:
        return [_model(None, path) for path in folder.gguf_files()]
    except OSError as e:
        raise FileError(f"{folder.path}: {e.strerror}") from None


def _check_names(models: list[AllowedModel]) -> None:
    for name, times in Counter(model.name for model in models).items():
        if times > 1:
            raise InvalidValueError(f"two models have the name {name!r}: give one of them an alias")


def _model(alias: str | None, source: object) -> AllowedModel:
    if isinstance(source, ggtok.Tokenizer):
        found = source.source
        names = _names_of(alias, "model" if found is None else _short(found.name))
        return AllowedModel(*names, "", source, fixed=True, created=int(time.time()))
    if not isinstance(source, (str, os.PathLike)):
        raise InvalidTypeError(
            f"a model must be a path, a name or a Tokenizer, not {type(source).__name__}"
        )
    text = os.fsdecode(source)
    if os.path.isdir(text):
        raise FileError(f"{text}: is a folder, not a model")
    return AllowedModel(*_names_of(alias, _short(text)), text, is_file=os.path.exists(text))


def _names_of(alias: str | None, short: str) -> tuple[str, str]:
    """Returns the attributes `name` and `shown` of a model with this alias and short name."""
    name, shown = alias or short, short if alias in (ANY, None) else alias
    return _valid_text(name), _valid_text(shown)


def _valid_text(name: str) -> str:
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _short(source: str) -> str:
    """Returns the name for a model without an alias: its file's name, as in llama-server, or the
    whole source if it isn't a file."""
    return os.path.basename(source) if os.path.exists(source) else source


def _names(models: list[AllowedModel]) -> dict[str, AllowedModel]:
    """Returns the model for every name that requests may use: aliases, and other names if only one
    model has them."""
    others: dict[str, list[AllowedModel]] = {}
    for model in models:
        for name in _other_names(model.source):
            others.setdefault(name, []).append(model)
    names = {name: found[0] for name, found in others.items() if len(found) == 1}
    return {**names, **{model.name: model for model in models}}


def _other_names(source: str) -> set[str]:
    """Returns the source itself and, for a file, its absolute path, its name, and its name without
    ``.gguf``."""
    names = {source} - {""}
    if source.lower().endswith(".gguf") and "://" not in source:
        base = os.path.basename(source)
        names |= {os.path.abspath(source), base, base[: -len(".gguf")]}
    return names
