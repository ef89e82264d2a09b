"""The special tokens of a vocabulary for other libraries, which parse them by other rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ggtok.tokenizer import TokenAttr, Tokenizer
from ggtok.vocabularies.contents import Differs


@dataclass(frozen=True)
class Special:
    id: int
    text: bytes
    control: bool
    lstrip: bool
    rstrip: bool


def found_whole(tok: Tokenizer) -> Iterator[tuple[int, TokenAttr]]:
    """The ids and attributes of tokens that llama.cpp parses before it pre-tokenizes."""
    for id in range(tok.n_tokens):
        attr = tok.token_attr(id)
        if attr & (TokenAttr.CONTROL | TokenAttr.USER_DEFINED | TokenAttr.UNKNOWN):
            yield id, attr


def special_of(tok: Tokenizer, format: str, differs: Differs) -> list[Special]:
    """The tokens that llama.cpp parses in a text, by id.

    `differs` collects texts in which the other library finds other tokens, or strips more white
    space.
    """
    found = [
        Special(
            id,
            tok.token_text(id),
            not attr & TokenAttr.USER_DEFINED,
            bool(attr & TokenAttr.LSTRIP),
            bool(attr & TokenAttr.RSTRIP),
        )
        for id, attr in found_whole(tok)
    ]
    strips = [special.text for special in found if special.lstrip or special.rstrip]
    if strips and tok.vocab_type != "WPM":  # WPM drops all white space anyway
        differs(
            f"{format}: next to {_shown(strips[0])}, llama.cpp strips only ASCII white space, the "
            "other library also U+00A0 or U+3000: ids of such texts differ"
        )
    conflict = _conflict([special.text for special in found])
    if conflict is not None:
        differs(
            f"{format}: in the text {_shown(conflict)} llama.cpp finds the longest special token "
            "first, the other library the leftmost: their ids differ"
        )
    return found


def _conflict(texts: Sequence[bytes]) -> bytes | None:
    """A text of two overlapping tokens in which the two rules find different tokens, or None."""
    begins: dict[bytes, list[bytes]] = {}
    ends = {text[i:] for text in texts for i in range(1, len(text))}
    for text in texts:
        for i in range(1, len(text)):
            if text[:i] in ends:
                begins.setdefault(text[:i], []).append(text)
    known = set(texts)
    for first in texts:
        for i in range(1, len(first)):
            for second in begins.get(first[i:], ()):
                joint = first[:i] + second
                if first != second and not _agree(joint, second, known):
                    return joint
    return None


def _agree(joint: bytes, second: bytes, known: set[bytes]) -> bool:
    """Whether both rules find the same token at the start of the joint text.

    In llama.cpp, the order of ids decides between two tokens of the same length.
    """
    at = len(joint) - len(second)
    longest = next(joint[:n] for n in range(len(joint), 0, -1) if joint[:n] in known)
    return longest == second or len(longest) > len(second) or len(longest) <= at


def _shown(text: bytes) -> str:
    return repr(text.decode("utf-8", "backslashreplace"))
