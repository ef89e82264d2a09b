"""The models that a server answers for: an allow list of names, loaded on first use.

Loading a model and looking at its file block, so neither happens on the event loop: with
``wait=False``, :meth:`Registry.get` raises NotReady instead.
"""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock

import ggtok
from ggtok.errors import FileError, GGTokError, InvalidTypeError, InvalidValueError
from ggtok.server.errors import NotReady, Refusal, UnknownModel

ANY = "*"  # the alias of a model that answers for every name
CHECK_SECONDS = 1.0  # between two looks at the file of a model
MAX_LOADED = 16
_LOADS = 3  # of a file that changes while it is read

Stamp = tuple[int, int, int, int]


@dataclass(eq=False)
class Model:
    """A model of the list.

    Attributes:
        name: the name that the server reports for it.
        source: what :func:`ggtok.load` takes; "" for a tokenizer of the caller's.
        created: when the tokenizer was loaded, in seconds since 1970.
    """

    name: str
    source: str
    tok: ggtok.Tokenizer | None = None
    fixed: bool = False  # a tokenizer of the caller's: never unloaded, never reloaded
    created: int = 0
    stamp: Stamp | None = None
    checked: float = 0.0
    lock: Lock = field(default_factory=Lock)  # held while the model is loaded


@dataclass(frozen=True)
class Served:
    """A loaded model. The tokenizer stays valid when the registry drops or reloads the model."""

    name: str
    source: str
    tok: ggtok.Tokenizer
    created: int


class Registry:
    """Models by name. Any number of threads may use it.

    Args:
        models: names or paths of models; or a mapping of aliases to them. Values of a mapping may
            also be tokenizers. The alias ``*`` stands for every name.
        max_loaded: how many models are kept in memory; the one used longest ago is dropped.
    """

    def __init__(self, models: object, max_loaded: int = MAX_LOADED) -> None:
        self.models = _models(models)
        if max_loaded < 1:
            raise InvalidValueError(f"max_loaded must be at least 1, not {max_loaded}")
        self.max_loaded = max_loaded
        self._names = _names(self.models)
        self._lock = Lock()  # of _loaded
        self._loaded: OrderedDict[str, Model] = OrderedDict()  # the one used last is last

    @property
    def names(self) -> list[str]:
        return [model.name for model in self.models]

    def n_loaded(self) -> int:
        return sum(model.tok is not None for model in self.models)

    def find(self, name: object = None) -> Model:
        """The model with this alias, path or name; None: the only one.

        Raises:
            UnknownModel: there is no such model, or there are several and none is named.
        """
        if name is None:
            if len(self.models) == 1:
                return self.models[0]
            listed = ", ".join(self.names)
            message = f"several models are served, so the request must name one: {listed}"
            if not self.models:
                message = "no model is served"
            raise UnknownModel(message, self.names, False)
        if not isinstance(name, str):
            raise Refusal(f"model must be a string, not {name!r:.80}")
        found = self._names.get(name) or self._names.get(ANY)
        if found is None:
            listed = ", ".join(self.names) or "none"
            raise UnknownModel(f"unknown model {name!r:.200}; known: {listed}", self.names, True)
        return found

    def get(self, name: object = None, *, wait: bool = True) -> Served:
        """The model with this name, loaded.

        Raises:
            UnknownModel: there is no such model.
            Refusal: it can't be loaded.
            NotReady: it must be loaded or looked at first, and `wait` is false.
        """
        model = self.find(name)
        if not model.fixed and (
            model.tok is None or time.monotonic() - model.checked >= CHECK_SECONDS
        ):
            if not wait:
                raise NotReady
            with model.lock:
                _refresh(model)
            self._keep(model)
        tok = model.tok
        if tok is None:  # another thread dropped it just now
            return self.get(name, wait=wait)
        return Served(model.name, model.source, tok, model.created)

    def _keep(self, model: Model) -> None:
        """Counts a model as used, and drops those used longest ago if there are too many."""
        with self._lock:
            self._loaded[model.name] = model
            self._loaded.move_to_end(model.name)
            while len(self._loaded) > self.max_loaded:
                _, dropped = self._loaded.popitem(last=False)
                dropped.tok = None


def _refresh(model: Model) -> None:
    """Loads a model, again if its file changed. The caller holds its lock.

    A file that changes while it is read is read again. If a changed file can't be loaded, the
    model stays as it was, until the file changes once more.
    """
    for _ in range(_LOADS):
        stamp = _stamp(model)
        if model.tok is not None and stamp in (model.stamp, None):
            break
        try:
            model.tok = ggtok.load(model.source)
        except GGTokError as e:
            if model.tok is None:
                raise Refusal(f"{model.name}: {e}", "unavailable_error") from e
            model.stamp = stamp
            break
        model.created = int(time.time())
        model.stamp = _stamp(model) if stamp is None else stamp
    model.checked = time.monotonic()


def _stamp(model: Model) -> Stamp | None:
    """What tells a version of a file from another; None: there is no file."""
    path = model.source
    if model.tok is not None and model.tok.source is not None and model.tok.source.path:
        path = model.tok.source.path
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _models(given: object) -> list[Model]:
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
    names = [model.name for model in models]
    for name in names:
        if names.count(name) > 1:
            raise InvalidValueError(f"two models have the name {name!r}: give one of them an alias")
    return models


def _model(alias: str | None, source: object) -> Model:
    if isinstance(source, ggtok.Tokenizer):
        found = source.source
        name = alias or ("model" if found is None else _short(found.name))
        return Model(name, "", source, fixed=True, created=int(time.time()))
    if not isinstance(source, (str, os.PathLike)):
        raise InvalidTypeError(
            f"a model must be a path, a name or a Tokenizer, not {type(source).__name__}"
        )
    text = os.fsdecode(source)
    if os.path.isdir(text):
        raise FileError(f"{text}: is a folder, not a model")
    return Model(alias or _short(text), text)


def _short(source: str) -> str:
    """The name of a model without an alias: the file's, as in llama-server, or the whole name."""
    return os.path.basename(source) if os.path.exists(source) else source


def _names(models: list[Model]) -> dict[str, Model]:
    """Every name that a request may use: aliases, and the other names of one model only."""
    others: dict[str, list[Model]] = {}
    for model in models:
        for name in _other_names(model.source):
            others.setdefault(name, []).append(model)
    names = {name: found[0] for name, found in others.items() if len(found) == 1}
    return {**names, **{model.name: model for model in models}}


def _other_names(source: str) -> set[str]:
    """The name as given; of a file also its path, its name, and its name without ``.gguf``."""
    names = {source} - {""}
    if source.lower().endswith(".gguf") and "://" not in source:
        base = os.path.basename(source)
        names |= {os.path.abspath(source), base, base[: -len(".gguf")]}
    return names
