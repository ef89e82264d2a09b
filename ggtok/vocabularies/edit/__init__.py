"""Edits the metadata of GGUF files: :func:`ggtok.edit`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import BinaryIO

from ggtok.base.files import (
    FileFormat,
    check_regular,
    check_target,
    follow_link,
    open_regular,
    read_up_to,
)
from ggtok.errors import (
    InvalidTypeError,
    InvalidValueError,
    TemplateError,
    VocabError,
    VocabWarning,
)
from ggtok.loading.loaded import check_not_edited, checked_path
from ggtok.native.arguments import truth
from ggtok.sources.model_files import first_shard, shard
from ggtok.vocabularies.edit import place
from ggtok.vocabularies.edit.changes import Change, apply
from ggtok.vocabularies.edit.header import Header

_GGUF = FileFormat("a GGUF file", lambda data: data.startswith(b"GGUF"))
_TEMPLATE = "tokenizer.chat_template"


@dataclass(frozen=True)
class Edited:
    """The result of :func:`ggtok.edit`.

    Attributes:
        path: the file that was written (in a dry run: that would be written).
        changes: the changes that make a difference.
        in_place: whether only the header was replaced (in a dry run: would be replaced).
        size: the number of bytes that were written (in a dry run: would be written).
        before, after: the metadata before and after the edit, as the bytes of a GGUF file without
            tensors, which :func:`ggtok.load` accepts.
    """

    path: str
    changes: tuple[Change, ...]
    in_place: bool
    size: int
    before: bytes = field(repr=False)
    after: bytes = field(repr=False)

    @property
    def warnings(self) -> list[str]:
        """What loading the edited vocabulary warns of, and loading the one before didn't. Empty if
        the vocabulary is faulty."""
        if not self.changes:
            return []
        before = _warnings_of(self.before)
        return [warning for warning in _warnings_of(self.after) if warning not in before]


def edit(
    path: str | os.PathLike[str],
    changes: Mapping[str, object],
    *,
    out: str | os.PathLike[str] | None = None,
    dry_run: bool = False,
    force: bool = False,
) -> Edited:
    """Makes these changes, as :func:`ggtok.edit` documents."""
    dry_run, force = truth(dry_run, "dry_run"), truth(force, "force")
    source = first_shard(_path(path, "path"))
    target = None if out is None else _path(out, "out")
    if target is not None:
        _check_out(source, target, force)
    check_not_edited(source)
    real = follow_link(os.path.abspath(source))
    if target is None and not dry_run:
        place.check_in_place(real)
    with _open_source(source, real, write=target is None and not dry_run) as file:
        header = Header(file, source)
        entries, effective = apply(header, changes)
        before, after = header.metadata(header.entries), header.metadata(entries)
        if not force:
            _check_loads(after, effective)
        file_size = place.size_of(file)
        # A file that is cut off in the padding before its data has no place for a header.
        fits = target is None and header.n_tensors and file_size >= header.data_offset
        fitted = header.fitted(entries) if fits else None
        in_place = fitted is not None
        new = header.padded(entries) if fitted is None else fitted
        data = 0 if in_place else max(0, file_size - header.data_offset)
        size = len(new) + data
        result = Edited(target or source, tuple(effective), in_place, size, before, after)
        if dry_run or (target is None and not effective):
            return result
        if in_place:
            file.seek(0)
            place.write_in_place(file, real, read_up_to(file, header.data_offset), new)
        else:
            place.write_new(file, header, new, target or real, undo=target is None)
    return result


def _warnings_of(metadata: bytes) -> list[str]:
    from ggtok.tokenizer import load

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", VocabWarning)
        try:
            load(metadata)
        except VocabError:
            return []
    return [str(each.message) for each in caught]


def undo(path: str | os.PathLike[str]) -> str:
    """Restore the header that the last :func:`ggtok.edit` replaced; returns the file's path.

    Each call undoes one edit, the latest first. If an edit was interrupted, the header from before
    that edit is restored.

    Raises:
        FileError: no header is saved, a saved header isn't valid, or the file has changed since
            the edit.
    """
    source = first_shard(_path(path, "path"))
    if recover(source):
        return source
    real = follow_link(os.path.abspath(source))
    with place.open_locked(real) as file:
        place.restore(file, real)
    return source


def recover(path: str | os.PathLike[str]) -> bool:
    """Restore the header of a file if an edit was interrupted; returns whether that was the case.

    Raises:
        FileError: the file is being edited now, or the saved header or the file is damaged.
    """
    return place.recover(first_shard(_path(path, "path")))


def _path(path: object, name: str) -> str:
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidTypeError(f"{name} must be a path, not {type(path).__name__}")
    return os.fsdecode(checked_path(path, name))


def _check_out(source: str, out: str, force: bool) -> None:
    status = check_target(out, _GGUF, inputs=[source], force=force)
    if status is not None:
        check_regular(status, out)  # renaming would replace a device or FIFO
    part = shard(source)
    if part is not None and (shard(out) is None or shard(out)[1:] != part[1:]):  # type: ignore[index]
        suffix = f"-{part[1]:05}-of-{part[2]:05}.gguf"
        raise InvalidValueError(
            f"{out}: the model is split, so the name must end with {suffix}, and llama.cpp looks "
            "for its other files in the same folder"
        )


def _open_source(source: str, real: str, *, write: bool) -> BinaryIO | place.Locked:
    return place.open_locked(real) if write else open_regular(source)


def _check_loads(metadata: bytes, changes: list[Change]) -> None:
    """Loads the edited vocabulary and compiles the changed templates. Raises an error if ggtok,
    like llama.cpp, refuses one of them."""
    from ggtok.tokenizer import load

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VocabWarning)
        tok = load(metadata)
    changed = [change.key for change in changes if change.key.startswith(_TEMPLATE)]
    for key in changed:
        name = key[len(_TEMPLATE) + 1 :] or "default"
        source = tok.chat_templates.get(name)
        if source is None:
            continue
        from ggtok.native import jinja

        try:
            jinja.compile(source, "llama.cpp")
        except TemplateError as e:
            raise TemplateError(f"{key}: {e}; force=True (--force) writes it anyway") from None
