"""Reads a tokenizer.json: one row for each model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ggtok.errors import VocabError
from ggtok.vocabularies.convert.bpe import read_byte_fallback, read_byte_level, refuse_marks
from ggtok.vocabularies.convert.draft import Draft
from ggtok.vocabularies.convert.folder import Folder
from ggtok.vocabularies.convert.gemma4 import force_bos, is_gemma4, read_gemma4
from ggtok.vocabularies.convert.reading import field, token_id
from ggtok.vocabularies.convert.special import name_end, set_special
from ggtok.vocabularies.convert.tokenizer_json import Source, ids_of
from ggtok.vocabularies.convert.unigram import read_unigram
from ggtok.vocabularies.convert.wordpiece import read_wordpiece

Reader = Callable[[Source, Draft], None]


def _read_bpe(source: Source, draft: Draft) -> None:
    refuse_marks(source.model)
    if not field(source.model, "byte_fallback", bool, "model", False):
        read_byte_level(source, draft)
    elif is_gemma4(source):
        read_gemma4(source, draft)
    else:
        read_byte_fallback(source, draft)


READERS: dict[str, Reader] = {
    "BPE": _read_bpe,
    "WordPiece": read_wordpiece,
    "Unigram": read_unigram,
}


def draft_of(source: Source) -> tuple[Draft, str]:
    """The vocabulary of a tokenizer.json, and the name of its format."""
    kind = source.model.get("type")
    if kind is None:
        kind = _guessed(source.model)
    if not isinstance(kind, str) or kind not in READERS:
        known = ", ".join(READERS)
        raise VocabError(f"model.type: llama.cpp doesn't support {kind!r}, only {known}")
    draft = Draft(model="gpt2")
    draft.size = _size(source.folder)
    READERS[kind](source, draft)
    ids = ids_of(source)
    draft.special_ids |= {name: ids[text] for name, text in source.special.items()}
    set_special(draft, source.folder, ids, source.document.get("post_processor"))
    force_bos(draft)
    name_end(draft)
    return draft, f"tokenizer.json ({kind})"


def _guessed(model: dict[str, Any]) -> str:
    """The type of the model, guessed for older files, which don't have it."""
    if "merges" in model:
        return "BPE"
    return "Unigram" if "unk_id" in model else "WordPiece"


def _size(folder: Folder) -> int:
    size = folder.config.get("vocab_size")
    return token_id(size, "config.json: vocab_size") if size is not None else 0
