"""The kinds of hostile files: each is a row that creates input number i from valid fixtures.

Inputs are created on demand and are the same in every process, so a number identifies an input.
"""

from __future__ import annotations

import bisect
import random
import re
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, product
from pathlib import Path

from tests.hostile.judge import VOCAB_ERROR, Verdict, of_load
from tests.hostile.layout import ARR, Layout, layout
from tests.hostile.rows import ANY, MALFORMED, Row
from tests.support.patch import FORMATS, GGUF, TYPES
from tests.support.vocabularies import fixture, fixture_names


@dataclass(frozen=True)
class Input:
    data: bytes
    description: str


# A series of similar inputs: their number, and a function that creates input number i.
Series = tuple[int, Callable[[int], Input]]


class Kind(Row):
    """A row of the table whose inputs are damaged copies of valid files."""

    def __init__(
        self,
        name: str,
        series: Callable[[], Iterator[Series]],
        allowed: frozenset[int] = ANY,
        *,
        sample: int,
        agrees: bool = False,
    ) -> None:
        super().__init__(name, allowed=allowed, sample=sample)
        self._series = cache(lambda: list(series()))
        self._ends = cache(lambda: list(accumulate(n for n, _ in self._series())))
        self.agrees = agrees  # whether llama.cpp and ggtok must load and reject the same files

    def __len__(self) -> int:
        return self._ends()[-1]

    def __getitem__(self, i: int) -> Input:
        ends = self._ends()
        k = bisect.bisect_right(ends, i)
        return self._series()[k][1](i - (ends[k - 1] if k else 0))

    def judge(self, i: int) -> Verdict:
        return of_load(self[i].data)

    def describe(self, i: int) -> str:
        return self[i].description

    def keep(self, i: int) -> bytes:
        return self[i].data


# ---- valid files ----


@cache
def sound(name: str) -> bytes:
    return fixture(name).read_bytes()


@cache
def layout_of(name: str) -> Layout:
    return layout(sound(name))


# Fixtures of every vocabulary type, one of GGUF version 2, one that is big-endian, and one without
# a vocabulary.
EACH_MODEL = (
    "none test version-2 big-endian spm bpe-gpt2 bpe-gemma4 wpm ugm rwkv plamo2 plamo3 "
    "bpe-hybriddna bpe-whitespace"
).split()
SMALL = ("none", "test")


def replaced(name: str, at: int, new: bytes, what: str) -> Input:
    data = sound(name)
    return Input(data[:at] + new + data[at + len(new) :], f"{name}: {what} at byte {at}")


def patched(name: str, patches: Sequence[tuple[str, Callable[[GGUF], None]]]) -> Series:
    """Returns a series with the result of each patch to one file."""

    def make(i: int) -> Input:
        what, patch = patches[i]
        gguf = GGUF.parse(sound(name))
        patch(gguf)
        return Input(gguf.dump(), f"{name}: {what}")

    return len(patches), make


# ---- bytes ----


def truncations() -> Iterator[Series]:
    for name in fixture_names():
        yield (
            layout_of(name).end,
            lambda i, name=name: Input(sound(name)[:i], f"{name}: cut at byte {i}"),
        )


def changes(name: str, places: Sequence[int], values: Sequence[int]) -> Series:
    """Returns a series in which each byte at `places` is replaced by each of `values`. If a value
    is negative, its absolute value is XORed with the byte instead."""

    def make(i: int) -> Input:
        at, value = places[i // len(values)], values[i % len(values)]
        byte = sound(name)[at] ^ -value if value < 0 else value
        return replaced(name, at, bytes([byte]), f"{byte:#04x}")

    return len(places) * len(values), make


# Values for `changes`. EVERY produces all other values of a byte.
EVERY = [-x for x in range(1, 256)]
SOME = [0, 0xFF, 0x80, 0x7F, ord(" "), -1, -0x20, -0x80]
FEW = [0, 0xFF, -0x20]


def header_bytes() -> Iterator[Series]:
    for name in fixture_names():
        yield changes(name, range(24), EVERY)


def head_bytes() -> Iterator[Series]:
    """Changes keys, types, lengths, counts, and values that aren't arrays."""
    for name in (*SMALL, "version-2"):
        yield changes(name, layout_of(name).heads(), EVERY)
    for name in EACH_MODEL[3:]:
        yield changes(name, layout_of(name).heads(), SOME)


def array_bytes() -> Iterator[Series]:
    for name in SMALL:
        yield changes(name, layout_of(name).contents(), EVERY)
    for name in EACH_MODEL[3:]:
        yield changes(name, layout_of(name).contents(), FEW)


def random_damage() -> Iterator[Series]:
    """Changes a few bytes at once."""

    def make(name: str, i: int) -> Input:
        chooser = random.Random(f"{name} {i}")
        data = bytearray(sound(name))
        for _ in range(chooser.choice((2, 3, 5, 20))):
            at = chooser.randrange(min(len(data), chooser.choice((24, 400, len(data)))))
            data[at] = chooser.choice((0, 1, 0xFF, data[at] ^ 1 << chooser.randrange(8)))
        return Input(bytes(data), f"{name}: damage {i}")

    for name in fixture_names():
        yield 1000, lambda i, name=name: make(name, i)


# ---- structure ----

LIMITS = sorted(
    {
        *(0, 1, 7, 8, 2**30 - 1, 2**30, 2**30 + 1, 2**60, 2**61, 2**62, 2**64 - 1, 2**64 - 8),
        *(2**k + d for k in (7, 8, 15, 16, 31, 32, 63) for d in (-1, 0, 1)),
    }
)


N_LIMITS = len(LIMITS) + 4


def limits() -> Iterator[Series]:
    """Sets lengths and counts to limits of integer types, and to about the number of bytes left in
    the file."""

    def make(name: str, i: int) -> Input:
        found = layout_of(name)
        field, k = found.numbers()[i // N_LIMITS], i % N_LIMITS
        left = len(sound(name)) - field.at - field.size
        value = LIMITS[k] if k < len(LIMITS) else max(left + k - len(LIMITS) - 2, 0)
        new = struct.pack(found.order + "Q", value)
        return replaced(name, field.at, new, f"{field.name} {value} ({field.key})")

    for name in EACH_MODEL:
        yield len(layout_of(name).numbers()) * N_LIMITS, lambda i, name=name: make(name, i)


def nested(gguf: GGUF, key: str, depth: int) -> None:
    """Wraps an array in `depth` arrays of one element each."""
    head = struct.pack(gguf.order + "IIQ", ARR, ARR, 1)
    raw = gguf.raw[key.encode()]
    for _ in range(depth):
        raw = head + raw[4:]
    gguf.raw[key.encode()] = raw


def types_of_types() -> Iterator[Series]:
    """Replaces the type of each value or element by other types and by invalid numbers; nests
    arrays in arrays."""
    numbers = [*range(15), 255, 256, 2**16, 2**31, 2**32 - 1]
    for name in EACH_MODEL:
        found = layout_of(name)
        fields = [f for f in found.fields if f.name in ("type", "element type")]

        def make(i: int, name: str = name, order: str = found.order, fields=fields) -> Input:
            field, number = fields[i // len(numbers)], numbers[i % len(numbers)]
            new = struct.pack(order + "I", number)
            return replaced(name, field.at, new, f"{field.name} {number} ({field.key})")

        yield len(fields) * len(numbers), make

        keys = [f.key for f in fields if f.name == "element type"]
        yield patched(
            name,
            [
                (f"{key} nested {depth} deep", lambda g, k=key, d=depth: nested(g, k, d))
                for key in keys
                for depth in (1, 2, 1000)
            ],
        )


def duplicate_keys() -> Iterator[Series]:
    for name in EACH_MODEL:
        gguf = GGUF.parse(sound(name))
        keys = list(gguf.raw)
        orders = list(product(range(len(keys)), ("next to it", "first", "last")))

        def make(i: int, name: str = name, orders=orders) -> Input:
            k, where = orders[i]
            gguf = GGUF.parse(sound(name))
            pairs = list(gguf.raw.items())
            pairs.insert({"next to it": k, "first": 0, "last": len(pairs)}[where], pairs[k])
            head = struct.pack(gguf.order + "IQQ", gguf.version, 0, len(pairs))
            body = b"".join(
                struct.pack(gguf.order + "Q", len(key)) + key + raw for key, raw in pairs
            )
            return Input(b"GGUF" + head + body, f"{name}: {pairs[k][0]!r} again, {where}")

        yield len(orders), make


# ---- meaning ----


def keys_read() -> list[str]:
    """Returns every key that the C library reads, found in its sources."""
    folder = Path(__file__).resolve().parents[2] / "cext"
    texts = [(folder / file).read_text() for file in ("vocab/keys.h", "vocab/special.c")]
    keys = re.findall(r'"((?:tokenizer\.ggml|general)\.[a-z_.]+)"', "".join(texts))
    assert len(keys) > 30
    return sorted(set(keys))


def wrong_types() -> Iterator[Series]:
    """Sets each key that ggtok reads to a scalar and to arrays of each type; removes each key."""
    for name in EACH_MODEL:
        n = 3 if name == "none" else len(GGUF.parse(sound(name)).array("tokenizer.ggml.tokens"))
        patches = []
        for key, kind in product(keys_read(), TYPES):
            if kind == "arr":
                continue
            one: object = b"1" if kind == "str" else (FORMATS[kind] in "fd" and 1.5) or 1
            for value in (one, [one] * 3, [one] * n):
                many = f"{len(value)} of " if isinstance(value, list) else ""
                patches.append(
                    (f"{key} is {many}{kind}", lambda g, k=key, v=value, t=kind: g.set(k, v, t))
                )
            patches.append((f"{key} is 0 of {kind}", lambda g, k=key, t=kind: g.set(k, [], t)))
        patches += [(f"no {key}", lambda g, k=key: g.remove(k)) for key in keys_read()]
        yield patched(name, patches)


TOKENS, TYPES_KEY, SCORES = (f"tokenizer.ggml.{k}" for k in ("tokens", "token_type", "scores"))
MERGES, CHARSMAP = "tokenizer.ggml.merges", "tokenizer.ggml.precompiled_charsmap"

ODD_TEXTS = [
    *(b"", b"\0", b"\0tail", b"a\0b", b" ", b"\n", b"\xff", b"\xc3", b"\xe2\x96", b"\xf0\x9f\x91"),
    *(b"\xed\xa0\x80", b"\xc0\x80", b"\xf5\x90\x80\x80", b"\xf8\x88\x80\x80\x80", b"\xfe\xff"),
    *(b"\xe2\x96\x81" * 40, b"a" * 70_000, b"\xc4\xa0" * 3000, b"<0x", b"<0xZZ>", b"<0x00>"),
    *(b"\xc2\x9b31m", b"\x1b[2J", b"\xe2\x80\xae", b"</s>", b"[UNK]", bytes(range(1, 256))),
]


def element(key: str, at: Sequence[int], value: object) -> Callable[[GGUF], None]:
    def patch(gguf: GGUF) -> None:
        values = gguf.array(key)
        for i in at:
            values[i] = value  # type: ignore[call-overload]
        gguf.set(key, values)

    return patch


def odd_tokens() -> Iterator[Series]:
    """Sets token texts that are empty, not UTF-8, very long, or have unexpected contents."""
    for name in EACH_MODEL[1:]:
        n = len(GGUF.parse(sound(name)).array(TOKENS))
        places = [[0], [1], [n // 3], [n // 2], [n - 1], [2, n - 2]]
        patches = [
            (f"tokens {at} are {text[:12]!r}", element(TOKENS, at, text))
            for text, at in product(ODD_TEXTS, places)
        ]
        patches += [
            (f"{count} tokens", lambda g, c=count: g.set(TOKENS, g.array(TOKENS)[:c], "str"))
            for count in (0, 1, 2, 3, n // 2, n - 1)
        ]
        patches.append(("all empty", lambda g: g.set(TOKENS, [b""] * len(g.array(TOKENS)))))
        yield patched(name, patches)


def duplicate_tokens() -> Iterator[Series]:
    for name in EACH_MODEL[1:]:
        n = len(GGUF.parse(sound(name)).array(TOKENS))
        pairs = [(i, j) for i in range(0, n - 1, 7) for j in {i + 1, n - 1} if i != j]

        def patch(i: int, j: int) -> Callable[[GGUF], None]:
            def set(gguf: GGUF) -> None:
                gguf.set(TOKENS, element_copied(gguf.array(TOKENS), i, j))

            return set

        yield patched(name, [(f"token {j} is token {i}", patch(i, j)) for i, j in pairs])


def element_copied(values: list, i: int, j: int) -> list:
    values[j] = values[i]
    return values


def short_arrays() -> Iterator[Series]:
    """Sets types and scores for fewer or more tokens than the file has."""
    for name in EACH_MODEL[1:]:
        gguf = GGUF.parse(sound(name))
        n = len(gguf.array(TOKENS))
        patches = []
        for key in (TYPES_KEY, SCORES):
            if key not in gguf:
                continue
            for count in sorted({0, 1, 2, n // 2, n - 2, n - 1, n, n + 1, 2 * n}):
                kind = gguf.type(key)
                patches.append(
                    (
                        f"{count} of {key}",
                        lambda g, k=key, c=count, t=kind: g.set(k, (g.array(k) * 2)[:c], t),
                    )
                )
        yield patched(name, patches)


NUMBERS = [float("nan"), float("inf"), float("-inf"), -0.0, 1e-45, 3e38, -3e38, -1e9, 2.0**31]
ODD_TYPES = [-(2**31), -1, 0, 7, 8, 255, 2**31 - 1]


def odd_numbers() -> Iterator[Series]:
    """Sets scores that are NaN, infinite or huge, and invalid token types."""
    for name in EACH_MODEL[1:]:
        gguf = GGUF.parse(sound(name))
        n = len(gguf.array(TOKENS))
        places = [[0], [n // 2], [n - 1], range(0, n, 2), range(n)]
        patches = []
        for key, values in ((SCORES, NUMBERS), (TYPES_KEY, [*ODD_TYPES, 1, 2, 3, 4, 5, 6])):
            if key in gguf:
                patches += [
                    (f"{len(at)} of {key} are {value}", element(key, at, value))
                    for value, at in product(values, places)
                ]
        yield patched(name, patches)


def special_ids() -> Iterator[Series]:
    """Sets ids that are out of range, and the same id for every special token."""
    keys = [key for key in keys_read() if key.endswith("_token_id")]
    for name in EACH_MODEL[1:]:
        n = len(GGUF.parse(sound(name)).array(TOKENS))
        values = (0, n - 1, n, n + 1, 2**31 - 1, 2**31, 2**32 - 1)
        patches = [
            (f"{key} is {value}", lambda g, k=key, v=value: g.set(k, v, "u32"))
            for key, value in product(keys, values)
        ]
        patches += [
            (
                f"every id {value}",
                lambda g, v=value: [g.set(key, v, "u32") for key in keys] and None,
            )
            for value in values
        ]
        yield patched(name, patches)


ODD_MERGES = [
    *(b"", b" ", b"  ", b"a", b"a ", b" a", b"a  b", b"no such", b"\xc4\xa0 zzzz", b"\xff \xfe"),
    *(b"a b c", b"\0", b"a\0 b", b"a b\0", b"\xe2\x96 \x81", b"t h", b"x" * 5000 + b" y", b"a\tb"),
]


def odd_merges() -> Iterator[Series]:
    """Sets merges that name no tokens, aren't two words, or are duplicates."""
    for name in [name for name in EACH_MODEL if MERGES in GGUF.parse(sound(name))]:
        n = len(GGUF.parse(sound(name)).array(MERGES))
        places = [[0], [n // 2], [n - 1], range(n)]
        patches = [
            (f"{len(at)} merges are {text[:12]!r}", element(MERGES, at, text))
            for text, at in product(ODD_MERGES, places)
        ]
        patches += [
            ("merges reversed", lambda g: g.set(MERGES, g.array(MERGES)[::-1])),
            ("merges twice", lambda g: g.set(MERGES, g.array(MERGES) * 2)),
            ("no merges", lambda g: g.set(MERGES, [], "str")),
        ]
        yield patched(name, patches)


def charsmaps() -> Iterator[Series]:
    """Sets charsmaps that are truncated, or whose links and replacements are out of range."""
    sound_map = bytes(int(x) for x in GGUF.parse(sound("ugm")).array(CHARSMAP))

    def as_map(blob: bytes) -> Callable[[GGUF], None]:
        return lambda gguf: gguf.set(CHARSMAP, list(blob), "u8")

    def damage(i: int) -> bytes:
        chooser = random.Random(i)
        blob = bytearray(sound_map)
        for _ in range(chooser.choice((1, 4, 40))):
            at = 4 * chooser.randrange(len(blob) // 4)
            blob[at : at + 4] = struct.pack("<I", chooser.getrandbits(chooser.choice((8, 16, 32))))
        return bytes(blob)

    n = len(sound_map)
    yield patched("ugm", [(f"charsmap of {k}", as_map(sound_map[:k])) for k in range(0, n, 3)])
    yield patched(
        "ugm",
        [
            (f"charsmap's array of {size}", as_map(struct.pack("<I", size) + sound_map[4:]))
            for size in [*range(n - 9, n + 9), *(x for x in LIMITS if x < 2**32), *range(0, n, 5)]
        ],
    )
    yield 4000, lambda i: patched("ugm", [(f"charsmap damaged {i}", as_map(damage(i)))])[1](0)


def spliced() -> Iterator[Series]:
    """Copies each key, with its value, from one file into another."""
    names = [name for name in EACH_MODEL if name not in ("none", "big-endian")]
    for name, other in product(names, names):
        donor = GGUF.parse(sound(other)).raw
        if name != other:
            yield patched(
                name,
                [
                    (f"{key.decode()} of {other}", lambda g, k=key, v=raw: g.raw.update({k: v}))
                    for key, raw in donor.items()
                ],
            )


KINDS = [
    Kind("truncation at every byte", truncations, MALFORMED, sample=1500),
    Kind("header: every byte, every value", header_bytes, sample=2000),
    Kind("keys, types, lengths, scalars: bytes", head_bytes, sample=2000),
    Kind("contents of arrays: bytes", array_bytes, sample=1500),
    Kind("several bytes at random", random_damage, sample=1000),
    Kind("lengths and counts at limits", limits, sample=1500),
    Kind("value and element types, nesting", types_of_types, sample=800),
    Kind("duplicate keys", duplicate_keys, MALFORMED, sample=150),
    Kind("wrong types for every key read", wrong_types, sample=1000, agrees=True),
    Kind("odd token texts", odd_tokens, sample=500, agrees=True),
    Kind("duplicate tokens", duplicate_tokens, frozenset((VOCAB_ERROR,)), sample=150),
    Kind("types and scores too short", short_arrays, sample=100, agrees=True),
    Kind("NaN, infinities, odd types", odd_numbers, sample=300, agrees=True),
    Kind("special ids out of range", special_ids, sample=400, agrees=True),
    Kind("merges that name no tokens", odd_merges, sample=200, agrees=True),
    Kind("charsmaps that lead outside", charsmaps, sample=500),
    Kind("values of other files", spliced, sample=400),
]
