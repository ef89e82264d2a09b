"""Writes ``*.tiktoken``: the ranks of byte-level BPE, without the expression and special tokens.

:func:`encoding_arguments` also returns the expression and the special tokens, for
``tiktoken.Encoding``.
"""

from __future__ import annotations

import base64
import itertools
from collections.abc import Collection

from ggtok.errors import VocabError
from ggtok.vocabularies import spelling
from ggtok.vocabularies.contents import Contents, Differs
from ggtok.vocabularies.convert.ranks import recover_merges
from ggtok.vocabularies.export.to_tokenizer_json import found_whole, special_of
from ggtok.vocabularies.gguf_writer import tokenizer_of
from ggtok.vocabularies.patterns import CHAIN_OF_PRE
from ggtok.vocabularies.pre_tokenizer_json import limit_to_unicode_15

_FORMAT = ".tiktoken"
_NOT_UTF8 = {0xC0, 0xC1, *range(0xF5, 0x100)}  # bytes that never occur in UTF-8


def tiktoken(vocabulary: Contents) -> bytes:
    """Returns the file's bytes: normal tokens in base64, with their ids.

    Raises:
        VocabError: tiktoken, whose ids are also ranks, couldn't produce llama.cpp's ids.
    """
    ranks = _ranks(vocabulary, range(256))
    lines = [b"%s %d\n" % (base64.b64encode(token), id) for token, id in ranks.items()]
    return b"".join(lines)


def encoding_arguments(vocabulary: Contents) -> dict[str, object]:
    """Returns the arguments for ``tiktoken.Encoding``.

    Raises:
        VocabError: tiktoken couldn't produce llama.cpp's ids.
    """
    ranks = _ranks(vocabulary, set(range(256)) - _NOT_UTF8)  # tiktoken encodes only str
    return {
        "name": str(vocabulary.keys.get("general.name") or vocabulary.pre or "ggtok"),
        "pat_str": _expression(vocabulary),
        "mergeable_ranks": ranks,
        "special_tokens": _special_tokens(vocabulary),
    }


def _expression(vocabulary: Contents) -> str:
    """Returns one expression that splits text into words. It leaves no text between its matches,
    since tiktoken would drop such text."""
    if vocabulary.pre_patterns is not None:
        raise VocabError(f"{_FORMAT}: pre_patterns are Python's expressions, not tiktoken's")
    chain = CHAIN_OF_PRE[vocabulary.pre or "default"]
    if len(chain.steps) != 1:
        raise VocabError(
            f"{_FORMAT}: the pre-tokenizer {vocabulary.pre or 'default'!r} applies "
            f"{len(chain.steps)} expressions one after the other, and tiktoken has only one"
        )
    step = limit_to_unicode_15(chain.steps[0])
    return rf"{step}|(?:(?!{step})[\s\S])+"


def _special_tokens(vocabulary: Contents) -> dict[str, int]:
    """Returns the special tokens' ids by text. Raises VocabError if one token is the beginning of
    another, since tiktoken searches for them in no particular order."""
    differs = Differs(allowed=False)
    found = special_of(tokenizer_of(vocabulary), _FORMAT, differs)
    if differs.reasons:
        raise VocabError("; ".join(differs.reasons))
    texts = sorted(special.text for special in found)
    for text, other in itertools.pairwise(texts):
        if other.startswith(text):
            raise VocabError(
                f"{_FORMAT}: the special token {text!r} is the beginning of {other!r}, and "
                "tiktoken may find either"
            )
    return {special.text.decode("utf-8", "replace"): special.id for special in found}


def _ranks(vocabulary: Contents, needed: Collection[int]) -> dict[bytes, int]:
    if vocabulary.model != "gpt2" or spelling.is_raw(vocabulary.pre):
        raise VocabError(f"{_FORMAT}: supports only byte-level BPE, not model {vocabulary.model!r}")
    tok = tokenizer_of(vocabulary)
    ignore_merges = tok._loaded.flags["ignore_merges"]
    made = {left + right for left, right in vocabulary.merge_texts or ()}
    # These tokens are produced only by parsing special tokens.
    special = {id for id, _ in found_whole(tok) if vocabulary.texts[id] not in made}
    ranks: dict[bytes, int] = {}
    for id, (text, type) in enumerate(zip(vocabulary.texts, vocabulary.types, strict=True)):
        if type != spelling.NORMAL or (id in special and not ignore_merges):
            continue
        token = spelling.from_characters(text)
        if not token:
            raise VocabError(f"{_FORMAT}: token {id} ({text!r}) stands for no bytes")
        ranks[token] = id
    _check_bytes(ranks, needed)
    _check_order(vocabulary, ranks, ignore_merges)
    return ranks


def _check_bytes(ranks: dict[bytes, int], needed: Collection[int]) -> None:
    for byte in sorted(needed):
        if bytes([byte]) not in ranks:
            raise VocabError(f"{_FORMAT}: no token for the byte 0x{byte:02X}, which tiktoken needs")


def _check_order(vocabulary: Contents, ranks: dict[bytes, int], ignore_merges: bool) -> None:
    """Raises VocabError unless merges are in the order of ids and equal those that ranks imply."""
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
    merges, unreachable = recover_merges(ranks)
    if unreachable and not ignore_merges:
        raise VocabError(
            f"{_FORMAT}: no merges produce {len(unreachable)} of the tokens, such as "
            f"{unreachable[0]!r}: tiktoken takes a word that is a token as a whole, and llama.cpp "
            f"doesn't with the pre-tokenizer {vocabulary.pre or 'default'!r}"
        )
    known = set(vocabulary.merges)
    for pair in merges:
        if pair not in known:
            raise VocabError(f"{_FORMAT}: by ranks, {pair!r} would be a merge, and it isn't one")
