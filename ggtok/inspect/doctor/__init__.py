"""Finds errors and oddities in a file's tokenizer: :func:`ggtok.doctor`.

Each module checks for one group of findings. :mod:`~ggtok.inspect.doctor.codes` has the table of
findings.
"""

from __future__ import annotations

import os
import re
from itertools import chain

from ggtok import _types as types
from ggtok.errors import GGTokError, InvalidTypeError, VocabError
from ggtok.inspect.doctor import engines, pre_tokenizer, reach, template, tokens
from ggtok.inspect.doctor.codes import Finding, finding
from ggtok.inspect.doctor.file import GGML, File
from ggtok.native.gguf import FileHeader
from ggtok.vocabularies.edit import edit
from ggtok.vocabularies.read import metadata_of

# Keys for which llama.cpp has a default.
_OPTIONAL = re.compile(re.escape(GGML) + r"(\w+_token_id|add_\w+)")
_CHECKS = (
    template.check_template,
    engines.check_engines,
    tokens.check_tokens,
    reach.check_reach,
)


def doctor(
    source: str | os.PathLike[str] | types.Buffer, *, against: str | os.PathLike[str] | None = None
) -> list[Finding]:
    """Find errors and oddities in a file's tokenizer.

    Args:
        source: a path, a model's name, or the bytes of a GGUF file, as for :func:`ggtok.load`.
            Only the beginning of a remote file is downloaded.
        against: the original model, whose tokenizer is compared with the file's, too: a repository
            on the Hugging Face Hub (``user/repo``), a folder or file that :func:`ggtok.convert`
            accepts, or ``"auto"`` for the repository that the file names.

    Returns:
        The findings, sorted by code.

    Raises:
        FileError, GGUFError: as for :func:`ggtok.load`; or the original can't be read.
        InvalidTypeError: an argument has the wrong type.
        InvalidValueError: the file names no repository, or `against` isn't one.
        MissingExtraError: the repository must be downloaded, and the extra ``hub`` is missing.
        VocabError: llama.cpp has no vocabulary like the original.
    """
    if against is not None and not isinstance(against, (str, os.PathLike)):
        raise InvalidTypeError(f"against must be str or a path, not {type(against).__name__}")
    return _findings(source, None, against)


def doctor_edited(
    path: str, metadata: bytes, against: str | os.PathLike[str] | None = None
) -> list[Finding]:
    """Like :func:`doctor`, for the file `path` with other metadata, and the tensors that it has."""
    try:
        rows = File(path).embedding_rows
    except VocabError:
        rows = None
    return _findings(metadata, rows, against)


def _findings(
    source: str | os.PathLike[str] | types.Buffer,
    rows: int | None,
    against: str | os.PathLike[str] | None,
) -> list[Finding]:
    try:
        file = File(source, rows)
    except VocabError as e:
        code = "GGT001" if _names_model(source) else "GGT004"
        options = f"--unset {e.key}" if e.key and _loads_without(source, e.key) else ""
        return [finding(code, str(e), options=options)]
    likely = pre_tokenizer.assume_pre_tokenizer(file)
    checked = (check(likely) for check in _CHECKS)
    found = chain(pre_tokenizer.check_pre_tokenizer(file), chain.from_iterable(checked))
    if against is not None:
        from ggtok.inspect.doctor import against as source_of

        found = chain(found, source_of.check_against(file, os.fsdecode(against)))
    return sorted(found, key=lambda each: each.code)


def _loads_without(source: str | os.PathLike[str] | types.Buffer, key: str) -> bool:
    """Whether a faulty special token or flag is all that keeps a file from loading."""
    if not isinstance(source, (str, os.PathLike)) or not _OPTIONAL.fullmatch(key):
        return False
    try:
        edit(source, {key: None}, dry_run=True)
    except GGTokError:  # another fault, or no file that can be edited
        return False
    return True


def _names_model(source: str | os.PathLike[str] | types.Buffer) -> bool:
    """Whether the file has the key that every vocabulary has."""
    if isinstance(source, (str, os.PathLike)):
        _, data = metadata_of(os.fsdecode(source))
    else:
        data = bytes(source)
    return f"{GGML}model" in FileHeader(data).values()
