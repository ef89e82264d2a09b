"""Writes cext/unicode/nfc_tables.inc: canonical compositions, decompositions and combining classes.

    pip install --target FOLDER unicodedata2==16.0.0
    PYTHONPATH=FOLDER python cext/gen/nfc_tables.py [--check]

Needs unicodedata2==16.0.0, the version of llama.cpp's tables for NFC. (Its other tables have
another version: see unicode_tables.py.) --check compares instead of writing, and fails on a
difference.

Every code point has a *class*: a combination of the properties that unicode/nfc.c needs. Class 0
contains the code points that NFC never changes, unless one that isn't `first` follows. A two-stage
table maps code points to classes. Hangul syllables are composed by arithmetic.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import unicodedata2
from unicode_tables import BLOCK_BITS, N_CODE_POINTS, table, two_stage

OUTPUT = Path(__file__).parents[1] / "unicode" / "nfc_tables.inc"
VERSION = "16.0.0"

# Numbers of code points in llama.cpp's tables.
N_DECOMPOSITIONS, N_COMPOSITIONS, N_COMBINING = 2081, 961, 934
MOST = 4  # code points in a decomposition

HANGUL_VOWELS, HANGUL_TRAILING = range(0x1161, 0x1176), range(0x11A8, 0x11C3)


@cache
def decompositions() -> dict[int, tuple[int, ...]]:
    """Returns the canonical mappings of Unicode's data, to one or two code points each."""
    result = {}
    for cpt in range(N_CODE_POINTS):
        mapping = unicodedata2.decomposition(chr(cpt))
        if mapping and not mapping.startswith("<"):
            result[cpt] = tuple(int(part, 16) for part in mapping.split())
    if len(result) != N_DECOMPOSITIONS:
        raise SystemExit(f"{len(result)} decompositions instead of {N_DECOMPOSITIONS}")
    return result


@cache
def compositions() -> dict[tuple[int, ...], int]:
    """Returns the pairs that are composed: those of the mappings that aren't excluded."""
    result = {}
    for cpt, pair in decompositions().items():
        if unicodedata2.normalize("NFC", chr(cpt)) == chr(cpt):
            result[pair] = cpt
    if len(result) != N_COMPOSITIONS or any(len(pair) != 2 for pair in result):
        raise SystemExit(f"{len(result)} compositions instead of {N_COMPOSITIONS} of pairs")
    return result


@cache
def seconds() -> frozenset[int]:
    """Returns the code points that can be composed with a preceding one."""
    pairs = {pair[1] for pair in compositions()}
    return frozenset({*pairs, *HANGUL_VOWELS, *HANGUL_TRAILING})


def properties(cpt: int) -> tuple[int, bool, bool]:
    """Returns the combining class of a code point, and whether it is `first` (NFC never changes
    anything across the position before it) and has a decomposition."""
    c = chr(cpt)
    start = unicodedata2.normalize("NFD", c)[0]
    first = unicodedata2.combining(start) == 0 and ord(start) not in seconds()
    changes = unicodedata2.normalize("NFC", c) != c
    return unicodedata2.combining(c), first, changes


def generate() -> str:
    number = {(0, True, False): 0}
    class_of = [number.setdefault(properties(cpt), len(number)) for cpt in range(N_CODE_POINTS)]
    if sum(unicodedata2.combining(chr(cpt)) != 0 for cpt in range(N_CODE_POINTS)) != N_COMBINING:
        raise SystemExit(f"not {N_COMBINING} code points with a combining class")
    if len(number) > 255:
        raise SystemExit("more than 255 classes: the tables need uint16_t")
    longest = max(len(unicodedata2.normalize("NFD", chr(cpt))) for cpt in decompositions())
    if longest > MOST:
        raise SystemExit(f"a decomposition to {longest} code points: nfc.c expects {MOST} at most")
    index, block = two_stage(class_of)
    split = sorted(decompositions().items())
    place = {cpt: i for i, (cpt, _) in enumerate(split)}
    made = [place[compositions()[pair]] for pair in sorted(compositions())]
    if any(pair[0] < 0x21 for pair in compositions()):
        raise SystemExit("white space is composed: UGM's spans and cuts rely on the opposite")
    size = len(index) + len(block) + 2 * len(number) + 12 * len(split) + 2 * len(made)
    return "\n".join(
        [
            "/* DO NOT EDIT: written by `python cext/gen/nfc_tables.py` from Unicode "
            f"{VERSION}\n * (unicodedata2=={VERSION}). {size} bytes of tables. */\n",
            f'_Static_assert(NFC_BLOCK_BITS == {BLOCK_BITS}, "see unicode/nfc.c");',
            f'_Static_assert(NFC_MOST == {MOST}, "see unicode/nfc.c");\n',
            f"static const uint8_t class_index[{len(index)}] = {{\n{table(index)}\n}};\n",
            f"static const uint8_t class_block[{len(block)}] = {{\n{table(block)}\n}};\n",
            "/* combining class, whether `first` */",
            f"static const nfc_class classes[{len(number)}] = {{",
            table(f"{{{ccc}, {str(first).lower()}}}" for ccc, first, _ in number),
            "};\n",
            "/* code point, its canonical mapping (0: the mapping is one code point) */",
            f"static const uint32_t mappings[{len(split)}][3] = {{",
            table(
                f"{{0x{cpt:X}, 0x{to[0]:X}, {f'0x{to[1]:X}' if len(to) > 1 else 0}}}"
                for cpt, to in split
            ),
            "};\n",
            "/* indices of the mappings that are also compositions, by their two code points */",
            f"static const uint16_t compositions[{len(made)}] = {{\n{table(made)}\n}};\n",
        ]
    )


def main(check: bool) -> int:
    if not check:
        OUTPUT.write_text(generate(), encoding="ascii", newline="\n")
    elif OUTPUT.read_text(encoding="ascii") != generate():
        print(f"{OUTPUT.name}: run this script, and commit the file", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    if unicodedata2.unidata_version != VERSION:
        raise SystemExit(f"needs unicodedata2=={VERSION}, found {unicodedata2.unidata_version}")
    sys.exit(main(sys.argv[1:] == ["--check"]))
