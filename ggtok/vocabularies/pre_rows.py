"""The pre-tokenizers of llama.cpp: names, their chains of scanners, and expressions.

DO NOT EDIT: written by cext/gen/pretok_python.py from cext/pretok/names.c and
cext/gen/pretok_patterns.py.
"""

# ruff: noqa
# fmt: off
# Values of tokenizer.ggml.pre: their chains, and the flags that they set.
PRE_ROWS: dict[str, tuple[str, frozenset[str]]] = {
    "default": ("default", frozenset()),
    "mpt": ("gpt2", frozenset()),
    "gpt-2": ("gpt2", frozenset()),
    "phi-2": ("gpt2", frozenset()),
    "jina-es": ("gpt2", frozenset()),
    "jina-de": ("gpt2", frozenset()),
    "gigachat": ("gpt2", frozenset()),
    "jina-v2-es": ("gpt2", frozenset()),
    "jina-v2-de": ("gpt2", frozenset()),
    "a.x-4.0": ("gpt2", frozenset()),
    "mellum": ("gpt2", frozenset()),
    "modern-bert": ("gpt2", frozenset()),
    "jina-v1-en": ("gpt2", frozenset(['SEP'])),
    "jina-v2-code": ("gpt2", frozenset(['SEP'])),
    "roberta-bpe": ("gpt2", frozenset(['SEP'])),
    "olmo": ("gpt2", frozenset()),
    "jais": ("gpt2", frozenset()),
    "exaone4": ("gpt2", frozenset()),
    "trillion": ("gpt2", frozenset(['SPACES'])),
    "granite-docling": ("gpt2", frozenset(['SPACES'])),
    "llama3": ("llama3", frozenset(['IGNORE', 'BOS'])),
    "llama-v3": ("llama3", frozenset(['IGNORE', 'BOS'])),
    "llama-bpe": ("llama3", frozenset(['IGNORE', 'BOS'])),
    "falcon3": ("llama3", frozenset(['IGNORE', 'BOS'])),
    "falcon-h1": ("llama3", frozenset(['IGNORE', 'BOS'])),
    "pixtral": ("llama3", frozenset(['IGNORE', 'BOS'])),
    "midm-2.0": ("llama3", frozenset(['IGNORE', 'BOS'])),
    "lfm2": ("llama3", frozenset(['IGNORE', 'BOS'])),
    "jina-v5-nano": ("llama3", frozenset(['IGNORE', 'BOS'])),
    "dbrx": ("llama3", frozenset()),
    "smaug-bpe": ("llama3", frozenset()),
    "chatglm-bpe": ("llama3", frozenset(['NO_BOS'])),
    "glm4": ("llama3", frozenset(['IGNORE', 'NO_BOS'])),
    "glm5": ("llama3", frozenset(['IGNORE', 'NO_BOS'])),
    "qwen2": ("qwen2", frozenset(['SPACES'])),
    "deepseek-r1-qwen": ("qwen2", frozenset(['SPACES'])),
    "kormo": ("qwen2", frozenset(['SPACES'])),
    "f2llmv2": ("qwen2", frozenset(['SPACES'])),
    "stablelm2": ("qwen2", frozenset()),
    "megrez": ("qwen2", frozenset()),
    "hunyuan": ("qwen2", frozenset(['SPACES'])),
    "grok-2": ("qwen2", frozenset(['SPACES'])),
    "solar-open": ("qwen2", frozenset(['SPACES'])),
    "starcoder": ("starcoder", frozenset()),
    "refact": ("starcoder", frozenset()),
    "command-r": ("starcoder", frozenset(['SPACES'])),
    "smollm": ("starcoder", frozenset(['SPACES'])),
    "codeshell": ("starcoder", frozenset()),
    "exaone": ("starcoder", frozenset()),
    "minerva-7b": ("starcoder", frozenset()),
    "mellum2": ("starcoder", frozenset()),
    "gpt-4o": ("gpt4o", frozenset(['SPACES'])),
    "llama4": ("gpt4o", frozenset(['SPACES'])),
    "kanana2": ("gpt4o", frozenset(['SPACES'])),
    "talkie": ("gpt4o", frozenset(['SPACES'])),
    "minimax-m2": ("gpt4o", frozenset(['SPACES'])),
    "deepseek-v3": ("deepseek_v3", frozenset(['SPACES'])),
    "hunyuan-dense": ("deepseek_v3", frozenset(['SPACES'])),
    "hy_v4": ("deepseek_v3", frozenset(['SPACES'])),
    "joyai-llm": ("deepseek_v3", frozenset(['SPACES'])),
    "gemma4": ("newlines", frozenset(['RAW', 'ESCAPE', 'LINES', 'GEMMA4'])),
    "granite-embed-multi-311m": ("newlines", frozenset(['RAW', 'ESCAPE', 'LINES', 'GEMMA4'])),
    "mmbert": ("marked_words", frozenset(['RAW', 'ESCAPE', 'MMBERT'])),
    "sarvam-moe": ("newlines", frozenset(['SPACES', 'RAW', 'ESCAPE', 'LINES'])),
    "poro-chat": ("bloom", frozenset(['SPACES'])),
    "bloom": ("bloom", frozenset()),
    "gpt3-finnish": ("bloom", frozenset()),
    "bailingmoe": ("bailing", frozenset(['SPACES'])),
    "bailingmoe2": ("bailing", frozenset(['SPACES'])),
    "llada-moe": ("bailing", frozenset(['SPACES'])),
    "tiny_aya": ("tiny_aya", frozenset(['SPACES'])),
    "cohere2moe": ("tiny_aya", frozenset(['SPACES'])),
    "minicpm5": ("minicpm5", frozenset(['IGNORE'])),
    "deepseek-llm": ("deepseek_llm", frozenset(['SPACES'])),
    "deepseek-coder": ("deepseek_coder", frozenset(['SPACES'])),
    "spark2_5": ("spark2_5", frozenset(['SPACES'])),
    "youtu": ("youtu", frozenset(['IGNORE', 'SPACES'])),
    "falcon": ("falcon", frozenset()),
    "jais-2": ("jais2", frozenset()),
    "whitespace": ("words", frozenset(['RAW', 'CASED'])),
    "qwen35": ("qwen35", frozenset(['SPACES'])),
    "viking": ("viking", frozenset(['SPACES'])),
    "tekken": ("tekken", frozenset(['IGNORE', 'BOS', 'SPACES'])),
    "exaone-moe": ("exaone_moe", frozenset()),
    "chameleon": ("chameleon", frozenset(['BOS', 'SPACES'])),
    "granite-embed-multi-97m": ("granite_multi", frozenset(['IGNORE', 'SPACES'])),
    "superbpe": ("superbpe", frozenset(['SPACES'])),
    "seed-coder": ("seed_coder", frozenset(['SPACES'])),
    "kimi-k2": ("kimi_k2", frozenset(['SPACES'])),
    "k2-horizon": ("k2_horizon", frozenset(['SPACES'])),
    "ufakzeka": ("ufakzeka", frozenset(['SPACES'])),
    "afmoe": ("afmoe", frozenset(['SPACES'])),
    "laguna": ("laguna", frozenset(['SPACES'])),
}

# The scanners of each chain: each cuts the pieces of the previous one. Two of them count
# (cext/pretok/counting.c); the others match an expression.
SCANNERS: dict[str, tuple[str, ...]] = {
    "default": ("default_punctuation", "gpt2", "numbers", "digits_3",),
    "gpt2": ("gpt2",),
    "llama3": ("llama3",),
    "qwen2": ("qwen2",),
    "starcoder": ("number", "gpt2",),
    "gpt4o": ("gpt4o",),
    "deepseek_v3": ("numbers_3", "cjk_kana", "deepseek_v3",),
    "newlines": ("newlines",),
    "marked_words": ("marked_words",),
    "bloom": ("bloom",),
    "bailing": ("bailing",),
    "tiny_aya": ("groups_right", "tiny_aya",),
    "minicpm5": ("numbers_3", "minicpm5",),
    "deepseek_llm": ("line_end", "deepseek_letters", "deepseek_punctuation", "trailing_spaces", "deepseek_cjk", "numbers",),
    "deepseek_coder": ("line_end", "space_letters", "space_punctuation", "deepseek_cjk", "number",),
    "spark2_5": ("numbers_3", "cjk_kana", "spark", "number",),
    "youtu": ("youtu_scripts", "youtu",),
    "falcon": ("falcon_punctuation", "gpt2", "digits_3",),
    "jais2": ("jais2",),
    "words": ("words",),
    "qwen35": ("qwen35",),
    "viking": ("bloom", "number",),
    "tekken": ("tekken",),
    "exaone_moe": ("exaone_moe",),
    "chameleon": ("chameleon_sentinel", "chameleon_image", "chameleon_spaces", "number", "chameleon_punctuation", "gpt2",),
    "granite_multi": ("granite_multi",),
    "superbpe": ("numbers", "groups_left",),
    "seed_coder": ("seed_coder",),
    "kimi_k2": ("kimi_k2",),
    "k2_horizon": ("k2_horizon",),
    "ufakzeka": ("ufakzeka",),
    "afmoe": ("groups_right", "afmoe_scripts", "deepseek_v3",),
    "laguna": ("newlines", "qwen2",),
}

EXPRESSIONS: dict[str, str] = {
    "gpt2": (
        "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
    ),
    "llama3": (
        "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\\r\\n\\p{L}\\p{N}]?\\p{L"
        "}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
    ),
    "qwen2": (
        "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\\r\\n\\p{L}\\p{N}]?\\p{L"
        "}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
    ),
    "qwen35": (
        "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\\r\\n\\p{L}\\p{N}]?[\\p{"
        "L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
    ),
    "kimi_k2": (
        "\\p{Han}+|[^\\r\\n\\p{L}\\p{N}]?(?:(?!\\p{Han})\\p{L})+(?:'[sS]|'[tT]|'[rR][eE]|'[vV][e"
        "E]|'[mM]|'[lL][lL]|'[dD])?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?"
        "!\\S)|\\s+"
    ),
    "k2_horizon": (
        "'\\u017F|(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\\r\\n\\p{L}\\p{"
        "N}]?(?:\\p{L}|\\p{M}|\\u200C|\\u200D)+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n"
        "]+|\\s+(?!\\S)|\\s+"
    ),
    "newlines": (
        "[^\\n]+|[\\n]+"
    ),
    "marked_words": (
        "\\n+|\\u2581[^\\n\\u2581]*|[^\\n\\u2581]+"
    ),
    "jais2": (
        "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\\r\\n\\p{L}\\p{N}]?\\p{L"
        "}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s{512}(?!\\S)|\\s{256}(?!\\S)|\\"
        "s{128}(?!\\S)|\\s{64}(?!\\S)|\\s{32}(?!\\S)|\\s{16}(?!\\S)|\\s{8}(?!\\S)|\\s{4}(?!\\S)|\\s{1"
        ",2}(?!\\S)|\\s{1}"
    ),
    "line_end": (
        "[\\r\\n]"
    ),
    "deepseek_letters": (
        "\\s?[A-Za-z\\u00B5\\u00C0-\\u00D6\\u00D8-\\u00F6\\u00F8-\\u01BA\\u01BC-\\u01BF\\u01C4-\\u029"
        "3\\u0295-\\u02AF\\u0370-\\u0373\\u0376\\u0377\\u037B-\\u037D\\u037F\\u0386\\u0388-\\u038A\\u0"
        "38C\\u038E-\\u03A1\\u03A3-\\u03F5\\u03F7-\\u0481\\u048A-\\u052F\\u0531-\\u0556\\u10A0-\\u10C"
        "5\\u13A0-\\u13F5\\u13F8-\\u13FD\\u1C90-\\u1CBA\\u1CBD-\\u1CBF\\u1D00-\\u1D2B\\u1D6B-\\u1D77\\"
        "u1D79-\\u1D9A\\u1E00-\\u1F15\\u1F18-\\u1F1D\\u1F20-\\u1F45\\u1F48-\\u1F4D\\u1F50-\\u1F57\\u1"
        "F59\\u1F5B\\u1F5D\\u1F5F-\\u1F7D\\u1F80-\\u1FB4\\u1FB6-\\u1FBC\\u1FBE\\u1FC2-\\u1FC4\\u1FC6-"
        "\\u1FCC\\u1FD0-\\u1FD3\\u1FD6-\\u1FDB\\u1FE0-\\u1FEC\\u1FF2-\\u1FF4\\u1FF6-\\u1FFC\\u2102\\u2"
        "107\\u210A-\\u2113\\u2115\\u2119-\\u211D\\u2124\\u2126\\u2128\\u212A-\\u212D\\u212F-\\u2134\\"
        "u2139\\u213C-\\u213F\\u2145-\\u2149\\u214E\\u2183\\u2184\\u2C00-\\u2C7B\\u2C7E-\\u2CE4\\u2CE"
        "B-\\u2CEE\\u2CF2\\u2CF3\\uA640-\\uA66D\\uA680-\\uA69B\\uA722-\\uA76F\\uA771-\\uA787\\uA78B-\\"
        "uA78E\\uAB70-\\uABBF\\uFB00-\\uFB06\\uFB13-\\uFB17\\uFF21-\\uFF3A\\uFF41-\\uFF5A\\U00010400"
        "-\\U0001044F\\U000104B0-\\U000104D3\\U000104D8-\\U000104FB\\U00010C80-\\U00010CB2\\U0001"
        "0CC0-\\U00010CF2\\U000118A0-\\U000118DF\\U0001E900-\\U0001E943]+"
    ),
    "deepseek_punctuation": (
        "\\s?[!-/:-~\\uFF01-\\uFF0F\\uFF1A-\\uFF5E\\u2018-\\u201F\\u3000-\\u3002]+"
    ),
    "trailing_spaces": (
        "\\s+$"
    ),
    "deepseek_cjk": (
        "[\\u4E00-\\u9FA5\\u0800-\\u4E00\\uAC00-\\uD7FF]+"
    ),
    "numbers": (
        "\\p{N}+"
    ),
    "number": (
        "\\p{N}"
    ),
    "numbers_3": (
        "\\p{N}{1,3}"
    ),
    "cjk_kana": (
        "[\\u4E00-\\u9FA5\\u3040-\\u309F\\u30A0-\\u30FF]+"
    ),
    "deepseek_v3": (
        "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{"
        "M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
    ),
    "spark": (
        "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{"
        "M}]+| ?[\\p{P}\\p{S}]+|[\\r\\n]|\\s+(?!\\S)|\\s+"
    ),
    "youtu_scripts": (
        "[\\uAC00-\\uD7A3\\u3131-\\u318E]+|[\\uFF01\\u2026\\u201C\\u201D\\u2018\\u2019\\u2014\\uFF1A\\"
        "uFF1B\\uFF0C\\u3001-\\u303F\\uFE30-\\uFE4F]+|[\\u3105-\\u312F]+|[\\u4E00-\\u9FA5\\u3040-\\u"
        "309F\\u30A0-\\u30FF]+"
    ),
    "youtu": (
        "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+(?:'"
        "[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}"
        "\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*(?:'[sS]|'[tT]|'[rR][eE]|'[vV"
        "][eE]|'[mM]|'[lL][lL]|'[dD])?|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!"
        "\\S)|\\s+"
    ),
    "space_letters": (
        "\\s?\\p{L}+"
    ),
    "space_punctuation": (
        "\\s?\\p{P}+"
    ),
    "falcon_punctuation": (
        "[\\p{P}\\$\\+<=>\\^~\\|`]+"
    ),
    "default_punctuation": (
        "[\\p{P}\\$\\+<=>\\^~\\|]+"
    ),
    "digits_3": (
        "[0-9][0-9][0-9]"
    ),
    "bloom": (
        " ?[^(\\s|.,!?\\u2026\\u3002\\uFF0C\\u3001\\u0964\\u06D4\\u060C)]+"
    ),
    "tekken": (
        "[^\\r\\n\\p{L}\\p{N}]?((?=[\\p{L}])([^a-z]))*((?=[\\p{L}])([^A-Z]))+|[^\\r\\n\\p{L}\\p{N}]"
        "?((?=[\\p{L}])([^a-z]))+((?=[\\p{L}])([^A-Z]))*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\"
        "s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
    ),
    "gpt4o": (
        "[^\\r\\n\\p{L}\\p{N}]?((?=[\\p{L}])([^a-z]))*((?=[\\p{L}])([^A-Z]))+(?:'[sS]|'[tT]|'[r"
        "R][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|[^\\r\\n\\p{L}\\p{N}]?((?=[\\p{L}])([^a-z]))"
        "+((?=[\\p{L}])([^A-Z]))*(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
        "?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
    ),
    "granite_multi": (
        "[^\\r\\n\\p{L}\\p{N}]?((?=[\\p{L}\\p{M}])([^a-z]))*((?=[\\p{L}\\p{M}])([^A-Z]))+(?:'[sS]"
        "|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|[^\\r\\n\\p{L}\\p{N}]?((?=[\\p{L}\\"
        "p{M}])([^a-z]))+((?=[\\p{L}\\p{M}])([^A-Z]))*(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'["
        "mM]|'[lL][lL]|'[dD])?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)"
        "|\\s+"
    ),
    "tiny_aya": (
        "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+(?:'"
        "[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}"
        "\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*(?:'[sS]|'[tT]|'[rR][eE]|'[vV"
        "][eE]|'[mM]|'[lL][lL]|'[dD])?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\"
        "s+(?!\\S)|\\s+"
    ),
    "chameleon_sentinel": (
        "<sentinel:[0-9]+>"
    ),
    "chameleon_image": (
        "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z"
    ),
    "chameleon_spaces": (
        "([\\t\\n]|    |  )"
    ),
    "chameleon_punctuation": (
        "[\\p{P}!-/:-@\\[-`{-~]"
    ),
    "bailing": (
        "'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s"
        "\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"
    ),
    "seed_coder": (
        "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\\r\\n\\p{L}\\p{N}]?\\p{L"
        "}+|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\\r\\n]+|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
    ),
    "ufakzeka": (
        "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s"
        "+"
    ),
    "afmoe_scripts": (
        "[\\u4E00-\\u9FFF\\u3400-\\u4DBF\\u8C48-\\uFAFF\\u3040-\\u309F\\u30A0-\\u30FF\\uFF65-\\uFF9F\\"
        "u2F00-\\u2FDF\\u0E40-\\u0E7F\\u0E80-\\u0EFF\\u1780-\\u17FF\\u1000-\\u109F\\uAA60-\\uAA7F\\uA"
        "9E0-\\uA9FF\\uAC00-\\uD7AF\\u1100-\\u11FF]+"
    ),
    "exaone_moe": (
        "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\\r\\n\\p{L}\\p{N}]?(?:\\"
        "p{L}\\p{M}*(?: \\p{L}\\p{M}*)*)+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]?|\\s*[\\r\\n]|\\s+(?!\\"
        "S)|\\s+"
    ),
    "minicpm5": (
        "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\\r\\n\\p{L}\\p{N}]?\\p{L"
        "}+|\\p{N}+| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
    ),
    "words": (
        "\\S+"
    ),
}
