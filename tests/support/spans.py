"""An oracle for the spans of encode_with_offsets.

The plain implementation (tests/plain) partitions and normalizes the text. It records, for each
normalized byte, the range of the text from which the byte comes. Then the ids are matched with the
normalized bytes in every way that the tokens' texts allow. Usually there is only one way.
"""

from __future__ import annotations

from collections.abc import Iterator

import ggtok
from tests.plain import bpe
from tests.plain.characters import Byte
from tests.plain.explain import normalized_bytes, partition, vocabulary_of

ENOUGH = 40  # maximum number of ways to find

Span = tuple[int, int]


# ---- matching ids with bytes ----


def spelling(tok: ggtok.Tokenizer, id: int) -> bytes:
    """Returns the normalized bytes of a token that isn't a byte token."""
    if tok.vocab_type == "RWKV":
        return tok.token_to_piece(id)
    text = tok.token_text(id)
    data = bpe.from_stored(vocabulary_of(tok._loaded), text) if tok.vocab_type == "BPE" else text
    assert data is not None
    return data


def lengths(tok: ggtok.Tokenizer, id: int, norm: list[Byte], at: int) -> Iterator[int]:
    """Yields how many bytes a token may match, starting at byte `at`."""
    if tok.vocab_type == "TEST":
        yield min(5, len(norm) - at)
        return
    text = tok.token_text(id)
    if len(text) == 6 and text.startswith(b"<0x") and norm[at].value == int(text[3:5], 16):
        yield 1
    if id == tok.unk_id:
        if tok.vocab_type == "WPM":
            stop = next((i for i in range(at + 1, len(norm)) if norm[i].word), len(norm))
            if norm[at].word:
                yield stop - at
        elif tok.vocab_type == "UGM":
            yield from range(1, len(norm) - at + 1)
        else:
            yield 1
    elif (word := spelling(tok, id)) == bytes(b.value for b in norm[at : at + len(word)]):
        yield len(word)


def ways(tok: ggtok.Tokenizer, ids: list[int], norm: list[Byte]) -> list[list[Span]]:
    """Returns up to ENOUGH ways to match the ids with all the bytes, each as a list of spans."""
    reach = [{0}]  # where each id can begin and, in the last set, where the ids can end
    for id in ids:
        reach.append({p + n for p in reach[-1] if p < len(norm) for n in lengths(tok, id, norm, p)})
    found: list[list[Span]] = []
    partial: list[tuple[int, int, list[Span]]] = [(len(ids), len(norm), [])]
    while partial and len(found) < ENOUGH:
        k, end, spans = partial.pop()
        if not k:
            found += [spans] if not end else []
            continue
        for p in reach[k - 1]:
            if p < end and end - p in lengths(tok, ids[k - 1], norm, p):
                span = norm[p].begin, norm[end - 1].end
                partial.append((k - 1, p, [span, *spans]))
    return found


# ---- whole texts ----


def expected(
    tok: ggtok.Tokenizer, text: bytes, ids: list[int], *, parse_special: bool
) -> Iterator[tuple[int, int, list[list[Span]]]]:
    """Yields consecutive ranges of ids, as (begin, end, ways): each way is a possible list of their
    spans."""
    prefix, k = True, 0
    v = vocabulary_of(tok._loaded)
    for fragment in partition(v, text, parse_special):
        if fragment.id is not None:
            assert ids[k] == fragment.id
            yield k, k + 1, [[fragment.span]]
            prefix, k = True, k + 1
            continue
        raw = text[fragment.begin : fragment.end]
        own = tok.encode(raw, add_special=False, parse_special=[], continuation=False)
        if not prefix:
            raise AssertionError("raw text after raw text")
        norm = normalized_bytes(v, raw, prefix)
        n = len(own)
        assert ids[k : k + n] == own
        shift = fragment.begin
        yield k, k + n, [[(a + shift, b + shift) for a, b in way] for way in ways(tok, own, norm)]
        prefix, k = False, k + n
    assert k == len(ids)
