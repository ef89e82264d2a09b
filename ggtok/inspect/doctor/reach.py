"""Finds tokens that no text produces, and merges that can't apply or whose result isn't a token.

First, many texts are encoded. The tokens in the results are reachable. Some of the others are
proved to be unreachable, because merging a token's own bytes produces other tokens. (In a word that
contained the token, the merges inside the token would occur in the same order, because none of them
crosses the token's ends. In a unigram vocabulary, a better path through the token's bytes would
replace the token.) The remaining tokens are reported as not found in these texts.

A merge of A and B applies in some word if and only if it is the last merge when AB is merged on its
own. Proof: while the merges of a word build AB, none of them crosses the ends of AB. So the merges
inside AB occur in the same order as without the rest of the word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import islice, product
from math import inf

from ggtok.base.escape import number, printable
from ggtok.inspect.doctor import pre_tokenizer, template, tokens
from ggtok.inspect.doctor.codes import Finding, finding
from ggtok.inspect.doctor.file import GGML, TAG, File, characters, is_utf8
from ggtok.tokenizer import TokenAttr, Tokenizer
from ggtok.vocabularies.merging import merges_of
from ggtok.vocabularies.spelling import NORMAL, scheme

# ---- texts around tokens ----

# Texts before and after a token: nothing, white space, digits, punctuation, and letters of scripts
# with and without spaces and cases.
_BEFORE = [
    text.encode()
    for text in (
        *("", "a", " ", "\n", "1", ".", "é", " a", "\t", "'", "\r\n", "-", "A", "(", "x", "z"),
        *(
            "th",
            "s",
            "3",
            "12",
            " 1",
            "0",
            "q",
            "*",
            "#",
            "中",
            "的",
            "一",
            "あ",
            "한",
            "Ж",
            "\u0627",
        ),
    )
]
_AFTER = [text.encode() for text in ("", "a", " ", "\n", "1", ".", "的", " x", "x\n")]
_BLOCK = 20_000  # texts to encode per call
_COMPLETIONS = 100, 1000  # texts to try for a token with parts of characters: first few, then more


class Seen:
    """The tokens that the texts encoded so far have produced."""

    def __init__(self, tok: Tokenizer) -> None:
        import numpy as np

        self._tok = tok
        self._seen = np.zeros(tok.n_tokens, bool)

    def left(self, ids: Sequence[int]) -> list[int]:
        """Returns the ids that no text has produced."""
        return [id for id in ids if not self._seen[id]]

    def encode(self, texts: Iterator[bytes], *, continuation: bool = False) -> None:
        while block := list(islice(texts, _BLOCK)):
            ids = self._tok.encode_batch_arrays(
                block, add_special=False, continuation=continuation
            )[0]
            self._seen[ids[ids >= 0]] = True

    def encode_alone(self, pieces: Sequence[bytes], ids: Sequence[int]) -> None:
        self.encode(pieces[id] for id in ids)
        if self._tok.vocab_type in ("BPE", "SPM"):  # again, but without a space prefix
            self.encode((pieces[id] for id in ids), continuation=True)

    def encode_around(self, pieces: Sequence[bytes], ids: Sequence[int]) -> None:
        """Encodes tokens that consist of whole characters in many contexts, until each has been
        produced."""
        whole = [id for id in ids if is_utf8(pieces[id])]
        for before in _BEFORE:
            self.encode(before + pieces[id] + after for id in self.left(whole) for after in _AFTER)

    def encode_completed(self, pieces: Sequence[bytes], ids: Sequence[int]) -> None:
        """Encodes tokens that begin or end inside a character, together with bytes that complete
        the character."""
        for most in _COMPLETIONS:
            for id in self.left(ids):
                self.encode(islice(_completions(pieces[id]), most))


def _completions(piece: bytes) -> Iterator[bytes]:
    """Yields UTF-8 texts that contain the piece, which itself isn't UTF-8."""
    # The number of bytes at the start of the piece that end a split character.
    inside = len(piece) - len(piece.lstrip(_CONTINUATION))
    leads = bytes(sorted({byte for byte in piece if byte >= 0xC2}))
    before = _heads(inside, leads) if inside else (b"",)
    after = _tails(_missing(piece))
    if inside > 3 or (before == (b"",) and after == (b"",)):
        return
    for round in range(len(after)):
        for i, head in enumerate(before):
            # Heads come in groups of 64. Shift the tails for each group, to vary the combinations.
            text = head + piece + after[(i + i // 64 + round) % len(after)]
            if is_utf8(text):
                yield text
                yield b" " + text


_CONTINUATION = bytes(range(0x80, 0xC0))


@lru_cache(maxsize=32)
def _heads(n: int, leads: bytes) -> tuple[bytes, ...]:
    """Returns beginnings of characters that lack n bytes. Those with one of the lead bytes come
    first, because their characters are probably of the same script."""
    heads = [bytes([lead]) for lead in range(0xC2, 0xF5) if _length(lead) == n + 1]
    if n < 3:
        heads += [
            bytes([lead, x])
            for lead in range(0xE0, 0xF5)
            if _length(lead) == n + 2
            for x in _CONTINUATION
        ]
    if n == 1:
        heads += [
            bytes([lead, x, y])
            for lead in (0xF0, 0xF3)
            for x in (0x90, 0x9F, 0xA0, 0xAF)
            for y in _CONTINUATION
        ]
    return tuple(sorted(heads, key=lambda head: head[0] not in leads))


def _missing(piece: bytes) -> int:
    """Returns how many bytes are missing from the last character of the piece."""
    for have in range(1, min(3, len(piece)) + 1):
        lead = piece[-have]
        if lead >= 0xC0:
            return max(0, _length(lead) - have)
        if lead < 0x80:
            break
    return 0


@cache
def _tails(n: int) -> tuple[bytes, ...]:
    """Returns sequences of n bytes that may complete a character."""
    if not n:
        return (b"",)
    second = b"\x80\x85\x8f\x90\x9f\xa0\xa5\xbf"  # after F0 and ED, not all are valid
    first = [bytes([x]) for x in _CONTINUATION]
    return tuple(a + bytes(rest) for rest in product(second, repeat=n - 1) for a in first)


def _length(lead: int) -> int:
    return 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4


# ---- tokens that no text produces ----

# Bytes that never occur in UTF-8. A byte-level vocabulary has tokens for all 256 bytes.
_NEVER_IN_UTF8 = frozenset(bytes([b]) for b in (0xC0, 0xC1, *range(0xF5, 0x100)))
_FEW = 1000  # at most one faulty token in this many may be an accident of training
_SURE = 1e-3  # a path counts as better only if its score is higher by more than this
_SPECIAL = int(TokenAttr.CONTROL | TokenAttr.UNKNOWN | TokenAttr.UNUSED | TokenAttr.BYTE)


def check_reach(file: File) -> Iterator[Finding]:
    yield from _tokens(file)
    yield from _merges(file)


def _tokens(file: File) -> Iterator[Finding]:
    if file.tok.vocab_type in ("NONE", "TEST"):
        return
    normal = [
        id
        for id, (type, attr) in enumerate(zip(file.types, file.attrs, strict=True))
        if type == NORMAL
        and not attr & _SPECIAL
        and file.pieces[id]
        and file.pieces[id] not in _NEVER_IN_UTF8
        and id not in file.broken
    ]
    impossible, unseen = find_unreachable(file, normal)
    known = {*template.normal_controls(file), *tokens.other_bytes(file)}  # see GGT304, GGT306
    tags = tuple(id for id in impossible if TAG.fullmatch(file.pieces[id]) and id not in known)
    words = tuple(sorted({*impossible} - {*tags} - known))
    if words:
        code = "GGT401" if len(words) * _FEW > len(normal) else "GGT402"
        yield finding(code, _count_and_examples(file, words, len(normal)), words)
    if tags:
        yield finding("GGT403", f"{number(len(tags), 'token')}: {file.examples(tags)}", tags)
    if unseen:
        yield finding("GGT404", _count_and_examples(file, unseen, len(normal)), tuple(unseen))


def _count_and_examples(file: File, ids: Sequence[int], n: int) -> str:
    return f"{len(ids)} of {n} NORMAL tokens: {file.examples(ids)}"


def find_unreachable(file: File, ids: Sequence[int]) -> tuple[list[int], list[int]]:
    """Returns which of these NORMAL tokens are proved unreachable, and which others no text has
    produced."""
    seen = Seen(file.tok)
    seen.encode_alone(file.pieces, ids)
    left = seen.left(ids)
    proved = _proof(file)
    impossible = [id for id in left if proved(id)]
    if not pre_tokenizer.is_own(file):  # with a wrong pre-tokenizer, the others mean nothing
        return impossible, []
    left = sorted({*left} - {*impossible})
    seen.encode_around(file.pieces, left)
    left = seen.left(left)
    seen.encode_completed(file.pieces, left)
    # Omit tokens that a later text has produced after all.
    return seen.left(impossible), seen.left(left)


def _proof(file: File) -> Callable[[int], bool]:
    """Returns a function that tests whether a token is proved unreachable, if encoding the token's
    own text doesn't produce it."""
    tok = file.tok
    if tok.vocab_type == "SPM":
        return _always  # SPM has no words, so the context doesn't matter
    if tok.vocab_type == "UGM":
        return _Unigram(file).is_beaten
    # With ignore_merges, any token may be a word in some context, and words aren't merged.
    by_merges = tok.vocab_type == "BPE" and not tok._loaded.flags["ignore_merges"]
    if by_merges and scheme(tok.model, tok.pre) is not None:
        return _Merges(file).produces_others
    return _never


def _always(_: int) -> bool:
    return True


def _never(_: int) -> bool:
    return False


class _Merges:
    """The merges of a BPE vocabulary."""

    def __init__(self, file: File) -> None:
        self._texts, self._ranks = file.texts, file.ranks

    def produces_others(self, id: int) -> bool:
        """Whether merging the token's characters produces other tokens."""
        return len(merges_of(self._ranks, list(characters(self._texts[id])))[1]) > 1


class _Unigram:
    """A unigram vocabulary's scores, by the tokens' bytes."""

    def __init__(self, file: File) -> None:
        usable = int(TokenAttr.NORMAL | TokenAttr.USER_DEFINED)
        self._texts = file.texts
        self._scores = {
            text: score
            for text, attr, score in zip(
                file.texts, file.attrs, file.tok._loaded.scores(), strict=True
            )
            if attr & usable
        }

    def is_beaten(self, id: int) -> bool:
        """Whether there is a better path through the token's bytes."""
        text = self._texts[id]
        best = [0.0] + [-inf] * len(text)
        for end in range(1, len(text) + 1):
            for begin in range(end):
                if end - begin < len(text):
                    score = self._scores.get(text[begin:end], -inf)
                    best[end] = max(best[end], best[begin] + score)
        return best[-1] > self._scores.get(text, inf) + _SURE


# ---- merges that can't apply, and merges whose result isn't a token ----

Ranks = Mapping[tuple[str, str], int]


def _merges(file: File) -> Iterator[Finding]:
    merges = file.values.get(GGML + "merges")
    if file.tok.vocab_type != "BPE" or not merges:
        return
    pairs = file.merges
    malformed = [merge for merge, parts in zip(merges, pairs, strict=True) if parts is None]
    if malformed:
        whole = [merge for merge, parts in zip(merges, pairs, strict=True) if parts is not None]
        yield finding(
            "GGT501",
            _list_merges([characters(merge) for merge in malformed]),
            changes={GGML + "merges": whole} if whole else None,
        )
    ranks = file.ranks
    repeated = len(merges) - len(malformed) - len(ranks)
    if repeated:
        once, known = [], set()
        for merge, parts in zip(merges, pairs, strict=True):
            if parts is None or parts not in known:
                once.append(merge)
            known.add(parts)
        yield finding("GGT502", number(repeated, "merge"), changes={GGML + "merges": once})
    idle = idle_merges(ranks)
    if idle:
        yield finding("GGT503", _list_merges([" ".join(parts) for parts in idle]))
    others = {left + right for left, right in ranks}.difference(map(characters, file.texts))
    no_token = [parts for parts in ranks if "".join(parts) in others] if others else []
    no_token = [parts for parts in no_token if parts not in idle]
    if no_token:
        yield finding("GGT504", _list_merges([" ".join(parts) for parts in no_token]))


def _list_merges(merges: list[str]) -> str:
    first = ", ".join(f"'{printable(merge, 60)}'" for merge in merges[:5])
    return f"{number(len(merges), 'merge')}: {first}{', ...' if len(merges) > 5 else ''}"


def idle_merges(ranks: Ranks) -> dict[tuple[str, str], None]:
    """Returns the merges that never apply.

    A list generated from tiktoken's ranks or SentencePiece's scores has every split of each token,
    and most of these never apply. For such a list, the result includes only merges with a part that
    no merge produces.
    """
    results = {left + right for left, right in ranks}
    if len(ranks) > 1.1 * len(results):
        parts = {part for parts in ranks for part in parts}
        # If merges produce all parts, then each of them applies, by induction on the length.
        is_whole = all(len(part) == 1 for part in parts - results)
        return {} if is_whole else _without_parts(ranks)
    made, is_ordered = _last_merges(ranks)
    if is_ordered:
        return {parts: None for parts in ranks if made.get("".join(parts)) != parts}
    return {parts: None for parts in ranks if not _is_last(parts, ranks)}


def _is_last(parts: tuple[str, str], ranks: Ranks) -> bool:
    merges, rest = merges_of(ranks, list("".join(parts)))
    return len(rest) == 1 and merges[-1][2:] == parts


def _by_length(ranks: Ranks) -> list[tuple[str, str]]:
    lengths: dict[int, list[tuple[str, str]]] = {}
    for parts in ranks:
        lengths.setdefault(len(parts[0]) + len(parts[1]), []).append(parts)
    return [parts for length in sorted(lengths) for parts in lengths[length]]


def _without_parts(ranks: Ranks) -> dict[tuple[str, str], None]:
    made: set[str] = set()
    idle: dict[tuple[str, str], None] = {}
    for parts in _by_length(ranks):
        left, right = parts
        if (len(left) == 1 or left in made) and (len(right) == 1 or right in made):
            made.add(left + right)
        else:
            idle[parts] = None
    return idle


def _last_merges(ranks: Ranks) -> tuple[dict[str, tuple[str, str]], bool]:
    """Returns the last merge for each text that merges produce, and whether the result is valid.

    It is valid if each merge that applies comes after the merges that produce its parts, as in
    trained lists. Then the merges in a word occur in the order of their ranks. So the symbol left
    of the boundary between A and B is a suffix of A, until a merge makes it a part of a longer
    suffix; likewise on the right. A merge across the boundary prevents that of A and B if it
    occurs before its symbols are merged into longer ones. Among equal ranks, the leftmost merge
    occurs first.
    """
    made: dict[str, tuple[str, str]] = {}
    for parts in _by_length(ranks):
        left, right = parts
        a, b = made.get(left), made.get(right)
        if (a is None and len(left) != 1) or (b is None and len(right) != 1):
            continue
        rank_a = -1 if a is None else ranks[a]
        rank_b = -1 if b is None else ranks[b]
        if ranks[parts] < max(rank_a, rank_b):
            return {}, False
        until_a: float = inf
        until_b: float = inf
        while a is not None or b is not None:
            if a is not None and rank_a > rank_b:
                left, until_a = a[1], rank_a
                a = made.get(left)
                rank_a = -1 if a is None else ranks[a]
            else:
                assert b is not None
                right, until_b = b[0], rank_b
                b = made.get(right)
                rank_b = -1 if b is None else ranks[b]
            across = ranks.get((left, right), inf)
            if across < until_a and across <= until_b:
                break
        else:
            made["".join(parts)] = parts
    return made, True
