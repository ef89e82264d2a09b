"""From what :func:`ggtok.load` is given to the loaded tokenizer."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from ggtok.errors import FileError, InvalidTypeError, InvalidValueError
from ggtok.native import Native
from ggtok.native.arguments import byte_view, iterated

TYPE_CHECKING = False  # as in _native/library.py
if TYPE_CHECKING:
    from typing import Any

    from ggtok.sources.found import Source


class Opened:
    """A loaded tokenizer and where it came from."""

    native: Native
    path: str | None = None  # of the file, or the name of the model
    pickled: str | bytes | None = None  # what a pickle holds of the source
    source: Source | None = None  # None: `path` says it, or nothing does

    def __init__(
        self,
        source: object,
        pre: str | None,
        patterns: tuple[str, ...] | None,
        overrides: dict[str, int | float | bool | str] | None,
    ) -> None:
        options = _options(pre, patterns, overrides)
        if isinstance(source, (str, os.PathLike)):
            self._by_path(_checked_path(source), isinstance(source, str), options)
            self.pickled = self.path
            return
        data = source if type(source) is bytes else metadata(source)
        self.native = Native(data=data, **options)
        if type(source) is bytes:
            # The same object where it is mostly metadata; else without the weights.
            size = self.native.metadata_bytes()
            self.pickled = source if len(source) <= 2 * size else source[:size]

    def _by_path(self, path: str | bytes, may_be_name: bool, options: dict[str, Any]) -> None:
        name = os.fsdecode(path)
        self.path = os.path.abspath(name)
        if "-of-" in name:
            from ggtok.sources.split import first_shard

            path = first_shard(name)
        try:
            self.native = Native(path=path, **options)
            return
        except FileError as e:
            if not may_be_name or os.path.exists(path):
                raise
            missing = e
        # Only now, so that a file costs nothing more, and takes precedence over a name.
        from ggtok import sources

        found = sources.find(name)
        if found is None:
            raise missing
        self.path, self.source = name, found.source
        if found.data is None:
            self.native = Native(path=found.source.path, **options)
        else:
            self.native = Native(data=found.data, name=name, **options)


def patterns_tuple(patterns: Sequence[str]) -> tuple[str, ...]:
    what = "pre_patterns must be a list of regular expressions"
    if isinstance(patterns, (str, bytes)):
        raise InvalidTypeError(f"{what}, not {type(patterns).__name__}")
    return tuple(iterated(patterns, what))


def overrides_dict(
    overrides: Mapping[str, int | float | bool | str] | None,
) -> dict[str, int | float | bool | str] | None:
    """A copy, which does not change while it is read."""
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
        raise InvalidValueError("pre holds a NUL character")
    split = None
    if patterns is not None:
        from ggtok.loading import patterns

        split = patterns.by_patterns(patterns)
    return {"pre": pre, "split": split, "overrides": overrides}


def _checked_path(source: str | os.PathLike[str]) -> str | bytes:
    path: str | bytes = os.fspath(source)
    try:
        encoded = os.fsencode(path)
    except UnicodeEncodeError as e:
        raise InvalidValueError(f"source: no path can hold it ({e})") from None
    if b"\0" in encoded:
        raise InvalidValueError("source: a path with a NUL character")
    return path


def metadata(source: object) -> bytes:
    """The metadata of an open file, or of memory that may change: the caller's, or a mapped
    file's, of which no more than the metadata is copied."""
    from ggtok.sources import prefix

    if hasattr(source, "read") and not _has_buffer(source):
        return prefix.read_file(source)
    view = byte_view(source, "source must be a path or a bytes-like object")
    copied = prefix.Prefix("source")
    copied.file_size = len(view)
    while wanted := copied.wanted():
        have = len(copied.data)
        copied.data += view[have : max(wanted, 2 * have)]  # each step parses from the beginning
    return copied.whole()


def _has_buffer(source: object) -> bool:
    try:
        memoryview(source)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True
