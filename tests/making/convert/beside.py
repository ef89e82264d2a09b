"""python -m tests.making.convert.beside: llama.cpp's converter and ours on real tokenizers.

    python -m tests.making.convert.beside                    # all
    python -m tests.making.convert.beside tekken-240911      # some

Each is put into a folder as a model's would be, with what its package has beside it. Both write a
file; prints the `tokenizer.*` keys that differ. Exit status 1 if any does, or if only one refuses.
The packages are those of tests.making.convert.real.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import ggtok
from tests.making.convert import real, sources
from tests.support import converter
from tests.support.patch import GGUF

SIZES = {
    "num_hidden_layers": 1,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-5,
    "layer_norm_eps": 1e-5,
    "d_model": 64,
    "d_ff": 128,
    "d_kv": 16,
    "num_heads": 4,
    "num_layers": 1,
    "n_positions": 512,
    "layer_norm_epsilon": 1e-5,
    "relative_attention_num_buckets": 32,
    "decoder_start_token_id": 0,
}
QWEN = """
import base64
from pathlib import Path

from transformers import PreTrainedTokenizer


class QWenTokenizer(PreTrainedTokenizer):
    def __init__(self, **options):
        lines = (Path(__file__).parent / "qwen.tiktoken").read_bytes().splitlines()
        rows = [line.split() for line in lines]
        self.mergeable_ranks = {base64.b64decode(token): int(rank) for token, rank in rows}
        texts = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
        texts += [f"<|extra_{i}|>" for i in range(205)]
        self.special_tokens = {text: len(rows) + i for i, text in enumerate(texts)}
        super().__init__(**options)

    vocab_size = property(lambda self: len(self.mergeable_ranks))

    def get_vocab(self):
        return self.mergeable_ranks | self.special_tokens

    def _convert_token_to_id(self, token):
        return self.get_vocab()[token]
"""


def folder(path: Path, arch: str, kind: str, **config: Any) -> Path:
    path.mkdir()
    data = {"architectures": [arch], "model_type": kind, **SIZES, **config}
    sources.write(path / "config.json", data)
    return path


def add_qwen(path: Path) -> None:
    """The class that comes with Qwen 1, as far as the converter asks for it."""
    code = QWEN.replace("Path(__file__).parent", f"Path({str(path)!r})")  # which is copied
    sources.write(path / "tokenization_qwen.py", code)
    config: dict[str, Any] = {"tokenizer_class": "QWenTokenizer", "add_bos_token": False}
    config["auto_map"] = {"AutoTokenizer": ["tokenization_qwen.QWenTokenizer", None]}
    sources.write(path / "tokenizer_config.json", config)


def written(path: Path, to: Path, pre: str | None) -> tuple[ggtok.Vocabulary, GGUF, GGUF]:
    """Our conversion like llama.cpp's, the tokenizer keys in its file, and the converter's own."""
    v = ggtok.convert(path, like="llama.cpp", pre=pre)
    v.save(to / "like.gguf")
    mine = _keys(to / "like.gguf")
    return v, mine, _keys(converter.convert(path, to / "real.gguf", pre or ""))


def _keys(path: Path) -> GGUF:
    gguf = GGUF.read(path)
    gguf.raw = {key: raw for key, raw in gguf.raw.items() if key.startswith(b"tokenizer.")}
    return gguf


# ---- real tokenizers ----


class Model(NamedTuple):
    arch: str
    kind: str  # config.json's model_type
    vocab_size: int
    file: str = ""  # the source's name in a model's folder, if its package has another
    pre: str | None = None


def _llama(vocab_size: int, file: str = "tokenizer.model") -> Model:
    return Model("LlamaForCausalLM", "llama", vocab_size, file)


_TEKKEN = Model("MistralForCausalLM", "mistral", 131072, "tekken.json")
MODELS: dict[str, Model] = {
    "tekken-240718": _TEKKEN,
    "tekken-240911": _TEKKEN,
    "qwen": Model("QWenLMHeadModel", "qwen", 151936, "qwen.tiktoken", pre="qwen2"),
    "qwen3": Model("Qwen3ForCausalLM", "qwen3", 151936),
    "llama3": _llama(128256, ""),
    "llama3_1": _llama(128256, ""),
    "llama2": _llama(32000, ""),
    "deepseek_v3": Model("DeepseekV3ForCausalLM", "deepseek_v3", 129280),
    "gptoss": Model("GptOssForCausalLM", "gpt_oss", 201088),
    "gemma3": Model("Gemma3ForCausalLM", "gemma3_text", 262208),
    "mistral-v1": _llama(32000),
    "mistral-v2": _llama(32768),
    "mistral-v3": _llama(32768),
    "mistral-v7": _llama(32768),
    "rwkv": Model("Rwkv6ForCausalLM", "rwkv6", 65536, "rwkv_vocab_v20230424.txt"),
    "botchan-unigram": Model("T5ForConditionalGeneration", "t5", 1100, "spiece.model"),
    "kyoto": Model("T5ForConditionalGeneration", "t5", 8100, "spiece.model"),
}


def _placed(name: str, work: Path) -> Path:
    model = MODELS[name]
    sizes = {"head_size": 16, "rescale_every": 6} if model.kind == "rwkv6" else {}
    path = folder(work / "model", model.arch, model.kind, vocab_size=model.vocab_size, **sizes)
    (work / "package").mkdir()
    source = real.unpack(real.REAL[name], work / "package")
    for file in [source] if source.is_file() else source.iterdir():
        is_source = file.name == (real.REAL[name].name or Path(real.REAL[name].files[0]).name)
        shutil.copy(file, path / (model.file if is_source and model.file else file.name))
    if model.kind == "qwen":
        add_qwen(path)
    elif not (path / "tokenizer_config.json").exists():
        sources.write(path / "tokenizer_config.json", {})
    return path


def result_of(name: str) -> tuple[str, bool]:
    """In words, and whether both did the same."""
    with tempfile.TemporaryDirectory(prefix="ggtok-beside-") as work:
        path = _placed(name, Path(work))
        refused = []
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ggtok.VocabWarning)
                _, mine, theirs = written(path, Path(work), MODELS[name].pre)
        except ggtok.GGTokError as e:
            refused.append(f"ggtok: {e}")
            try:
                converter.convert(path, Path(work) / "real.gguf", MODELS[name].pre or "")
            except converter.ConverterRefused as other:
                refused.append(f"the converter: {str(other).strip()[-300:]}")
        except converter.ConverterRefused as e:
            refused.append(f"the converter: {str(e).strip()[-1500:]}")
        if refused:
            return f"refused by {'; '.join(refused)}", len(refused) == 2
    differ = [
        f"{key.decode()} ({'ours' if raw is None else 'theirs' if other is None else 'values'})"
        for key in {**theirs.raw, **mine.raw}
        if (raw := theirs.raw.get(key)) != (other := mine.raw.get(key))
    ]
    if not differ and list(mine.raw) != list(theirs.raw):
        differ = ["the keys' order"]
    return f"{len(theirs.raw)} keys, differ: {', '.join(differ) or 'none'}", not differ


def main() -> int:
    clean = True
    for name in real.names_given("python -m tests.making.convert.beside", __doc__, MODELS):
        result, same = result_of(name)
        print(f"{name}: {result}", flush=True)
        clean &= same
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(main())
