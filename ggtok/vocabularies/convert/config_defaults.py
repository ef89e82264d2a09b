"""What config.json needn't say: transformers' configurations, which llama.cpp's converter reads
the file with, have defaults."""

from __future__ import annotations

from ggtok.vocabularies.convert.folder import Folder

# Of model_type, for the architectures that are known here. Models with code of their own have none.
VOCAB_SIZES = {
    "apertus": 131072,
    "arcee": 32000,
    "bert": 30522,
    "bloom": 250880,
    "cohere": 256000,
    "cohere2": 256000,
    "deepseek_v2": 102400,
    "deepseek_v3": 129280,
    "falcon": 65024,
    "gemma2": 256000,
    "gemma3": 262208,
    "gemma3_text": 262208,
    "gemma4": 262144,
    "gemma4_text": 262144,
    "gpt2": 50257,
    "gpt_bigcode": 50257,
    "gpt_neox": 50432,
    "gpt_oss": 201088,
    "granite": 32000,
    "granitemoe": 32000,
    "llama": 32000,
    "llama4": 202048,
    "llama4_text": 202048,
    "ministral": 32000,
    "mistral": 32000,
    "mixtral": 32000,
    "mt5": 250112,
    "olmo": 50304,
    "olmo2": 50304,
    "olmo3": 50304,
    "phi": 51200,
    "qwen2": 151936,
    "qwen2_moe": 151936,
    "qwen3": 151936,
    "qwen3_moe": 151936,
    "roberta": 50265,
    "smollm3": 128256,
    "starcoder2": 49152,
    "t5": 32128,
    "umt5": 250112,
    "xlm-roberta": 30522,
}


def default_vocab_size(folder: Folder) -> int | None:
    kind = folder.config.get("model_type")
    return VOCAB_SIZES.get(kind) if isinstance(kind, str) else None
