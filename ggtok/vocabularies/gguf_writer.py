"""Writes vocabularies to GGUF files, with the ``gguf`` package."""

from __future__ import annotations

import os
import struct
import tempfile
import warnings

from ggtok.errors import VocabError, VocabWarning
from ggtok.tokenizer import Tokenizer, load
from ggtok.vocabularies.contents import Contents

# Names in Vocabulary.special_ids, with the corresponding names in GGUF's keys.
SPECIAL_KEYS = {
    "bos": "bos",
    "eos": "eos",
    "eot": "eot",
    "eom": "eom",
    "unk": "unknown",
    "sep": "seperator",  # misspelled as in GGUF
    "pad": "padding",
    "mask": "mask",
    "fim_pre": "fim_pre",
    "fim_suf": "fim_suf",
    "fim_mid": "fim_mid",
    "fim_pad": "fim_pad",
    "fim_rep": "fim_rep",
    "fim_sep": "fim_sep",
}
TEMPLATE = "tokenizer.chat_template"
CHARSMAP = "tokenizer.ggml.precompiled_charsmap"
FLAG_KEYS = {
    "add_bos": "add_bos_token",
    "add_eos": "add_eos_token",
    "add_sep": "add_sep_token",
    "add_space_prefix": "add_space_prefix",
    "remove_extra_whitespaces": "remove_extra_whitespaces",
}


def _check_contents(v: Contents) -> None:
    """Raises VocabError for contents that llama.cpp can't load, or would read differently."""
    seen: dict[bytes, int] = {}
    for id, text in enumerate(v.texts):
        if b"\0" in text:
            raise VocabError(f"token {id} ({text!r}) contains a NUL, which would end it in GGUF")
        if not text:
            raise VocabError(f"token {id} is empty: llama.cpp would name it [EMPTY_{id}]")
        other = seen.setdefault(text, id)
        if other != id:
            raise VocabError(f"tokens {other} and {id} have the same text {text!r}")
    for i, (left, right) in enumerate(v.merge_texts or ()):
        if b" " in left[1:] or not left or b"\0" in left + right:
            raise VocabError(
                f"merge {i} ({left!r}, {right!r}) can't be written: in a GGUF file the first part "
                "ends at a space, the second at a NUL"
            )
    for name, id in v.special_ids.items():
        if not 0 <= id < len(v):
            raise VocabError(f"{name} is token {id}, but there are only {len(v)} tokens")


def gguf_bytes(v: Contents, *, patterns: bool = False) -> bytes:
    """Returns the file's bytes. Raises VocabError if there are ``pre_patterns``, unless `patterns`
    is set: then the caller passes them to the function that loads the file."""
    if v.pre_patterns is not None and not patterns:
        raise VocabError(
            "a GGUF file can't contain pre_patterns: name a pre-tokenizer that splits text in the "
            "same way (pre=...), or use v.tokenizer()"
        )
    _check_contents(v)
    from gguf import GGUFWriter

    with tempfile.TemporaryDirectory(prefix="ggtok-") as folder:
        path = os.path.join(folder, "vocabulary.gguf")
        writer = GGUFWriter(path, v.architecture)
        try:
            _add_keys(writer, v)
            writer.write_header_to_file()
            writer.write_kv_data_to_file()
        except (ValueError, TypeError, struct.error) as e:
            raise VocabError(f"GGUF can't store a value of this vocabulary: {e}") from None
        finally:
            writer.close()
        with open(path, "rb") as file:
            return file.read()


def _add_keys(writer: object, v: Contents) -> None:
    """Writes the keys, starting with those in `v.order`."""
    place = {key: i for i, key in enumerate(v.order)}
    for key, value in sorted(_rows(v), key=lambda row: place.get(row[0], len(place))):
        _add(writer, key, value)


def _rows(v: Contents) -> list[tuple[str, object]]:
    """Returns the file's keys and values."""
    ggml = "tokenizer.ggml."
    rows: list[tuple[str, object]] = [(ggml + "model", v.model)]
    pre = v.pre
    if pre is None and v.pre_patterns is not None:
        pre = "default"
    if pre is not None:
        rows.append((ggml + "pre", pre))
    rows += v.keys.items()
    rows.append((ggml + "tokens", v.texts))
    if v.scores is not None:
        rows.append((ggml + "scores", [float(score) for score in v.scores]))
    rows.append((ggml + "token_type", v.types))
    if v.merge_texts is not None:
        merges = [left + b" " + right for left, right in v.merge_texts]
        # llama.cpp needs the key, but the writer doesn't support empty arrays. So an empty list
        # is written as a single merge without two parts, which llama.cpp ignores.
        rows.append((ggml + "merges", merges or [b"-"]))
    rows += [(f"{ggml}{SPECIAL_KEYS[name]}_token_id", id) for name, id in v.special_ids.items()]
    rows += [(ggml + FLAG_KEYS[name], on) for name, on in v.flags.items()]
    if v.chat_template is not None or v.chat_templates:
        rows.append((TEMPLATE, _templates(v)))
    return rows


def _templates(v: Contents) -> str | list[dict[str, str]]:
    if not v.chat_templates:
        return v.chat_template or ""
    named = [{"name": k, "template": t} for k, t in v.chat_templates.items()]
    if v.chat_template is not None:
        named.append({"name": "default", "template": v.chat_template})
    return named


def _add(writer: object, key: str, value: object) -> None:
    """Adds a key with a type that follows from the value's Python type."""
    from gguf import GGUFValueType, GGUFWriter

    assert isinstance(writer, GGUFWriter)
    if key == TEMPLATE and isinstance(value, list):
        writer.add_chat_template(value)
    elif isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        kind = GGUFValueType.UINT32
        if not 0 <= value < 1 << 32:
            kind = GGUFValueType.INT64 if value < 1 << 63 else GGUFValueType.UINT64
        writer.add_key_value(key, value, kind)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    elif isinstance(value, str):
        # Surrogates stand for bytes that aren't UTF-8.
        data = value.encode("utf-8", "surrogateescape")
        writer.add_key_value(key, data, GGUFValueType.STRING)
    elif isinstance(value, bytes):
        writer.add_key_value(key, value, GGUFValueType.ARRAY, GGUFValueType.UINT8)
    elif isinstance(value, (list, tuple)):
        writer.add_array(key, list(value))
    else:
        raise VocabError(f"the value of {key} is a {type(value).__name__}, which GGUF can't store")


def tokenizer_of(v: Contents) -> Tokenizer:
    """Returns a tokenizer with this vocabulary, loaded from its GGUF file in memory."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VocabWarning)
        return load(gguf_bytes(v, patterns=True), pre_patterns=v.pre_patterns)
