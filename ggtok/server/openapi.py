"""Generates the OpenAPI document, ``/openapi.json``, from a row for each path."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, NamedTuple

from ggtok import __version__
from ggtok.server.endpoints import Call, Endpoint

Json = dict[str, Any]

JSON_TYPE = "application/json"
STRING, INTEGER, NUMBER = ({"type": kind} for kind in ("string", "integer", "number"))
BOOLEAN, OBJECT, ANY = {"type": "boolean"}, {"type": "object"}, dict[str, Any]()


def array(items: Json) -> Json:
    return {"type": "array", "items": items}


def fields(required: str = "", **properties: Json) -> Json:
    """Returns the schema for an object. `required` is a list of its required fields, separated by
    spaces."""
    made: Json = {"type": "object", "properties": properties}
    return {**made, "required": required.split()} if required else made


def answer(**properties: Json) -> Json:
    """Returns the schema for an object in which all of these fields are required."""
    return fields(" ".join(properties), **properties)


def exactly(required: str = "", **properties: Json) -> Json:
    """Returns the schema for an object that has no fields except these."""
    return {**fields(required, **properties), "additionalProperties": False}


def token_count_schema(**properties: Json) -> Json:
    """Returns the schema for an answer that contains a number of tokens, with the optional field
    `uncounted_parts`."""
    made = answer(**properties)
    made["properties"]["uncounted_parts"] = {
        "type": "integer",
        "description": "images, audio and video whose tokens aren't included",
    }
    return made


def either(*kinds: Json) -> Json:
    return {"anyOf": list(kinds)}


def nullable(kind: Json) -> Json:
    return either(kind, {"type": "null"})


IDS = array(INTEGER)
COUNT, POSITIVE = ({"type": "integer", "minimum": least} for least in (0, 1))
PIECES = array(answer(id=INTEGER, piece=either(STRING, IDS)))
MODEL = {"type": "string", "description": "an alias, a path or a name; optional for one model"}
MESSAGES = array(OBJECT)
_FLAGS = {"add_special": BOOLEAN, "parse_special": BOOLEAN}
_HELLO = [{"role": "user", "content": "Hello"}]


class PathDescription(NamedTuple):
    """The description of a path.

    Attributes:
        api: the program that defines the endpoint.
        request: the schema of the body; None for GET.
        example: an example of a body.
        media_type: the media type of the response.
        chooses: whether the URL may have the parameter `model`.
    """

    api: str
    summary: str
    response: Json
    request: Json | None = None
    example: Json | None = None
    media_type: str = JSON_TYPE
    chooses: bool = False


_LLAMA, _VLLM, _OLLAMA, _KOBOLD, _OWN = "llama-server", "vLLM", "Ollama", "KoboldCpp", "ggtok"
_PYTHON, _TEXTGEN, _TABBY = "llama-cpp-python", "text-generation-webui", "tabbyAPI"
_HEALTH = PathDescription(_LLAMA, "Whether the server answers", answer(status=STRING))
_MODELS = PathDescription(
    _LLAMA,
    "The models",
    answer(object=STRING, models=array(OBJECT), data=array(answer(id=STRING, object=STRING))),
)
_PAGE = PathDescription(_OWN, "A page that shows the vocabularies", STRING, media_type="text/html")
_CHAT = fields("messages", model=MODEL, messages=MESSAGES, tools=array(OBJECT))
_CHAT_TOKENS = PathDescription(
    _LLAMA,
    "Tokens of a request to /v1/chat/completions",
    token_count_schema(object=STRING, input_tokens=INTEGER),
    _CHAT,
    {"messages": _HELLO},
)
_RESPONSE_TOKENS = PathDescription(
    _LLAMA,
    "Tokens of a request to /v1/responses",
    token_count_schema(object=STRING, input_tokens=INTEGER),
    fields("input", model=MODEL, input=either(STRING, array(OBJECT)), instructions=STRING),
    {"input": "Hello"},
)
ROWS: dict[str, PathDescription] = {
    "/health": _HEALTH,
    "/v1/health": _HEALTH,
    "/tokenize": PathDescription(
        f"{_LLAMA}, {_VLLM}",
        "Ids of a text: as llama-server for `content`, as vLLM for `prompt` or `messages`",
        either(
            answer(tokens=either(IDS, PIECES), count=INTEGER),
            token_count_schema(
                tokens=IDS,
                count=INTEGER,
                max_model_len=INTEGER,
                token_strs=nullable(array(STRING)),
            ),
        ),
        either(
            fields(
                "content",
                model=MODEL,
                content=either(STRING, array(either(STRING, INTEGER))),
                with_pieces=BOOLEAN,
                **_FLAGS,
            ),
            fields(
                "prompt",
                model=MODEL,
                prompt=STRING,
                add_special_tokens=BOOLEAN,
                return_token_strs=BOOLEAN,
            ),
            fields(
                "messages",
                model=MODEL,
                messages=MESSAGES,
                tools=array(OBJECT),
                add_special_tokens=BOOLEAN,
                add_generation_prompt=BOOLEAN,
                continue_final_message=BOOLEAN,
                chat_template=STRING,
                chat_template_kwargs=OBJECT,
                return_token_strs=BOOLEAN,
            ),
        ),
        {"content": "Hello", "add_special": True},
    ),
    "/detokenize": PathDescription(
        f"{_LLAMA}, {_VLLM}",
        "The text of ids: their pieces, joined",
        answer(content=STRING, prompt=STRING),
        fields("tokens", model=MODEL, tokens=IDS),
        {"tokens": [1, 2, 3]},
    ),
    "/apply-template": PathDescription(
        _LLAMA,
        "The prompt of a request to /v1/chat/completions",
        answer(prompt=STRING),
        _CHAT,
        {"messages": _HELLO},
    ),
    "/v1/chat/completions/input_tokens": _CHAT_TOKENS,
    "/chat/completions/input_tokens": _CHAT_TOKENS,
    "/v1/responses/input_tokens": _RESPONSE_TOKENS,
    "/responses/input_tokens": _RESPONSE_TOKENS,
    "/v1/messages/count_tokens": PathDescription(
        _LLAMA,
        "Tokens of a request to Anthropic's /v1/messages",
        token_count_schema(input_tokens=INTEGER),
        fields(
            "messages",
            model=MODEL,
            messages=MESSAGES,
            system=either(STRING, array(OBJECT)),
            tools=array(OBJECT),
        ),
        {"messages": _HELLO, "system": "Be brief."},
    ),
    "/v1/models": _MODELS,
    "/models": _MODELS,
    "/props": PathDescription(
        _LLAMA,
        "A model's chat template and special tokens",
        answer(chat_template=STRING, bos_token=STRING, eos_token=STRING, build_info=STRING),
        chooses=True,
    ),
    "/tokenizer_info": PathDescription(
        _VLLM,
        "As much of tokenizer_config.json as the file has",
        answer(tokenizer_class=STRING, eos_token=nullable(STRING), bos_token=nullable(STRING)),
        chooses=True,
    ),
    "/api/tokenize": PathDescription(
        _OLLAMA,
        "Ids of a text, as proposed for Ollama",
        answer(model=STRING, tokens=IDS, total_duration=INTEGER, load_duration=INTEGER),
        fields("content", model=MODEL, content=STRING),
        {"content": "Hello"},
    ),
    "/api/detokenize": PathDescription(
        _OLLAMA,
        "The text of ids, as proposed for Ollama",
        answer(model=STRING, content=STRING, total_duration=INTEGER, load_duration=INTEGER),
        fields("tokens", model=MODEL, tokens=IDS),
        {"tokens": [1, 2, 3]},
    ),
    "/api/extra/tokencount": PathDescription(
        _KOBOLD,
        "The number of a prompt's tokens",
        answer(value=INTEGER, ids=IDS),
        fields("prompt", model=MODEL, prompt=STRING, special=BOOLEAN),
        {"prompt": "Hello"},
    ),
    "/extras/tokenize": PathDescription(
        _PYTHON,
        "Ids of a text",
        answer(tokens=IDS),
        fields("input", model=MODEL, input=STRING),
        {"input": "Hello"},
    ),
    "/extras/tokenize/count": PathDescription(
        _PYTHON,
        "The number of a text's tokens",
        answer(count=INTEGER),
        fields("input", model=MODEL, input=STRING),
        {"input": "Hello"},
    ),
    "/extras/detokenize": PathDescription(
        _PYTHON,
        "The text of ids, without control tokens",
        answer(text=STRING),
        fields("tokens", model=MODEL, tokens=IDS),
        {"tokens": [1, 2]},
    ),
    "/v1/internal/encode": PathDescription(
        _TEXTGEN,
        "Ids of a text",
        answer(tokens=IDS, length=INTEGER),
        fields("text", model=MODEL, text=STRING),
        {"text": "Hello"},
    ),
    "/v1/internal/decode": PathDescription(
        _TEXTGEN,
        "The text of ids",
        answer(text=STRING),
        fields("tokens", model=MODEL, tokens=IDS),
        {"tokens": [1, 2]},
    ),
    "/v1/internal/token-count": PathDescription(
        _TEXTGEN,
        "The number of a text's tokens",
        answer(length=INTEGER),
        fields("text", model=MODEL, text=STRING),
        {"text": "Hello"},
    ),
    "/v1/token/encode": PathDescription(
        _TABBY,
        "Ids of a text, or of messages",
        answer(tokens=IDS, length=INTEGER),
        fields(
            "text",
            model=MODEL,
            text=either(STRING, MESSAGES),
            add_bos_token=BOOLEAN,
            encode_special_tokens=BOOLEAN,
            template_vars=OBJECT,
            chat_template_kwargs=OBJECT,
        ),
        {"text": "Hello"},
    ),
    "/v1/token/decode": PathDescription(
        _TABBY,
        "The text of ids",
        answer(text=STRING),
        fields("tokens", model=MODEL, tokens=IDS, decode_special_tokens=BOOLEAN),
        {"tokens": [1, 2]},
    ),
    "/v1/ggtok/encode": PathDescription(
        _OWN,
        "Ids of many texts",
        answer(ids=array(IDS)),
        exactly("texts", model=MODEL, texts=array(STRING), **_FLAGS),
        {"texts": ["Hello", "there"]},
    ),
    "/v1/ggtok/count": PathDescription(
        _OWN,
        "Numbers of tokens of many texts",
        answer(counts=IDS, total=INTEGER),
        exactly("texts", model=MODEL, texts=array(STRING), **_FLAGS),
        {"texts": ["Hello", "there"]},
    ),
    "/v1/ggtok/count_chat": PathDescription(
        _OWN,
        "The number of tokens of a conversation, and the model's context length",
        token_count_schema(count=INTEGER, context_length=nullable(INTEGER)),
        exactly(
            "messages",
            model=MODEL,
            messages=MESSAGES,
            tools=array(OBJECT),
            like={"type": "string", "enum": ["llama.cpp", "transformers"]},
            add_generation_prompt=BOOLEAN,
            continue_final_message=BOOLEAN,
            template=STRING,
            enable_thinking=BOOLEAN,
            tool_choice=STRING,
            parallel_tool_calls=BOOLEAN,
            response_format=OBJECT,
            reasoning_format=STRING,
            reasoning_effort=STRING,
            chat_template_kwargs=OBJECT,
            trusted=BOOLEAN,
            user_defined={"type": "string", "enum": ["parse", "plain"]},
            image_tokens=COUNT,
        ),
        {"messages": _HELLO},
    ),
    "/v1/ggtok/decode": PathDescription(
        _OWN,
        "Texts of many lists of ids",
        answer(texts=array(STRING)),
        exactly(
            "ids",
            model=MODEL,
            ids=array(IDS),
            remove_special=BOOLEAN,
            unparse_special=BOOLEAN,
            clean_spaces=nullable(BOOLEAN),
        ),
        {"ids": [[1, 2], [3]]},
    ),
    "/v1/ggtok/spans": PathDescription(
        _OWN,
        "Ids of a text, and the span of each token",
        answer(ids=IDS, spans=array(IDS)),
        exactly(
            "text",
            model=MODEL,
            text=STRING,
            unit={"type": "string", "enum": ["byte", "char", "utf16"]},
            **_FLAGS,
        ),
        {"text": "Hello there", "unit": "char"},
    ),
    "/v1/ggtok/truncate": PathDescription(
        _OWN,
        "The longest beginning (or end) of a text that has at most n tokens",
        answer(text=STRING, n_tokens=INTEGER),
        exactly(
            "text n",
            model=MODEL,
            text=STRING,
            n=COUNT,
            side={"type": "string", "enum": ["right", "left"]},
            add_special=BOOLEAN,
        ),
        {"text": "Hello there", "n": 4},
    ),
    "/v1/ggtok/chunks": PathDescription(
        _OWN,
        "A text in chunks of at most n tokens; start and end are code points",
        answer(chunks=array(answer(start=INTEGER, end=INTEGER, n_tokens=INTEGER))),
        exactly(
            "text n",
            model=MODEL,
            text=STRING,
            n=POSITIVE,
            overlap=COUNT,
            prefix=STRING,
            add_special=BOOLEAN,
            at=array({"type": "string", "minLength": 1}),
            texts={"type": "boolean", "description": "whether each chunk has its text"},
        ),
        {"text": "Hello there, and there, and there", "n": 8, "texts": True},
    ),
    "/v1/ggtok/explain": PathDescription(
        _OWN,
        "How a text becomes ids, step by step; at most 4 KiB",
        answer(ids=IDS, fragments=array(OBJECT)),
        exactly("text", model=MODEL, text=STRING, **_FLAGS),
        {"text": "Hello there"},
    ),
    "/v1/ggtok/doctor": PathDescription(
        _OWN,
        "What is wrong or surprising in a model's tokenizer",
        answer(findings=array(answer(code=STRING, severity=STRING, title=STRING))),
        exactly(model=MODEL),
        {},
    ),
    "/v1/ggtok/vocabulary": PathDescription(
        _OWN,
        "A model's vocabulary, without its weights, as a GGUF file",
        {"type": "string", "format": "binary"},
        media_type="application/octet-stream",
        chooses=True,
    ),
    "/ggtok": _PAGE,
    "/": _PAGE,
    "/openapi.json": PathDescription(_OWN, "This document", OBJECT),
    "/docs": PathDescription(_OWN, "This document as a page", STRING, media_type="text/html"),
}
ERROR = answer(error=answer(code=INTEGER, message=STRING, type=STRING))
# The checks before an endpoint answer with ERROR, whichever API the endpoint belongs to.
_SCHEMAS = {
    "Error": ERROR,
    "OllamaError": either(ERROR, answer(error=STRING)),
    "KoboldCppError": either(ERROR, answer(value=INTEGER, error=STRING)),
}
_ERRORS = {_OLLAMA: "OllamaError", _KOBOLD: "KoboldCppError"}


def openapi(call: Call) -> object:
    return document()


@cache
def document() -> Json:
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "ggtok",
            "version": __version__,
            "description": "Tokenizes and counts as llama.cpp does, without a model's weights.",
        },
        "paths": {path: _path(path, row) for path, row in ROWS.items()},
        "components": {
            "schemas": _SCHEMAS,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"key": []}],
    }


def _path(path: str, row: PathDescription) -> Json:
    error = {"$ref": f"#/components/schemas/{_ERRORS.get(row.api, 'Error')}"}
    refusal = {"description": "why there is no answer", "content": _json(error)}
    operation: Json = {
        "operationId": re.sub(r"[/.-]", "_", path.strip("/")) or "home",
        "tags": row.api.split(", "),
        "summary": row.summary,
        "responses": {
            "200": {
                "description": "the answer",
                "content": {row.media_type: {"schema": row.response}},
            },
            "default": refusal,
        },
    }
    if row.chooses:
        operation["parameters"] = [{"name": "model", "in": "query", "schema": MODEL}]
    if row.request is None:
        return {"get": operation}
    operation["requestBody"] = {
        "required": True,
        "content": _json(row.request, example=row.example),
    }
    return {"post": operation}


def _json(schema: Json, **more: object) -> Json:
    return {JSON_TYPE: {"schema": schema, **more}}


ENDPOINTS = (Endpoint("GET", ("/openapi.json",), openapi, light=True, public=True),)
