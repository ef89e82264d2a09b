"""Detects the format of a source and converts it: one row for each format."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from ggtok.errors import InvalidValueError, VocabError, not_found
from ggtok.vocabularies.convert import (
    confirm,
    pieces,
    plamo_jsonl,
    rwkv_text,
    tekken,
    tiktoken,
    vocab_merges,
    vocab_txt,
)
from ggtok.vocabularies.convert.folder import Folder
from ggtok.vocabularies.convert.hugging_face import draft_of
from ggtok.vocabularies.convert.reading import noting, read_bytes, read_object, read_text
from ggtok.vocabularies.convert.sentencepiece_model import read_model
from ggtok.vocabularies.convert.tokenizer_json import Source
from ggtok.vocabularies.vocabulary import Vocabulary


class Options(NamedTuple):
    pre: str | None
    arch: str | None
    lines: int  # the number of lines to compare


Reader = Callable[[str, Folder, Options], Vocabulary]


def _tokenizer_json(path: str, folder: Folder, options: Options) -> Vocabulary:
    document = read_object(path)
    try:
        return _of_document(Source(document, folder, options.pre, options.arch), options)
    except VocabError as e:  # which says where in the document, or names another file
        if not str(e).startswith(os.path.join(os.path.dirname(path), "")) or folder.path is None:
            e.args = (f"{path}: {e}", *e.args[1:])
        raise


def _of_document(source: Source, options: Options, format: str | None = None) -> Vocabulary:
    draft, name = draft_of(source)
    original = confirm.hugging_face(source.document, made=format is not None)
    vocabulary = draft.vocabulary(format or name)
    return confirm.confirmed(vocabulary, original, options.lines, source.folder.path)


def _sentencepiece(path: str, folder: Folder, options: Options) -> Vocabulary:
    model = read_model(read_bytes(path), os.path.basename(path))
    draft, format = pieces.draft_of(model, folder, options.arch)
    original = pieces.original_of(model, pieces.is_shifted(folder, options.arch))
    return confirm.confirmed(draft.vocabulary(format), original, options.lines, folder.path)


def _tekken(path: str, folder: Folder, options: Options) -> Vocabulary:
    draft, format, original = tekken.draft_of(read_object(path), folder, options.pre)
    return confirm.confirmed(draft.vocabulary(format), original, options.lines, folder.path)


def _tiktoken(path: str, folder: Folder, options: Options) -> Vocabulary:
    data, where = read_bytes(path), os.path.basename(path)
    draft, format, ranks, chain = tiktoken.draft_of(data, where, folder, options.pre)
    original, differences = tiktoken.original_of(ranks, chain)
    draft.differences += differences
    return confirm.confirmed(draft.vocabulary(format), original, options.lines, folder.path)


def _vocab_merges(path: str, folder: Folder, options: Options) -> Vocabulary:
    return _of_document(vocab_merges.source_of(path, folder, options.pre), options, "vocab.json")


def _vocab_txt(path: str, folder: Folder, options: Options) -> Vocabulary:
    return _of_document(vocab_txt.source_of(path, folder), options, "vocab.txt (WordPiece)")


def _plamo(path: str, folder: Folder, options: Options) -> Vocabulary:
    draft, format = plamo_jsonl.draft_of(read_bytes(path), os.path.basename(path), folder)
    return confirm.confirmed(draft.vocabulary(format), None, options.lines, folder.path)


def _rwkv(path: str, folder: Folder, options: Options) -> Vocabulary:
    draft, format = rwkv_text.draft_of(read_text(path), os.path.basename(path), folder)
    return confirm.confirmed(draft.vocabulary(format), None, options.lines, folder.path)


class Format(NamedTuple):
    names: tuple[str, ...]  # names of files, or extensions
    read: Reader


# In the order in which a folder is searched.
FORMATS: tuple[Format, ...] = (
    Format(("tokenizer.json",), _tokenizer_json),
    Format(
        ("tokenizer.model", "spiece.model", "sentencepiece.bpe.model", ".model"), _sentencepiece
    ),
    Format(("tekken.json",), _tekken),
    Format((".tiktoken",), _tiktoken),
    Format(tuple(vocab_merges.MERGES), _vocab_merges),
    Format(("tokenizer.jsonl", ".jsonl"), _plamo),
    Format(("vocab.txt",), _vocab_txt),
    Format(("rwkv_vocab_v20230424.txt", ".txt"), _rwkv),
    Format((".json",), _tokenizer_json),
)


def converted(
    source: str,
    *,
    pre: str | None,
    arch: str | None,
    lines: int = confirm.LINES,
) -> Vocabulary:
    """The vocabulary of a folder or file."""
    with noting() as read:
        vocabulary = _converted(source, Options(pre, arch, lines))
    return replace(vocabulary, inputs=tuple(read))


def _converted(source: str, options: Options) -> Vocabulary:
    if os.path.isdir(source):
        folder = Folder(source)
        files = sorted(os.listdir(source))
        for format in FORMATS:
            name = _first(files, format.names)
            if name is not None:
                return format.read(os.path.join(source, name), folder, options)
        raise not_found(f"{source}: the folder has no tokenizer: none of {_wanted()}")
    if not os.path.exists(source):
        raise not_found(f"{source}: no such file or folder")
    for format in FORMATS:
        if _first([os.path.basename(source)], format.names) is not None:
            return format.read(source, Folder(None), options)
    if source.endswith(".gguf"):
        raise InvalidValueError(f"{source}: already a vocabulary for llama.cpp")
    raise InvalidValueError(f"{source}: unknown format: the name is none of {_wanted()}")


def _first(files: Sequence[str], names: Sequence[str]) -> str | None:
    for wanted in names:
        for file in files:
            if file == wanted or (wanted.startswith(".") and file.endswith(wanted)):
                return file
    return None


def _wanted() -> str:
    return ", ".join(
        "*" + name if name.startswith(".") else name for format in FORMATS for name in format.names
    )
