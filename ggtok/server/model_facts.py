"""The facts that endpoints report about the server's models."""

from __future__ import annotations

from typing import Any

from ggtok import Tokenizer, __version__
from ggtok.chat import api
from ggtok.errors import TemplateError
from ggtok.server import bodies
from ggtok.server.chat_prompts import media_marker
from ggtok.server.fields import anything, text_field
from ggtok.server.registry import AllowedModel, Served

BUILD = f"b11549-ggtok-{__version__}"  # names the build of llama.cpp that gives the same answers
# The most characters of a file's templates that /props compiles, which takes about 110 times their
# size in memory.
_LONGEST_TEMPLATES = 1 << 20
# The numbers of the vocabulary types, as in llama.h.
_VOCAB_TYPES = {
    name: number for number, name in enumerate("NONE SPM BPE WPM UGM RWKV PLAMO2 PLAMO3".split())
}


def architecture_number(tok: Tokenizer, name: str) -> int:
    """Returns the number in a key of the model's architecture, such as ``context_length``, or 0 if
    the file lacks the key."""
    return tok._loaded.number(name) or 0


def context_length(tok: Tokenizer) -> int:
    return tok.context_length or 0


def model_row(model: AllowedModel, served: Served | None) -> dict[str, Any]:
    """Returns a model's row in /v1/models, with null as `meta` if the model isn't loaded."""
    return {
        "id": model.shown,
        "aliases": [model.shown],
        "tags": [],
        "object": "model",
        "architecture": {"input_modalities": ["text"], "output_modalities": ["text"]},
        "created": model.created,
        "owned_by": "ggtok",
        "meta": None if served is None else _meta(served.tok),
    }


def _meta(tok: Tokenizer) -> dict[str, Any]:
    return {
        "vocab_type": _VOCAB_TYPES.get(tok.vocab_type, 0),
        "n_vocab": tok.n_tokens,
        "n_ctx": context_length(tok),
        "n_ctx_train": context_length(tok),
        "n_embd": architecture_number(tok, "embedding_length"),
    }


def details(model: AllowedModel) -> dict[str, Any]:
    """Returns a model's row in the list that Ollama's clients read."""
    return {
        "name": model.shown,
        "model": model.shown,
        "modified_at": "",
        "size": "",
        "digest": "",
        "type": "model",
        "description": "",
        "tags": [""],
        "capabilities": ["completion"],
        "parameters": "",
        "details": {
            "parent_model": "",
            "format": "gguf",
            "family": "",
            "families": [""],
            "parameter_size": "",
            "quantization_level": "",
        },
    }


def merge_model_lists(ours: dict[str, Any], theirs: Any) -> dict[str, Any]:
    """Returns the upstream server's list of models and, after its rows, those of our models that it
    lacks. If `theirs` isn't a list of models, or is nested too deeply to be written, returns
    `ours`."""
    if not isinstance(anything(theirs, "data"), list):
        return ours
    try:
        bodies.dump(theirs)
    except (TypeError, RecursionError):
        return ours
    merged = dict(theirs)
    for field, name in ("data", "id"), ("models", "name"):  # Ollama and vLLM lack `models`
        rows = theirs.get(field)
        if isinstance(rows, list):
            names = {text_field(row, name) for row in rows}
            merged[field] = rows + [row for row in ours[field] if row[name] not in names]
    return merged


def props(served: Served) -> dict[str, Any]:
    tok = served.tok
    answer = {
        "default_generation_settings": {"n_ctx": context_length(tok)},
        "total_slots": 0,
        "model_alias": served.name,
        "model_path": served.source,
        "modalities": {"vision": False, "video": False, "audio": False},
        "media_marker": media_marker(),
        "endpoint_slots": False,
        "endpoint_props": False,
        "endpoint_metrics": True,
        "ui": False,
        "ui_settings": {},
        "chat_template": "",
        "chat_template_caps": {},
        "bos_token": piece(tok, tok.bos_id) or "",
        "eos_token": piece(tok, tok.eos_id) or "",
        "build_info": BUILD,
        "is_sleeping": False,
        "cors_proxy_enabled": False,
    }
    if sum(map(len, tok.chat_templates.values())) > _LONGEST_TEMPLATES:
        answer["chat_template"] = tok.chat_template or ""
        return answer
    try:
        chat = api.server_chat(tok._loaded)
    except TemplateError:  # llama-server wouldn't start, but here other endpoints work
        answer["chat_template"] = tok.chat_template or ""
        return answer
    answer["chat_template"] = chat.facts_for(has_tools=False).source
    # If there is a separate template for tools, report that template's capabilities.
    preferred = chat.facts_for(has_tools=True)
    answer["chat_template_caps"] = {f"supports_{k}": v for k, v in preferred.caps.items()}
    if "tool_use" in tok.chat_templates:
        answer["chat_template_tool_use"] = preferred.source
    return answer


def piece(tok: Tokenizer, id: int | None) -> str | None:
    return None if id is None else tok.token_to_piece(id).decode("utf-8", "replace")
