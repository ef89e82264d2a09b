"""Trains the models from word counts: first the initial tokens, then the merges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ggtok.errors import InvalidValueError
from ggtok.native import training as native
from ggtok.vocabularies import spelling
from ggtok.vocabularies.counts import WordCounts
from ggtok.vocabularies.training_options import TrainingOptions
from ggtok.vocabularies.vocabulary import Vocabulary

# ---- initial tokens: special tokens, bytes, characters ----

_MARK = 0x2581

# SentencePiece's alphabet doesn't contain the characters that its trainer ignores (_UNSEEN) or uses
# internally (_MARKS).
_UNSEEN = {0, 0x20}
BOUNDARY = b"\x1f"  # replaces the text of a special token
_MARKS = {ord(BOUNDARY), 0x2585}


@dataclass
class Beginning:
    """The tokens with which training starts, in the order of their ids."""

    texts: list[bytes] = field(default_factory=list)
    types: list[int] = field(default_factory=list)
    special_ids: dict[str, int] = field(default_factory=dict)

    def add(self, text: bytes, type: int) -> int:
        self.texts.append(text)
        self.types.append(type)
        return len(self.texts) - 1

    def add_bytes(self) -> None:
        """Adds a byte token for each byte."""
        for byte in range(256):
            self.add(spelling.byte_token(byte), spelling.BYTE)


def most_frequent_characters(
    chars: Iterable[tuple[int, int]], coverage: float
) -> list[tuple[int, int]]:
    """Returns the most frequent characters that together cover the share `coverage` of the text.
    The share is computed in single precision, as in SentencePiece."""
    seen = [c for c in chars if c[0] not in _UNSEEN and not 0xD800 <= c[0] < 0xE000]
    total, so_far = sum(count for _, count in seen), 0
    kept = []
    for code, count in seen:
        if np.float32(so_far / total) >= np.float32(coverage):
            break
        so_far += count
        if code not in _MARKS:
            kept.append((code, count))
    return kept


def symbols_of(chars: Sequence[tuple[int, int]], split_digits: bool) -> list[native.Symbol]:
    """Converts characters to symbols for SentencePiece's trainer, numbered in order."""
    scripts = script_of([code for code, _ in chars])
    symbols = []
    for number, ((code, _), script) in enumerate(zip(chars, scripts, strict=True)):
        kind = 0
        if code == _MARK:
            kind, script = native.SYMBOL_SPACE | native.SYMBOL_ONLY_SPACES, 0
        elif split_digits and (0x30 <= code <= 0x39 or 0xFF10 <= code <= 0xFF19):
            kind = native.SYMBOL_ALONE
        symbols.append(native.Symbol(code, number, script, kind))
    return symbols


def byte_order(rule: str, seen: set[int] | None) -> list[int]:
    """Returns the alphabet's bytes in the order of their ids."""
    alphabet = range(256) if seen is None else sorted(seen)
    if rule == "bytes":
        return list(alphabet)
    characters = spelling.byte_characters()
    return sorted(alphabet, key=lambda byte: characters[byte].decode())


def bytes_of(chars: Iterable[tuple[int, int]]) -> set[int]:
    """Returns the bytes that occur in the UTF-8 of these characters."""
    text = "".join(chr(code) for code, _ in chars)
    return set(text.encode("utf-8", "surrogatepass"))


# ---- scripts, as SentencePiece's BPE trainer distinguishes them ----

# The scripts in Unicode 9, as in SentencePiece. All others count as Common, and Kana as Han.
_NAMES = """
Adlam Ahom Anatolian_Hieroglyphs Arabic Armenian Avestan Balinese Bamum Bassa_Vah Batak Bengali
Bhaiksuki Bopomofo Brahmi Braille Buginese Buhid Canadian_Aboriginal Carian Caucasian_Albanian
Chakma Cham Cherokee Coptic Cuneiform Cypriot Cyrillic Deseret Devanagari Duployan
Egyptian_Hieroglyphs Elbasan Ethiopic Georgian Glagolitic Gothic Grantha Greek Gujarati Gurmukhi
Han Hangul Hanunoo Hatran Hebrew Imperial_Aramaic Inscriptional_Pahlavi Inscriptional_Parthian
Javanese Kaithi Kannada Kayah_Li Kharoshthi Khmer Khojki Khudawadi Lao Latin Lepcha Limbu Linear_A
Linear_B Lisu Lycian Lydian Mahajani Malayalam Mandaic Manichaean Marchen Meetei_Mayek Mende_Kikakui
Meroitic_Cursive Meroitic_Hieroglyphs Miao Modi Mongolian Mro Multani Myanmar Nabataean New_Tai_Lue
Newa Nko Ogham Ol_Chiki Old_Hungarian Old_Italic Old_North_Arabian Old_Permic Old_Persian
Old_South_Arabian Old_Turkic Oriya Osage Osmanya Pahawh_Hmong Palmyrene Pau_Cin_Hau Phags_Pa
Phoenician Psalter_Pahlavi Rejang Runic Samaritan Saurashtra Sharada Shavian Siddham SignWriting
Sinhala Sora_Sompeng Sundanese Syloti_Nagri Syriac Tagalog Tagbanwa Tai_Le Tai_Tham Tai_Viet Takri
Tamil Tangut Telugu Thaana Thai Tibetan Tifinagh Tirhuta Ugaritic Vai Warang_Citi Yi
""".split()

# Characters that got their scripts after Unicode 9, and are Common in SentencePiece 0.2.3.
_LATER = """
558 560 588-589 58B-58C 5C8-5C9 5EF 61C-61D 7FD-7FF 860-86A 870-891 897-89F 8B5 8BE-8D3 9FC-9FE
A76 AFA-AFF B53-B55 C04 C3C C5C-C5D C77 C84 CDC-CDD CF3 D00 D04 D3B-D3C D81 E86 E89 E8C E8E-E93
E98 EA0 EA8-EA9 EAC EBA ECE 170D 1715 171F 180F 1878 1ABF-1AF0 1B4C 1B4E-1B4F 1B7D-1B7F 1C89-1C8A
1C90-1CBA 1CBD-1CBF 1DF6-1DFA 209D-209F 2C2F 2C5F 312E-312F 31BB-31BF 4DB6-4DBF 9FD6-9FFF A7AF
A7B8-A7DD A7E2 A7F1-A7F6 A82C A8FE-A8FF AB66-AB69 AB6C-AB6D FBC2-FBD2 FD40-FD4F FD90-FD91
FDC8-FDCF FDFE-FDFF 1032D-1032F 10780-10785 10787-107B0 107B2-107BF 10A34-10A35 10A48 10EC2-10EC7
10EC9-10EEE 10EF0-10EFF 11070-11075 110C2 110CD 11144-11147 111CE-111CF 1123F-11241 1133B 1145A
1145E-11461 116B8-116B9 116D0-116E3 1171A 11740-11746 11AB0-11ABF 11B00-11B0A 11B60-11B67
11DF0-11DF1 11FB0 11FC0-11FF1 11FFF 1246F 12475-1247F 12550-125A7 1264C-12686 1342F-13455
13460-143FA 16F45-16F4A 16F4F 16F7F-16F87 16FE2-16FE3 16FF0-16FF6 187ED-187FF 18AF3-18AFF
18D00-18D20 18D80-18DF2 1AFF0-1AFF3 1AFF5-1AFFB 1AFFD-1AFFE 1B002-1B128 1B132 1B150-1B152 1B155
1B164-1B168 1CF00-1CF2D 1CF30-1CF46 1D127-1D128 1D25B-1D25C 1DF00-1DF81 1DF90-1DF96 1DFCD-1DFFF
1E030-1E06D 1E08F 1E7E0-1E7E6 1E7E8-1E7EB 1E7ED-1E7EE 1E7F0-1E7FE 1E94B 2A6D7-2A6DF 2B735-2B73F
2B81E 2CEA2-2CEAD 2CEB0-2EBE0 2EBF0-2EE5D 30000-3134A 31350-33479
""".split()

_ANY, _COMMON = 0, 1


def script_of(codes: Sequence[int]) -> list[int]:
    """Returns a number for each code point's script: 0 for Inherited, which matches any script."""
    import regex

    text = "".join(chr(code) for code in codes)
    found = dict.fromkeys(text, _COMMON)
    for number, name in enumerate(_NAMES, start=2):
        for character in regex.findall(rf"\p{{Script={name}}}", text):
            found[character] = number
    kana = r"[\p{Script=Hiragana}\p{Script=Katakana}\u30FC]"
    han, devanagari = _NAMES.index("Han") + 2, _NAMES.index("Devanagari") + 2
    for pattern, number in ((kana, han), (r"\p{Script=Inherited}", _ANY)):
        for character in regex.findall(pattern, text):
            found[character] = number
    later = "".join(
        rf"\U{int(first, 16):08X}-\U{int(last or first, 16):08X}"
        for first, _, last in (span.partition("-") for span in _LATER)
    )
    found.update(dict.fromkeys(regex.findall(f"[{later}]", text), _COMMON))
    found.update(dict.fromkeys(regex.findall("[\u0953\u0954]", text), devanagari))
    return [found[character] for character in text]


# ---- byte-level BPE ----


def _byte_level(
    counts: WordCounts, o: TrainingOptions, b: Beginning
) -> tuple[list[native.Symbol], bool]:
    """Adds the alphabet's bytes. Returns the initial symbols, and whether they are bytes."""
    seen = bytes_of(counts._native.chars()) if o.seen else None
    characters = spelling.byte_characters()
    known = {text: id for id, text in enumerate(b.texts)}
    symbols = []
    for byte in byte_order(o.rule, seen):
        text = characters[byte]
        id = known[text] if text in known else b.add(text, spelling.NORMAL)
        symbols.append(native.Symbol(byte, id))
    return symbols, True


def _raw(counts: WordCounts, o: TrainingOptions, b: Beginning) -> tuple[list[native.Symbol], bool]:
    """Does the same as :func:`_byte_level` for vocabularies without a byte map: adds byte tokens
    <0xXX>, then characters."""
    known = {text: id for id, text in enumerate(b.texts)}
    b.add_bytes()
    chars = most_frequent_characters(counts._native.chars(), o.coverage)
    symbols = []
    for code, _ in sorted(chars):
        text = chr(code).encode()
        id = known[text] if text in known else b.add(text, spelling.NORMAL)
        symbols.append(native.Symbol(code, id))
    return symbols, False


def _reserved_rows(
    specials: Sequence[bytes], symbols: Sequence[native.Symbol], of_bytes: bool
) -> list[tuple[list[int], int]]:
    """Returns a row for each special token whose text merges could produce: the numbers of the
    text's symbols, and the token's id."""
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


def check_least(size: int, least: int, *, by_coverage: bool) -> None:
    """Raises InvalidValueError if a vocabulary can't have so few tokens. `by_coverage` means that
    the alphabet depends on character_coverage."""
    if size < least:
        lower = ", or a lower character_coverage" if by_coverage else ""
        raise InvalidValueError(
            f"vocab_size (--vocab-size) is {size}, but special tokens and alphabet alone are "
            f"{least} tokens: pass {least} or more{lower}"
        )


def train_bpe(
    counts: WordCounts, o: TrainingOptions, progress: native.Progress
) -> tuple[Vocabulary, Any, int]:
    """Trains BPE. Returns the vocabulary, a row for each merge, and the number of initial symbols
    in all words."""
    b = Beginning()
    for text in o.specials:
        b.add(text.encode(), spelling.CONTROL)
    b.special_ids = {k: o.specials.index(t) for k, t in o.named.items() if t is not None}
    raw = spelling.is_raw(counts.pre)
    symbols, of_bytes = (_raw if raw else _byte_level)(counts, o, b)
    check_least(o.size, len(b.texts), by_coverage=raw)
    rows = native.merge(
        counts._native,
        pieces=False,
        of_bytes=of_bytes,
        initial=symbols,
        first_new=len(b.texts),
        most_new=o.size - len(b.texts),
        min_count=o.min_frequency,
        max_length=o.max_length,
        reserved=_reserved_rows(b.texts[: len(o.specials)], symbols, of_bytes),
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


def _n_symbols(counts: native.WordCountTable, known: set[int]) -> int:
    """Returns the number of tokens in all words before any merge. An unknown character counts as
    its bytes."""
    return sum(
        count if code in known else count * len(chr(code).encode("utf-8", "surrogatepass"))
        for code, count in counts.chars()
    )


def train_spm(
    counts: WordCounts, o: TrainingOptions, progress: native.Progress
) -> tuple[Vocabulary, Any, int]:
    """Trains BPE with the ids and scores of SentencePiece's trainer. Returns the same as
    :func:`train_bpe`."""
    b = Beginning()
    for text in o.specials:
        b.add(text.encode(), spelling.UNKNOWN if text == o.named["unk"] else spelling.CONTROL)
    b.special_ids = {k: o.specials.index(t) for k, t in o.named.items() if t is not None}
    if o.byte_fallback:
        b.add_bytes()
    words = counts._native.cut_at(b.texts, BOUNDARY)  # so that merges can't produce these texts
    chars = most_frequent_characters(words.chars(), o.coverage)
    alphabet = [chr(code).encode() for code, _ in chars]
    check_least(o.size, len(b.texts) + len(alphabet), by_coverage=True)
    symbols = symbols_of(chars, o.split_digits)
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
