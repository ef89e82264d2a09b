"""Tokenizer.show finds the message of each text in linear time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from ggtok import show

Message = Mapping[str, Any]


def plain(messages: Sequence[Message], texts: Sequence[str]) -> list[int | None]:
    """Finds the messages by comparing each text with every string."""
    strings = [[string.strip() for string in show._strings(message)] for message in messages]
    found: list[int | None] = []
    first = 0
    for text in texts:
        following = range(first, len(strings))
        index = next((i for i in following if text in strings[i]), None)
        if index is not None:
            strings[index].remove(text)
        else:
            index = next((i for i in following if any(text in s for s in strings[i])), None)
        first = first if index is None else index
        found.append(index)
    return found


def said(*contents: str) -> list[Message]:
    return [{"role": "user", "content": content} for content in contents]


@pytest.mark.parametrize(
    ("messages", "texts"),
    [
        (said("a", "b", "a"), ["a", "b", "a"]),
        (said("a", "a", "b"), ["a", "b", "a"]),
        (said("ab ba", "ab"), ["ab", "ab", "ba"]),
        (said("one two", "two one"), ["one", "two", "two", "one", "one"]),
        (said("one two one"), ["two", "one", "two", "one two", "one two one", "one"]),
        (said("abab", "bab"), ["ab", "bab", "aba", "b"]),
        (said("x", " y ", ""), ["x", "z", "", "y", "", "x"]),
        ([{"role": "tool", "content": ["a", {"b": "c d"}]}, *said("d")], ["c", "d", "a", "d"]),
        ([], ["a", ""]),
    ],
)
def test_messages_are_those_of_a_plain_search(messages: list[Message], texts: list[str]) -> None:
    sources = show._Sources(messages, 0)
    assert [sources.find(text) for text in texts] == plain(messages, texts)


def examined(messages: Sequence[Message], texts: Sequence[str]) -> int:
    sources = show._Sources(messages, sum(map(len, texts)))
    before = sources.left
    for text in texts:
        sources.find(text)
    return before - sources.left


@pytest.mark.parametrize("n", [500, 1000, 2000])
def test_texts_that_are_in_no_message_take_linear_time(
    monkeypatch: pytest.MonkeyPatch, n: int
) -> None:
    monkeypatch.setattr(show, "_MORE", 0)
    messages, texts = said(*(f"text {i}" for i in range(n))), [f"TEXT {i}" for i in range(n)]
    size = sum(len(text) for text in texts) + sum(len(s) for m in messages for s in m.values())
    assert examined(messages, texts) <= show._PASSES * size + 2 * show._VISIT


@pytest.mark.parametrize("n", [500, 1000, 2000])
def test_the_lines_of_a_long_message_take_linear_time(n: int) -> None:
    lines = [f"line {i}." for i in range(n)]
    size = len("\n".join(lines))
    assert examined(said("\n".join(lines)), lines) <= 2 * size + n * 2 * show._VISIT


def test_whole_messages_are_found_after_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(show, "_MORE", 0)
    monkeypatch.setattr(show, "_PASSES", 0)
    sources = show._Sources(said("ab", "c"), 0)
    assert [sources.find(text) for text in ("b", "ab", "c")] == [None, 0, 1]
