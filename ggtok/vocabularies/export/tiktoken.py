"""Writes ``*.tiktoken``: the ranks of byte-level BPE, without expression and special tokens."""

from __future__ import annotations

import base64

from ggtok.errors import VocabError
from ggtok.vocabularies import spelling
from ggtok.vocabularies.contents import Contents
from ggtok.vocabularies.convert.ranks import recovered
from ggtok.vocabularies.export.tokenizer_json import found_whole
from ggtok.vocabularies.gguf_writer import tokenizer_of

_FORMAT = ".tiktoken"


def tiktoken(vocabulary: Contents) -> bytes:
    """The file's bytes: normal tokens in base64, with their ids.

    Raises:
        VocabError: tiktoken couldn't produce llama.cpp's ids, because its ids are also ranks.
    """
    if vocabulary.model != "gpt2" or spelling.is_raw(vocabulary.pre):
        raise VocabError(f"{_FORMAT}: supports only byte-level BPE, not model {vocabulary.model!r}")
    tok = tokenizer_of(vocabulary)
    ignore_merges = tok._native.flags()["ignore_merges"]
    made = {left + right for left, right in vocabulary.merge_texts or ()}
    # These tokens are only produced by parsing special tokens.
    special = {id for id, _ in found_whole(tok) if vocabulary.texts[id] not in made}
    ranks: dict[bytes, int] = {}
    for id, (text, type) in enumerate(zip(vocabulary.texts, vocabulary.types, strict=True)):
        if type != spelling.NORMAL or (id in special and not ignore_merges):
            continue
        token = spelling.from_characters(text)
        if not token:
            raise VocabError(f"{_FORMAT}: token {id} ({text!r}) stands for no bytes")
        ranks[token] = id
    _check_bytes(ranks)
    _check_order(vocabulary, ranks, ignore_merges)
    lines = [b"%s %d\n" % (base64.b64encode(token), id) for token, id in ranks.items()]
    return b"".join(lines)


def _check_bytes(ranks: dict[bytes, int]) -> None:
    for byte in range(256):
        if bytes([byte]) not in ranks:
            raise VocabError(f"{_FORMAT}: no token for the byte 0x{byte:02X}, which tiktoken needs")


def _check_order(vocabulary: Contents, ranks: dict[bytes, int], ignore_merges: bool) -> None:
    """Raises VocabError unless merges are in the order of ids, and are those of the ranks."""
    last = -1
    for i, (left, right) in enumerate(vocabulary.merges):
        id = ranks.get(left + right)
        if id is None:
            raise VocabError(f"{_FORMAT}: merge {i} makes {left + right!r}, which is not a token")
        if id < last:
            raise VocabError(
                f"{_FORMAT}: merge {i} makes token {id} after one made token {last}: in a "
                ".tiktoken file ids rise in the order of merges"
            )
        last = id
    merges, unreachable = recovered(ranks)
    if unreachable and not ignore_merges:
        raise VocabError(
            f"{_FORMAT}: {len(unreachable)} tokens such as {unreachable[0]!r} are made by no "
            "merges: tiktoken takes a word that is a token as a whole, and llama.cpp doesn't with "
            f"the pre-tokenizer {vocabulary.pre or 'default'!r}"
        )
    known = set(vocabulary.merges)
    for pair in merges:
        if pair not in known:
            raise VocabError(f"{_FORMAT}: by ranks, {pair!r} would be a merge, and it isn't one")
