"""Finds llama.cpp's pre-tokenizer for a tokenizer.json by comparing structures.

A ``pre_tokenizer`` is converted to a list of expressions in a normal form, in which a literal
newline equals ``\\n``, a possessive loop equals a greedy loop that never backtracks, ``Digits``
equals its expression, and an ``Isolated`` match equals an inverted ``Removed`` match. The list is
looked up among the expressions of llama.cpp's pre-tokenizers (:data:`.patterns.CHAINS`).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from ggtok.base.escape import printable
from ggtok.errors import UnknownPreTokenizerError, VocabError
from ggtok.vocabularies.convert.source_files import expect_type, field
from ggtok.vocabularies.patterns import CHAINS, GPT2, Chain, Pre
from ggtok.vocabularies.pre_tokenizer_json import is_limited, undo_unicode_limit

_MAX_STEPS = 64
_MAX_PATTERN = 1 << 16
_SHOWN = 1000  # the most characters of an expression in a message; published expressions have fewer


@dataclass(frozen=True)
class Structure:
    """The structure of a pre_tokenizer: its expressions, in order, and its options."""

    steps: tuple[str, ...]
    byte_level: bool = False
    prefix_space: bool = False  # ByteLevel(add_prefix_space=True)
    others: tuple[str, ...] = ()  # types of steps that have no equivalent expression
    newer_characters: bool = False  # whether categories include characters newer than Unicode 15.1


# ---- the normal form of expressions ----

_LITERALS = {"\r": r"\r", "\n": r"\n", "\t": r"\t", "\u3000": r"\u3000"}
# tiktoken's newer expressions, and the equivalent older expressions.
_REWRITES = (
    (r"'(?i:[sdmt]|ll|ve|re)", r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"),
    (r"\s+$|\s*[\r\n]|\s+(?!\S)|\s", r"\s*[\r\n]+|\s+(?!\S)|\s+"),
    (r"\s+$|\s+(?!\S)|\s", r"\s+(?!\S)|\s+"),
)
_ITEM = re.compile(
    r"(\\p\{\w+\}|\\.|\[(?:[^\]\\]|\\.)*\]|.)([?*+]|\{[0-9,]{1,9}\})?(\+)?", re.DOTALL
)


def normal_form(pattern: str) -> str:
    """Converts an expression to its normal form.

    A possessive loop (``?+``, ``++``, ``*+``) becomes greedy: in the published expressions, the
    greedy loop would never backtrack.
    """
    pattern = undo_unicode_limit(pattern)
    for literal, escape in _LITERALS.items():
        pattern = pattern.replace(literal, escape)
    pattern = "".join(c if ord(c) < 0x80 else _escape_code_point(c) for c in pattern)
    pattern = re.sub(
        r"\\x\{([0-9A-Fa-f]+)\}", lambda m: _escape_code_point(chr(_code(m[1]))), pattern
    )
    pattern = re.sub(r"\\u([0-9A-Fa-f]{4})", lambda m: f"\\u{m[1].upper()}", pattern)
    pattern = _ITEM.sub(lambda m: m[1] + (m[2] or m[3] or ""), pattern)
    for new, old in _REWRITES:
        pattern = pattern.replace(new, old)
    return pattern


def _code(digits: str) -> int:
    return min(int(digits[:6], 16), 0x10FFFF)


def _escape_code_point(c: str) -> str:
    code = ord(c)
    return f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"


# ---- reading ----


def structure_of(pre_tokenizer: Any) -> Structure:
    """Returns the structure of the pre_tokenizer in a tokenizer.json."""
    steps: list[str] = []
    others: list[str] = []
    byte_level = prefix_space = newer_characters = False
    for entry, at in entries(pre_tokenizer, "pretokenizers", "pre_tokenizer"):
        kind = field(entry, "type", str, at)
        if kind == "ByteLevel":
            byte_level = True
            prefix_space |= field(entry, "add_prefix_space", bool, at, True)
            if field(entry, "use_regex", bool, at, True):
                steps.append(GPT2)
                newer_characters = True
        elif kind == "Split" and (expression := _split_pattern(entry, at)) is not None:
            steps.append(normal_form(expression))
            newer_characters |= not is_limited(expression)
        elif kind == "Digits":
            individual = field(entry, "individual_digits", bool, at, False)
            steps.append(r"\p{N}" if individual else r"\p{N}+")
            newer_characters = True
        elif kind == "Punctuation" and entry.get("behavior") in ("Contiguous", "Isolated", None):
            loop = "+" if entry.get("behavior") == "Contiguous" else ""
            steps.append(r"[\p{P}$+<=>^`|~]" + loop)
            newer_characters = True
        else:
            others.append(kind)
    return Structure(tuple(steps), byte_level, prefix_space, tuple(others), newer_characters)


def entries(entry: Any, inner: str, where: str) -> Iterator[tuple[dict[str, Any], str]]:
    """Yields an entry, or all entries in a (possibly nested) Sequence, with their positions."""
    pending = [(entry, where)]
    seen = 0
    while pending:
        entry, at = pending.pop(0)
        if entry is None:
            continue
        seen += 1
        if seen > _MAX_STEPS:
            raise VocabError(f"{where}: more than {_MAX_STEPS} steps")
        mapping = expect_type(entry, dict, at)
        if mapping.get("type") == "Sequence":
            many = field(mapping, inner, list, at)
            pending[:0] = [(one, f"{at}.{inner}[{i}]") for i, one in enumerate(many)]
        else:
            yield mapping, at


def normalizers_of(normalizer: Any) -> list[dict[str, Any]]:
    """Returns the normalizers in a tokenizer.json, in order."""
    return [entry for entry, _ in entries(normalizer, "normalizers", "normalizer")]


def _split_pattern(entry: dict[str, Any], at: str) -> str | None:
    pattern = field(entry, "pattern", dict, at)
    behavior = entry.get("behavior")
    whole = behavior == "Isolated" or (behavior == "Removed" and entry.get("invert") is True)
    if not whole or "Regex" not in pattern:
        return None
    text = field(pattern, "Regex", str, at + ".pattern")
    if len(text) > _MAX_PATTERN:
        raise VocabError(f"{at}.pattern: an expression of {len(text)} characters is too long")
    return text


# ---- finding ----


def chain_of(structure: Structure) -> Chain:
    """Returns the chain with this structure.

    Raises:
        UnknownPreTokenizerError: there is no such chain. The message shows how the most similar
            chain differs.
    """
    chain = _chains().get(structure.steps)
    if chain is None:
        raise _unknown(structure.steps)
    return chain


@cache
def _chains() -> dict[tuple[str, ...], Chain]:
    chains: dict[tuple[str, ...], Chain] = {}
    for chain in CHAINS:
        for steps in (chain.steps, *chain.published):
            chains.setdefault(tuple(map(normal_form, steps)), chain)
    return chains


def pre_for(
    chain: Chain, *, ignore_merges: bool, keep_spaces: bool | None, strips_mask: bool = False
) -> Pre:
    """Returns the pre-tokenizer of the chain that matches these flags best: `strips_mask` counts
    most, then `ignore_merges`, then `keep_spaces`."""
    return max(
        chain.pres,
        key=lambda pre: (
            pre.strips_mask == strips_mask,
            pre.ignore_merges == ignore_merges,
            keep_spaces is not None and pre.keep_spaces == keep_spaces,
        ),
    )


def _unknown(steps: tuple[str, ...]) -> UnknownPreTokenizerError:
    text = _join_steps(steps)
    known, near = max(_chains().items(), key=lambda row: _likeness(text, _join_steps(row[0])))
    names = tuple(pre.name for pre in near.pres)
    return UnknownPreTokenizerError(
        "no pre-tokenizer of llama.cpp splits text like this source: "
        f"{_difference(known, steps)} (nearest: {', '.join(map(repr, names))}); "
        "pre=NAME (--pre NAME) uses one anyway",
        suggestions=names,
    )


def _join_steps(steps: tuple[str, ...]) -> str:
    return "\n".join(steps)


def _likeness(a: str, b: str) -> float:
    return difflib.SequenceMatcher(None, a[:4096], b[:4096], autojunk=False).quick_ratio()


def _difference(known: tuple[str, ...], steps: tuple[str, ...]) -> str:
    """Describes the first step that differs."""
    if not steps:
        return "it has no expressions"
    for i, step in enumerate(steps):
        if i >= len(known):
            return f"the nearest has no step {i + 1}: '{printable(step, _SHOWN)}'"
        if step != known[i]:
            have, want = step.split("|"), known[i].split("|")
            extra = [part for part in have if part not in want]
            lacking = [part for part in want if part not in have]
            if not extra and not lacking:
                return f"step {i + 1} has the nearest one's parts in another order"
            has = f"has '{printable('|'.join(extra), _SHOWN)}'" if extra else "lacks something"
            nearest = printable("|".join(lacking), _SHOWN)
            return f"step {i + 1} {has} where the nearest has '{nearest}'"
    return f"it has no step {len(steps) + 1}: '{known[len(steps)]}'"
