"""Writes vocabularies to files. Each format has a row in a table."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ggtok.base import files
from ggtok.base.diagnose import is_ranks, is_sentencepiece
from ggtok.base.files import FileFormat
from ggtok.errors import (
    InvalidTypeError,
    InvalidValueError,
    VocabError,
    VocabWarning,
)
from ggtok.vocabularies.contents import Contents, ConversionReport, Differs
from ggtok.vocabularies.gguf_writer import gguf_bytes


def _gguf(vocabulary: Contents, differs: Differs) -> bytes:
    return gguf_bytes(vocabulary)


def _tokenizer_json(vocabulary: Contents, differs: Differs) -> bytes:
    from ggtok.vocabularies.export.to_tokenizer_json import tokenizer_json

    return tokenizer_json(vocabulary, differs)


def _tiktoken(vocabulary: Contents, differs: Differs) -> bytes:
    from ggtok.vocabularies.export.to_tiktoken import tiktoken

    return tiktoken(vocabulary)


def _sentencepiece(vocabulary: Contents, differs: Differs) -> bytes:
    from ggtok.vocabularies.export.to_sentencepiece import sentencepiece

    return sentencepiece(vocabulary, differs)


class Writer(NamedTuple):
    make: Callable[[Contents, Differs], bytes]
    kind: FileFormat


GGUF = FileFormat("a GGUF file", lambda head: head.startswith(b"GGUF"))
# The beginning of a tokenizer.json of the tokenizers library.
_JSON = re.compile(rb'\s*\{\s*"version"\s*:\s*"[^"]*"\s*,\s*"truncation"\s*:')

# The writers by file extension.
WRITERS = {
    ".gguf": Writer(_gguf, GGUF),
    ".json": Writer(_tokenizer_json, FileFormat("a tokenizer.json", _JSON.match)),
    ".tiktoken": Writer(_tiktoken, FileFormat("a file of tiktoken's ranks", is_ranks)),
    ".model": Writer(_sentencepiece, FileFormat("a SentencePiece model", is_sentencepiece)),
}


def select_writer(path: str | os.PathLike[str], inputs: Iterable[str], *, force: bool) -> Writer:
    """Checks `path` as :func:`write` does, and returns its writer."""
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidTypeError(f"path must be str or a path, not {type(path).__name__}")
    name = os.fsdecode(os.fspath(path))
    writer = next((row for end, row in WRITERS.items() if name.endswith(end)), None)
    if writer is None:
        kinds = ", ".join(WRITERS)
        raise InvalidValueError(
            f"{name}: the file extension must be one of {kinds}, which selects the format"
        )
    files.check_target(name, writer.kind, inputs=inputs, force=force)
    return writer


def write(
    vocabulary: Contents,
    path: str | os.PathLike[str],
    *,
    inexact: bool,
    force: bool,
    published: bool = False,
) -> None:
    """Writes a vocabulary to a file."""
    writer = select_writer(path, vocabulary.inputs, force=force)
    if published and writer is not WRITERS[".json"]:
        raise InvalidValueError("published needs a tokenizer.json, which has expressions")
    differs = Differs(inexact, published)
    if isinstance(vocabulary.report, ConversionReport):
        for fault in vocabulary.report.faults:
            differs(fault)
    data = writer.make(vocabulary, differs)
    if differs.reasons and not inexact:
        reasons = "; ".join(differs.reasons)
        raise VocabError(f"{reasons}; inexact=True (--inexact) writes the file all the same")
    for reason in (*differs.reasons, *differs.accepted):
        warnings.warn(reason, VocabWarning, stacklevel=3)
    name = os.fsdecode(os.fspath(path))
    files.write(name, data, writer.kind, inputs=vocabulary.inputs, force=force)
