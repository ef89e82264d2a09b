"""Types of tokens and ids of special ones: what the file says, and what llama.cpp makes of it."""

from __future__ import annotations

from collections.abc import Iterator

from ggtok.base.escape import number
from ggtok.inspect.doctor.codes import Finding, finding
from ggtok.inspect.doctor.file import GGML, TAG, File
from ggtok.tokenizer import TokenAttr
from ggtok.vocabularies.gguf_writer import SPECIAL_KEYS
from ggtok.vocabularies.spelling import BYTE, CONTROL, NORMAL, UNKNOWN, UNUSED, USER_DEFINED

# What llama.cpp gives a token of each type.
_ATTRS = {
    NORMAL: int(TokenAttr.NORMAL),
    UNKNOWN: int(TokenAttr.UNKNOWN),
    CONTROL: int(TokenAttr.CONTROL),
    USER_DEFINED: int(TokenAttr.USER_DEFINED),
    UNUSED: int(TokenAttr.UNUSED),
    BYTE: int(TokenAttr.BYTE),
}
# A type's bits, but for UNUSED, which llama.cpp adds to control tokens that say they are.
_TYPE = int(TokenAttr.NORMAL | TokenAttr.UNKNOWN | TokenAttr.CONTROL | TokenAttr.USER_DEFINED)


def check(file: File) -> Iterator[Finding]:
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
