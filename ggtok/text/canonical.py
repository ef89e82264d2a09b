"""Whether ids are what some text encodes to.

A text that could is spelled from the ids: between special tokens, which stand for themselves,
the tokens' own texts. If one exists, it is that text, up to how spaces are written (a space, or
the U+2581 that stands for one) and what a normalizer makes equal; so it is encoded, and compared.

Some vocabularies have no tokens for some characters, and give nothing for them. Such a character
may stand between any two tokens and keep them apart; and where its first byte alone has no token,
only the others remain.

The unknown token, and in some vocabularies a control token, also comes from raw text. Then what
stands beside it was encoded in one piece with it, without a space prefix after it: so each such
token may be meant in two ways, and the text between two of them is right if it is for one choice
of theirs (`_reach`: the choices that all text up to a token allows).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ggtok.native.arguments import int_list
from ggtok.native.library import ADD_SPECIAL
from ggtok.native.parts import Parts

TYPE_CHECKING = False  # as in native/library.py
if TYPE_CHECKING:
    from ggtok.native import Native

UNKNOWN, CONTROL, USER_DEFINED, BYTE = 1, 1 << 3, 1 << 4, 1 << 5  # ggtok_attr
SPACE, MARK = b" ", "\u2581".encode()
# Characters that vocabularies may not know: private use, unassigned, rare scripts.
PARTS = re.compile(  # of UTF-8: characters, those without their first byte, others
    rb"[\0-\x7f]|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
    rb"|(?P<three>[\x80-\xbf]{3})|.",
    re.DOTALL,
)
LEADS = b"\xf1", b"\xf2", b"\xf3", b"\xf0"
RARE = "\ue0a7\U000f1234\U0001fbf7\U000107b6\u0b7e\u0378\u3131\u1f6d\u20bf\u00a7~#\x01"


def is_canonical(native: Native, ids: object) -> bool:
    numbers = int_list(ids)
    n = native.n_tokens()
    if not all(0 <= id < n for id in numbers):
        return False
    if not numbers:
        return True
    check = _Check(native)
    return any(check.text(core) for core in check.without_added(numbers))


class _Check:
    def __init__(self, native: Native) -> None:
        self._native = native
        self._parts = Parts(native)
        self._type = native.vocab_type()
        # It prints tokens as if they were byte-level, which they aren't.
        self._prints_otherwise = native.model() == "whitespace"
        self._spellings: dict[int, tuple[bytes, ...]] = {}
        self._raw: dict[int, list[bytes]] = {}

    def without_added(self, ids: list[int]) -> Iterator[list[int]]:
        """The ids, and those between the tokens that are added, if these are there."""
        yield ids
        whole = self._parts.ids(b"", 0, 0, ADD_SPECIAL).tolist()
        before = self._added_before(whole)
        after = whole[before:]
        if whole and ids[:before] == whole[:before] and len(ids) >= len(whole):
            end = len(ids) - len(after)
            if ids[end:] == after:
                yield ids[before:end]

    def _added_before(self, whole: list[int]) -> int:
        """How many of the added tokens stand before the text."""
        if len(whole) != 1:
            return len(whole) - len(whole) // 2
        return int(self._parts.ids(b"a", 0, 1, ADD_SPECIAL)[0] == whole[0])

    def text(self, ids: list[int]) -> bool:
        """Does some text encode to these ids, nothing added?"""
        if self._type == "TEST":
            return True
        specials = [i for i, id in enumerate(ids) if self._is_special(id)]
        stretches = list(_between(ids, specials))
        if all(self._encodes(stretch, None, None) for stretch in stretches):
            return True
        return self._reach(stretches, [ids[i] for i in specials])

    def _reach(self, stretches: list[list[int]], specials: list[int]) -> bool:
        """Is there a way to mean each special token, by itself or as raw text?"""
        itself: list[bytes | None] = [None]
        before = [itself]  # the ways to mean the special token before a stretch
        for i, stretch in enumerate(stretches):
            ways = [itself]
            if i < len(specials) and (raw := self._raw_texts(specials[i])):
                ways.append(list(raw))
            before = [
                after
                for after in ways
                if any(
                    self._encodes(stretch, a, b) for begin in before for a in begin for b in after
                )
            ]
            if not before:
                return False
        return True

    def _is_special(self, id: int) -> bool:
        return bool(self._native.attr(id) & (UNKNOWN | CONTROL))

    def _raw_texts(self, id: int) -> list[bytes]:
        """Raw texts that give this special token at their end, if there are some."""
        if id not in self._raw:
            texts = [self._native.text(id), b"\x80", *(c.encode() for c in RARE)]
            self._raw[id] = [text for text in texts if text and self._ids(text)[-1:] == [id]][:3]
        return self._raw[id]

    def _ids(self, text: bytes) -> list[int]:
        ids: list[int] = self._parts.ids(text, 0, len(text), 0).tolist()
        return ids

    def _encodes(self, ids: list[int], before: bytes | None, after: bytes | None) -> bool:
        """Are these the ids of text between two special tokens, of which `before` and `after`
        are raw text?"""
        if not ids and before is None and after is None:
            return True
        want = [*(self._ids(before) if before else ()), *ids]
        if after:
            want.append(self._ids(after)[-1])
        return any(
            self._ids(text) == want for text in self._texts(ids, before or b"", after or b"")
        )

    def _texts(self, ids: list[int], before: bytes, after: bytes) -> Iterator[bytes]:
        """The texts that may encode to these ids."""
        tried = set()
        for mark in (False, True):
            for way in (0, 1):
                pieces = [self._spelling(id, mark)[way] for id in ids]
                text = b"".join(pieces)
                texts = [text, b"".join(self._without_prefixes(ids, pieces))]
                if not before:
                    texts = [*map(_without_space, texts), *texts]
                for text in texts:
                    text = before + text + after
                    if text not in tried:
                        tried.add(text)
                        yield text
        for mark in (False, True):
            pieces = [self._spelling(id, mark)[self._prints_otherwise] for id in ids]
            for silent in self._silent():
                text = silent + _apart(pieces, silent) + silent
                yield before + text + after
            for lead in LEADS:
                if (mended := _mended(b"".join(pieces), lead)) is not None:
                    yield before + mended + after

    def _without_prefixes(self, ids: list[int], pieces: list[bytes]) -> Iterator[bytes]:
        """The pieces without the space that is put before the text after a user-defined token."""
        after = False
        for id, piece in zip(ids, pieces, strict=True):
            user_defined = bool(self._native.attr(id) & USER_DEFINED)
            yield _without_space(piece) if after and not user_defined else piece
            after = user_defined

    def _silent(self) -> list[bytes]:
        """Characters that give no tokens."""
        if self._native.silent is None:
            self._native.silent = [
                text
                for text in (chr(c).encode() for c in (*range(0x100), *map(ord, RARE)))
                if not self._ids(text) and not self._ids(text + text)
            ][:4]
        return self._native.silent

    def _spelling(self, id: int, mark: bool) -> tuple[bytes, ...]:
        """A token's text as raw text has it, and the same for one that is found by its bytes.
        `mark`: spaces as U+2581."""
        key = 2 * id + mark
        if key not in self._spellings:
            piece = self._native.piece(id, 0, True)
            text = self._native.text(id)
            other = piece
            is_byte = len(text) == 6 and text[:3] == b"<0x"
            if not piece or is_byte or self._prints_otherwise:
                other = _byte_of(text) or text.replace(MARK, SPACE)
            # User-defined tokens are found as they are written.
            if mark and not self._native.attr(id) & (BYTE | USER_DEFINED):
                piece, other = piece.replace(SPACE, MARK), other.replace(SPACE, MARK)
            self._spellings[key] = piece, other
        return self._spellings[key]


def _apart(pieces: list[bytes], silent: bytes) -> bytes:
    """The pieces with `silent` between them, but not inside a character."""
    text = bytearray()
    for piece in pieces:
        if text and not 0x80 <= piece[:1].ljust(1)[0] < 0xC0:
            text += silent
        text += piece
    return bytes(text)


def _without_space(text: bytes) -> bytes:
    space = next((space for space in (SPACE, MARK) if text.startswith(space)), b"")
    return text[len(space) :]


def _mended(text: bytes, lead: bytes) -> bytes | None:
    """The text with `lead` before what lacks the first of four bytes, if there is such."""
    parts = list(PARTS.finditer(text))
    if not any(part["three"] for part in parts):
        return None
    return b"".join((lead if part["three"] else b"") + part[0] for part in parts)


def _byte_of(text: bytes) -> bytes:
    try:
        return bytes([int(text[3:5], 16)]) if text[5:] == b">" else b""
    except ValueError:
        return b""


def _between(ids: list[int], places: list[int]) -> Iterator[list[int]]:
    begin = 0
    for place in places:
        yield ids[begin:place]
        begin = place + 1
    yield ids[begin:]
