"""A loaded vocabulary, which the modules behind the Tokenizer take as an argument."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntFlag
from itertools import accumulate
from types import MappingProxyType

from ggtok import _types as types
from ggtok import errors
from ggtok.base.escape import printable
from ggtok.errors import (
    FileError,
    InvalidTypeError,
    InvalidValueError,
    file_error,
)
from ggtok.native import Native
from ggtok.native.arguments import byte_view, iterate

TYPE_CHECKING = False  # avoids importing typing: see native/library.py
if TYPE_CHECKING:
    from typing import Any

    from ggtok.sources.model_files import Source


# The suffix of the file that keeps the old header while ggtok.edit writes the new one in place.
JOURNAL = ".ggtok-journal"
_TEMPLATE_KEY = "tokenizer.chat_template"

Overrides = Mapping[str, "int | float | bool | str"]


class Loaded(Native):
    """The vocabulary of a GGUF file: the tokenizer in C, and where it was loaded from.

    It is immutable, except for values that are computed lazily. If several threads compute the
    same value at once, they store equal values.

    Attributes:
        path: the file's path, or the model's name; None if loaded from memory.
        pickled: the source that a pickle contains; None if the vocabulary can't be pickled.
        pre_option, patterns, overrides: the arguments of :func:`ggtok.load`.
        found: the source that a model's name resolved to.
        memo: a cache for other packages: values that they compute once per vocabulary, by name.
    """

    path: str | None = None
    pickled: str | bytes | None = None
    found: Source | None = None  # None unless loaded by a model's name

    def __init__(
        self,
        source: object,
        pre: str | None,
        patterns: tuple[str, ...] | None,
        overrides: Overrides | None,
    ) -> None:
        self.pre_option = pre
        self.patterns = patterns
        self.overrides = _overrides_dict(overrides) or None
        self._open(source, _options(pre, patterns, self.overrides))
        self.memo: dict[str, Any] = {}
        self._metadata: Mapping[str, str | int | float | bool] | None = None

    def arguments(self) -> tuple[object, ...]:
        """Returns the arguments that load the same vocabulary again, for pickles."""
        if self.pickled is None:
            raise InvalidTypeError(
                "this tokenizer was loaded from memory other than bytes, so it can't be pickled: "
                "load it from a path or from bytes"
            )
        return self.pickled, self.pre_option, self.patterns, self.overrides

    def __reduce__(self) -> tuple[object, ...]:
        return Loaded, self.arguments()

    # ---- special tokens ----

    @property
    def bos_id(self) -> int | None:
        return self.special("bos")

    @property
    def eos_id(self) -> int | None:
        return self.special("eos")

    # ---- the file ----

    @property
    def metadata(self) -> Mapping[str, str | int | float | bool]:
        """See :attr:`ggtok.Tokenizer.metadata`."""
        if self._metadata is None:
            self._metadata = MappingProxyType(self.scalars())
        return self._metadata

    def number(self, name: str) -> int | None:
        """Returns the number in a key of the model's architecture, or None if there is none."""
        value = self.metadata.get(f"{self.metadata.get('general.architecture')}.{name}")
        return value if type(value) is int else None

    @property
    def chat_template(self) -> str | None:
        template = self.metadata.get(_TEMPLATE_KEY)
        return template if isinstance(template, str) else None

    @property
    def chat_templates(self) -> dict[str, str]:
        """See :attr:`ggtok.Tokenizer.chat_templates`."""
        named = {
            key[len(_TEMPLATE_KEY) + 1 :]: value
            for key, value in self.metadata.items()
            if key.startswith(_TEMPLATE_KEY + ".") and isinstance(value, str)
        }
        unnamed = self.chat_template
        return named if unnamed is None else {**named, "default": unnamed}

    @property
    def source(self) -> types.Source | None:
        """See :attr:`ggtok.Tokenizer.source`."""
        if self.found is None and self.path is not None:
            from ggtok.sources import Source

            return Source(name=self.path, kind="file", path=self.path)
        return self.found

    def identity(self) -> tuple[object, ...]:
        """Returns everything that a tokenizer depends on besides tokens and merges.

        Numbers are converted to text, because NaN doesn't equal itself.
        """
        scalars = {k: repr(v) for k, v in self.metadata.items() if k.startswith("tokenizer.")}
        options = {k: repr(v) for k, v in (self.overrides or {}).items()}
        named = frozenset(scalars.items()), frozenset(options.items())
        return self.n_tokens, self.vocab_type, self.pre_option, self.patterns, *named

    def is_same(self, other: Loaded) -> bool:
        """Whether both have the same vocabulary, chat templates and options."""
        return self.identity() == other.identity() and self.has_same_tokens(other)

    # ---- opening ----

    def _open(self, source: object, options: dict[str, Any]) -> None:
        if isinstance(source, (str, os.PathLike)):
            self._open_path(checked_path(source), isinstance(source, str), options)
            self.pickled = self.path
            return
        data = source if type(source) is bytes else copy_metadata(source)
        super().__init__(data=data, **options)
        if type(source) is bytes:
            # Keep the same object if it is mostly metadata; otherwise drop the weights.
            size = self.metadata_bytes()
            self.pickled = source if len(source) <= 2 * size else source[:size]

    def _open_path(self, path: str | bytes, may_be_name: bool, options: dict[str, Any]) -> None:
        name = os.fsdecode(path)
        self.path = os.path.abspath(name)
        if "-of-" in name:
            from ggtok.sources.model_files import first_shard

            path = first_shard(name)
        check_not_edited(path)
        try:
            super().__init__(path=path, **options)
            return
        except FileError as e:
            if os.path.isdir(path):
                from ggtok.base import diagnose

                reason = diagnose.explain_folder(os.fsdecode(path))
                raise file_error(e.errno or 0, reason, path) from None
            if not may_be_name or os.path.exists(path):
                raise
            missing = e
        # Imported only here, because loading a file, which is tried first, doesn't need it.
        from ggtok import sources

        found = sources.find_model(name)
        if found is None:
            raise missing
        self.path, self.found = name, found.source
        if found.data is None:
            super().__init__(path=found.source.path, **options)
        else:
            super().__init__(data=found.data, name=name, **options)


def patterns_tuple(patterns: Sequence[str]) -> tuple[str, ...]:
    expected = "pre_patterns must be a list of regular expressions"
    if isinstance(patterns, (str, bytes)):
        raise InvalidTypeError(f"{expected}, not {type(patterns).__name__}")
    return tuple(iterate(patterns, expected))


def _overrides_dict(overrides: Overrides | None) -> dict[str, int | float | bool | str] | None:
    """Returns a copy, so that the mapping can't change while C reads it."""
    if overrides is None:
        return None
    if not isinstance(overrides, Mapping):
        raise InvalidTypeError(
            f"overrides must be a mapping of keys to values, not {type(overrides).__name__}"
        )
    try:
        return dict(overrides)
    except RuntimeError as e:  # it changed during the copy
        raise InvalidValueError(f"overrides: {e}") from None


def _options(
    pre: str | None,
    patterns: tuple[str, ...] | None,
    overrides: dict[str, int | float | bool | str] | None,
) -> dict[str, Any]:
    if pre is not None and not isinstance(pre, str):
        raise InvalidTypeError(f"pre must be str, not {type(pre).__name__}")
    if pre is not None and "\0" in pre:
        raise InvalidValueError("pre contains a NUL character")
    split = None
    if patterns is not None:
        split = by_patterns(patterns)
    return {"pre": pre, "split": split, "overrides": overrides}


def checked_path(source: str | bytes | os.PathLike[Any], name: str = "source") -> str | bytes:
    """Returns a path for the argument `name`, if the system can have such a path."""
    path: str | bytes = os.fspath(source)
    try:
        encoded = os.fsencode(path)
    except UnicodeEncodeError as e:
        raise InvalidValueError(f"{name}: not a valid path ({e})") from None
    if b"\0" in encoded:
        raise InvalidValueError(f"{name}: the path contains a NUL character")
    return path


def check_not_edited(path: str | bytes) -> None:
    """Raises FileError for a GGUF file that is being edited, or whose edit was interrupted."""
    name = os.fsdecode(path)
    if os.path.lexists((os.path.realpath(name) if os.path.islink(name) else name) + JOURNAL):
        raise FileError(
            f"{printable(name)}: an edit of this file is running or was interrupted; if none is "
            "running, ggtok.undo(path) or 'ggtok edit MODEL --undo' restores it"
        )


def copy_metadata(source: object) -> bytes:
    """Returns a copy of the metadata in an open file, or in memory that other code may change."""
    from ggtok.sources import prefix

    if hasattr(source, "read") and not _has_buffer(source):
        return prefix.read_file(source)
    view = byte_view(source, "source must be a path or a bytes-like object")
    copied = prefix.Prefix("source")
    copied.file_size = len(view)
    while wanted := copied.wanted():
        have = len(copied.data)
        # Doubling limits the number of steps, each of which parses from the start.
        copied.data += view[have : max(wanted, 2 * have)]
    return copied.whole()


def _has_buffer(source: object) -> bool:
    try:
        memoryview(source)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True


# ---- words from the user's regular expressions ----


def by_patterns(patterns: Sequence[str]) -> Callable[[bytes], list[int]]:
    """Returns a function that returns the end offsets, in bytes, of the words of a UTF-8 text.

    The first pattern splits the text, the second splits each resulting piece, and so on. Each
    match is a piece, and so is the text between two matches. Empty matches are ignored. A
    pattern is matched against each piece separately, as if it were the whole text.
    """
    import regex

    compiled = []
    for i, pattern in enumerate(patterns):
        if not isinstance(pattern, str):
            raise errors.InvalidTypeError(
                f"pre_patterns[{i}] must be str, not {type(pattern).__name__}"
            )
        try:
            compiled.append(regex.compile(pattern))
        except regex.error as e:
            raise errors.InvalidValueError(f"pre_patterns[{i}]: {e}") from None

    def split(data: bytes) -> list[int]:
        pieces = [data.decode("utf-8", "surrogatepass")]
        for pattern in compiled:
            pieces = [word for piece in pieces for word in _cut(pattern, piece)]
        if len(data) == sum(map(len, pieces)):  # the text is ASCII
            return list(accumulate(map(len, pieces)))
        return list(accumulate(len(p.encode("utf-8", "surrogatepass")) for p in pieces))

    def _cut(pattern: regex.Pattern[str], piece: str) -> list[str]:
        words = []
        end = 0
        for match in pattern.finditer(piece):
            start, stop = match.span()
            if start == stop:
                continue
            if start > end:
                words.append(piece[end:start])
            words.append(piece[start:stop])
            end = stop
        if end < len(piece):
            words.append(piece[end:])
        return words

    return split


class TokenAttr(IntFlag):
    """Attributes of a token: the bits of llama.cpp's ``llama_token_attr``."""

    UNDEFINED = 0
    UNKNOWN = 1 << 0
    UNUSED = 1 << 1
    NORMAL = 1 << 2
    CONTROL = 1 << 3
    USER_DEFINED = 1 << 4
    BYTE = 1 << 5
    NORMALIZED = 1 << 6
    LSTRIP = 1 << 7
    RSTRIP = 1 << 8
    SINGLE_WORD = 1 << 9


# ---- llama.cpp's --override-kv KEY=TYPE:VALUE[,...] ----

_INT = r"[+-]?[0-9]{1,40}"
_SYNTAX = "KEY=TYPE:VALUE[,KEY=TYPE:VALUE...], where TYPE is int, float, bool or str"

_MOST = 200  # maximum number of characters of an argument to quote in a message


def parse_overrides(arguments: Iterable[str]) -> dict[str, int | float | bool | str]:
    """Returns the values by key. If a key occurs twice, the first value counts, as in llama.cpp.

    Parses like llama.cpp's ``parse_csv_row`` and ``string_parse_kv_override``: a part that begins
    with ``"`` ends at the next ``"`` and may contain commas. Unlike in llama.cpp, where ``int:x``
    is 0, malformed numbers are errors.

    Raises:
        InvalidValueError: an argument is malformed.
    """
    import csv

    values: dict[str, int | float | bool | str] = {}
    for argument in arguments:
        try:
            parts = next(csv.reader([argument])) or [""]
        except csv.Error as e:
            raise InvalidValueError(f"override '{printable(argument, _MOST)}': {e}") from None
        for part in parts:
            _check_text(part)
            key, equals, typed = part.partition("=")
            type, colon, value = typed.partition(":")
            if not equals or not key or not colon:
                raise InvalidValueError(f"override '{printable(part, _MOST)}' must be {_SYNTAX}")
            values.setdefault(key, _override_value(part, type, value))
    return values


def _check_text(part: str) -> None:
    """Raises InvalidValueError for a lone surrogate, unless it is Python's representation of a
    command-line byte that isn't UTF-8."""
    try:
        part.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as e:
        raise InvalidValueError(
            f"override '{printable(part, _MOST)}': a lone surrogate at character {e.start}, which "
            "has no UTF-8 form"
        ) from None


def _override_value(part: str, type: str, value: str) -> int | float | bool | str:
    if type == "str":
        return value
    if type == "bool":
        if value in ("true", "false"):
            return value == "true"
        raise InvalidValueError(f"override '{printable(part, _MOST)}': a bool is true or false")
    if type == "int":
        import re

        if re.fullmatch(_INT, value):
            return int(value)
        raise InvalidValueError(
            f"override '{printable(part, _MOST)}': '{printable(value, _MOST)}' is not an integer "
            "of 64 bits"
        )
    if type == "float":
        try:
            return float(value.replace("_", "?"))
        except ValueError:
            raise InvalidValueError(
                f"override '{printable(part, _MOST)}': '{printable(value, _MOST)}' is not a number"
            ) from None
    raise InvalidValueError(
        f"override '{printable(part, _MOST)}': there is no type '{printable(type, _MOST)}' "
        f"({_SYNTAX})"
    )
