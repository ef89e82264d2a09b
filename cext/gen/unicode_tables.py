"""Writes cext/unicode/tables.inc: the properties of code points that ggtok uses.

Needs unicodedata2==15.1.0, the version of llama.cpp's tables.

Every code point has a *class*. A class is one combination of all properties that
unicode_flags and the pre-tokenizers can distinguish: category, white space, Han
block, and membership in each character set of pretok_patterns.py. A two-stage
table maps code points to classes; small tables map classes to their properties.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import unicodedata2
from pretok_patterns import FAST_PATTERNS, PATTERNS
from pretok_regex import Parser, Props

OUTPUT = Path(__file__).parents[1] / "unicode" / "tables.inc"
VERSION = "15.1.0"
N_CODE_POINTS = 0x110000
BLOCK_BITS = 8

# The simple lower-case map is Python's, so these counts guard against versions with more pairs.
N_LOWER, N_NFD = 1433, 13233

WHITE_SPACE = {*range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B)}
WHITE_SPACE |= {0x2028, 0x2029, 0x202F, 0x205F, 0x3000}

HAN = (  # llama.cpp's blocks, not the script property
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0x2CEB0, 0x2EBEF),
    (0x2F800, 0x2FA1F),
)

FLAGS = {
    "": "UNICODE_UNDEFINED",
    "N": "UNICODE_NUMBER",
    "L": "UNICODE_LETTER",
    "Z": "UNICODE_SEPARATOR",
    "M": "UNICODE_MARK",
    "P": "UNICODE_PUNCTUATION",
    "S": "UNICODE_SYMBOL",
    "C": "UNICODE_CONTROL",
}


@cache
def props(cpt: int) -> Props:
    category = unicodedata2.category(chr(cpt))
    return Props(
        category="" if category == "Cn" else category[0],
        white_space=cpt in WHITE_SPACE,
        han=any(lo <= cpt <= hi for lo, hi in HAN),
    )


@cache
def classes() -> tuple[bytes, list[int]]:
    """Returns the class of each code point, and the first code point of each class."""
    sets = sorted(
        {
            s
            for p in (*PATTERNS, *FAST_PATTERNS)
            for s in Parser(p.regex, mixed=True).sets
            if any(hi > 0x7F for _, hi in s.ranges)
        },
        key=repr,
    )
    # Membership in sets changes only at the edges of ranges.
    edges = sorted({e for s in sets for lo, hi in s.ranges for e in (lo, hi + 1)} | {0x80})
    number: dict[tuple[object, ...], int] = {}
    first: list[int] = []
    result = bytearray(N_CODE_POINTS)
    edge = 0
    member: dict[Props, tuple[bool, ...]] = {}
    for cpt in range(N_CODE_POINTS):
        while edge < len(edges) and edges[edge] <= cpt:
            edge += 1
            member = {}
        p = props(cpt)
        if p not in member:  # ASCII is looked up by character, never by class
            member[p] = tuple((cpt, p) in s for s in sets) if cpt > 0x7F else ()
        key = (p, member[p])
        if key not in number:
            number[key] = len(first)
            first.append(cpt)
            if len(first) > 255:
                raise SystemExit("more than 255 classes: the tables need uint16_t")
        result[cpt] = number[key]
    return bytes(result), first


def lower_case() -> dict[int, int]:
    result = {0x130: 0x69}
    for cpt in range(N_CODE_POINTS):
        c = chr(cpt)
        if unicodedata2.category(c) != "Cn" and len(c.lower()) == 1 and c.lower() != c:
            result[cpt] = ord(c.lower())
    if len(result) != N_LOWER:
        raise SystemExit(f"{len(result)} lower-case pairs instead of {N_LOWER}")
    return result


def nfd_first() -> dict[int, int]:
    result = {}
    for cpt in range(N_CODE_POINTS):
        c = chr(cpt)
        d = unicodedata2.normalize("NFD", c)
        if d != c:
            result[cpt] = ord(d[0])
    if len(result) != N_NFD:
        raise SystemExit(f"{len(result)} decompositions instead of {N_NFD}")
    return result


def strides(pairs: dict[int, int], slope: int) -> list[tuple[int, int, int, int]]:
    """Returns rows (first, last, step, target), which map first + k * step to
    target + slope * k * step."""
    rows: list[list[int]] = []
    for cpt in sorted(pairs):
        target = pairs[cpt]
        if rows:
            row = rows[-1]
            step = cpt - row[1]
            same_step = row[0] == row[1] or step == row[2]
            if step <= 2 and same_step and target == row[3] + slope * (cpt - row[0]):
                row[1], row[2] = cpt, step
                continue
        rows.append([cpt, cpt, 1, target])
    return [(a, b, c, d) for a, b, c, d in rows]


def table(values: Iterable[object], width: int = 100) -> str:
    lines, line = [], "   "
    for v in values:
        if len(line) + len(str(v)) + 2 > width:
            lines.append(line)
            line = "   "
        line += f" {v},"
    return "\n".join([*lines, line])


def header(script: str, what: str) -> str:
    return (
        f"/* DO NOT EDIT: written by cext/gen/{script} from Unicode {VERSION}\n"
        f" * (unicodedata2=={VERSION}) and cext/gen/pretok_patterns.py. {what} */\n"
    )


def two_stage(values: Sequence[int]) -> tuple[list[int], list[int]]:
    size = 1 << BLOCK_BITS
    index: list[int] = []
    blocks: dict[tuple[int, ...], int] = {}
    for start in range(0, len(values), size):
        index.append(blocks.setdefault(tuple(values[start : start + size]), len(blocks)))
    if len(blocks) > 256:
        raise SystemExit(f"{len(blocks)} blocks do not fit uint8_t")
    return index, [v for block in blocks for v in block]


def generate() -> str:
    if unicodedata2.unidata_version != VERSION:
        raise SystemExit(f"needs unicodedata2=={VERSION}, found {unicodedata2.unidata_version}")
    class_of, first = classes()
    index, block = two_stage(class_of)
    flags = []
    for cpt in first:
        p = props(cpt)
        flags.append(
            FLAGS[p.category]
            + (" | UNICODE_WHITESPACE" if p.white_space else "")
            + (" | UNICODE_HAN" if p.han else "")
        )
    lower = strides(lower_case(), 1)
    nfd = strides(nfd_first(), 0)
    size = len(index) + len(block) + 2 * len(first) + 16 * len(lower) + 12 * len(nfd)
    nfd_rows = []
    for a, b, step, to in nfd:
        if step == 2:
            nfd_rows += [(c, c, to) for c in range(a, b + 1, 2)]
        else:
            nfd_rows.append((a, b, to))
    return "\n".join(
        [
            header("unicode_tables.py", f"{size} bytes of tables."),
            f'_Static_assert(UNICODE_BLOCK_BITS == {BLOCK_BITS}, "see unicode/unicode.h");\n',
            f"const uint8_t ggtok_unicode_class_index[{len(index)}] = {{\n{table(index)}\n}};\n",
            f"const uint8_t ggtok_unicode_class_block[{len(block)}] = {{\n{table(block)}\n}};\n",
            f"static const uint16_t class_flags[{len(first)}] = {{\n{table(flags)}\n}};\n",
            "/* first, last, step, the lower case of the first */",
            f"static const uint32_t lower_rows[{len(lower)}][4] = {{",
            table(f"{{0x{a:X}, 0x{b:X}, {c}, 0x{d:X}}}" for a, b, c, d in lower),
            "};\n",
            "/* first, last, the first code point of each decomposition */",
            f"static const uint32_t nfd_rows[{len(nfd_rows)}][3] = {{",
            table(f"{{0x{a:X}, 0x{b:X}, 0x{c:X}}}" for a, b, c in nfd_rows),
            "};\n",
        ]
    )
