"""Creates the files in a folder for transformers' ``AutoTokenizer``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ggtok.errors import VocabError
from ggtok.tokenizer import TokenAttr, Tokenizer
from ggtok.vocabularies.contents import Contents, Differs
from ggtok.vocabularies.export.to_tokenizer_json import tokenizer_json
from ggtok.vocabularies.gguf_writer import tokenizer_of

Json = dict[str, Any]
TEMPLATE, TEMPLATES = "chat_template.jinja", "additional_chat_templates"
_WHOLE = TokenAttr.CONTROL | TokenAttr.USER_DEFINED | TokenAttr.UNKNOWN


def pretrained_files(vocabulary: Contents, differs: Differs) -> dict[str, bytes]:
    """Returns the files by name. `differs` collects texts for which transformers' ids differ.

    Raises:
        VocabError: tokenizers couldn't produce llama.cpp's ids, or a template's name isn't the
            name of a file.
    """
    tok = tokenizer_of(vocabulary)
    more = {f"{name}_token": vocabulary.special_ids.get(name) for name in _MORE}
    names = special_names(tok) | _found_whole(tok, more)
    tokens = {name: _token(tok, id) for name, id in names.items()}
    files = {
        "tokenizer.json": tokenizer_json(vocabulary, differs),
        "tokenizer_config.json": _json(_config(vocabulary, tok) | tokens),
        "special_tokens_map.json": _json({k: _without_type(token) for k, token in tokens.items()}),
        "generation_config.json": _json(_generation(tok, names)),
    }
    return files | _templates(vocabulary)


# Special tokens that transformers' classes don't name. It reads any key that ends with _token.
_MORE = ("eot", "eom", "fim_pre", "fim_suf", "fim_mid", "fim_pad", "fim_rep", "fim_sep")


def special_names(tok: Tokenizer) -> dict[str, int]:
    """Returns the ids of transformers' named special tokens (``"bos_token"``...).

    Only tokens that llama.cpp parses in a text are included, since transformers parses all named
    tokens. If a file has no BOS, llama.cpp's default for BOS may be any token.
    """
    ids = {
        "bos_token": None if tok.vocab_type == "WPM" else tok.bos_id,
        "eos_token": tok.eos_id,
        "unk_token": tok.unk_id,
        "sep_token": tok.sep_id,
        "pad_token": tok.pad_id,
        "cls_token": tok.bos_id if tok.vocab_type == "WPM" else None,
        "mask_token": tok.mask_id,
    }
    return _found_whole(tok, ids)


def _found_whole(tok: Tokenizer, ids: Mapping[str, int | None]) -> dict[str, int]:
    return {name: id for name, id in ids.items() if id is not None and tok.token_attr(id) & _WHOLE}


def input_names(tok: Tokenizer) -> list[str]:
    """Returns the names of the inputs to models with this vocabulary: BERT has token types, too."""
    types = ["token_type_ids"] if tok.vocab_type == "WPM" else []
    return ["input_ids", *types, "attention_mask"]


def context_length(keys: Any) -> int | None:
    """Returns the model's context length from its metadata, or None."""
    length = keys.get(f"{keys.get('general.architecture', 'llama')}.context_length")
    return length if isinstance(length, int) and length > 0 else None


def _token(tok: Tokenizer, id: int) -> str | Json:
    """Returns a token's text or, if the token strips white space, its text with flags."""
    text, attr = tok.token_text(id).decode("utf-8", "replace"), tok.token_attr(id)
    strips = attr & TokenAttr.LSTRIP, attr & TokenAttr.RSTRIP
    if not any(strips):
        return text
    return {
        "__type": "AddedToken",
        "content": text,
        "lstrip": bool(strips[0]),
        "rstrip": bool(strips[1]),
        "normalized": False,
        "single_word": False,
        "special": not attr & TokenAttr.USER_DEFINED,
    }


def _without_type(token: str | Json) -> str | Json:
    """Converts a token to the form in special_tokens_map.json, which has no types."""
    if isinstance(token, str):
        return token
    return {name: value for name, value in token.items() if name != "__type"}


def _config(vocabulary: Contents, tok: Tokenizer) -> Json:
    config: Json = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_input_names": input_names(tok),
        "clean_up_tokenization_spaces": False,
    }
    keys = {"general.architecture": vocabulary.architecture, **vocabulary.keys}
    length = context_length(keys)
    return config if length is None else config | {"model_max_length": length}


def _generation(tok: Tokenizer, names: dict[str, int]) -> Json:
    """Returns the contents of generation_config.json. The EOS ids in it are those of all tokens
    that end generation."""
    config: Json = {
        f"{name}_id": names[name] for name in ("bos_token", "pad_token") if name in names
    }
    eos = tok.eog_ids & {tok.eos_id}
    ends = [*eos, *sorted(tok.eog_ids - eos)]
    return config | {"eos_token_id": ends} if ends else config


def _templates(vocabulary: Contents) -> dict[str, bytes]:
    files = {}
    if vocabulary.chat_template is not None:
        files[TEMPLATE] = _encode_template(vocabulary.chat_template)
    for name, template in vocabulary.chat_templates.items():
        if not name or name[0] == "." or set(name) & set('/\\:\0<>"|?*'):
            raise VocabError(f"the chat template {name!r} has a name that no file can have")
        files[f"{TEMPLATES}/{name}.jinja"] = _encode_template(template)
    return files


def _encode_template(template: str) -> bytes:
    return template.encode("utf-8", "surrogateescape")


def _json(value: Json) -> bytes:
    return json.dumps(value, indent=2, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
