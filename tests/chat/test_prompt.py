"""Prompts: texts that record which of their parts come from the template."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ggtok.chat.prompt import Prompt, joined, own, role

PIECES = st.lists(st.tuples(st.text("ab<é👍", max_size=4), st.booleans()), max_size=6)


def marks(text: str, ranges: tuple[tuple[int, int], ...]) -> list[bool]:
    """Returns for each byte whether it is in a range."""
    inside = [False] * len(text.encode())
    last = -1
    for begin, end in ranges:
        assert last < begin < end  # ranges aren't adjacent
        inside[begin:end] = [True] * (end - begin)
        last = end
    return inside


def of_pieces(pieces: list[tuple[str, bool]]) -> list[bool]:
    return [is_own for text, is_own in pieces for _ in text.encode()]


def prompt_of(pieces: list[tuple[str, bool]], generated: bool = False) -> Prompt:
    text = joined(pieces)
    return Prompt(str(text), text.ranges, text.ranges if generated else ())


@given(PIECES)
def test_joined(pieces: list[tuple[str, bool]]) -> None:
    text = joined(pieces)
    assert text == "".join(piece for piece, _ in pieces)
    assert marks(text, text.ranges) == of_pieces(pieces)


def test_roles() -> None:
    assert role("user").ranges == ((0, 4),)  # type: ignore[attr-defined]
    assert type(role("wizard")) is str
    assert own("").ranges == ()
    assert own("é").ranges == ((0, 2),)


@given(PIECES, PIECES)
def test_followed_by(first: list[tuple[str, bool]], second: list[tuple[str, bool]]) -> None:
    both = prompt_of(first).followed_by(second)
    assert both.text == joined(first + second)
    assert marks(both.text, both.ranges) == of_pieces(first + second)


@given(PIECES, PIECES)
def test_after(first: list[tuple[str, bool]], second: list[tuple[str, bool]]) -> None:
    whole, begin = prompt_of(first + second), prompt_of(first)
    rest = whole.after(begin)
    assert "".join(text for text, _ in rest) == joined(second)
    assert of_pieces(rest) == of_pieces(second)


def test_after_a_part() -> None:
    whole = prompt_of([("<é>", True), ("ab", False)])
    assert whole.after(prompt_of([("<éx", True)])) == [(">", True), ("ab", False)]


@given(PIECES, st.integers(0, 30))
def test_cut(pieces: list[tuple[str, bool]], at: int) -> None:
    prompt = prompt_of(pieces, generated=True)
    cut = prompt.cut(at)
    assert cut.text == prompt.text[:at]
    n = len(cut.text.encode())
    assert marks(cut.text, cut.ranges) == of_pieces(pieces)[:n]
    assert cut.generated == cut.ranges


def test_without_ends() -> None:
    prompt = prompt_of([("<s>é", True), ("hi", False), ("</s>", True)], generated=True)
    assert prompt.without_ends("", "") is prompt
    assert prompt.without_ends("x", "y") is prompt
    short = prompt.without_ends("<s>", "</s>")
    assert (short.text, short.ranges, short.generated) == ("éhi", ((0, 2),), ((0, 2),))
    assert prompt_of([("<s>", True)]).without_ends("<s>", "</s>") == Prompt("", ())
    for pieces in ([("<s>", False), ("a", True)], [("a", True), ("</s>", False)]):
        message = prompt_of(pieces)
        assert message.without_ends("<s>", "</s>") is message


def test_covers() -> None:
    prompt = prompt_of([("ab", True), ("c", False)])
    assert prompt.covers(0, 2)
    assert prompt.covers(3, 3)
    assert not prompt.covers(1, 3)


@given(PIECES, PIECES)
def test_with_last(first: list[tuple[str, bool]], second: list[tuple[str, bool]]) -> None:
    prompt = prompt_of([*first, ("<|return|>", True), *second], generated=True)
    changed = prompt.with_last("<|return|>", "<|end|>")
    wanted = [*first, ("<|end|>", True), *second]
    assert changed.text == joined(wanted)
    assert marks(changed.text, changed.ranges) == of_pieces(wanted)
    assert marks(changed.text, changed.generated) == of_pieces(wanted)


def test_with_last_of_none() -> None:
    prompt = prompt_of([("a", True)])
    assert prompt.with_last("b", "c") is prompt


def test_with_last_of_the_conversations() -> None:
    """The replacement counts as the conversation's text, even if part of what it replaces comes
    from the template."""
    changed = prompt_of([("a<r>b", False)]).with_last("<r>", "<e>")
    assert (changed.text, changed.ranges) == ("a<e>b", ())
    changed = prompt_of([("a<", True), ("r>b", False), ("c", True)]).with_last("<r>", "<e>")
    assert (changed.text, changed.ranges) == ("a<e>bc", ((0, 1), (5, 6)))


def test_turn() -> None:
    ended = prompt_of([("a", False), ("<end>", True)])
    assert ended.turn("<end>", "<begin>") == [("<begin>", True)]
    assert prompt_of([("a<end>", False)]).turn("<end>", "<begin>") == [("<begin>", False)]
    assert prompt_of([("a<", True), ("end>", False)]).turn("<end>", "b") == [("b", False)]
    assert ended.turn("a", "<begin>") == ended.turn("<end>", "") == []
