"""llama.cpp's pre-tokenizers as chains of expressions for other libraries.

Each row is a chain. With the expressions in `steps`, Hugging Face's tokenizers split text exactly
as llama.cpp does, even where llama.cpp doesn't distinguish categories. `published` has the chains
in published tokenizer.json files for which llama.cpp uses this row, normalized by structure.py.
Where they differ from `steps`, the ids of some texts differ, too.
"""

from __future__ import annotations

from typing import NamedTuple


class Pre(NamedTuple):
    """A value of ``tokenizer.ggml.pre``, and the flags that it sets in llama.cpp."""

    name: str
    ignore_merges: bool = False
    keep_spaces: bool = False  # whether decoding keeps spaces before punctuation
    strips_mask: bool = False  # whether spaces before <mask> are dropped


class Chain(NamedTuple):
    name: str
    pres: tuple[Pre, ...]  # structure.pre_for chooses one by its flags
    steps: tuple[str, ...]
    published: tuple[tuple[str, ...], ...] = ()
    written: tuple[str, ...] = ()  # the steps exactly as in the publisher's file


_CONTRACTION = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
_CONTRACTION_I = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"  # also matches U+017F for s
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

GPT2 = rf"'s|'t|'re|'ve|'m|'ll|'d| ?\p{{L}}+| ?\p{{N}}+| ?[^\s\p{{L}}\p{{N}}]+|{_SPACES}"
_NEWER_GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def _llama3(contraction: str, numbers: str) -> str:
    return f"{contraction}|{_WORD}|{numbers}|{_MARKS}|{_TAIL}"


def _cased(upper: str, lower: str, suffix: str, rest: str) -> str:
    return f"{_PREFIX}{upper}*{lower}+{suffix}|{_PREFIX}{upper}+{lower}*{suffix}|{rest}"


def _gpt4o(upper: str, lower: str, contraction: str, numbers: str = _THREE) -> str:
    suffix = contraction + "?" if contraction else ""
    return _cased(upper, lower, suffix, f"{numbers}|{_MARKS_SLASH}|{_TAIL}")


_KANA = r"[\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+"
_PUNCTUATION_WORD = r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"""
_V3_WORD = _PUNCTUATION_WORD + r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
_V3 = rf"{_V3_WORD}| ?[\p{{P}}\p{{S}}]+[\r\n]*|{_TAIL}"
_V3_WRITTEN = _V3.replace(r"\r\n", "\r\n")
_CODER_CJK_P = r"[\u0800-\u9FA5\uAC00-\uD7FF]+"
# llama.cpp replaces white space outside ASCII by \v, which the class doesn't match.
_CODER_CJK = r"[\u0800-\u9FA5\uAC00-\uD7FF&&[^\s]]+"
_BLOOM = r" ?[^(\s|.,!?\u2026\u3002\uFF0C\u3001\u0964\u06D4\u060C)]+"
_DIGIT_GROUPS = r"\d{1,3}(?=(?:\d{3})*\b)"
# In llama.cpp, the text before a number joins the number's first group.
_GROUPS_RIGHT = r"\P{N}*\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))"
_YOUTU_SCRIPTS = (
    r"[\uAC00-\uD7A3\u3131-\u318E]+|[\uFF01\u2026\u201C\u201D\u2018\u2019\u2014\uFF1A\uFF1B"
    r"\uFF0C\u3001-\u303F\uFE30-\uFE4F]+|[\u3105-\u312F]+|[\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+"
)
_AFMOE_SCRIPTS = (
    r"[\u4E00-\u9FFF\u3400-\u4DBF{}-\uFAFF\u3040-\u309F\u30A0-\u30FF\uFF65-\uFF9F\u2F00-\u2FDF"
    r"\u0E40-\u0E7F\u0E80-\u0EFF\u1780-\u17FF\u1000-\u109F\uAA60-\uAA7F\uA9E0-\uA9FF"
    r"\uAC00-\uD7AF\u1100-\u11FF]+"
)
_LLM_LETTERS = (
    r"\s?[A-Za-z\u00B5\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u01BA\u01BC-\u01BF\u01C4-\u0293"
    r"\u0295-\u02AF\u0370-\u0373\u0376\u0377\u037B-\u037D\u037F\u0386\u0388-\u038A\u038C"
    r"\u038E-\u03A1\u03A3-\u03F5\u03F7-\u0481\u048A-\u052F\u0531-\u0556\u10A0-\u10C5"
    r"\u13A0-\u13F5\u13F8-\u13FD\u1C90-\u1CBA\u1CBD-\u1CBF\u1D00-\u1D2B\u1D6B-\u1D77"
    r"\u1D79-\u1D9A\u1E00-\u1F15\u1F18-\u1F1D\u1F20-\u1F45\u1F48-\u1F4D\u1F50-\u1F57\u1F59"
    r"\u1F5B\u1F5D\u1F5F-\u1F7D\u1F80-\u1FB4\u1FB6-\u1FBC\u1FBE\u1FC2-\u1FC4\u1FC6-\u1FCC"
    r"\u1FD0-\u1FD3\u1FD6-\u1FDB\u1FE0-\u1FEC\u1FF2-\u1FF4\u1FF6-\u1FFC\u2102\u2107"
    r"\u210A-\u2113\u2115\u2119-\u211D\u2124\u2126\u2128\u212A-\u212D\u212F-\u2134\u2139"
    r"\u213C-\u213F\u2145-\u2149\u214E\u2183\u2184\u2C00-\u2C7B\u2C7E-\u2CE4\u2CEB-\u2CEE"
    r"\u2CF2\u2CF3\uA640-\uA66D\uA680-\uA69B\uA722-\uA76F\uA771-\uA787\uA78B-\uA78E"
    r"\uAB70-\uABBF\uFB00-\uFB06\uFB13-\uFB17\uFF21-\uFF3A\uFF41-\uFF5A"
    r"\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}"
    r"\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}]+"
)
_LLM_PUNCTUATION_P = r"\s?[!-/:-~\uFF01-\uFF0F\uFF1A-\uFF5E\u2018-\u201F\u3000-\u3002]+"
_LLM_PUNCTUATION = _LLM_PUNCTUATION_P.replace(r"\u3000", r"\u3001")
# llama.cpp uses blocks instead of the script \p{Han}, which includes U+3005 and U+3007.
_HAN = (
    r"\u3400-\u4DBF\u4E00-\u9FFF\uF900-\uFAFF\x{20000}-\x{2A6DF}\x{2A700}-\x{2EBEF}"
    r"\x{2F800}-\x{2FA1F}"
)
_LETTER_NOT_HAN = rf"[\p{{L}}&&[^{_HAN}]]"
_KIMI_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
_KIMI_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
_SPACE_CASCADE = (
    r"\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)"
    r"|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}"
)
_EXAONE_WORD = _PREFIX + r"(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+"
_ASCII_3 = "[0-9][0-9][0-9]"
_PUNCTUATION = r"[\p{P}$+<=>^`|~]+"  # matches the same text as Hugging Face's Punctuation
_NUMBER, _NUMBERS = r"\p{N}", r"\p{N}+"

# fmt: off
CHAINS = (
    Chain(
        "llama3",
        (
            Pre("llama-bpe", ignore_merges=True),
            Pre("dbrx"),
        ),
        (_llama3(_CONTRACTION, _THREE),),
        (
            (_llama3(_CONTRACTION_I, _THREE),),
        ),
    ),
    Chain(
        "gpt2",
        (
            Pre("gpt-2"),
            Pre("granite-docling", keep_spaces=True),
            Pre("jina-v2-de", strips_mask=True),
            Pre("jina-v2-es", strips_mask=True),
            Pre("jina-v2-code", strips_mask=True),
        ),
        (GPT2,),
        ((GPT2,), (_NEWER_GPT2,)),
    ),
    Chain(
        "qwen2",
        (Pre("qwen2", keep_spaces=True), Pre("stablelm2")),
        (_llama3(_CONTRACTION, _NUMBER),),
        ((_llama3(_CONTRACTION_I, _NUMBER),),),
    ),
    Chain(
        "qwen35",
        (Pre("qwen35", keep_spaces=True),),
        (
            rf"{_CONTRACTION}|{_PREFIX}[\p{{L}}\p{{M}}]+|\p{{N}}"
            rf"| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_TAIL}",
        ),
        ((
            rf"{_CONTRACTION_I}|{_PREFIX}[\p{{L}}\p{{M}}]+|\p{{N}}"
            rf"| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_TAIL}",
        ),),
    ),
    Chain(
        "gpt4o",
        (Pre("gpt-4o", keep_spaces=True),),
        (_gpt4o(_UPPER, _LOWER, _CONTRACTION),),
        ((_gpt4o(_UPPER_P, _LOWER_P, _CONTRACTION_I),),),
    ),
    Chain(
        "tekken",
        (Pre("tekken", ignore_merges=True, keep_spaces=True),),
        (_gpt4o(_UPPER, _LOWER, "", _NUMBER),),
        ((_gpt4o(_UPPER_P, _LOWER_P, "", _NUMBER),),),
    ),
    Chain(
        "granite_multi",
        (Pre("granite-embed-multi-97m", ignore_merges=True, keep_spaces=True),),
        (_gpt4o(_UPPER_M, _LOWER_M, _CONTRACTION),),
    ),
    Chain(
        "deepseek_v3",
        (Pre("deepseek-v3", keep_spaces=True),),
        (_THREE, _KANA, _V3),
        ((_THREE, _KANA, _V3),),
        (_THREE, "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+", _V3_WRITTEN),
    ),
    Chain(
        "starcoder",
        (Pre("starcoder"), Pre("command-r", keep_spaces=True)),
        (_NUMBER, GPT2),
        ((_NUMBER, GPT2),),
    ),
    Chain(
        "default",
        (Pre("default"),),
        (r"[\p{P}$+<=>^~|]+", GPT2, _NUMBERS, _ASCII_3),
        (),
    ),
    Chain(
        "falcon",
        (Pre("falcon"),),
        (r"[\p{P}$+<=>^~|`]+", GPT2, _ASCII_3),
        ((_PUNCTUATION, GPT2, _ASCII_3), (_PUNCTUATION, GPT2, _NUMBERS, _ASCII_3)),
    ),
    Chain(
        "bloom",
        (Pre("bloom"), Pre("poro-chat", keep_spaces=True)),
        (_BLOOM,),
        ((_BLOOM,),),
    ),
    Chain(
        "viking",
        (Pre("viking", keep_spaces=True),),
        (_BLOOM, _NUMBER),
        ((_BLOOM, _NUMBER),),
    ),
    Chain(
        "bailing",
        (Pre("bailingmoe", keep_spaces=True),),
        (
            rf"'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|{_WORD}|\p{{N}}|{_MARKS}"
            rf"|\s*[\r\n]|{_SPACES}",
        ),
        ((rf"'(?i:[sdmt]|ll|ve|re)|{_WORD}|\p{{N}}|{_MARKS}|\s*[\r\n]|{_SPACES}",),),
    ),
    Chain(
        "seed_coder",
        (Pre("seed-coder", keep_spaces=True),),
        (
            rf"{_CONTRACTION}|{_WORD}|\p{{N}}{{1}}| ?[^\s\p{{L}}\p{{N}}\r\n]+|{_TAIL}",
        ),
        ((rf"{_CONTRACTION_I}|{_WORD}|\p{{N}}{{1}}| ?[^\s\p{{L}}\p{{N}}\r\n]+|{_TAIL}",),),
    ),
    Chain(
        "ufakzeka",
        (Pre("ufakzeka", keep_spaces=True),),
        (rf"{_WORD}|\p{{N}}|{_MARKS}|{_TAIL}",),
        ((rf"{_WORD}|\p{{N}}|{_MARKS}|{_TAIL}",),),
    ),
    Chain(
        "minicpm5",
        (Pre("minicpm5", ignore_merges=True),),
        (_THREE, _llama3(_CONTRACTION, _NUMBERS)),
        ((_THREE, _llama3(_CONTRACTION_I, _NUMBERS)),),
    ),
    Chain(
        "jais2",
        (Pre("jais-2"),),
        (rf"{_CONTRACTION}|{_WORD}|{_THREE}|{_MARKS}|\s*[\r\n]+|{_SPACE_CASCADE}",),
        ((rf"{_CONTRACTION_I}|{_WORD}|{_THREE}|{_MARKS}|\s*[\r\n]+|{_SPACE_CASCADE}",),),
    ),
    Chain(
        "exaone_moe",
        (Pre("exaone-moe"),),
        (
            rf"{_CONTRACTION}|{_EXAONE_WORD}|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]?"
            rf"|\s*[\r\n]|{_SPACES}",
        ),
        ((
            rf"{_CONTRACTION_I}|{_EXAONE_WORD}|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]?"
            rf"|\s*[\r\n]|{_SPACES}",
        ),),
    ),
    Chain(
        "tiny_aya",
        (Pre("tiny_aya", keep_spaces=True),),
        (_GROUPS_RIGHT, _gpt4o(_ANY_CASE, _ANY_CASE, _CONTRACTION)),
        ((_DIGIT_GROUPS, _gpt4o(_UPPER_P, _LOWER_P, _CONTRACTION_I)),),
    ),
    Chain(
        "youtu",
        (Pre("youtu", ignore_merges=True, keep_spaces=True),),
        (_YOUTU_SCRIPTS, _gpt4o(_ANY_CASE, _ANY_CASE, _CONTRACTION, _NUMBER)),
        ((_YOUTU_SCRIPTS, _gpt4o(_UPPER_P, _LOWER_P, _CONTRACTION_I, _NUMBER)),),
    ),
    Chain(
        "spark2_5",
        (Pre("spark2_5", keep_spaces=True),),
        (
            _THREE,
            _KANA,
            rf"{_V3_WORD}| ?[\p{{P}}\p{{S}}]+|[\r\n]|{_SPACES}",
            _NUMBER,
        ),
        ((_THREE, _KANA, rf"{_V3_WORD}| ?[\p{{P}}\p{{S}}]+|[\r\n]|{_SPACES}", _NUMBER),),
    ),
    Chain(
        "afmoe",
        (Pre("afmoe", keep_spaces=True),),
        (_GROUPS_RIGHT, _AFMOE_SCRIPTS.replace("{}", r"\u8C48"), _V3),
        ((_DIGIT_GROUPS, _AFMOE_SCRIPTS.replace("{}", r"\uF900"), _V3),),
    ),
    Chain(
        "laguna",
        (Pre("laguna", keep_spaces=True),),
        (r"[^\n]+|[\n]+", _llama3(_CONTRACTION, _NUMBER)),
        ((r"[^\n]+|[\n]+", _llama3(_CONTRACTION_I, _NUMBER)),),
    ),
    Chain(
        "kimi_k2",
        (Pre("kimi-k2", keep_spaces=True),),
        (
            rf"[{_HAN}]+|{_PREFIX}{_LETTER_NOT_HAN}+{_CONTRACTION}?|{_THREE}|{_MARKS}|{_TAIL}",
        ),
        ((
            r"\p{Han}+|"
            + _cased(
                _KIMI_UPPER, _KIMI_LOWER, _CONTRACTION_I + "?", f"{_THREE}|{_MARKS}|{_TAIL}"
            ),
        ),),
    ),
    Chain(
        "k2_horizon",
        (Pre("k2-horizon", keep_spaces=True),),
        (
            rf"'\u017F|{_CONTRACTION}|{_PREFIX}(?:\p{{L}}|\p{{M}}|\u200C|\u200D)+|{_THREE}"
            rf"|{_MARKS}|{_TAIL}",
        ),
    ),
    Chain(
        "deepseek_llm",
        (Pre("deepseek-llm", keep_spaces=True),),
        (r"[\r\n]", _LLM_LETTERS, _LLM_PUNCTUATION, r"\s+\z", _CODER_CJK, _NUMBERS),
        ((r"[\r\n]", _LLM_LETTERS, _LLM_PUNCTUATION_P, r"\s+$", _CODER_CJK_P, _NUMBERS),),
    ),
    Chain(
        "deepseek_coder",
        (Pre("deepseek-coder", keep_spaces=True),),
        (r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _CODER_CJK, _NUMBER),
        ((r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _CODER_CJK_P, _NUMBER),),
    ),
    Chain(
        "chameleon",
        (Pre("chameleon", keep_spaces=True),),
        (
            r"<sentinel:[0-9]+>",
            r"(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z",
            r"([\t\n]|    |  )",
            _NUMBER,
            r"[\p{P}!-/:-@\[-`{-~]",
            GPT2,
        ),
        ((
            r"<sentinel:[0-9]+>",
            r"(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z",
            r"([\t\n]|    |  )",
            _NUMBER,
            r"[\p{P}$+<=>^`|~]",
            GPT2,
        ),),
    ),
    Chain(
        "superbpe",
        (Pre("superbpe", keep_spaces=True),),
        (_NUMBERS, r"(?=([0-9]{3})+(?![0-9]))"),
        ((_NUMBERS, r"(?=(\d{3})+(?!\d))"),),
    ),
)
# fmt: on


# More names for the chains above.
_ALIASES = {
    "gpt2": "mpt phi-2 jina-es jina-de gigachat a.x-4.0 mellum modern-bert "
    "jina-v1-en roberta-bpe olmo jais exaone4 trillion",
    "llama3": "llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano smaug-bpe "
    "chatglm-bpe glm4 glm5",
    "qwen2": "deepseek-r1-qwen kormo f2llmv2 megrez hunyuan grok-2 solar-open",
    "starcoder": "refact smollm codeshell exaone minerva-7b mellum2",
    "gpt4o": "llama4 kanana2 talkie minimax-m2",
    "deepseek_v3": "hunyuan-dense hy_v4 joyai-llm",
    "bloom": "gpt3-finnish",
    "bailing": "bailingmoe2 llada-moe",
    "tiny_aya": "cohere2moe",
}
MASK = "<mask>"
_BY_NAME = {chain.name: chain for chain in CHAINS}
CHAIN_OF_PRE: dict[str, Chain] = {
    **{pre.name: chain for chain in CHAINS for pre in chain.pres},
    **{pre: _BY_NAME[name] for name, pres in _ALIASES.items() for pre in pres.split()},
}
