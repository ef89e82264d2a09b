"""Writes a folder for transformers' ``AutoTokenizer``."""

from __future__ import annotations

import errno
import os
import warnings

from ggtok.base import files as base
from ggtok.base.files import FileFormat
from ggtok.errors import InvalidValueError, VocabError, VocabWarning, file_error
from ggtok.vocabularies.contents import Contents, Differs
from ggtok.vocabularies.export.to_pretrained import TEMPLATE, TEMPLATES, pretrained_files

_KINDS = {
    ".json": FileFormat("a JSON object", lambda head: head.lstrip().startswith(b"{")),
    ".jinja": FileFormat("a template", lambda head: True),
}
# Files that AutoTokenizer would read in addition to the written files, or instead of them.
_OTHERS = ("added_tokens.json", "chat_template.json", "tekken.json", TEMPLATE)


def write_pretrained(
    vocabulary: Contents,
    folder: str | os.PathLike[str],
    *,
    inexact: bool,
    force: bool,
    published: bool = False,
) -> list[str]:
    """Writes the files, and returns their paths. See :meth:`ggtok.Vocabulary.save_pretrained`."""
    name = os.fsdecode(os.fspath(folder))
    differs = Differs(inexact, published)
    files = pretrained_files(vocabulary, differs)
    if differs.reasons and not inexact:
        reasons = "; ".join(differs.reasons)
        raise VocabError(f"{reasons}; inexact=True (--inexact) writes the folder all the same")
    _check_others(name, files)
    paths = {file: os.path.join(name, *file.split("/")) for file in files}
    try:
        for path in paths.values():
            os.makedirs(os.path.dirname(path), exist_ok=True)
    except FileExistsError:
        raise file_error(errno.ENOTDIR, os.strerror(errno.ENOTDIR), name) from None
    except OSError as e:
        raise file_error(e.errno or 0, e.strerror or str(e), name) from None
    kinds = {file: _KINDS[os.path.splitext(file)[1]] for file in files}
    for file, path in paths.items():
        base.check_target(path, kinds[file], inputs=vocabulary.inputs, force=force)
    for reason in (*differs.reasons, *differs.accepted):
        warnings.warn(reason, VocabWarning, stacklevel=3)
    for file, data in files.items():
        base.write(paths[file], data, kinds[file], inputs=vocabulary.inputs, force=force)
    return list(paths.values())


def _check_others(folder: str, files: dict[str, bytes]) -> None:
    """Raises InvalidValueError if another tokenizer's files would be read together with the new
    files."""
    others = [file for file in _OTHERS if file not in files]
    templates = os.path.join(folder, TEMPLATES)
    if os.path.isdir(templates):
        others += [
            f"{TEMPLATES}/{file}"
            for file in sorted(os.listdir(templates))
            if file.endswith(".jinja") and f"{TEMPLATES}/{file}" not in files
        ]
    for file in others:
        if os.path.exists(os.path.join(folder, file)):
            raise InvalidValueError(
                f"{folder} has {file} of another tokenizer, which transformers would read, too: "
                "remove it, or choose another folder"
            )
