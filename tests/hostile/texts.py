"""Malformed texts (malformed UTF-8, NULs, lone surrogates), and a million empty texts."""

from __future__ import annotations

import atexit
import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import cache

import ggtok
from tests.hostile.judge import LOADED, OTHER, VAGUE, Verdict
from tests.hostile.kinds import EACH_MODEL
from tests.hostile.rows import Trial, Trials
from tests.support.llamacpp import LlamaCpp
from tests.support.vocabularies import fixture

# Every kind of malformed UTF-8, and similar well-formed text, but no characters above U+10FFFF, for
# which llama.cpp aborts (docs/exactness.md).
PARTS: dict[str, bytes] = {
    "a continuation byte alone": b"\x80",
    "the last continuation byte alone": b"\xbf",
    "two of them": b"\xa0\xb0",
    "a lead of two without its other byte": b"\xc3",
    "a lead of three and one byte": b"\xe2\x82",
    "a lead of three alone": b"\xe6",
    "a lead of four and two bytes": b"\xf0\x9f\x91",
    "a lead of four and one byte": b"\xf0\x9f",
    "a lead of four alone": b"\xf4",
    "overlong NUL": b"\xc0\x80",
    "overlong slash": b"\xc1\xaf",
    "overlong, three bytes": b"\xe0\x80\xaf",
    "overlong, four bytes": b"\xf0\x80\x80\xaf",
    "a high surrogate": b"\xed\xa0\x80",
    "a low surrogate": b"\xed\xbf\xbf",
    "a pair of surrogates (CESU-8)": b"\xed\xa0\xbd\xed\xb1\x8d",
    "the last code point": b"\xf4\x8f\xbf\xbf",
    "no characters": b"\xef\xbf\xbe\xef\xbf\xbf\xf0\x9f\xbf\xbf",
    "leads of five and six": b"\xf8\x88\x80\x80\x80\xfc\x84\x80\x80\x80\x80",
    "FE and FF": b"\xfe\xff",
    "byte order mark": b"\xef\xbb\xbf",
    "NUL": b"\0",
    "NULs": b"\0\0\0",
    "UTF-16": "the kettle".encode("utf-16-le"),
    "Latin-1": "caf\xe9 na\xefve \xfc".encode("latin-1"),
    "leads only": bytes(range(0xC2, 0xF5)),
    "each byte but those that make more than U+10FFFF": bytes(range(0xF4)),
    "a good character cut by a bad byte": b"\xe6\xff\xbc\xa2",
}
FRAMES = (b"%s", b"the %s", b"%s kettle", b"ket%stle", b" %s ", b"\xe6\xbc\xa2%s\xf0\x9f\x91\x8d")


def broken() -> Iterator[tuple[str, bytes]]:
    for what, part in PARTS.items():
        for frame in FRAMES:
            yield what, frame % part
        yield f"{what}, often", part * 50
    for a, b in itertools.permutations(PARTS.values(), 2):
        yield "two of them", a + b


VOCABULARIES = [name for name in EACH_MODEL if name not in ("none", "big-endian")]


@cache
def reference() -> LlamaCpp:
    llama = LlamaCpp()
    atexit.register(llama.close)
    return llama


@cache
def _theirs(name: str, add: bool, parse: bool) -> list[list[int] | None]:
    texts = [text for _, text in broken()]
    return reference().load(fixture(name)).survivors(texts, add, parse)


@cache
def _tok(name: str) -> ggtok.Tokenizer:
    return ggtok.load(fixture(name))


def same_as_llama_cpp(name: str, i: int, text: bytes) -> Verdict:
    tok = _tok(name)
    for add, parse in ((False, False), (True, True)):
        theirs = _theirs(name, add, parse)[i]
        if theirs is None:
            return Verdict(VAGUE, f"llama.cpp died of {text!r}")
        ours = tok.encode(text, add_special=add, parse_special=parse)
        others = [
            tok.encode_array(bytearray(text), add_special=add, parse_special=parse).tolist(),
            tok.encode_batch([text], add_special=add, parse_special=parse)[0],
        ]
        if ours != theirs or others != [ours] * 2:
            return Verdict(VAGUE, f"{text!r}: {ours}, llama.cpp gives {theirs}")
        if tok.count(text, add_special=add, parse_special=parse) != len(ours):
            return Verdict(VAGUE, f"{text!r}: count differs")
    return Verdict(LOADED)


def broken_texts() -> Sequence[Trial]:
    return [
        (f"{name}: {what}", lambda n=name, i=i, t=text: same_as_llama_cpp(n, i, t))
        for name in VOCABULARIES
        for i, (what, text) in enumerate(broken())
    ]


# ---- str with lone surrogates ----

CALLS: dict[str, Callable[[ggtok.Tokenizer, str], object]] = {
    "encode": lambda tok, text: tok.encode(text),
    "encode_array": lambda tok, text: tok.encode_array(text),
    "encode_batch": lambda tok, text: tok.encode_batch(["sound", text, "sound"]),
    "encode_batch_arrays": lambda tok, text: tok.encode_batch_arrays(["sound", text]),
    "count": lambda tok, text: tok.count(text),
    "text_to_token": lambda tok, text: tok.text_to_token(text),
}


def surrogate(call: str, before: str, one: str) -> Verdict:
    tok = _tok("bpe-gpt2")
    try:
        CALLS[call](tok, before + one + "tail")
    except ggtok.TextEncodeError as error:
        if error.start != len(before):
            return Verdict(VAGUE, f"at {error.start}, not {len(before)}")
        names = f"U+{ord(one[0]):04X}" in str(error) and str(len(before)) in str(error)
        if not names:
            return Verdict(VAGUE, f"doesn't name the surrogate and its position: {error}")
        notes = getattr(error, "__notes__", ["texts[1]"])
        if "batch" in call and "texts[1]" not in str(notes):
            return Verdict(VAGUE, f"does not say which text: {error} {notes}")
        if tok.decode(tok.encode("still works")) != "still works":
            return Verdict(VAGUE, "the tokenizer no longer works")
        return Verdict(OTHER)
    return Verdict(LOADED)


def surrogates() -> Sequence[Trial]:
    befores = ("", "a", "\xe9\u6f22\U0001f44d", "word " * 1000, "\u6f22" * 5000)
    ones = ("\ud800", "\udbff", "\udc00", "\udfff", "\udfff\ud800")
    return [
        (
            f"{call}: U+{ord(one[0]):04X} after {len(before)}",
            lambda c=call, b=before, o=one: surrogate(c, b, o),
        )
        for call in CALLS
        for before in befores
        for one in ones
    ]


# ---- many texts ----


def many_empty(arrays: bool, text: object, add_special: bool) -> Verdict:
    n = 1_000_000
    tok = _tok("spm")
    one = tok.encode(text, add_special=add_special)  # type: ignore[arg-type]
    if arrays:
        ids, offsets = tok.encode_batch_arrays([text] * n, add_special=add_special)  # type: ignore[list-item]
        good = len(ids) == n * len(one) and len(offsets) == n + 1
        good = good and (ids == one[0]).all() if one else good
        good = (
            good and bool((offsets == range(0, n * len(one) + 1, len(one) or 1)).all())
            if one
            else good
        )
    else:
        lists = tok.encode_batch([text] * n, add_special=add_special)  # type: ignore[list-item]
        good = len(lists) == n and all(ids == one for ids in lists)
    return Verdict(LOADED) if good else Verdict(VAGUE, "wrong ids")


def many() -> Sequence[Trial]:
    return [
        (f"{arrays=} {text!r} {add=}", lambda a=arrays, t=text, s=add: many_empty(a, t, s))
        for arrays in (False, True)
        for text in ("", b"")
        for add in (False, True)
    ]


BROKEN = Trials("broken UTF-8, against llama.cpp", broken_texts, sample=300, timeout=120)
TEXTS = [
    Trials("lone surrogates", surrogates, allowed=frozenset((OTHER,)), sample=75),
    Trials("a million empty texts", many, sample=1),
]
