"""Compares the server with the request and response models in vLLM's own source.

    python -m tests.server.vllm_models FOLDER             # a source tree, with vllm/entrypoints/
    python -m tests.server.vllm_models FOLDER --random 20000 --seed 7

Each random body for /tokenize and /detokenize goes to vLLM's request model and to the server: both
must accept it, or both must reject it. Each response must be valid for vLLM's response model. The
modules that define the models are imported from the source; placeholders replace all others, so
vLLM needn't be installed. The exit status is 1 if there is a difference that EXPLAINED doesn't
name.
"""

from __future__ import annotations

import argparse
import importlib.abc
import importlib.machinery
import importlib.util
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic_core import core_schema
from starlette.testclient import TestClient

from ggtok import server
from tests.support.patch import GGUF
from tests.support.vocabularies import fixture

PROTOCOL = "vllm.entrypoints.serve.tokenize.protocol"
ENGINE = "vllm.entrypoints.serve.engine.protocol"
CHAT = "vllm.entrypoints.openai.chat_completion.protocol"
LOADED = {PROTOCOL, ENGINE, CHAT, "vllm.exceptions"}


# ---- what the tests share ----

TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m.content }}"
    "{% if not (loop.last and x) %}</s>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}{{ x }}"
)


class TokenizeResponse(BaseModel):
    """vLLM's declaration, but stricter: no field may be missing or have another type."""

    model_config = ConfigDict(strict=True, extra="forbid")
    count: int
    max_model_len: int
    tokens: list[int]
    token_strs: list[str] | None


class TokenizerInfoResponse(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow")
    tokenizer_class: str


# ---- vLLM's modules ----


class _Placeholder(type):
    """A stand-in for anything that other modules define: any attribute of it is a placeholder,
    too."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return cls

    def __call__(cls, *args: object, **kwargs: object) -> Any:
        return cls


class Anything(metaclass=_Placeholder):
    def __class_getitem__(cls, item: object) -> Any:
        return cls

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: object) -> Any:
        return core_schema.any_schema()


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports the modules in LOADED from the folder, and replaces the rest of vLLM."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find_spec(self, name: str, path: object, target: object = None) -> Any:
        if name != "vllm" and not name.startswith("vllm."):
            return None
        if name in LOADED:
            file = self.folder.joinpath(*name.split(".")).with_suffix(".py")
            return importlib.util.spec_from_file_location(name, file)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: object) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        def anything(name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            return Anything

        module.__getattr__ = anything  # type: ignore[method-assign]


def load(folder: Path) -> tuple[Any, Any]:
    """Returns the vLLM modules that define the models: for /tokenize, and for errors."""
    if not folder.joinpath(*PROTOCOL.split(".")).with_suffix(".py").is_file():
        raise SystemExit(f"{folder}: has no {PROTOCOL.replace('.', '/')}.py")
    finder = Finder(folder)
    sys.meta_path.insert(0, finder)
    try:
        return importlib.import_module(PROTOCOL), importlib.import_module(ENGINE)
    finally:
        sys.meta_path.remove(finder)


# ---- requests ----

ABSENT = object()
MESSAGE = {"role": "user", "content": "Hi"}
FLAGS = (ABSENT, ABSENT, True, False, None, "no", 1, 7, [], 1.5)
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
FLAG_NAMES = (
    "add_special_tokens",
    "return_token_strs",
    "add_generation_prompt",
    "continue_final_message",
)
SHARED: dict[str, Sequence[object]] = {
    "model": (ABSENT, ABSENT, "m", None, 7),
    "add_special_tokens": FLAGS,
    "return_token_strs": FLAGS,
    "unknown": (ABSENT, 7),
}
PROMPTS = {**SHARED, "prompt": ("Hi", "", "<s>Hi\0", "é", "x" * 500, None, 7, ["Hi"], {}, True)}
CHATS = {
    **SHARED,
    "messages": ([MESSAGE], [MESSAGE], [MESSAGE, MESSAGE], None, 7, {}, "Hi"),
    "add_generation_prompt": FLAGS,
    "continue_final_message": FLAGS,
    "chat_template": (ABSENT, ABSENT, "{{ messages[0].content }}", None, 7, []),
    "chat_template_kwargs": (ABSENT, ABSENT, {"x": "y"}, {}, None, 7, "x", []),
    "tools": (ABSENT, ABSENT, [], None, [TOOL], 7, {}, "x"),
}
# Only valid ids: malformed ones get llama-server's errors, because it has the same path.
IDS: dict[str, Sequence[object]] = {
    "model": (ABSENT, "m"),
    "tokens": ([], [1, 2, 3], [0], [259] * 300),
    "unknown": (ABSENT, 7),
}


def bodies(rng: random.Random, count: int) -> Iterator[tuple[str, dict[str, object]]]:
    for _ in range(count):
        path, fields = rng.choice(
            (("/tokenize", PROMPTS), ("/tokenize", CHATS), ("/detokenize", IDS))
        )
        body = {name: rng.choice(values) for name, values in fields.items()}
        if rng.random() < 0.5:  # at most one field may be wrong
            wrong = rng.choice(list(body))
            body = {n: v if n == wrong else fields[n][0] for n, v in body.items()}
        yield path, {name: value for name, value in body.items() if value is not ABSENT}


# Differences that docs/serving.md documents. The functions say whether a body causes one.
def _coerced(body: dict[str, Any]) -> bool:
    """Whether vLLM converts a string or number in the body to a boolean."""
    return any(body.get(name) in ("no", 1) and body[name] is not True for name in FLAG_NAMES)


def _nulls(body: dict[str, Any]) -> bool:
    """Whether a flag is null, which means the default to ggtok; in vLLM, only optional fields may
    be null."""
    return any(name in body and body[name] is None for name in FLAG_NAMES)


EXPLAINED: dict[str, tuple[bool, Callable[[dict[str, Any]], bool]]] = {
    "vLLM converts types": (False, _coerced),
    "null is a default": (True, _nulls),
}


# ---- comparing ----


def fields_of(model: type[BaseModel]) -> dict[str, object]:
    return {name: field.annotation for name, field in model.model_fields.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.server.vllm_models")
    parser.add_argument("folder", type=Path, help="a source tree of vLLM")
    parser.add_argument("--random", type=int, default=3000, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(arguments)
    protocol, engine = load(args.folder)
    failures: list[str] = []
    counts: Counter[str] = Counter()

    for ours in TokenizeResponse, TokenizerInfoResponse:
        theirs = getattr(protocol, ours.__name__)
        if fields_of(ours) != fields_of(theirs):
            failures.append(f"{ours.__name__}: {fields_of(ours)} is {fields_of(theirs)} in vLLM")
        counts["fields of the tests' models"] += len(fields_of(theirs))

    requests = {
        "/tokenize": TypeAdapter(protocol.TokenizeRequest),
        "/detokenize": TypeAdapter(protocol.DetokenizeRequest),
    }
    responses = {"/tokenize": protocol.TokenizeResponse, "/detokenize": protocol.DetokenizeResponse}
    added = {"/tokenize": set(), "/detokenize": {"content"}}

    with tempfile.TemporaryDirectory() as folder:
        gguf = GGUF.read(fixture("spm"))
        gguf.set("tokenizer.chat_template", TEMPLATE.encode())
        gguf.write(Path(folder) / "model.gguf")
        app = server.app({"m": Path(folder) / "model.gguf"})
        client = TestClient(app, "http://127.0.0.1", raise_server_exceptions=False)
        info = client.get("/tokenizer_info").json()
        protocol.TokenizerInfoResponse.model_validate(info, strict=True)
        for path, body in bodies(random.Random(args.seed), args.random):
            answer = client.post(path, json=body)
            found = answer.json()
            shown = f"{path} {json.dumps(body)[:300]}\n  {answer.status_code} {answer.text[:200]}"
            try:
                requests[path].validate_python(body)
                accepted, why = True, ""
            except ValidationError as e:
                accepted, why = False, str(e)
            except protocol.VLLMValidationError as e:
                accepted, why = False, str(e)
            if answer.status_code == 200:
                try:
                    valid = responses[path].model_validate(found, strict=True)
                    if set(valid.model_extra or ()) - added[path]:
                        failures.append(f"more fields: {shown}")
                    counts[f"valid responses of {path}"] += 1
                except ValidationError as e:
                    failures.append(f"response: {shown}\n  {e}")
            elif answer.status_code in (400, 404):
                if path == "/tokenize" and ("prompt" in body or "messages" in body):
                    engine.ErrorResponse.model_validate(found, strict=True)
                    counts["valid errors"] += 1
            else:
                failures.append(f"status: {shown}")
            if accepted == (answer.status_code == 200):
                counts["accepted by both" if accepted else "refused by both"] += 1
                continue
            for name, (by_us, explains) in EXPLAINED.items():
                if by_us != accepted and explains(body):
                    counts[f"explained: {name}"] += 1
                    break
            else:
                side = "vLLM" if accepted else "the server"
                failures.append(f"only {side} accepts it: {shown}\n  {why[:300]}")
    for text in failures[:10]:
        print(text)
    for kind, n in counts.most_common():
        print(f"{n:8} {kind}")
    print(f"{len(failures):8} differences")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
