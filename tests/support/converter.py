"""llama.cpp's own converter, run on folders without weights.

It is the sdist's, with stand-ins: for torch, of which it needs only names as long as there are no
tensors, and for mistral-common, of which it needs what a tekken.json holds. It runs in a child of a
process that has what it imports, which takes longer than a run; where there is no fork, in a
process of its own.
"""

from __future__ import annotations

import atexit
import base64
import importlib
import importlib.machinery
import json
import os
import runpy
import shutil
import subprocess
import sys
import tempfile
import traceback
import types
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

from fixtures.fetch import fetch

FORKS = hasattr(os, "fork")


class _Torch(types.ModuleType):
    """Whatever is asked for is a class of that name."""

    inference_mode = nullcontext

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = type(name, (), {"__init__": lambda self, *a, **k: None})
        setattr(self, name, value)
        return value


# The special tokens of files that name none: those of mistral-common's tekken.py.
_UNNAMED = [
    *("<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]"),
    *("[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]"),
    *("[IMG_END]", "[PREFIX]", "[MIDDLE]", "[SUFFIX]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"),
    "[TOOL_CONTENT]",
]


class _Tekkenizer:
    """A tekken.json as mistral-common's class of this name has it."""

    def __init__(self, path: str) -> None:
        document = json.loads(Path(path).read_bytes())
        config = document["config"]
        self.n_words = config["default_vocab_size"]
        self.num_special_tokens = config["default_num_special_tokens"]
        self.version = config["version"]
        rows = document.get("special_tokens")
        texts = _UNNAMED if rows is None else [row["token_str"] for row in rows]
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


class ConverterRefused(Exception):
    """The converter would not do it; the text is what it said."""


@cache
def _server() -> subprocess.Popen[str]:
    """Starts a process that converts what a line of JSON says, and answers with a line."""
    env = dict(os.environ, HF_HUB_OFFLINE="1", USE_TORCH="0", PYTHONWARNINGS="ignore")
    # Where transformers copies the code that comes with a folder.
    env["HF_MODULES_CACHE"] = tempfile.mkdtemp(prefix="ggtok-converter-")
    atexit.register(shutil.rmtree, env["HF_MODULES_CACHE"], ignore_errors=True)
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.converter", str(fetch("converter"))],
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(_stop, process)
    return process


def _stop(process: subprocess.Popen[str]) -> None:
    process.communicate()  # the end of its input ends it


def convert(source: Path, out: Path, pre: str = "") -> Path:
    """The GGUF file, without tensors, that it writes for a folder.

    pre: the pre-tokenizer's name, in place of the one that it has for a hash of ids.
    """
    said = out.with_suffix(".said")
    server = _server() if FORKS else _server.__wrapped__()
    assert server.stdin is not None and server.stdout is not None
    server.stdin.write(json.dumps([str(source), str(out), str(said), pre]) + "\n")
    server.stdin.flush()
    status = server.stdout.readline() or f"{server.wait()}\n"
    if status != "0\n":
        raise ConverterRefused(said.read_text("utf-8", "replace")[-20000:])
    return out


def _serve(root: str) -> None:
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
    importlib.import_module("conversion.base")
    for line in sys.stdin:
        source, out, said, pre = json.loads(line)
        child = os.fork() if FORKS else 0
        if not child:
            _convert_and_exit(root, source, out, said, pre)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _convert_and_exit(root: str, source: str, out: str, said: str, pre: str) -> None:
    status = 1
    try:
        file = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, 1)
        os.dup2(file, 2)
        base = importlib.import_module("conversion.base")
        if pre:
            base.TextModel.get_vocab_base_pre = lambda self, tokenizer: pre
        script = os.path.join(root, "convert_hf_to_gguf.py")
        sys.argv = [script, source, "--vocab-only", "--outfile", out, "--outtype", "f16"]
        runpy.run_path(script, run_name="__main__")
        status = 0
    except SystemExit as e:
        status = 0 if e.code is None else e.code if isinstance(e.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    _serve(sys.argv[1])
