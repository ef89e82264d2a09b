"""The vocabulary's tokens (texts, types, number, ids of special tokens) and its pre-tokenizer."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator

from ggtok.base.escape import number, shown
from ggtok.base.files import read_regular
from ggtok.errors import GGTokError
from ggtok.inspect.doctor.codes import Finding, finding
from ggtok.inspect.doctor.file import GGML, TAG, File, is_utf8
from ggtok.native import pre_names
from ggtok.sources.prefix import tensors
from ggtok.tokenizer import TokenAttr
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
# The bits that are compared: not UNUSED, which llama.cpp adds to some control tokens.
_TYPE = int(TokenAttr.NORMAL | TokenAttr.UNKNOWN | TokenAttr.CONTROL | TokenAttr.USER_DEFINED)
_EMBEDDING = b"token_embd.weight"
_MORE = 4 << 20  # the largest number of bytes read of the tensor descriptions


def check(file: File) -> Iterator[Finding]:
    yield from _pre_tokenizer(file)
    yield from _texts(file)
    yield from _special(file)
    yield from _sizes(file)


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
        )
    n = file.tok.n_tokens
    keys = [f"{GGML}{key}_token_id" for key in SPECIAL_KEYS.values()]
    wrong = {key: file.values[key] for key in keys if file.values.get(key, 0) >= n}
    if wrong:
        listed = ", ".join(f"'{key}' is {id}" for key, id in wrong.items())
        yield finding("GGT302", f"{listed}, and there are {n} tokens")
    eos = file.tok.eos_id
    if eos is None or f"{GGML}eos_token_id" in file.values:
        return
    if file.attrs[eos] == TokenAttr.NORMAL and not TAG.fullmatch(file.texts[eos]):
        yield finding("GGT303", file.examples([eos]), (eos,))


# ---- sizes ----


def _sizes(file: File) -> Iterator[Finding]:
    n = file.tok.n_tokens
    rows = embedding_rows(file)
    if rows is not None and rows != n:
        yield finding("GGT601", f"{rows} rows, {n} tokens")
    arch = file.values.get("general.architecture", b"").decode("utf-8", "surrogateescape")
    size = file.values.get(f"{arch}.vocab_size")
    if isinstance(size, int) and size != n:
        yield finding("GGT602", f"'{arch}.vocab_size' is {size}, and there are {n} tokens")


def embedding_rows(file: File) -> int | None:
    """The number of rows of the embedding; None: unknown, as if too little was downloaded."""
    data = file.data
    if file.path is not None:
        data = read_regular(file.path, file.end + _MORE)
    with contextlib.suppress(struct.error, OverflowError):
        for name, dims, *_ in tensors(data, file.end) if len(data) > file.end else ():
            if name == _EMBEDDING:
                return dims[1] if len(dims) > 1 else None
    return None


# ---- the pre-tokenizer ----

# Words, numbers, punctuation, white space and scripts that pre-tokenizers split differently.
PROBE = (
    "Hello, World! I'm sure they'LL pay $1234567.89 in 2024; see e-mail_x@y.org/a?b=1.\n\n"
    "\tdef f(x):\r\n        return x**2  # ok...   \n"
    "été ÑANDÚ straße Привет МИР مرحبا ١٢٣ नमस्ते สวัสดี 你好\uff0c世界 こんにちは 한국어 "
    "camelCaseWord HTTPServer 3.14e-10 100,000 \u00a0x  \n \U0001f600\U0001f44d\U0001f3fd <|x|>"
)
_LISTED = 8  # names


def is_own(file: File) -> bool:
    """Whether the pre-tokenizer is a model's own, not llama.cpp's default."""
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


def _others(file: File) -> str:
    """A text about the names that would give other ids."""
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
