"""Detects the format of a source and converts the source. Each format has a row in a table."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ggtok.errors import InvalidValueError, VocabError, not_found
from ggtok.vocabularies.convert import confirm, pieces, tiktoken, token_lists, vocab_files
from ggtok.vocabularies.convert.bpe import (
    force_bos,
    is_gemma4,
    read_byte_fallback,
    read_byte_level,
    read_gemma4,
    refuse_marks,
)
from ggtok.vocabularies.convert.draft import Draft, name_end, set_special
from ggtok.vocabularies.convert.reading import (
    Folder,
    field,
    noting,
    read_bytes,
    read_object,
    read_text,
)
from ggtok.vocabularies.convert.sentencepiece_model import read_model
from ggtok.vocabularies.convert.tokenizer_json import Source, ids_of
from ggtok.vocabularies.convert.unigram import read_unigram
from ggtok.vocabularies.convert.wordpiece import read_wordpiece
from ggtok.vocabularies.vocabulary import Vocabulary

# ---- tokenizer.json, with a row for each model ----

ModelReader = Callable[[Source, Draft], None]


def _read_bpe(source: Source, draft: Draft) -> None:
    refuse_marks(source.model)
    if not field(source.model, "byte_fallback", bool, "model", False):
        read_byte_level(source, draft)
    elif is_gemma4(source):
        read_gemma4(source, draft)
    else:
        read_byte_fallback(source, draft)


READERS: dict[str, ModelReader] = {
    "BPE": _read_bpe,
    "WordPiece": read_wordpiece,
    "Unigram": read_unigram,
}


def draft_of(source: Source) -> tuple[Draft, str]:
    """Returns the draft of a tokenizer.json's vocabulary, and the name of its format."""
    kind = source.model.get("type")
    if kind is None:
        kind = _guessed(source.model)
    if not isinstance(kind, str) or kind not in READERS:
        known = ", ".join(READERS)
        raise VocabError(f"model.type: llama.cpp doesn't support {kind!r}, only {known}")
    draft = Draft(model="gpt2")
    draft.size = source.folder.vocab_size
    READERS[kind](source, draft)
    ids = ids_of(source)
    draft.special_ids |= {name: ids[text] for name, text in source.special.items()}
    set_special(draft, source.folder, ids, source.document.get("post_processor"))
    force_bos(draft)
    name_end(draft)
    return draft, f"tokenizer.json ({kind})"


def _guessed(model: dict[str, Any]) -> str:
    """Guesses the type of the model for older files, which don't contain it."""
    if "merges" in model:
        return "BPE"
    return "Unigram" if "unk_id" in model else "WordPiece"


# ---- every format ----


class Options(NamedTuple):
    pre: str | None
    arch: str | None
    lines: int  # the number of lines to compare


Reader = Callable[[str, Folder, Options], Vocabulary]


def _tokenizer_json(path: str, folder: Folder, options: Options) -> Vocabulary:
    document = read_object(path)
    try:
        return _of_document(Source(document, folder, options.pre, options.arch), options)
    except VocabError as e:  # the message names a position in the document, or another file
        if not str(e).startswith(os.path.join(os.path.dirname(path), "")) or folder.path is None:
            e.args = (f"{path}: {e}", *e.args[1:])
        raise


def _of_document(source: Source, options: Options, format: str | None = None) -> Vocabulary:
    draft, name = draft_of(source)
    original = confirm.hugging_face(source.document, generated=format is not None)
    vocabulary = draft.vocabulary(format or name)
    return confirm.confirmed(vocabulary, original, options.lines, source.folder.path)


def _sentencepiece(path: str, folder: Folder, options: Options) -> Vocabulary:
    model = read_model(read_bytes(path), os.path.basename(path))
    draft, format = pieces.draft_of(model, folder, options.arch)
    original = pieces.original_of(model, pieces.is_shifted(folder, options.arch))
    return confirm.confirmed(draft.vocabulary(format), original, options.lines, folder.path)


def _tekken(path: str, folder: Folder, options: Options) -> Vocabulary:
    draft, format, original = tiktoken.tekken_draft_of(read_object(path), folder, options.pre)
    return confirm.confirmed(draft.vocabulary(format), original, options.lines, folder.path)


def _tiktoken(path: str, folder: Folder, options: Options) -> Vocabulary:
    data, where = read_bytes(path), os.path.basename(path)
    draft, format, ranks, chain = tiktoken.draft_of(data, where, folder, options.pre)
    original, differences = tiktoken.original_of(ranks, chain)
    draft.differences += differences
    return confirm.confirmed(draft.vocabulary(format), original, options.lines, folder.path)


def _vocab_merges(path: str, folder: Folder, options: Options) -> Vocabulary:
    return _of_document(vocab_files.bpe_source_of(path, folder, options.pre), options, "vocab.json")


def _vocab_txt(path: str, folder: Folder, options: Options) -> Vocabulary:
    return _of_document(
        vocab_files.wordpiece_source_of(path, folder), options, "vocab.txt (WordPiece)"
    )


def _plamo(path: str, folder: Folder, options: Options) -> Vocabulary:
    draft, format = token_lists.plamo_draft_of(read_bytes(path), os.path.basename(path), folder)
    return confirm.confirmed(draft.vocabulary(format), None, options.lines, folder.path)


def _rwkv(path: str, folder: Folder, options: Options) -> Vocabulary:
    draft, format = token_lists.rwkv_draft_of(read_text(path), os.path.basename(path), folder)
    return confirm.confirmed(draft.vocabulary(format), None, options.lines, folder.path)


class Format(NamedTuple):
    names: tuple[str, ...]  # file names, or extensions
    read: Reader


# The formats, in the order in which a folder is searched for them.
FORMATS: tuple[Format, ...] = (
    Format(("tokenizer.json",), _tokenizer_json),
    Format(
        ("tokenizer.model", "spiece.model", "sentencepiece.bpe.model", ".model"), _sentencepiece
    ),
    Format(("tekken.json",), _tekken),
    Format((".tiktoken",), _tiktoken),
    Format(tuple(vocab_files.MERGES), _vocab_merges),
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
    """Converts a folder or file."""
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
