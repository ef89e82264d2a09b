"""Writes SentencePiece's ``*.model``: BPE for the model "llama", Unigram for "t5"."""

from __future__ import annotations

from ggtok.base.escape import printable
from ggtok.errors import VocabError
from ggtok.vocabularies import spelling
from ggtok.vocabularies.contents import Contents, Differs
from ggtok.vocabularies.convert.sentencepiece_model import (
    BPE,
    UNIGRAM,
    SentencePiece,
    SentencePieceModel,
    write_model,
)
from ggtok.vocabularies.gguf_writer import CHARSMAP, tokenizer_of

_FORMAT = ".model"
_MARK = "\u2581".encode()
_TYPES = {"llama": BPE, "t5": UNIGRAM}


def sentencepiece(vocabulary: Contents, differs: Differs) -> bytes:
    """Returns the file's bytes. `differs` collects texts for which sentencepiece's ids differ.

    Raises:
        VocabError: sentencepiece couldn't produce llama.cpp's ids, or would refuse the model.
    """
    if vocabulary.model not in _TYPES:
        raise VocabError(
            f"{_FORMAT}: SentencePiece has BPE and Unigram of characters, not model "
            f"{vocabulary.model!r}"
        )
    tok = tokenizer_of(vocabulary)
    flags = tok._loaded.flags
    types = [type if type else spelling.NORMAL for type in vocabulary.types]
    unknown = _only_unknown(types, tok.unk_id)
    n_bytes = types.count(spelling.BYTE)
    bpe = vocabulary.model == "llama"
    if n_bytes not in (0, 256) or (bpe and not n_bytes):
        raise VocabError(f"{_FORMAT}: {n_bytes} byte tokens where there must be 256")
    _check_user_defined(vocabulary, not bpe or flags["add_space_prefix"])
    if not bpe:
        differs(
            f"{_FORMAT}: SentencePiece treats U+2581 as a space and sums scores in single "
            "precision: ids of such texts, and of segmentations of equal scores, differ"
        )
    if not bpe and flags["nfc"]:
        differs(
            f"{_FORMAT}: SentencePiece doesn't compose texts (tokenizer.ggml.normalizer.nfc): ids "
            "of texts that aren't in NFC differ"
        )
    scores = vocabulary.scores or [0.0] * len(vocabulary)
    charsmap = vocabulary.keys.get(CHARSMAP, b"")
    pieces = [
        SentencePiece(
            text.replace(b" ", _MARK) if type == spelling.USER_DEFINED else text, score, type
        )
        for text, score, type in zip(vocabulary.texts, scores, types, strict=True)
    ]
    if len({piece.text for piece in pieces}) != len(pieces):
        raise VocabError(f"{_FORMAT}: two tokens have the same text if spaces are U+2581")
    model = SentencePieceModel(
        pieces=pieces,
        model_type=_TYPES[vocabulary.model],
        byte_fallback=bpe,
        unk_id=unknown,
        bos_id=_id(tok.bos_id, types),
        eos_id=_id(tok.eos_id, types),
        pad_id=_id(tok.pad_id, types),
        unk_piece=vocabulary.texts[unknown],
        normalizer=b"precompiled" if charsmap else b"identity",
        charsmap=charsmap if isinstance(charsmap, bytes) else b"",
        add_dummy_prefix=flags["add_space_prefix"],
        remove_extra_whitespaces=not bpe and flags["remove_extra_whitespaces"],
    )
    return write_model(model)


def _only_unknown(types: list[int], unk_id: int | None) -> int:
    """Chooses the unknown token, and returns its id. All other unknown tokens become control tokens
    in `types`, since SentencePiece allows only one."""
    unknown = [id for id, type in enumerate(types) if type == spelling.UNKNOWN]
    if not unknown:
        raise VocabError(f"{_FORMAT}: SentencePiece needs an unknown token")
    kept = unk_id if unk_id in unknown else unknown[0]
    for id in unknown:
        types[id] = spelling.UNKNOWN if id == kept else spelling.CONTROL
    return kept


def _id(id: int | None, types: list[int]) -> int:
    return id if id is not None and types[id] == spelling.CONTROL else -1


def _check_user_defined(vocabulary: Contents, differs: bool) -> None:
    own = [
        text
        for text, type in zip(vocabulary.texts, vocabulary.types, strict=True)
        if type == spelling.USER_DEFINED
    ]
    if own and differs:
        example = printable(own[0].decode("utf-8", "replace"))
        raise VocabError(
            f"{_FORMAT}: llama.cpp parses user-defined tokens such as '{example}' before it "
            "normalizes a text, and inserts a space after each: SentencePiece doesn't"
        )
