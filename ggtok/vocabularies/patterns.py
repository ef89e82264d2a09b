"""llama.cpp's pre-tokenizers as chains of expressions for other libraries.

Each row is a chain of pretok/names.c. With the expressions in `steps`, Hugging Face's tokenizers
split text exactly as llama.cpp does, even where llama.cpp doesn't distinguish categories. Most are
llama.cpp's own expressions. `published` has the chains in published tokenizer.json files for which
llama.cpp uses this row, normalized by structure.py. Where they differ from `steps`, the ids of some
texts differ, too.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ggtok.vocabularies.pre_rows import EXPRESSIONS, PRE_ROWS, SCANNERS


class Pre(NamedTuple):
    """A value of ``tokenizer.ggml.pre``, and the flags that it sets in llama.cpp."""

    name: str
    ignore_merges: bool
    keep_spaces: bool  # whether decoding keeps spaces before punctuation
    strips_mask: bool  # whether spaces before <mask> are dropped


class Chain(NamedTuple):
    name: str
    pres: tuple[Pre, ...]  # structure.pre_for chooses one by its flags
    steps: tuple[str, ...]
    published: tuple[tuple[str, ...], ...] = ()
    written: tuple[str, ...] = ()  # the steps exactly as in the publisher's file


def _pre(name: str) -> Pre:
    flags = PRE_ROWS[name][1]
    return Pre(name, "IGNORE" in flags, "SPACES" in flags, name in _STRIPS_MASK)


def _chain(
    pres: str,
    *published: tuple[str, ...],
    steps: tuple[str, ...] = (),
    written: tuple[str, ...] = (),
) -> Chain:
    """Returns the chain of these names. Its steps are llama.cpp's expressions unless tokenizers
    needs others (`steps`)."""
    names = pres.split()
    chain = PRE_ROWS[names[0]][0]
    own = steps or _own(names[0])
    return Chain(chain, tuple(map(_pre, names)), own, published, written)


def _own(pre: str) -> tuple[str, ...]:
    """Returns llama.cpp's expressions for this name."""
    return tuple(EXPRESSIONS[scanner] for scanner in SCANNERS[PRE_ROWS[pre][0]])


def _any_case(pre: str) -> tuple[str, ...]:
    """Returns llama.cpp's expressions with contractions as publishers write them."""
    return tuple(step.replace(CONTRACTION, CONTRACTION_I) for step in _own(pre))


# Names for which llama.cpp drops spaces before <mask> (cext/vocab/special.c).
_STRIPS_MASK = ("jina-v2-de", "jina-v2-es", "jina-v2-code")

CONTRACTION = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
CONTRACTION_I = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"  # also matches U+017F for s
_PREFIX = r"[^\r\n\p{L}\p{N}]?"
_WORD = _PREFIX + r"\p{L}+"
_MARKS = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
_MARKS_SLASH = r" ?[^\s\p{L}\p{N}]+[\r\n/]*"
_SPACES = r"\s+(?!\S)|\s+"
_TAIL = r"\s*[\r\n]+|" + _SPACES
_THREE = r"\p{N}{1,3}"
_UPPER_P = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER_P = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
# llama.cpp has a single category for letters, and distinguishes case only in ASCII.
_UPPER, _LOWER = r"[\p{L}&&[^a-z]]", r"[\p{L}&&[^A-Z]]"
_UPPER_M, _LOWER_M = r"[\p{L}\p{M}&&[^a-z]]", r"[\p{L}\p{M}&&[^A-Z]]"
_ANY_CASE = r"[\p{L}\p{M}]"

GPT2 = EXPRESSIONS["gpt2"]
_NEWER_GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def _cased_words(upper: str, lower: str, suffix: str, rest: str) -> str:
    return f"{_PREFIX}{upper}*{lower}+{suffix}|{_PREFIX}{upper}+{lower}*{suffix}|{rest}"


def _gpt4o(upper: str, lower: str, contraction: str, numbers: str = _THREE) -> str:
    suffix = contraction + "?" if contraction else ""
    return _cased_words(upper, lower, suffix, f"{numbers}|{_MARKS_SLASH}|{_TAIL}")


_CODER_CJK_P = r"[\u0800-\u9FA5\uAC00-\uD7FF]+"
# llama.cpp replaces white space outside ASCII by \v, which the class doesn't match.
_CODER_CJK = r"[\u0800-\u9FA5\uAC00-\uD7FF&&[^\s]]+"
_DIGIT_GROUPS = r"\d{1,3}(?=(?:\d{3})*\b)"
# In llama.cpp, the text before a number joins the number's first group.
_GROUPS_RIGHT = r"\P{N}*\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))"
# tokenizers writes characters beyond U+FFFF as \x{10400}.
_LLM_LETTERS = re.sub(r"\\U000(\w{5})", r"\\x{\1}", EXPRESSIONS["deepseek_letters"])
_LLM_PUNCTUATION_P = EXPRESSIONS["deepseek_punctuation"]
_LLM_PUNCTUATION = _LLM_PUNCTUATION_P.replace(r"\u3000", r"\u3001")
# llama.cpp uses blocks instead of the script \p{Han}, which includes U+3005 and U+3007.
_HAN = (
    r"\u3400-\u4DBF\u4E00-\u9FFF\uF900-\uFAFF\x{20000}-\x{2A6DF}\x{2A700}-\x{2EBEF}"
    r"\x{2F800}-\x{2FA1F}"
)
_LETTER_NOT_HAN = rf"[\p{{L}}&&[^{_HAN}]]"
_KIMI_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
_KIMI_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
_AFMOE_SCRIPTS = EXPRESSIONS["afmoe_scripts"]
_YOUTU_SCRIPTS = EXPRESSIONS["youtu_scripts"]
_V3 = EXPRESSIONS["deepseek_v3"]
_ASCII_3 = "[0-9][0-9][0-9]"
_PUNCTUATION = r"[\p{P}$+<=>^`|~]+"  # matches the same text as Hugging Face's Punctuation
_NUMBER, _NUMBERS = r"\p{N}", r"\p{N}+"

CHAINS = (
    _chain("llama-bpe dbrx", _any_case("llama-bpe")),
    _chain("gpt-2 granite-docling jina-v2-de jina-v2-es jina-v2-code", (GPT2,), (_NEWER_GPT2,)),
    _chain("qwen2 stablelm2", _any_case("qwen2")),
    _chain("qwen35", _any_case("qwen35")),
    _chain(
        "gpt-4o",
        (_gpt4o(_UPPER_P, _LOWER_P, CONTRACTION_I),),
        steps=(_gpt4o(_UPPER, _LOWER, CONTRACTION),),
    ),
    _chain(
        "tekken",
        (_gpt4o(_UPPER_P, _LOWER_P, "", _NUMBER),),
        steps=(_gpt4o(_UPPER, _LOWER, "", _NUMBER),),
    ),
    _chain("granite-embed-multi-97m", steps=(_gpt4o(_UPPER_M, _LOWER_M, CONTRACTION),)),
    _chain(
        "deepseek-v3",
        _own("deepseek-v3"),
        written=(
            _THREE,
            "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
            _V3.replace(r"\r\n", "\r\n"),
        ),
    ),
    _chain("starcoder command-r", _own("starcoder")),
    _chain("default", steps=(r"[\p{P}$+<=>^~|]+", GPT2, _NUMBERS, _ASCII_3)),
    _chain(
        "falcon",
        (_PUNCTUATION, GPT2, _ASCII_3),
        (_PUNCTUATION, GPT2, _NUMBERS, _ASCII_3),
        steps=(r"[\p{P}$+<=>^~|`]+", GPT2, _ASCII_3),
    ),
    _chain("bloom poro-chat", _own("bloom")),
    _chain("viking", _own("viking")),
    _chain(
        "bailingmoe",
        (rf"'(?i:[sdmt]|ll|ve|re)|{_WORD}|\p{{N}}|{_MARKS}|\s*[\r\n]|{_SPACES}",),
    ),
    _chain("seed-coder", _any_case("seed-coder")),
    _chain("ufakzeka", _own("ufakzeka")),
    _chain("minicpm5", _any_case("minicpm5")),
    _chain("jais-2", _any_case("jais-2")),
    _chain("exaone-moe", _any_case("exaone-moe")),
    _chain(
        "tiny_aya",
        (_DIGIT_GROUPS, _gpt4o(_UPPER_P, _LOWER_P, CONTRACTION_I)),
        steps=(_GROUPS_RIGHT, _gpt4o(_ANY_CASE, _ANY_CASE, CONTRACTION)),
    ),
    _chain(
        "youtu",
        (_YOUTU_SCRIPTS, _gpt4o(_UPPER_P, _LOWER_P, CONTRACTION_I, _NUMBER)),
        steps=(_YOUTU_SCRIPTS, _gpt4o(_ANY_CASE, _ANY_CASE, CONTRACTION, _NUMBER)),
    ),
    _chain("spark2_5", _own("spark2_5")),
    _chain(
        "afmoe",
        (_DIGIT_GROUPS, _AFMOE_SCRIPTS.replace(r"\u8C48", r"\uF900"), _V3),
        steps=(_GROUPS_RIGHT, _AFMOE_SCRIPTS, _V3),
    ),
    _chain("laguna", _any_case("laguna")),
    _chain(
        "kimi-k2",
        (
            r"\p{Han}+|"
            + _cased_words(
                _KIMI_UPPER, _KIMI_LOWER, CONTRACTION_I + "?", f"{_THREE}|{_MARKS}|{_TAIL}"
            ),
        ),
        steps=(rf"[{_HAN}]+|{_PREFIX}{_LETTER_NOT_HAN}+{CONTRACTION}?|{_THREE}|{_MARKS}|{_TAIL}",),
    ),
    _chain("k2-horizon"),
    _chain(
        "deepseek-llm",
        (r"[\r\n]", _LLM_LETTERS, _LLM_PUNCTUATION_P, r"\s+$", _CODER_CJK_P, _NUMBERS),
        steps=(r"[\r\n]", _LLM_LETTERS, _LLM_PUNCTUATION, r"\s+\z", _CODER_CJK, _NUMBERS),
    ),
    _chain(
        "deepseek-coder",
        (r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _CODER_CJK_P, _NUMBER),
        steps=(r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _CODER_CJK, _NUMBER),
    ),
    _chain("chameleon", (*_own("chameleon")[:4], _PUNCTUATION.removesuffix("+"), GPT2)),
    _chain(
        "superbpe",
        (_NUMBERS, r"(?=(\d{3})+(?!\d))"),
        steps=(_NUMBERS, r"(?=([0-9]{3})+(?![0-9]))"),
    ),
)

MASK = "<mask>"
_BY_NAME = {chain.name: chain for chain in CHAINS}
CHAIN_OF_PRE: dict[str, Chain] = {
    pre: _BY_NAME[chain] for pre, (chain, _) in PRE_ROWS.items() if chain in _BY_NAME
}
