"""Implements :func:`ggtok.edit`, which can correct what :func:`ggtok.doctor` finds."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from ggtok.base.escape import quoted
from ggtok.errors import InvalidTypeError, InvalidValueError
from ggtok.inspect.doctor import doctor, doctor_edited
from ggtok.inspect.doctor.codes import KINDS, SERIOUS, Finding
from ggtok.native.arguments import is_one_of, iterate
from ggtok.vocabularies import edit as editing
from ggtok.vocabularies.edit import Edited

ALL = "all"
_ROUNDS = 4  # the most rounds of corrections; each corrects faults that the previous one uncovered


def edit(
    path: str | os.PathLike[str],
    changes: Mapping[str, object] | None = None,
    *,
    fix: str | Iterable[str] = (),
    against: str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] | None = None,
    dry_run: bool = False,
    force: bool = False,
) -> Edited:
    """Change the metadata of a GGUF file.

    Tensors, the order of keys, the types of existing keys, alignment and byte order don't change.
    For a split model, the first file is edited, since only that one has the vocabulary.

    Without `out`, the file itself changes. If the new header fits where the old one is, only the
    header is written (a shorter one is filled up with the key ``ggtok.padding``); otherwise a new
    file is written next to it, and replaces it. In both cases the old header is kept, for
    :func:`undo`: in ``NAME.ggtok-undo`` before the first edit, ``NAME.ggtok-undo-2`` before the
    second, and so on. If the process is killed while it writes the header,
    ``NAME.ggtok-journal`` remains: :func:`ggtok.load` refuses the file until :func:`recover` has
    restored the old header.

    Args:
        path: a GGUF file.
        changes: the new value for each key; None removes the key. The key ``"key[3]"`` means one
            element of an array. Values are ``bool``, ``int``, ``float``, ``str``, ``bytes``, or
            lists of these; NumPy's numbers and arrays are converted. A new key gets the type of
            its value: ``uint32`` for an ``int`` that fits, ``int64`` or ``uint64`` for others,
            ``float32`` for a ``float``.
        fix: codes of findings from :func:`ggtok.doctor` to correct, or ``"all"``. `changes` are
            applied after the corrections.
        against: as for :func:`ggtok.doctor`; `fix` also corrects differences from this original.
        out: the new file to write, which appears when it is complete.
        dry_run: only check the changes, without writing anything. The result's ``warnings`` tell
            what loading the edited vocabulary will warn of.
        force: also make changes with which ggtok can't load the vocabulary or compile the chat
            template, and overwrite an `out` that isn't a GGUF file.

    Raises:
        FileError: a file can't be read or written, or the disk is full.
        GGUFError: the file isn't GGUF, or is malformed.
        InvalidTypeError, InvalidValueError: a change is impossible (the message names the key); a
            finding in `fix` isn't in the file, or has no certain correction; or `out` is None, but
            the file is in a store of Ollama or the Hugging Face Hub, or has several hard links.
        VocabError, TemplateError: the edited vocabulary or template is faulty, and `force` is
            false.
    """
    if changes is not None and not isinstance(changes, Mapping):
        raise InvalidTypeError(
            f"changes must be a mapping of keys to values, not {type(changes).__name__}"
        )
    made = {**corrections(path, fix, against), **(changes or {})}
    return editing.edit(path, made, out=out, dry_run=dry_run, force=force)


def corrections(
    path: str | os.PathLike[str],
    fix: str | Iterable[str],
    against: str | os.PathLike[str] | None = None,
) -> dict[str, object]:
    """Returns the changes that correct these findings of a file."""
    codes = _codes(fix)
    if not codes:
        return {}
    found = doctor(editing.edit(path, {}, dry_run=True, force=True).path, against=against)
    if codes != {ALL}:
        _check_codes(found, codes)
    changes: dict[str, object] = {}
    for _ in range(_ROUNDS):
        new: dict[str, object] = {}
        for finding in found:
            if finding.code in codes or ALL in codes:
                new.update(finding.changes)
        if not new or new.items() <= changes.items():
            break
        changes.update(new)
        edited = editing.edit(path, changes, dry_run=True, force=True)
        found = doctor_edited(edited.path, edited.after, against)
    return changes


def remaining(edited: Edited, against: str | os.PathLike[str] | None = None) -> list[Finding]:
    """Returns the serious findings that an edit leaves."""
    found = doctor_edited(edited.path, edited.after, against)
    return [finding for finding in found if finding.severity == SERIOUS]


def _codes(fix: str | Iterable[str]) -> set[str]:
    if not isinstance(fix, Iterable):
        raise InvalidTypeError(f"fix must be codes or 'all', not {type(fix).__name__}")
    codes = [fix] if isinstance(fix, str) else [*iterate(fix, "fix must be codes or 'all'")]
    for code in codes:
        if not is_one_of(code, (ALL, *KINDS)):
            raise InvalidValueError(f"fix: {quoted(code)} is no finding's code, such as 'GGT301'")
    return {*codes}


def _check_codes(found: list[Finding], codes: set[str]) -> None:
    by_code = {finding.code: finding for finding in found}
    for code in sorted(codes - {ALL}):
        finding = by_code.get(code)
        if finding is None:
            raise InvalidValueError(f"fix: {code} ({KINDS[code].title}) isn't found in the file")
        if not finding.changes:
            raise InvalidValueError(
                f"fix: {code} ({finding.title}) has no certain correction: {finding.advice}"
            )
