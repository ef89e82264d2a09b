"""Detects the format of a source and converts the source. Each format has a row in a table."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ggtok.base.diagnose import is_ranks, is_sentencepiece
from ggtok.errors import InvalidValueError, VocabError, not_found
from ggtok.vocabularies.convert import confirm, pieces, tiktoken_files, token_lists, vocab_files
from ggtok.vocabularies.convert.bpe import (
    force_bos,
    is_gemma4,
    read_byte_fallback,
    read_byte_level,
    read_gemma4,
    refuse_marks,
)
from ggtok.vocabularies.convert.draft import Draft, name_end, set_special
from ggtok.vocabularies.convert.ends import with_ends
from ggtok.vocabularies.convert.folder import SourceFolder
from ggtok.vocabularies.convert.sentencepiece_model import read_model
from ggtok.vocabularies.convert.source_files import (
    HEAD,
    decode_text,
    field,
    first_bytes,
    noting,
    parse_object,
    read_bytes,
)
from ggtok.vocabularies.convert.tokenizer_json import TokenizerJson, ids_of
from ggtok.vocabularies.convert.unigram import read_unigram
from ggtok.vocabularies.convert.wordpiece import read_wordpiece
from ggtok.vocabularies.vocabulary import Vocabulary

# ---- tokenizer.json, with a row for each model ----

ModelReader = Callable[[TokenizerJson, Draft], None]


def _read_bpe(source: TokenizerJson, draft: Draft) -> None:
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


def draft_of(source: TokenizerJson) -> tuple[Draft, str]:
    """Returns the draft of a tokenizer.json's vocabulary, and the name of its format."""
    source.complete()
    kind = source.model.get("type")
    if kind is None:
        kind = _guess_model_type(source.model)
    if not isinstance(kind, str) or kind not in READERS:
        known = ", ".join(READERS)
        raise VocabError(f"model.type: llama.cpp doesn't support {kind!r}, only {known}")
    draft = Draft(model="gpt2")
    draft.size = source.folder.vocab_size
    READERS[kind](source, draft)
    ids = ids_of(source)
    set_special(draft, source.folder, ids, source.document.get("post_processor"))
    force_bos(draft)
    name_end(draft)
    return draft, f"tokenizer.json ({kind})"


def _guess_model_type(model: dict[str, Any]) -> str:
    """Guesses the type of the model for older files, which don't contain it."""
    if "merges" in model:
        return "BPE"
    return "Unigram" if "unk_id" in model else "WordPiece"


# ---- every format ----


class ConvertOptions(NamedTuple):
    pre: str | None
    arch: str | None
    lines: int  # the number of lines to compare


class Input(NamedTuple):
    """A file to convert, its contents, and the folder with its configuration."""

    path: str
    data: bytes
    folder: SourceFolder
    options: ConvertOptions

    @property
    def name(self) -> str:
        return os.path.basename(self.path)


def _complete(
    of: Input,
    draft: Draft,
    format: str,
    original: confirm.Original | None,
    folder: SourceFolder | None = None,
) -> Vocabulary:
    """Returns the vocabulary with the folder's ends of generation, compared with the original."""
    folder = of.folder if folder is None else folder
    size = folder.vocab_size
    beyond = [id for id in draft.texts if id >= size] if size else []
    if beyond:
        draft.notes.append(
            f"{len(beyond)} tokens such as {draft.texts[beyond[0]].decode('utf-8', 'replace')!r} "
            f"have ids past the model's vocab_size {size}: its embedding needs more rows"
        )
    vocabulary = with_ends(draft.vocabulary(format), folder)
    report = vocabulary.report
    report = replace(report, notes=(*report.notes, *folder.disagreements.notes()))
    vocabulary = replace(vocabulary, report=report)
    return confirm.confirm(vocabulary, original, of.options.lines, folder)


def _json(of: Input) -> Vocabulary:
    """Converts a JSON object, whose keys tell its format."""
    document = parse_object(of.data, of.path)
    if isinstance(document.get("config"), dict) and "model" not in document:
        return _tekken(of, document)
    if _is_vocab_json(of.name, document):
        return _of_document(
            of,
            vocab_files.bpe_source_of(of.path, document, of.folder, of.options.pre),
            "vocab.json",
        )
    return _of_document(
        of, TokenizerJson(document, of.folder, of.options.pre, of.options.arch, of.name)
    )


def _is_vocab_json(name: str, document: dict[str, Any]) -> bool:
    if "model" in document and not isinstance(document["model"], int):
        return False
    return name in vocab_files.MERGES or (
        bool(document) and all(type(id) is int for id in document.values())
    )


def _of_document(of: Input, source: TokenizerJson, format: str | None = None) -> Vocabulary:
    try:
        draft, name = draft_of(source)
        original = confirm.hugging_face(source.document, generated=format is not None)
        return _complete(of, draft, format or name, original, source.folder)
    except VocabError as e:  # the message names a position in the document, or another file
        if not str(e).startswith((of.path, os.path.join(of.folder.path or of.path, ""))):
            e.args = (f"{of.path}: {e}", *e.args[1:])
        raise


def _sentencepiece(of: Input) -> Vocabulary:
    model = read_model(of.data, of.name)
    draft, format = pieces.draft_of(model, of.name, of.folder, of.options.arch)
    original = pieces.original_of(model, pieces.is_shifted(of.folder, of.options.arch))
    return _complete(of, draft, format, original)


def _tekken(of: Input, document: dict[str, Any]) -> Vocabulary:
    return _complete(of, *tiktoken_files.tekken_draft_of(document, of.folder, of.options.pre))


def _tiktoken(of: Input) -> Vocabulary:
    draft, format, ranks, chain = tiktoken_files.draft_of(
        of.data, of.name, of.folder, of.options.pre
    )
    original, differences = tiktoken_files.original_of(ranks, chain)
    draft.differences += differences
    return _complete(of, draft, format, original)


def _vocab_txt(of: Input) -> Vocabulary:
    text = decode_text(of.data, of.path)
    source = vocab_files.wordpiece_source_of(of.path, text, of.folder)
    return _of_document(of, source, "vocab.txt (WordPiece)")


def _plamo(of: Input) -> Vocabulary:
    draft, format = token_lists.plamo_draft_of(of.data, of.name, of.folder)
    return _complete(of, draft, format, None)


def _rwkv(of: Input) -> Vocabulary:
    text = decode_text(of.data, of.path)
    draft, format = token_lists.rwkv_draft_of(text, of.name, of.folder)
    return _complete(of, draft, format, None)


class Format(NamedTuple):
    begins: Callable[[bytes], object]  # tests the first bytes of a file
    read: Callable[[Input], Vocabulary]


_JSON = Format(re.compile(rb"(?:\xef\xbb\xbf)?\s*\{").match, _json)
_SENTENCEPIECE = Format(is_sentencepiece, _sentencepiece)
_TIKTOKEN = Format(is_ranks, _tiktoken)
_PLAMO = Format(re.compile(rb'\s*\[\s*"').match, _plamo)
_RWKV = Format(re.compile(rb"\s*[0-9]+ b?['\"]").match, _rwkv)
_VOCAB_TXT = Format(re.compile(rb"(?:.{,200}\n){,200}\[UNK\]\r?\n").match, _vocab_txt)
FORMATS = (_JSON, _SENTENCEPIECE, _TIKTOKEN, _PLAMO, _RWKV, _VOCAB_TXT)
# The usual names of such files, in the order in which a folder is searched for them. A file's
# contents decide its format; its name decides only if no format matches the contents.
NAMES = {
    "tokenizer.json": _JSON,
    "tokenizer.model": _SENTENCEPIECE,
    "spiece.model": _SENTENCEPIECE,
    "sentencepiece.bpe.model": _SENTENCEPIECE,
    "*.model": _SENTENCEPIECE,
    "tokenizer.model.*": _SENTENCEPIECE,
    "tekken.json": _JSON,
    "*.tiktoken": _TIKTOKEN,
    "vocab.json": _JSON,
    "encoder.json": _JSON,
    "tokenizer.jsonl": _PLAMO,
    "*.jsonl": _PLAMO,
    "vocab.txt": _VOCAB_TXT,
    "rwkv_vocab_v20230424.txt": _RWKV,
    "*.txt": _RWKV,
    "*.json": _JSON,
}
# Files of folders that aren't tokenizers, although they are JSON or texts.
_OTHERS = (
    "config.json",
    "*_config.json",
    "added_tokens.json",
    "special_tokens_map.json",
    "*.index.json",
    "merges.txt",
    "vocab.bpe",
    "chat_template.*",
    "*.md",
    "LICENSE*",
    "*.gguf",
    "*.safetensors",
    "*.py",
    "*.bin",
    "*.txt.*",
    "modules.json",
    ".*",
)


def convert_source(
    source: str,
    *,
    pre: str | None,
    arch: str | None,
    lines: int = confirm.LINES,
) -> Vocabulary:
    """Converts a folder or file."""
    with noting() as read:
        vocabulary = _convert_format(source, ConvertOptions(pre, arch, lines))
    return replace(vocabulary, inputs=tuple(read))


def _convert_format(source: str, options: ConvertOptions) -> Vocabulary:
    folder = SourceFolder(None)
    if os.path.isdir(source):
        folder, source = SourceFolder(source), _file_of(source)
    elif not os.path.exists(source):
        raise not_found(f"{source}: no such file or folder")
    if first_bytes(source).startswith(b"GGUF"):
        raise InvalidValueError(
            f"{source}: already a vocabulary for llama.cpp; ggtok.load() loads it, and "
            "ggtok.vocabulary(path).save() or 'ggtok export' makes other formats of it"
        )
    data = read_bytes(source)
    format = _format_of(os.path.basename(source), data)
    if format is None:
        raise InvalidValueError(
            f"{source}: unknown format: neither its contents nor its name are those of a tokenizer "
            f"({', '.join(NAMES)})"
        )
    return format.read(Input(source, data, folder, options))


def _file_of(folder: str) -> str:
    """Returns the path of the file in a folder that has the vocabulary."""
    files = [file for file in sorted(os.listdir(folder)) if not _matches(file, _OTHERS)]
    named = (file for pattern in NAMES for file in files if fnmatch.fnmatchcase(file, pattern))
    name = next(named, None)
    if name is None:
        name = next((file for file in files if _is_tokenizer(os.path.join(folder, file))), None)
    if name is None:
        raise not_found(f"{folder}: the folder has no tokenizer: none of {', '.join(NAMES)}")
    return os.path.join(folder, name)


def _is_tokenizer(path: str) -> bool:
    """Whether a file is a tokenizer according to its contents."""
    return os.path.isfile(path) and _format_of_contents(first_bytes(path)) is not None


def _format_of_contents(head: bytes) -> Format | None:
    return next((format for format in FORMATS if format.begins(head)), None)


def _format_of(name: str, data: bytes) -> Format | None:
    found = _format_of_contents(data[:HEAD])
    return found or next((NAMES[pattern] for pattern in NAMES if _matches(name, (pattern,))), None)


def _matches(file: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(file, pattern) for pattern in patterns)
