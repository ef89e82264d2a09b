"""Trains each model from word counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ggtok.errors import Argument, InvalidValueError, Wording
from ggtok.native import training as native
from ggtok.vocabularies import alphabet as beginnings
from ggtok.vocabularies import spelling
from ggtok.vocabularies.alphabet import Beginning
from ggtok.vocabularies.counts import WordCounts
from ggtok.vocabularies.options import Options
from ggtok.vocabularies.vocabulary import Vocabulary

# ---- byte-level ----


def _byte_level(counts: WordCounts, o: Options, b: Beginning) -> tuple[list[native.Symbol], bool]:
    """Adds the bytes of the alphabet. Returns the initial symbols, and whether they are bytes."""
    seen = beginnings.bytes_of(counts._native.chars()) if o.seen else None
    characters = spelling.byte_characters()
    known = {text: id for id, text in enumerate(b.texts)}
    symbols = []
    for byte in beginnings.byte_order(o.rule, seen):
        text = characters[byte]
        id = known[text] if text in known else b.add(text, spelling.NORMAL)
        symbols.append(native.Symbol(byte, id))
    return symbols, True


def _raw(counts: WordCounts, o: Options, b: Beginning) -> tuple[list[native.Symbol], bool]:
    """Like :func:`_byte_level` for raw tokens: adds byte tokens <0xXX>, then characters."""
    known = {text: id for id, text in enumerate(b.texts)}
    b.add_bytes()
    chars = beginnings.covered(counts._native.chars(), o.coverage)
    symbols = []
    for code, _ in sorted(chars):
        text = chr(code).encode()
        id = known[text] if text in known else b.add(text, spelling.NORMAL)
        symbols.append(native.Symbol(code, id))
    return symbols, False


def _reserved(
    specials: Sequence[bytes], symbols: Sequence[native.Symbol], of_bytes: bool
) -> list[tuple[list[int], int]]:
    """The special tokens whose texts merges could produce."""
    number = {symbol.code: symbol.number for symbol in symbols}
    rows = []
    for id, text in enumerate(specials):
        codes: Iterable[int] | None = (
            spelling.from_characters(text) if of_bytes else map(ord, text.decode())
        )
        numbers = [number.get(code, -1) for code in codes] if codes is not None else []
        if len(numbers) > 1 and -1 not in numbers:
            rows.append((numbers, id))
    return rows


def _check_size(size: int, least: int) -> None:
    if size < least:
        raise InvalidValueError(
            Wording(
                Argument("vocab_size"),
                f" is {size}, but special tokens and alphabet alone are {least} tokens",
            )
        )


def train_bpe(
    counts: WordCounts, o: Options, progress: native.Progress
) -> tuple[Vocabulary, Any, int]:
    """The vocabulary, the rows of the merges, and the number of initial symbols in all words."""
    b = Beginning()
    for text in o.specials:
        b.add(text.encode(), spelling.CONTROL)
    b.special_ids = {k: o.specials.index(t) for k, t in o.named.items() if t is not None}
    raw = spelling.is_raw(counts.pre)
    symbols, of_bytes = (_raw if raw else _byte_level)(counts, o, b)
    _check_size(o.size, len(b.texts))
    rows = native.merge(
        counts._native,
        pieces=False,
        of_bytes=of_bytes,
        initial=symbols,
        first_new=len(b.texts),
        most_new=o.size - len(b.texts),
        min_count=o.min_frequency,
        max_length=o.max_length,
        reserved=_reserved(b.texts[: len(o.specials)], symbols, of_bytes),
        progress=progress,
    )
    texts = b.texts
    merges = native.spell(texts, rows)
    types = b.types + [spelling.NORMAL] * (len(texts) - len(b.types))
    if raw:
        n_symbols = _n_symbols(counts._native, {symbol.code for symbol in symbols})
    else:
        n_symbols = counts._native.info().total_bytes
    vocabulary = Vocabulary(
        model="gpt2",
        pre=counts.pre,
        pre_patterns=counts.pre_patterns,
        texts=texts,
        types=types,
        merge_texts=merges,
        special_ids=b.special_ids,
    )
    return vocabulary, rows, n_symbols


# ---- SentencePiece ----


def _n_symbols(counts: native.Counts, known: set[int]) -> int:
    """The number of tokens of all words without merges. Unknown characters count as bytes."""
    return sum(
        count if code in known else count * len(chr(code).encode("utf-8", "surrogatepass"))
        for code, count in counts.chars()
    )


def train_spm(
    counts: WordCounts, o: Options, progress: native.Progress
) -> tuple[Vocabulary, Any, int]:
    """Like :func:`train_bpe`; ids and scores are those of SentencePiece's trainer."""
    b = Beginning()
    for text in o.specials:
        b.add(text.encode(), spelling.UNKNOWN if text == o.named["unk"] else spelling.CONTROL)
    b.special_ids = {k: o.specials.index(t) for k, t in o.named.items() if t is not None}
    if o.byte_fallback:
        b.add_bytes()
    words = counts._native.cut_at(b.texts, beginnings.BOUNDARY)  # so merges can't produce them
    chars = beginnings.covered(words.chars(), o.coverage)
    alphabet = [chr(code).encode() for code, _ in chars]
    _check_size(o.size, len(b.texts) + len(alphabet))
    symbols = beginnings.pieces(chars, o.split_digits)
    rows = native.merge(
        words,
        pieces=True,
        of_bytes=False,
        initial=symbols,
        first_new=len(alphabet),
        most_new=o.size - len(b.texts) - len(alphabet),
        min_count=o.min_frequency,
        progress=progress,
    )
    texts = list(alphabet)
    native.spell(texts, rows)
    normal = texts[len(alphabet) :] + alphabet
    vocabulary = Vocabulary(
        model="llama",
        pre="default",
        texts=b.texts + normal,
        types=b.types + [spelling.NORMAL] * len(normal),
        scores=[0.0] * len(b.texts) + [-float(i) for i in range(len(normal))],
        special_ids=b.special_ids,
    )
    return vocabulary, rows, _n_symbols(words, {symbol.code for symbol in symbols})
