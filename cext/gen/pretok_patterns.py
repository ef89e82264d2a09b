"""The regular expressions of llama.cpp's pre-tokenizers (b11549), one per row.

Data for pretok_dfa.py and unicode_tables.py, which document how they read it. pretok_python.py
writes them for Python. For the other steps to add a pattern, see
docs/design/pretokenizers.md, "Adding a name".

Non-ASCII characters are written as escapes: some are look-alikes (U+212A, the
Kelvin sign) or not normalized, and an editor must not change them.
"""

from typing import NamedTuple

# What a pattern guarantees about scans that read on without finding a longer match
# (docs/design/pretokenizers.md, "Linear time").
BOUNDED = "bounded"  # they stop after a bounded number of characters; checked by the generator
ONCE = "once"  # the next few scans match the text that was read ahead, and read less far ahead
MEMO = "memo"  # the scanner remembers the positions where the loop led to no match


class Pattern(NamedTuple):
    name: str
    regex: str
    lookahead: str = ONCE
    # The pattern has categories and also names characters beyond ASCII, which llama.cpp's use of
    # std::regex doesn't support; it has a hand-written scanner.
    mixed: bool = False


_CONTRACTION = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
_WORD = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_MARKS = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
_SPACES = r"\s+(?!\S)|\s+"
_NEWLINES = r"\s*[\r\n]+"
_ASCII_PUNCT_WORD = r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"""
_PREFIX = r"[^\r\n\p{L}\p{N}]?"

# Upper- and lower-case words. llama.cpp ignores the case of non-ASCII letters: every \p{L*} is
# \p{L}, and [^a-z] excludes only ASCII letters.
_UPPER, _LOWER = r"((?=[\p{L}])([^a-z]))", r"((?=[\p{L}])([^A-Z]))"
_UPPER_M, _LOWER_M = r"((?=[\p{L}\p{M}])([^a-z]))", r"((?=[\p{L}\p{M}])([^A-Z]))"
_UPPER_P = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER_P = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"


def _cased(upper: str, lower: str, suffix: str) -> str:
    return f"{_PREFIX}{upper}*{lower}+{suffix}|{_PREFIX}{upper}+{lower}*{suffix}"


# Read literally, as by llama.cpp: the set contains "(", "|", ")" and all characters of \s.
_BLOOM = r"[^(\s|.,!?\u2026\u3002\uFF0C\u3001\u0964\u06D4\u060C)]"
_MARKS_SLASH = r" ?[^\s\p{L}\p{N}]+[\r\n/]*"
_V3_WORD = _ASCII_PUNCT_WORD + r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
_DEEPSEEK_V3 = rf"{_V3_WORD}| ?[\p{{P}}\p{{S}}]+[\r\n]*|{_NEWLINES}|{_SPACES}"
_SPARK = rf"{_V3_WORD}| ?[\p{{P}}\p{{S}}]+|[\r\n]|{_SPACES}"
_LETTER_NOT_HAN = r"(?:(?!\p{Han})\p{L})"

_DEEPSEEK_LETTERS = (
    r"A-Za-z\u00B5\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u01BA\u01BC-\u01BF\u01C4-\u0293"
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
    r"\U00010400-\U0001044F\U000104B0-\U000104D3\U000104D8-\U000104FB\U00010C80-\U00010CB2"
    r"\U00010CC0-\U00010CF2\U000118A0-\U000118DF\U0001E900-\U0001E943"
)
_DEEPSEEK_PUNCT = r"!-/:-~\uFF01-\uFF0F\uFF1A-\uFF5E\u2018-\u201F\u3000-\u3002"
_DEEPSEEK_CJK = r"\u4E00-\u9FA5\u0800-\u4E00\uAC00-\uD7FF"

PATTERNS = (
    # llama.cpp has hand-written scanners for these; the differential test shows that they equal
    # the expressions here. Its gpt2 expression has no "|\s+", but its scanner acts as if it had,
    # and a gap would be the same word anyway.
    Pattern(
        "gpt2", rf"'s|'t|'re|'ve|'m|'ll|'d| ?\p{{L}}+| ?\p{{N}}+| ?[^\s\p{{L}}\p{{N}}]+|{_SPACES}"
    ),
    Pattern("llama3", rf"{_CONTRACTION}|{_WORD}|\p{{N}}{{1,3}}|{_MARKS}|{_NEWLINES}|{_SPACES}"),
    Pattern("qwen2", rf"{_CONTRACTION}|{_WORD}|\p{{N}}|{_MARKS}|{_NEWLINES}|{_SPACES}"),
    Pattern(
        "qwen35",
        rf"{_CONTRACTION}|{_PREFIX}[\p{{L}}\p{{M}}]+|\p{{N}}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*"
        rf"|{_NEWLINES}|{_SPACES}",
    ),
    # llama.cpp recognizes this one by its "\p{Han}+". Combining marks end a word, unlike in the
    # model's own regex.
    Pattern(
        "kimi_k2",
        rf"\p{{Han}}+|{_PREFIX}{_LETTER_NOT_HAN}+{_CONTRACTION}?|\p{{N}}{{1,3}}|{_MARKS}"
        rf"|{_NEWLINES}|{_SPACES}",
    ),
    # Unlike the regex, llama.cpp's scanner accepts U+017F (long s) as an s after an apostrophe.
    Pattern(
        "k2_horizon",
        rf"'\u017F|{_CONTRACTION}|{_PREFIX}(?:\p{{L}}|\p{{M}}|\u200C|\u200D)+|\p{{N}}{{1,3}}"
        rf"|{_MARKS}|{_NEWLINES}|{_SPACES}",
        mixed=True,
    ),
    Pattern("newlines", r"[^\n]+|[\n]+", BOUNDED),
    # For mmbert: llama.cpp splits at newlines, and then, in hand-written code, before each U+2581.
    Pattern("marked_words", r"\n+|\u2581[^\n\u2581]*|[^\n\u2581]+", BOUNDED),
    # llama.cpp matches all patterns from here on with std::regex.
    Pattern(
        "jais2",
        rf"{_CONTRACTION}|{_WORD}|\p{{N}}{{1,3}}|{_MARKS}|{_NEWLINES}|\s{{512}}(?!\S)|\s{{256}}(?!\S)"
        r"|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)"
        r"|\s{1,2}(?!\S)|\s{1}",
        MEMO,
    ),
    Pattern("line_end", r"[\r\n]", BOUNDED),
    Pattern("deepseek_letters", rf"\s?[{_DEEPSEEK_LETTERS}]+", BOUNDED),
    Pattern("deepseek_punctuation", rf"\s?[{_DEEPSEEK_PUNCT}]+", BOUNDED),
    Pattern("trailing_spaces", r"\s+$", MEMO),
    Pattern("deepseek_cjk", rf"[{_DEEPSEEK_CJK}]+", BOUNDED),
    Pattern("numbers", r"\p{N}+", BOUNDED),
    Pattern("number", r"\p{N}", BOUNDED),
    Pattern("numbers_3", r"\p{N}{1,3}", BOUNDED),
    Pattern("cjk_kana", r"[\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+", BOUNDED),
    Pattern("deepseek_v3", _DEEPSEEK_V3),
    Pattern("spark", _SPARK, BOUNDED),
    Pattern(
        "youtu_scripts",
        r"[\uAC00-\uD7A3\u3131-\u318E]+|[\uFF01\u2026\u201C\u201D\u2018\u2019\u2014\uFF1A\uFF1B"
        r"\uFF0C\u3001-\u303F\uFE30-\uFE4F]+|[\u3105-\u312F]+|[\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+",
        BOUNDED,
    ),
    Pattern(
        "youtu",
        rf"{_cased(_UPPER_P, _LOWER_P, _CONTRACTION + '?')}|\p{{N}}|{_MARKS_SLASH}"
        rf"|{_NEWLINES}|{_SPACES}",
    ),
    Pattern("space_letters", r"\s?\p{L}+", BOUNDED),
    Pattern("space_punctuation", r"\s?\p{P}+", BOUNDED),
    Pattern("falcon_punctuation", r"[\p{P}\$\+<=>\^~\|`]+", BOUNDED),
    Pattern("default_punctuation", r"[\p{P}\$\+<=>\^~\|]+", BOUNDED),
    Pattern("digits_3", r"[0-9][0-9][0-9]", BOUNDED),
    Pattern("bloom", rf" ?{_BLOOM}+", BOUNDED),
    Pattern(
        "tekken",
        rf"{_cased(_UPPER, _LOWER, '')}|\p{{N}}|{_MARKS_SLASH}|{_NEWLINES}|{_SPACES}",
    ),
    Pattern(
        "gpt4o",
        rf"{_cased(_UPPER, _LOWER, _CONTRACTION + '?')}|\p{{N}}{{1,3}}|{_MARKS_SLASH}"
        rf"|{_NEWLINES}|{_SPACES}",
    ),
    Pattern(
        "granite_multi",
        rf"{_cased(_UPPER_M, _LOWER_M, _CONTRACTION + '?')}|\p{{N}}{{1,3}}|{_MARKS_SLASH}"
        rf"|{_NEWLINES}|{_SPACES}",
    ),
    Pattern(
        "tiny_aya",
        rf"{_cased(_UPPER_P, _LOWER_P, _CONTRACTION + '?')}|\p{{N}}{{1,3}}|{_MARKS_SLASH}"
        rf"|{_NEWLINES}|{_SPACES}",
    ),
    Pattern("chameleon_sentinel", r"<sentinel:[0-9]+>"),
    Pattern("chameleon_image", r"(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", BOUNDED),
    Pattern("chameleon_spaces", r"([\t\n]|    |  )", BOUNDED),
    Pattern("chameleon_punctuation", r"[\p{P}!-/:-@\[-`{-~]", BOUNDED),
    Pattern(
        "bailing",
        rf"'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|{_WORD}|\p{{N}}|{_MARKS}|\s*[\r\n]|{_SPACES}",
    ),
    Pattern(
        "seed_coder",
        rf"{_CONTRACTION}|{_WORD}|\p{{N}}{{1}}| ?[^\s\p{{L}}\p{{N}}\r\n]+|{_NEWLINES}|{_SPACES}",
    ),
    Pattern("ufakzeka", rf"{_WORD}|\p{{N}}|{_MARKS}|{_NEWLINES}|{_SPACES}"),
    # U+8C48 to U+FAFF is llama.cpp's range (U+F900 decomposes to U+8C48).
    Pattern(
        "afmoe_scripts",
        r"[\u4E00-\u9FFF\u3400-\u4DBF\u8C48-\uFAFF\u3040-\u309F\u30A0-\u30FF\uFF65-\uFF9F"
        r"\u2F00-\u2FDF\u0E40-\u0E7F\u0E80-\u0EFF\u1780-\u17FF\u1000-\u109F\uAA60-\uAA7F"
        r"\uA9E0-\uA9FF\uAC00-\uD7AF\u1100-\u11FF]+",
        BOUNDED,
    ),
    Pattern(
        "exaone_moe",
        rf"{_CONTRACTION}|{_PREFIX}(?:\p{{L}}\p{{M}}*(?: \p{{L}}\p{{M}}*)*)+|\p{{N}}"
        rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]?|\s*[\r\n]|{_SPACES}",
    ),
    Pattern("minicpm5", rf"{_CONTRACTION}|{_WORD}|\p{{N}}+|{_MARKS}|{_NEWLINES}|{_SPACES}"),
    Pattern("words", r"\S+", BOUNDED),
)


class Fused(NamedTuple):
    """Patterns that are compiled to one automaton; each pattern splits the pieces of the previous
    one. All patterns except the last isolate their characters: a character that can be in a match
    always is in one (docs/design/pretokenizers.md)."""

    name: str
    patterns: tuple[str, ...]
    lookahead: str = ONCE


# The effect of two later scanners on the words of gpt2, as one expression. X is a number that
# isn't an ASCII digit. Digits are grouped in threes from the left of their run; the rest of the
# run stays in one piece up to the next three consecutive digits. "falcon" keeps a space before
# such a piece; "default" cuts it off.
_X = r"(?:(?!\d)\p{N})"
_GROUPED = r"[0-9]{3}|{s}(?:\d{0,2}{x})*\d{1,2}(?!\p{N})|{s}(?:\d{0,2}{x})+".replace("{x}", _X)
_GPT2_REST = rf"'s|'t|'re|'ve|'m|'ll|'d| ?\p{{L}}+| ?[^\s\p{{L}}\p{{N}}]+|{_SPACES}"

_GAP = r"|(?:[^\s\p{L}\p{M}\p{P}\p{S}](?![\p{L}\p{M}]))+"


def _cut_cjk(space: str, chars: str) -> str:
    """Returns an expression for runs of `chars`, which a later scanner cuts at the boundaries of
    _DEEPSEEK_CJK."""
    return rf"{space}(?:(?![{_DEEPSEEK_CJK}]){chars})+|(?:(?=[{_DEEPSEEK_CJK}]){chars})+"


# The scanners after line_end in deepseek-coder. White space before a letter or punctuation is a
# word or part of one; other white space is part of a gap.
_CODER_OTHER = r"[^\s\p{L}\p{P}\p{N}]"
_CODER = "|".join(
    (
        _cut_cjk(r"\s?", r"\p{L}"),
        _cut_cjk(r"\s?", r"\p{P}"),
        r"\p{N}",
        rf"(?:\s(?![\p{{L}}\p{{P}}])|(?![{_DEEPSEEK_CJK}]){_CODER_OTHER})+",
        rf"(?:(?=[{_DEEPSEEK_CJK}]){_CODER_OTHER})+",
        r"\s",
    )
)
# The scanners after line_end in deepseek-llm. Its punctuation includes the ASCII letters, so these
# are cut out of words: "na\u00EFve" is three words. Gaps consist of white space and characters that
# no pattern contains. White space at the right end of a gap is cut off, except before numbers and
# CJK characters, which are cut out of the gap later.
_LLM_WORDS = _DEEPSEEK_LETTERS + _DEEPSEEK_PUNCT
_LLM_OTHER = rf"(?:(?!\p{{N}})[^\s{_LLM_WORDS}{_DEEPSEEK_CJK}])"
_LLM_IN_GAP = rf"(?![{_LLM_WORDS}])(?=[{_DEEPSEEK_CJK}\p{{N}}])"
_LLM = "|".join(
    (
        rf"\s?(?:(?=[{_DEEPSEEK_PUNCT}])[{_DEEPSEEK_LETTERS}])+",
        _cut_cjk(r"\s?", f"(?![{_DEEPSEEK_PUNCT}])[{_DEEPSEEK_LETTERS}]"),
        _cut_cjk(r"\s?", f"(?![{_DEEPSEEK_LETTERS}])[{_DEEPSEEK_PUNCT}]"),
        _cut_cjk("", r"\p{N}"),
        rf"(?:(?![{_LLM_WORDS}])(?!\p{{N}})[{_DEEPSEEK_CJK}])+",
        rf"(?:\s*{_LLM_OTHER})+(?:\s+{_LLM_IN_GAP})?",
        rf"\s+{_LLM_IN_GAP}|\s+$|\s+(?=\s)|\s",
    )
)

FAST_PATTERNS = (
    Pattern("coder_words", _CODER, BOUNDED),
    Pattern("llm_words", _LLM),
    Pattern("gpt2_digits", _GROUPED.replace("{s}", " ?") + "|" + _GPT2_REST),
    Pattern("gpt2_numbers", _GROUPED.replace("{s}", "") + "|" + _GPT2_REST),
    # Patterns from above, extended to match the text that was in their gaps.
    Pattern("deepseek_v3_whole", _DEEPSEEK_V3 + _GAP),
    Pattern("spark_whole", _SPARK + _GAP, BOUNDED),
    # bloom's words without their numbers; a space that was a number's prefix is a separate word.
    Pattern("viking_words", rf" ?(?:(?!\p{{N}}){_BLOOM})+| (?=\p{{N}})|\p{{N}}", BOUNDED),
    Pattern("newline_runs", r"\n+", BOUNDED),  # its gaps are the rest of "newlines"
)

FUSED = (
    Fused("fast_starcoder", ("number", "gpt2")),
    Fused("fast_deepseek_v3", ("numbers_3", "cjk_kana", "deepseek_v3_whole")),
    Fused("fast_minicpm5", ("numbers_3", "minicpm5")),
    # llama.cpp first cuts numbers into groups of three digits, then into single digits: only the
    # second step matters.
    Fused("fast_spark", ("number", "cjk_kana", "spark_whole"), BOUNDED),
    Fused("fast_youtu", ("youtu_scripts", "youtu")),
    Fused("fast_afmoe", ("afmoe_scripts", "deepseek_v3_whole")),
    Fused("fast_falcon", ("falcon_punctuation", "gpt2_digits")),
    Fused("fast_default", ("default_punctuation", "gpt2_numbers")),
    Fused("fast_chameleon", ("number", "chameleon_punctuation", "gpt2")),
    Fused("fast_deepseek_coder", ("line_end", "coder_words"), BOUNDED),
    Fused("fast_deepseek_llm", ("line_end", "llm_words")),
    Fused("fast_laguna", ("newline_runs", "qwen2")),
    Fused("fast_viking", ("viking_words",), BOUNDED),
)


class Windows(NamedTuple):
    """How a pattern's windows (pretok/windows) classify characters beyond ASCII. A character in the
    same column of the automaton as `letter` is a letter, one in the column of `mark` is
    punctuation, and one in the column of `han`, if set, is a letter of a third class."""

    letter: str = "b"
    mark: str = "#"
    han: str = ""


# Windows by the automaton's name. Patterns that distinguish cases do so only in ASCII; in
# deepseek-v3, ASCII punctuation can be a prefix of ASCII letters, and deepseek-llm distinguishes
# ASCII letters from others.
_CASED = Windows(letter="\u0436")
WINDOWS = {
    **dict.fromkeys(
        """gpt2 llama3 k2_horizon qwen2 qwen35 bailing seed_coder ufakzeka fast_youtu
        fast_starcoder fast_minicpm5 fast_default fast_falcon tiny_aya""".split(),
        Windows(),
    ),
    **dict.fromkeys(("gpt4o", "granite_multi", "tekken"), _CASED),
    "kimi_k2": Windows(han="\u4f60"),
    **dict.fromkeys(
        ("fast_deepseek_v3", "fast_afmoe"), Windows(letter="\u0436", mark="\u00ab", han="\u4f60")
    ),
    "fast_deepseek_coder": Windows(han="\u4f60"),
    "fast_deepseek_llm": Windows(letter="\u0436", han="\u4f60"),
}
