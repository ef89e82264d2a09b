"""Converts Gemma 4's BPE: characters with byte fallback and merges, to llama.cpp's "gemma4"."""

from __future__ import annotations

import re

from ggtok.errors import VocabError
from ggtok.vocabularies.convert import bpe
from ggtok.vocabularies.convert.differences import Json
from ggtok.vocabularies.convert.draft import Draft
from ggtok.vocabularies.convert.reading import utf8
from ggtok.vocabularies.convert.tokenizer_json import Source, add_added, vocab_of
from ggtok.vocabularies.pre_tokenizer_json import NEWLINES, unmerged_run
from ggtok.vocabularies.report import Difference


def is_gemma4(source: Source) -> bool:
    """Whether the source is Gemma 4: by architecture, by `pre`, or as exported by ggtok."""
    architecture = source.arch or source.folder.architecture or ""
    return (
        architecture.startswith("Gemma4")
        or source.pre == "gemma4"
        or source.document.get("pre_tokenizer") == NEWLINES
    )


def read_gemma4(source: Source, draft: Draft) -> None:
    """Reads tokens that are stored as text, with U+2581 for spaces."""
    vocab = vocab_of(source)
    ids = {text: id for id, text in vocab.items()}
    merges = bpe.last_of_each(source.model)
    draft.model = "gemma4"
    for id, text in vocab.items():
        data = utf8(text, f"model.vocab: token {id}")
        draft.set(id, data, bpe.kind_of(data))
    draft.merges = bpe.checked_merges(merges, ids)
    bpe.set_unknown(source, draft, ids)
    add_added(source, draft)
    bpe.check_bytes(draft)
    document = source.document
    if document.get("pre_tokenizer") != NEWLINES:
        _note_newlines(draft)
        pre_tokenizer = document.get("pre_tokenizer")
    else:
        pre_tokenizer = None
    if bpe.space_prefix(source, draft, pre_tokenizer):
        raise VocabError("normalizer: puts a space before a text: llama.cpp's gemma4 doesn't")
    run = unmerged_run(ids, merges)
    if run is not None:
        draft.differences.append(
            Difference(
                "ignore-merges",
                f"llama.cpp's gemma4 takes a run of newlines that is a token before it merges, "
                f"and no merges make the token of {len(run)} newlines",
                without=lambda line: re.sub("\n+", "\n", line),
            )
        )


def _note_newlines(draft: Draft) -> None:
    def change(document: Json) -> None:
        document["pre_tokenizer"] = NEWLINES

    draft.differences.append(
        Difference(
            "pre-tokenizer",
            "llama.cpp's gemma4 splits text at newlines, and the source doesn't",
            change=change,
        )
    )


def force_bos(draft: Draft) -> None:
    """Sets add_bos for gemma4: llama.cpp always adds BOS, whatever the file says."""
    if draft.model == "gemma4" and not draft.flags.get("add_bos"):
        draft.flags["add_bos"] = True
        draft.differences.append(
            Difference("template", "the source adds no BOS: llama.cpp's gemma4 always does")
        )
