"""Checks the tokens: texts, types, number, special tokens' ids."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from ggtok.base.escape import number, printable
from ggtok.inspect.doctor import template
from ggtok.inspect.doctor.codes import Finding, finding
from ggtok.inspect.doctor.file import GGML, TAG, File
from ggtok.native import knows_key
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
# The attributes to compare: not UNUSED, because llama.cpp adds it to some control tokens.
_TYPE = int(TokenAttr.NORMAL | TokenAttr.UNKNOWN | TokenAttr.CONTROL | TokenAttr.USER_DEFINED)
_EOS = f"{GGML}eos_token_id"
_BYTE_TOKEN = re.compile(rb"<0x[0-9A-F]{2}>")
_BYTE_LENGTH = len("<0xFF>")
_MOST_PADS = 1 << 16  # the most tokens that a correction adds
# Names of tokens that end texts.
_END = re.compile(rb"end.{0,3}of.{0,3}(text|sentence)|^</s>$|^<(\||)eos(\||)>$", re.IGNORECASE)
_MOST_KEYS = 16  # the most keys in a finding


def check_tokens(file: File) -> Iterator[Finding]:
    yield from _unknown(file)
    yield from _check_texts(file)
    yield from _special(file)
    yield from _sizes(file)


# ---- keys and types of newer builds ----


def _unknown(file: File) -> Iterator[Finding]:
    if file.tok.vocab_type == "NONE":
        return
    keys = [key for key in file.values if key.startswith(GGML) and not knows_key(key)]
    ids = tuple(id for id, type in enumerate(file.types) if type not in range(BYTE + 1))
    details = [f"the key '{printable(key, 128)}'" for key in keys[:_MOST_KEYS]]
    if len(keys) > _MOST_KEYS:
        details.append(f"{number(len(keys) - _MOST_KEYS, 'more key')}")
    if ids:
        details.append(f"the type {file.types[ids[0]]}: {file.examples(ids)}")
    if details:
        yield finding("GGT002", "\n".join(details), ids)
    if file.tok.vocab_type == "UGM" and file.tok._loaded.flags["nfc"]:
        yield finding("GGT003", f"'{GGML}normalizer.nfc' is true")


# ---- texts ----


def _check_texts(file: File) -> Iterator[Finding]:
    stored = file.values.get(GGML + "tokens")
    if not stored or not file.tok.n_tokens:
        return
    suspects = sorted(file.broken)
    empty = tuple(id for id in suspects if not stored[id].split(b"\0")[0])
    if empty:
        first = ", ".join(map(str, empty[:5])) + (", ..." if len(empty) > 5 else "")
        yield finding("GGT405", f"{number(len(empty), 'token')}: {first}", empty)
    known = {*empty}
    broken = tuple(
        id for id in suspects if id not in known and file.types[id] in (NORMAL, USER_DEFINED)
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
        options = "" if changes else _end_option(file)
        yield finding("GGT303", file.examples([eos]), (eos,), changes=changes, options=options)
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
        options = ""
        if _EOS in words and end is None:
            unset = "".join(f" --unset {key}" for key in words if key != _EOS)
            option = _end_option(file)
            changes, options = {}, option and option + unset
        ids = tuple(sorted({*words.values()}))
        yield finding("GGT305", ", ".join(named), ids, changes=changes, options=options)


def _end_option(file: File) -> str:
    """Returns the option of ``ggtok edit`` that makes EOS the control token that probably ends
    texts, or "" if there is none."""
    controls = {id: file.pieces[id] for id, type in enumerate(file.types) if type == CONTROL}
    end = next((id for id, text in controls.items() if _END.search(text)), None)
    if end is None:
        end = next((id for id in controls if file.tok.is_eog(id)), None)
    return "" if end is None else f"--special {shlex.quote('eos=' + _name(file, end))}"


def _name(file: File, id: int) -> str:
    """Returns a token's text for a command line, or its id if the text can't be one."""
    text = file.texts[id].decode("utf-8", "replace")
    return text if text.isprintable() and file.tok.text_to_token(text) == id else str(id)


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
        if len(text) == _BYTE_LENGTH
        and _BYTE_TOKEN.fullmatch(text)
        and file.types[id] in (NORMAL, USER_DEFINED)
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
    rows = file.embedding_rows
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
