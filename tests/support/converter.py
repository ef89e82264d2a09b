"""llama.cpp's own converter, run on folders without weights.

It is the sdist's, in a process of its own, with stand-ins: for torch, of which it needs only
names as long as there are no tensors, and for mistral-common, of which it needs what a tekken.json
holds.
"""

from __future__ import annotations

import base64
import importlib
import importlib.machinery
import json
import os
import runpy
import subprocess
import sys
import types
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

from fixtures.fetch import fetch

SECONDS = 300


class _Torch(types.ModuleType):
    """Whatever is asked for is a class of that name."""

    inference_mode = nullcontext

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = type(name, (), {"__init__": lambda self, *a, **k: None})
        setattr(self, name, value)
        return value


class _Tekkenizer:
    """A tekken.json as mistral-common's class of this name has it."""

    def __init__(self, path: str) -> None:
        document = json.loads(Path(path).read_bytes())
        config = document["config"]
        self.n_words = config["default_vocab_size"]
        self.num_special_tokens = config["default_num_special_tokens"]
        self.version = config["version"]
        texts = [row["token_str"] for row in document["special_tokens"]]
        filled = range(len(texts), self.num_special_tokens)
        self.id_to_piece = [*texts, *(f"<SPECIAL_{id}>" for id in filled)].__getitem__
        self.unk_id, self.bos_id, self.eos_id, self.pad_id = map(
            texts.index, ("<unk>", "<s>", "</s>", "<pad>")
        )
        rows = document["vocab"][: self.n_words - self.num_special_tokens]
        ranks = {base64.b64decode(row["token_bytes"]): row["rank"] for row in rows}
        self._tekken_token2id_nospecial = ranks
        self._model = types.SimpleNamespace(_mergeable_ranks=ranks)


class _MistralTokenizer:
    @staticmethod
    def from_file(path: str) -> Any:
        tokenizer = types.SimpleNamespace(tokenizer=_Tekkenizer(path))
        return types.SimpleNamespace(instruct_tokenizer=tokenizer)


def _only_tekken(files: list[str]) -> str:
    return next(file for file in files if file.endswith("/tekken.json"))


_MISTRAL_COMMON: dict[str, dict[str, Any]] = {
    "": {},
    ".tokens": {},
    ".tokens.tokenizers": {},
    ".tokens.tokenizers.base": {
        "TokenizerVersion": types.SimpleNamespace(**{f"v{n}": f"v{n}" for n in range(1, 16)})
    },
    ".tokens.tokenizers.mistral": {"MistralTokenizer": _MistralTokenizer},
    ".tokens.tokenizers.multimodal": {"DATASET_MEAN": (), "DATASET_STD": ()},
    ".tokens.tokenizers.sentencepiece": {"SentencePieceTokenizer": type("_None", (), {})},
    ".tokens.tokenizers.tekken": {"Tekkenizer": _Tekkenizer},
    ".tokens.tokenizers.utils": {
        "_filter_valid_tokenizer_files": list,
        "get_one_valid_tokenizer_file": _only_tekken,
    },
}


def _stand_in(name: str, names: dict[str, Any]) -> None:
    module = types.ModuleType(name)
    vars(module).update(names)
    sys.modules[name] = module


@cache
def folder() -> Path:
    """The converter's folder."""
    return fetch("converter")


class ConverterRefused(Exception):
    """The converter would not do it; the text is what it said."""


def convert(source: Path, out: Path, pre: str = "") -> Path:
    """The GGUF file, without tensors, that it writes for a folder.

    pre: the pre-tokenizer's name, in place of the one that it has for a hash of ids.
    """
    command = [
        sys.executable,
        "-m",
        "tests.support.converter",
        str(folder()),
        str(source),
        str(out),
        pre,
    ]
    env = dict(os.environ, HF_HUB_OFFLINE="1", USE_TORCH="0", PYTHONWARNINGS="ignore")
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=SECONDS)
    if done.returncode:
        raise ConverterRefused(done.stderr[-20000:])
    return out


def _main(root: str, source: str, out: str, pre: str) -> None:
    torch = _Torch("torch")
    torch.__path__ = []
    torch.__version__ = "0.0.0"
    torch.__spec__ = importlib.machinery.ModuleSpec("torch", None)
    import transformers  # before the stand-in, so that it knows there is no torch

    transformers.AutoTokenizer  # noqa: B018
    sys.modules["torch"] = torch
    for name, names in _MISTRAL_COMMON.items():
        _stand_in("mistral_common" + name, names)
    sys.path.insert(0, root)
    if pre:
        base = importlib.import_module("conversion.base")
        base.TextModel.get_vocab_base_pre = lambda self, tokenizer: pre
    script = os.path.join(root, "convert_hf_to_gguf.py")
    sys.argv = [script, source, "--vocab-only", "--outfile", out, "--outtype", "f16"]
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    _main(*sys.argv[1:])
