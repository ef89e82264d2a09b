"""Checks the tokens (texts, types, number, special tokens' ids) and the pre-tokenizer."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence

from ggtok.base.escape import number, shown
from ggtok.base.files import read_regular
from ggtok.errors import GGTokError, GGUFError
from ggtok.inspect.doctor import template
from ggtok.inspect.doctor.codes import Finding, finding
from ggtok.inspect.doctor.file import GGML, TAG, File, is_utf8
from ggtok.native import knows_key, pre_names
from ggtok.native.gguf import FileHeader
from ggtok.tokenizer import TokenAttr, Tokenizer
from ggtok.vocabularies.gguf_writer import SPECIAL_KEYS
from ggtok.vocabularies.spelling import BYTE, CONTROL, NORMAL, UNKNOWN, UNUSED, USER_DEFINED

# llama.cpp's attributes for each type.
_ATTRS = {
    NORMAL: int(TokenAttr.NORMAL),
    UNKNOWN: int(TokenAttr.UNKNOWN),
    CONTROL: int(TokenAttr.CONTROL),
    USER_DEFINED: int(TokenAttr.USER_DEFINED),
    UNUSED: int(TokenAttr.UNUSED),
    BYTE: int(TokenAttr.BYTE),
}
# The attributes to compare: not UNUSED, because llama.cpp adds it to some control tokens.
_TYPE = int(TokenAttr.NORMAL | TokenAttr.UNKNOWN | TokenAttr.CONTROL | TokenAttr.USER_DEFINED)
_EOS = f"{GGML}eos_token_id"
_BYTE_TOKEN = re.compile(rb"<0x[0-9A-F]{2}>")
_MOST_PADS = 1 << 16  # the most tokens that a correction adds
_EMBEDDING = b"token_embd.weight"
_MOST_KEYS = 16  # the most keys in a finding
_MORE = 4 << 20  # the most bytes to read of the tensor descriptions


def check(file: File) -> Iterator[Finding]:
    yield from _unknown(file)
    yield from _pre_tokenizer(file)
    yield from _texts(file)
    yield from _special(file)
    yield from _sizes(file)


# ---- keys and types of newer builds ----


def _unknown(file: File) -> Iterator[Finding]:
    if file.tok.vocab_type == "NONE":
        return
    keys = [key for key in file.values if key.startswith(GGML) and not knows_key(key)]
    ids = tuple(id for id, type in enumerate(file.types) if type not in range(BYTE + 1))
    details = [f"the key '{shown(key, 128)}'" for key in keys[:_MOST_KEYS]]
    if len(keys) > _MOST_KEYS:
        details.append(f"{number(len(keys) - _MOST_KEYS, 'more key')}")
    if ids:
        details.append(f"the type {file.types[ids[0]]}: {file.examples(ids)}")
    if details:
        yield finding("GGT002", "\n".join(details), ids)
    if file.tok.vocab_type == "UGM" and file.tok._loaded.flags["nfc"]:
        yield finding("GGT003", f"'{GGML}normalizer.nfc' is true")


# ---- texts ----


def _texts(file: File) -> Iterator[Finding]:
    stored = file.values.get(GGML + "tokens")
    if not stored or not file.tok.n_tokens:
        return
    empty = tuple(id for id, text in enumerate(stored) if not text.split(b"\0")[0])
    if empty:
        first = ", ".join(map(str, empty[:5])) + (", ..." if len(empty) > 5 else "")
        yield finding("GGT405", f"{number(len(empty), 'token')}: {first}", empty)
    broken = tuple(
        id
        for id, text in enumerate(stored)
        if text
        and (b"\0" in text or not is_utf8(text))
        and file.types[id] in (NORMAL, USER_DEFINED)
        and id not in empty
    )
    if broken:
        yield finding("GGT406", f"{number(len(broken), 'token')}: {file.examples(broken)}", broken)


# ---- types and special tokens ----


def _special(file: File) -> Iterator[Finding]:
    if file.tok.vocab_type == "NONE":
        return
    overridden = [
        id
        for id, (type, attr) in enumerate(zip(file.types, file.attrs, strict=True))
        if (_ATTRS.get(type, 0) ^ attr) & _TYPE
    ]
    if overridden:
        yield finding(
            "GGT301",
            f"{number(len(overridden), 'token')}: {file.examples(overridden)}",
            tuple(overridden),
            changes={
                key: value
                for id in overridden
                for key, value in file.types_to(_type(file.attrs[id]), [id]).items()
            },
        )
    yield from _bytes(file)
    n = file.tok.n_tokens
    keys = [f"{GGML}{key}_token_id" for key in SPECIAL_KEYS.values()]
    wrong = {key: file.values[key] for key in keys if file.values.get(key, 0) >= n}
    if wrong:
        listed = ", ".join(f"'{key}' is {id}" for key, id in wrong.items())
        changes = {key: end_of(file) if key == _EOS else None for key in wrong}
        yield finding("GGT302", f"{listed}, and there are {n} tokens", changes=changes)
    yield from _ends(file, set(wrong))


def end_of(file: File) -> int | None:
    """Returns the token that ends answers: the template's, or the only control token that ends
    generation."""
    end = template.end_of_turn(file)
    if end is not None:
        return end
    ends = [id for id in file.tok.eog_ids if file.is_control(id)]
    return ends[0] if len(ends) == 1 else None


def _ends(file: File, wrong: set[str]) -> Iterator[Finding]:
    """Reports ordinary tokens that end generation."""
    eos = file.tok.eos_id
    if eos is not None and _EOS not in file.values and _is_word(file, eos):
        end = end_of(file)
        changes: dict[str, object] = {} if end is None else {_EOS: end}
        yield finding("GGT303", file.examples([eos]), (eos,), changes=changes)
    words: dict[str, int] = {}
    for name in ("eos", "eot", "eom"):
        key = f"{GGML}{name}_token_id"
        id = file.values.get(key)
        if id is not None and key not in wrong and _is_word(file, id):
            words[key] = id
    if words:
        named = (f"'{key}' is {file.examples([id])}" for key, id in words.items())
        end = end_of(file) if _EOS in words else None
        changes = {key: end if key == _EOS else None for key in words}
        if _EOS in words and end is None:
            changes = {}
        yield finding("GGT305", ", ".join(named), tuple(sorted({*words.values()})), changes=changes)


def _is_word(file: File, id: int) -> bool:
    """Whether this is an ordinary token. White space doesn't count, because completions may end
    with it."""
    text = file.pieces[id]
    return file.types[id] == NORMAL and bool(text.strip()) and not TAG.fullmatch(text)


def other_bytes(file: File) -> tuple[int, ...]:
    """Returns the byte tokens of an SPM or UGM vocabulary that have the type of text tokens."""
    if file.tok.vocab_type not in ("SPM", "UGM"):
        return ()
    return tuple(
        id
        for id, text in enumerate(file.texts)
        if file.types[id] in (NORMAL, USER_DEFINED) and _BYTE_TOKEN.fullmatch(text)
    )


def _bytes(file: File) -> Iterator[Finding]:
    ids = other_bytes(file)
    if ids:
        yield finding(
            "GGT306",
            f"{number(len(ids), 'token')}: {file.examples(ids)}",
            ids,
            changes=file.types_to(BYTE, ids),
        )


def _type(attr: int) -> int:
    """Converts a token's attributes in llama.cpp to a type for the file. At least one type's
    attribute is always set, even if llama.cpp has corrected the token."""
    order = (CONTROL, UNKNOWN, USER_DEFINED, NORMAL)
    return next(type for type in order if attr & _ATTRS[type])


# ---- sizes ----


def _sizes(file: File) -> Iterator[Finding]:
    n = file.tok.n_tokens
    rows = embedding_rows(file)
    if rows is not None and rows != n:
        yield finding("GGT601", f"{rows} rows, {n} tokens", changes=_pads(file, rows - n))
    arch = file.values.get("general.architecture", b"").decode("utf-8", "surrogateescape")
    size = file.values.get(f"{arch}.vocab_size")
    if isinstance(size, int) and size != n:
        yield finding(
            "GGT602",
            f"'{arch}.vocab_size' is {size}, and there are {n} tokens",
            changes={f"{arch}.vocab_size": n},
        )


def _pads(file: File, n: int) -> dict[str, object]:
    """Returns the changes that add unused tokens, as llama.cpp's converter does."""
    stored = file.values.get(GGML + "tokens") or []
    if not 0 < n <= _MOST_PADS:
        return {}
    names = [f"[PAD{id}]".encode() for id in range(len(stored), len(stored) + n)]
    if not {*names}.isdisjoint(stored):
        return {}
    changes: dict[str, object] = {GGML + "tokens": [*stored, *names]}
    for key, fill in ((GGML + "token_type", UNUSED), (GGML + "scores", -1000.0)):
        if key in file.values:
            changes[key] = [*file.values[key], *[fill] * n]
    return changes


def embedding_rows(file: File) -> int | None:
    """Returns the number of rows in the embedding, or None if unknown, for example because too
    little was downloaded."""
    data = file.data
    if file.path is not None:
        data = read_regular(file.path, file.end + _MORE)
    with contextlib.suppress(GGUFError):
        for tensor in FileHeader(data).tensors()[0]:
            if tensor.name == _EMBEDDING:
                return tensor.dims[1] if len(tensor.dims) > 1 else None
    return None


# ---- the pre-tokenizer ----

# Words, numbers, punctuation, white space and scripts that pre-tokenizers split differently.
PROBE = (
    "Hello, World! I'm sure they'LL pay $1234567.89 in 2024; see e-mail_x@y.org/a?b=1.\n\n"
    "\tdef f(x):\r\n        return x**2  # ok...   \n"
    "été ÑANDÚ straße Привет МИР مرحبا ١٢٣ नमस्ते สวัสดี 你好\uff0c世界 こんにちは 한국어 "
    "camelCaseWord HTTPServer 3.14e-10 100,000 \u00a0x  \n \U0001f600\U0001f44d\U0001f3fd <|x|>"
)
_LISTED = 8  # the most names to list


def is_own(file: File) -> bool:
    """Whether the pre-tokenizer seems to be this vocabulary's, not llama.cpp's default or another
    vocabulary's."""
    if misfit(file):
        return False
    name = str(file.tok.pre) if file.unknown_pre is None else "default"
    return name != "default" or file.tok.model != "gpt2"


def _pre_tokenizer(file: File) -> Iterator[Finding]:
    if file.tok.vocab_type != "BPE" or file.tok.model != "gpt2":
        return  # other models ignore the key, or use it for other purposes
    name = file.values.get(GGML + "pre")
    if file.unknown_pre is not None:
        yield finding("GGT103", f"it is '{shown(name or b'', 60)}'; {_others(file)}")
    elif not name:
        yield finding("GGT101", f"there is no key '{GGML}pre'; {_others(file)}")
    elif name.split(b"\0")[0] == b"default":
        yield finding("GGT102", _others(file))
    elif detail := misfit(file):
        yield finding("GGT104", detail)


# Pre-tokenizers that split in different ways, with the names that findings use for them. Unlike
# llama-bpe, none of them sets ignore_merges, so damaged merges affect all of them alike.
_KINDS = {
    "smaug-bpe": "'llama-bpe' or 'smaug-bpe'",
    **{
        name: f"'{name}'"
        for name in "gpt-2 qwen35 gpt-4o falcon deepseek-llm deepseek-coder bloom starcoder".split()
    },
}
_SAMPLE, _FEWEST = 20_000, 1000  # the most and the fewest tokens to compare
# The share of tokens that the right pre-tokenizer may split although another one doesn't. In
# published vocabularies, this share is at most 1.1 % (qwen2). For wrong pre-tokenizers, it is 1.3 %
# to 30 %.
_MISFIT = 0.012


def misfit(file: File) -> str:
    """Describes how many tokens the pre-tokenizer splits that another one keeps whole; "" if they
    are few."""
    if "misfit" not in file.memo:
        file.memo["misfit"] = _misfit(file)
    return str(file.memo["misfit"])


def _misfit(file: File) -> str:
    name = file.values.get(GGML + "pre")
    if file.tok.vocab_type != "BPE" or file.tok.model != "gpt2" or not name or file.unknown_pre:
        return ""
    ids = [id for id, type in enumerate(file.types) if type == NORMAL and file.texts[id]]
    ids = ids[:: max(1, len(ids) // _SAMPLE)]
    if len(ids) < _FEWEST:
        return ""
    ours = _n_split(file, file.tok, ids)
    if ours <= _MISFIT * len(ids):
        return ""
    theirs = {name: _n_split(file, file.load(pre=name), ids) for name in _KINDS}
    least = min(theirs.values())
    if ours - least <= _MISFIT * len(ids):
        return ""
    best = " and ".join(text for name, text in _KINDS.items() if theirs[name] == least)
    return f"of {len(ids)} tokens, '{shown(name, 60)}' splits {ours}, {best} {least}"


def _n_split(file: File, tok: Tokenizer, ids: Sequence[int]) -> int:
    """Returns how many of the tokens' pieces don't encode to exactly one token."""
    texts = [file.pieces[id] for id in ids]
    _, offsets = tok.encode_batch_arrays(texts, add_special=False)
    lengths = offsets[1:] - offsets[:-1]
    return int((lengths != 1).sum())


def _others(file: File) -> str:
    """Describes which pre-tokenizer names would give other ids than "default"."""
    ours = file.tok.encode(PROBE, add_special=False)
    same: list[str] = []
    different: list[str] = []
    for name in pre_names():
        if name == "default":
            continue
        try:
            theirs = file.load(pre=name).encode(PROBE, add_special=False)
        except GGTokError:  # the name isn't valid for this vocabulary
            continue
        (same if theirs == ours else different).append(name)
    return (
        f"on a text of many kinds of words, {len(different)} names give other ids than 'default' "
        f"({_some(different)}) and {len(same)} the same ({_some(same)})"
    )


def _some(names: list[str]) -> str:
    return ", ".join(names[:_LISTED]) + (", ..." if len(names) > _LISTED else "") or "none"
