"""Checks whether any text encodes to exactly the given ids.

The check builds candidate texts from the ids, encodes them, and compares. Special tokens come from
their own texts. The text between them can differ from the texts of the other tokens only in how
spaces are written (as a space or as U+2581), and in what the normalizer treats as equal. UGM's
normalizer (the charsmap) may produce a character that it would change if it read that character.
The candidate then has another character in its place, which the normalizer turns into it.

In some vocabularies, some characters have no token and encode to nothing. Such a "silent"
character may be between any two tokens and keep them from merging. If only the first byte of a
character has no token, the tokens of its other bytes remain.

The unknown token, and in some vocabularies control tokens, can also come from raw text. The
neighbouring text is then encoded together with the token's text, without a space prefix after it.
So each such token has two interpretations, and the text between two such tokens is valid if it fits
one combination of their interpretations (`_reach` tracks which ones the text so far allows).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from ggtok.native.arguments import int_list
from ggtok.native.contexts import Parts
from ggtok.native.library import ADD_SPECIAL

TYPE_CHECKING = False  # avoids importing typing: see native/library.py
if TYPE_CHECKING:
    from ggtok.native import Native

UNKNOWN, CONTROL, USER_DEFINED, BYTE = 1, 1 << 3, 1 << 4, 1 << 5  # bits of ggtok_attr
SPACE, MARK = b" ", "\u2581".encode()
PARTS = re.compile(  # characters, the last 3 bytes of 4-byte characters, and other single bytes
    rb"[\0-\x7f]|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
    rb"|(?P<three>[\x80-\xbf]{3})|.",
    re.DOTALL,
)
LONGEST = 32  # maximum number of code points, and of tokens, in a character's normalized form
MOST_IDS = 1 << 23  # maximum number of ids to examine, for all characters together
LEADS = b"\xf1", b"\xf2", b"\xf3", b"\xf0"
# Characters that many vocabularies lack: private use, unassigned, rare scripts.
RARE = "\ue0a7\U000f1234\U0001fbf7\U000107b6\u0b7e\u0378\u3131\u1f6d\u20bf\u00a7~#\x01"


def is_canonical(native: Native, ids: object) -> bool:
    numbers = int_list(ids)
    n = native.n_tokens
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
        self._type = native.vocab_type
        # This model decodes its tokens as byte-level text, but matches them as plain text.
        self._prints_otherwise = native.model == "whitespace"
        self._spellings: dict[int, tuple[bytes, ...]] = {}
        self._raw: dict[int, list[bytes]] = {}

    def without_added(self, ids: list[int]) -> Iterator[list[int]]:
        """Yields the ids; then, if they include the tokens that add_special adds, the ids without
        these tokens."""
        yield ids
        whole = self._parts.ids(b"", 0, 0, ADD_SPECIAL).tolist()
        before = self._added_before(whole)
        after = whole[before:]
        if whole and ids[:before] == whole[:before] and len(ids) >= len(whole):
            end = len(ids) - len(after)
            if ids[end:] == after:
                yield ids[before:end]

    def _added_before(self, whole: list[int]) -> int:
        """Returns how many of the added tokens `whole` come before the text."""
        if len(whole) != 1:
            return len(whole) - len(whole) // 2
        return int(self._parts.ids(b"a", 0, 1, ADD_SPECIAL)[0] == whole[0])

    def text(self, ids: list[int]) -> bool:
        """Whether any text encodes to these ids, without added tokens."""
        if self._type == "TEST":
            return True
        specials = [i for i, id in enumerate(ids) if self._is_special(id)]
        stretches = list(_between(ids, specials))
        if all(self._encodes(stretch, None, None) for stretch in stretches):
            return True
        return self._reach(stretches, [ids[i] for i in specials])

    def _reach(self, stretches: list[list[int]], specials: list[int]) -> bool:
        """Whether the stretches of ids between special tokens fit some interpretation of these
        tokens, each as itself or as raw text."""
        itself: list[bytes | None] = [None]
        before = [itself]  # possible interpretations of the special token before a stretch
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
        """Returns up to three raw texts whose ids end with this special token."""
        if id not in self._raw:
            texts = [self._native.text(id), b"\x80", *(c.encode() for c in RARE)]
            self._raw[id] = [text for text in texts if text and self._ids(text)[-1:] == [id]][:3]
        return self._raw[id]

    def _ids(self, text: bytes) -> list[int]:
        ids: list[int] = self._parts.ids(text, 0, len(text), 0).tolist()
        return ids

    def _encodes(self, ids: list[int], before: bytes | None, after: bytes | None) -> bool:
        """Whether these are the ids of some text between two special tokens.

        `before` and `after` are the texts of these tokens if they are read as ordinary text, which
        then belongs to the encoded text; None for a token that is parsed as a special token.
        """
        if not ids and before is None and after is None:
            return True
        want = [*(self._ids(before) if before else ()), *ids]
        if after:
            want.append(self._ids(after)[-1])
        return any(
            self._ids(text) == want for text in self._texts(ids, before or b"", after or b"")
        )

    def _texts(self, ids: list[int], before: bytes, after: bytes) -> Iterator[bytes]:
        """Yields candidate texts for these ids."""
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
        for text in tried:
            if (source := self._unnormalized(text)) is not None:
                yield source
        for mark in (False, True):
            pieces = [self._spelling(id, mark)[self._prints_otherwise] for id in ids]
            for silent in self._silent():
                text = silent + _apart(pieces, silent) + silent
                yield before + text + after
            for lead in LEADS:
                if (mended := _insert_lead_bytes(b"".join(pieces), lead)) is not None:
                    yield before + mended + after

    def _unnormalized(self, text: bytes) -> bytes | None:
        """Replaces each part that normalization would change with a text that has this part as its
        normalized form.

        Returns None if there is no such part.
        """
        if self._type != "UGM":  # other types don't change text that is already normalized
            return None
        try:
            characters = text.decode()
        except UnicodeDecodeError:
            return None
        if not any(map(self._is_changed, {*characters} - {" ", "\u2581"})):
            return None
        sources = self._sources()
        lengths = range(max(map(len, sources), default=0), 0, -1)
        parts: list[str] = []
        at = 0
        while at < len(characters):
            known = (characters[at : at + n] for n in lengths)
            part = next((part for part in known if part in sources), characters[at])
            parts.append(sources.get(part, part))
            at += len(part)
        return "".join(parts).encode()

    def _is_changed(self, character: str) -> bool:
        """Whether normalization changes a character, derived from its tokens."""
        value = self._value(self._ids(character.encode()))
        if value is None:  # unknown: a token's own text would be that token, if it stayed as it is
            return self._native.find(character) is not None
        return value != character

    def _value(self, ids: list[int]) -> str | None:
        if any(self._native.attr(id) & UNKNOWN for id in ids):
            return None
        text = b"".join(map(self._native.text, ids)).replace(MARK, b"")
        try:
            return text.decode() or None
        except UnicodeDecodeError:
            return None

    def _sources(self) -> dict[str, str]:
        """Returns, for each normalized form that normalization would change again, a character with
        that normalized form."""
        if self._native.sources is None:
            changed = {}
            left = MOST_IDS
            unknown = {id for id, attr in enumerate(self._native.attrs()) if attr & UNKNOWN}
            for character in map(chr, chain(range(0xD800), range(0xE000, 0x110000))):
                ids = self._encode(character)
                left -= len(ids)
                if left < 0:  # a charsmap may expand every character to a long text
                    break
                if len(ids) > LONGEST or not unknown.isdisjoint(ids):
                    continue
                value = self._value(ids)
                if value is not None and value != character and len(value) <= LONGEST:
                    changed[character] = value
            self._native.sources = {
                value: character
                for character, value in reversed(changed.items())
                if any(c in changed or self._is_changed(c) for c in value)
            }
        return self._native.sources

    def _encode(self, text: str) -> list[int]:
        try:
            return self._native.encode(text, False, False, False)
        except Exception as e:
            self._native.reraise(e)

    def _without_prefixes(self, ids: list[int], pieces: list[bytes]) -> Iterator[bytes]:
        """Yields the pieces without the space prefixes that are inserted after user-defined
        tokens."""
        after = False
        for id, piece in zip(ids, pieces, strict=True):
            user_defined = bool(self._native.attr(id) & USER_DEFINED)
            yield _without_space(piece) if after and not user_defined else piece
            after = user_defined

    def _silent(self) -> list[bytes]:
        """Returns up to four characters that encode to no tokens."""
        if self._native.silent is None:
            self._native.silent = [
                text
                for text in (chr(c).encode() for c in (*range(0x100), *map(ord, RARE)))
                if not self._ids(text) and not self._ids(text + text)
            ][:4]
        return self._native.silent

    def _spelling(self, id: int, mark: bool) -> tuple[bytes, ...]:
        """Returns how raw text may spell a token: as its piece, or as stored in the vocabulary.

        If `mark`, spaces are written as U+2581.
        """
        key = 2 * id + mark
        if key not in self._spellings:
            piece = self._native.piece(id, 0, True)
            text = self._native.text(id)
            other = piece
            is_byte = len(text) == 6 and text[:3] == b"<0x"
            if not piece or is_byte or self._prints_otherwise:
                other = _byte_of(text) or text.replace(MARK, SPACE)
            # User-defined tokens are matched literally.
            if mark and not self._native.attr(id) & (BYTE | USER_DEFINED):
                piece, other = piece.replace(SPACE, MARK), other.replace(SPACE, MARK)
            self._spellings[key] = piece, other
        return self._spellings[key]


def _apart(pieces: list[bytes], silent: bytes) -> bytes:
    """Joins the pieces with `silent` between them, except inside a character."""
    text = bytearray()
    for piece in pieces:
        if text and not 0x80 <= piece[:1].ljust(1)[0] < 0xC0:
            text += silent
        text += piece
    return bytes(text)


def _without_space(text: bytes) -> bytes:
    space = next((space for space in (SPACE, MARK) if text.startswith(space)), b"")
    return text[len(space) :]


def _insert_lead_bytes(text: bytes, lead: bytes) -> bytes | None:
    """Inserts `lead` before each character that lacks the first of its four bytes.

    Returns None if there is no such character.
    """
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
