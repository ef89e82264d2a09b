"""llama.cpp's own converter, run on folders without weights.

It is the sdist's, in a process of its own, with stand-ins: for torch, of which it needs only
names as long as there are no tensors, and for mistral-common, of which it needs what a tekken.json
holds.
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
    said = out.with_suffix(".said")
    request = json.dumps([str(source), str(out), pre, str(said)])
    if hasattr(os, "fork"):
        code = _asked(request)
    else:
        code = subprocess.run([*_COMMAND, request], env=_environment()).returncode
    if code:
        raise ConverterRefused(said.read_text("utf-8", "replace")[-20000:])
    return out


_COMMAND = (sys.executable, "-m", "tests.support.converter")


def _environment() -> dict[str, str]:
    # Where transformers keeps the code that comes with a folder.
    modules = tempfile.mkdtemp(prefix="ggtok-converter-")
    atexit.register(shutil.rmtree, modules, ignore_errors=True)
    own = {"HF_HUB_OFFLINE": "1", "USE_TORCH": "0", "PYTHONWARNINGS": "ignore"}
    return {**os.environ, **own, "HF_MODULES_CACHE": modules}


@cache
def _server() -> subprocess.Popen[str]:
    """A process that has imported what the converter needs, which takes seconds."""
    pipe = subprocess.PIPE
    child = subprocess.Popen(_COMMAND, env=_environment(), stdin=pipe, stdout=pipe, text=True)
    atexit.register(child.communicate)  # which ends it
    return child


def _asked(request: str) -> int:
    child = _server()
    assert child.stdin is not None and child.stdout is not None
    child.stdin.write(request + "\n")
    child.stdin.flush()
    return int(child.stdout.readline())


# ---- in the child ----


def _serve() -> None:
    """Answers each request, a line, with the exit status of a fork that does it."""
    _import()
    for request in sys.stdin:
        pid = os.fork()
        if not pid:
            os._exit(_run(*json.loads(request)))
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _import() -> None:
    torch = _Torch("torch")
    torch.__path__ = []
    torch.__version__ = "0.0.0"
    torch.__spec__ = importlib.machinery.ModuleSpec("torch", None)
    import transformers  # before the stand-in, so that it knows there is no torch

    transformers.AutoTokenizer, transformers.PreTrainedTokenizerFast  # noqa: B018
    sys.modules["torch"] = torch
    for name, names in _MISTRAL_COMMON.items():
        _stand_in("mistral_common" + name, names)
    sys.path.insert(0, str(folder()))
    importlib.import_module("conversion.base")


def _run(source: str, out: str, pre: str, said: str) -> int:
    """The exit status; what is printed goes to the file `said`."""
    with open(said, "w", encoding="utf-8") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    if pre:
        base = importlib.import_module("conversion.base")
        base.TextModel.get_vocab_base_pre = lambda self, tokenizer: pre
    script = os.path.join(folder(), "convert_hf_to_gguf.py")
    sys.argv = [script, source, "--vocab-only", "--outfile", out, "--outtype", "f16"]
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as e:
        return int(e.code or 0)
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stderr.flush()
    return 0


if __name__ == "__main__":
    if len(sys.argv) == 1:
        _serve()
    else:
        _import()
        sys.exit(_run(*json.loads(sys.argv[1])))
