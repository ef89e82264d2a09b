"""Traced text: equal to str in all that it does, and no label gained.

The oracle for labels: upper-case letters are the template's, lower-case ones aren't (space
is anyone's), and the operations here change no letter.
"""

from __future__ import annotations

import string
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from ggtok import _traced
from ggtok._traced import GENERATED, TEMPLATE, Traced

PIECES = st.text("ABab \n", max_size=4)


def mine(text: str) -> str:
    return "".join(c for c in text if c not in string.ascii_lowercase)


@st.composite
def traced(draw: st.DrawFn) -> str:
    """Pieces of the template's and of other text, joined."""
    pieces = draw(st.lists(PIECES, max_size=5))
    parts = []
    for piece in pieces:
        upper, lower = piece.upper(), piece.lower()
        parts.append(_traced.labelled(upper, TEMPLATE) if draw(st.booleans()) else lower)
    return _traced.joined(parts)


def check(result: Any, expected: Any) -> None:
    assert result == expected
    if isinstance(result, str):
        assert len(_traced.runs_of(result)) == 0 or _traced.runs_of(result)[-1][0] == len(result)
        previous = None
        for begin, end, label in _traced.spans(result):
            assert begin < end and label != previous
            previous = label
            part = str.__getitem__(result, slice(begin, end))
            if label & TEMPLATE:
                assert part == mine(part), (result, part)
            else:  # nothing lost either
                assert not any(c in string.ascii_uppercase for c in part), (result, part)
    elif isinstance(result, (list, tuple)):
        for a, b in zip(result, expected, strict=True):
            check(a, b)


OPERATIONS: dict[str, Callable[..., Any]] = {
    "a + b": lambda a, b, c, i, j: a + b,
    "a[i:j]": lambda a, b, c, i, j: a[i:j],
    "a[i]": lambda a, b, c, i, j: a[i] if -len(a) <= i < len(a) else "",
    "a * i": lambda a, b, c, i, j: a * i,
    "list(a)": lambda a, b, c, i, j: list(a),
    "strip": lambda a, b, c, i, j: [a.strip(), a.lstrip(), a.rstrip(), a.strip("Aa"), a.strip(b)],
    "split": lambda a, b, c, i, j: [*a.split(), *a.split(None, 1), *a.split("a"), *a.split("A", 1)],
    "rsplit": lambda a, b, c, i, j: [*a.rsplit(), *a.rsplit(None, 1), *a.rsplit("B", 1)],
    "splitlines": lambda a, b, c, i, j: [*a.splitlines(), *a.splitlines(True)],
    "partition": lambda a, b, c, i, j: [*a.partition("b"), *a.rpartition("A")],
    "affixes": lambda a, b, c, i, j: [a.removeprefix("A"), a.removesuffix(b)],
    "replace": lambda a, b, c, i, j: (
        [a.replace(b, c, i), a.replace("a", c), a.replace("A", b)] if b else ""
    ),
    "join": lambda a, b, c, i, j: a.join([b, c, b]),
}


@given(st.data())
@pytest.mark.parametrize("name", OPERATIONS)
def test_operations(name: str, data: st.DataObject) -> None:
    a, b, c = (data.draw(traced()) for _ in "abc")
    a = _traced.joined([_traced.labelled("A", TEMPLATE), a])  # so that it is Traced
    i, j = (data.draw(st.integers(-3, 8)) for _ in "ij")
    plain = [str.__str__(text) for text in (a, b, c)]
    assert all(type(text) is str for text in plain)
    check(OPERATIONS[name](a, b, c, i, j), OPERATIONS[name](*plain, i, j))


@given(traced(), traced(), traced())
@pytest.mark.parametrize("conversions", ["%s%%%s", "%(x)s-%(y)s"])
def test_percent(conversions: str, a: str, b: str, c: str) -> None:
    form = _traced.joined([_traced.labelled("A", TEMPLATE), a, conversions])
    args: Any = {"x": b, "y": c} if "x" in conversions else (b, c)
    mod: Any = Traced.__mod__
    check(mod(form, args), str.__str__(form) % args)


@given(traced())
def test_letters_change_one_for_one(text: str) -> None:
    for method in ("upper", "lower", "title", "capitalize", "casefold", "swapcase"):
        result = getattr(text, method)()
        assert result == getattr(str.__str__(text), method)()
        assert _traced.runs_of(result) == _traced.runs_of(text)


OWN = _traced.labelled("A\u00dfB", TEMPLATE)
MIXED = _traced.joined([OWN, "x"])
UNTRACED: dict[str, tuple[Callable[[str], str], bool]] = {
    "a step": (lambda a: a[::-1], True),
    "one letter becomes two": (lambda a: a.upper(), True),
    "an empty text replaced": (lambda a: a.replace("", "-"), False),
    "a width from the arguments": (lambda a: (a + "%*d") % (3, 7), False),
}


@pytest.mark.parametrize("name", UNTRACED)
@pytest.mark.parametrize("text", [OWN, MIXED], ids=["the template's", "mixed"])
def test_what_is_not_followed(name: str, text: str) -> None:
    """What is made of several labels has none; of one, that one where nothing else goes in."""
    operation, keeps = UNTRACED[name]
    result = operation(text)
    assert result == operation(str.__str__(text))
    label = TEMPLATE if keeps and text is OWN else 0
    assert _traced.runs_of(result) == ((len(result), label),)


def test_what_is_added_keeps_its_own_rules() -> None:
    safe = OWN + Markup("<b>")
    assert type(safe) is Markup and safe == "A\u00dfB<b>"
    other: Any = 5
    with pytest.raises(TypeError, match="int"):
        OWN + other


def test_labels_of_made_text() -> None:
    own = _traced.labelled("AB", TEMPLATE)
    assert isinstance(own.center(8), Traced)  # made of nothing but the template's
    assert type(own.center(8, "x")) is str
    assert type(own.ljust(8, "x")) is str
    assert type(own.encode().decode()) is str
    assert type("".join([own])) is str  # a C function that knows nothing
    mod: Any = Traced.__mod__
    assert _traced.runs_of(mod(_traced.labelled("A%dB", TEMPLATE), 7)) == ((3, TEMPLATE),)
    assert _traced.runs_of(mod(_traced.labelled("A%cB", TEMPLATE), 65)) == (
        (1, TEMPLATE),
        (2, 0),
        (3, TEMPLATE),
    )
    both = _traced.add_label(_traced.joined([own, "x"]), GENERATED)
    assert _traced.runs_of(both) == ((2, TEMPLATE | GENERATED), (3, GENERATED))
    assert both == "ABx" and hash(both) == hash("ABx") and both in {"ABx"}
