"""The tokenizer classes of transformers: their special tokens, and the models that use them.

A class adds its default special tokens to the vocabulary unless tokenizer_config.json names others.
Classes that aren't in the table have no defaults, as transformers' TokenizersBackend.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_END = "<|endoftext|>"
_GPT2 = dict.fromkeys(("bos", "eos", "unk"), _END)
_QWEN = dict.fromkeys(("eos", "unk", "pad"), _END)
_LLAMA = {"bos": "<s>", "eos": "</s>", "unk": "<unk>"}
_ROBERTA = {
    **_LLAMA,
    "sep": "</s>",
    "pad": "<pad>",
    "cls": "<s>",
    "mask": "<mask>",
}
_BERT = {name: f"[{name.upper()}]" for name in ("unk", "sep", "pad", "cls", "mask")}

# The default special tokens of each class, by transformers' names without "_token".
DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "GPT2Tokenizer": _GPT2,
    "CodeGenTokenizer": _GPT2,
    "WhisperTokenizer": _GPT2,
    "GPTNeoXTokenizer": {**_GPT2, "pad": "<|padding|>"},
    "Qwen2Tokenizer": _QWEN,
    "Qwen3_5Tokenizer": _QWEN,
    "LlamaTokenizer": _LLAMA,
    "CodeLlamaTokenizer": {
        **_LLAMA,
        "prefix": "\u2581<PRE>",
        "middle": "\u2581<MID>",
        "suffix": "\u2581<SUF>",
        "eot": "\u2581<EOT>",
        "fill": "<FILL_ME>",
    },
    "GemmaTokenizer": {
        "bos": "<bos>",
        "eos": "<eos>",
        "unk": "<unk>",
        "pad": "<pad>",
        "mask": "<mask>",
    },
    "CohereTokenizer": {
        "bos": "<BOS_TOKEN>",
        "eos": "<|END_OF_TURN_TOKEN|>",
        "unk": "<UNK>",
        "sep": "<SEP>",
        "pad": "<PAD>",
        "cls": "<CLS>",
        "mask": "<MASK_TOKEN>",
    },
    "T5Tokenizer": {"eos": "</s>", "unk": "<unk>", "pad": "<pad>"},
    **dict.fromkeys(("XLMRobertaTokenizer", "RobertaTokenizer", "BartTokenizer"), _ROBERTA),
    **dict.fromkeys(("LEDTokenizer", "LongformerTokenizer", "MvpTokenizer"), _ROBERTA),
    **dict.fromkeys(
        (
            "BertTokenizer",
            "ConvBertTokenizer",
            "DistilBertTokenizer",
            "ElectraTokenizer",
            "LayoutLMTokenizer",
            "LxmertTokenizer",
            "MobileBertTokenizer",
            "RetriBertTokenizer",
            "SqueezeBertTokenizer",
        ),
        _BERT,
    ),
}

_MODELS = {
    "GPT2Tokenizer": "gpt2 gpt_neo gptj codegen opt phi starcoder2",
    "GPTNeoXTokenizer": "gpt_neox mamba mamba2 mpt olmo olmoe rwkv",
    "Qwen2Tokenizer": "qwen2 qwen2_moe qwen2_vl qwen2_5_vl qwen3 qwen3_moe qwen3_next qwen3_vl",
    "Qwen3_5Tokenizer": "qwen3_5 qwen3_5_moe qwen3_5_text qwen3_5_moe_text",
    "GemmaTokenizer": "gemma gemma2 gemma3 gemma3_text gemma3n recurrent_gemma",
    "CohereTokenizer": "cohere cohere2",
    "RobertaTokenizer": "roberta bart data2vec-text longformer",
    "XLMRobertaTokenizer": "xlm-roberta",
    "BertTokenizer": "bert distilbert electra mobilebert nomic_bert convbert layoutlm squeezebert",
    "T5Tokenizer": "t5 mt5",
    "WhisperTokenizer": "whisper",
    "CLIPTokenizer": "clip",
    "CodeLlamaTokenizer": "code_llama",
}
# The class that transformers takes for a `model_type` of config.json, if no file names a class.
CLASS_OF_MODEL = {model: name for name, models in _MODELS.items() for model in models.split()}

# Models for which transformers takes this class even if tokenizer_config.json names another one.
CLASS_ANYWAY = {
    **dict.fromkeys(("qwen2",), "Qwen2Tokenizer"),
    **dict.fromkeys(("qwen3_5", "qwen3_5_moe", "qwen3_5_moe_text"), "Qwen3_5Tokenizer"),
    **dict.fromkeys(
        (
            "arctic aria ernie4_5 ernie4_5_moe fuyu glm glm4 glm4_moe glm4v gpt_bigcode granite "
            "granitemoe internlm2 internlm3 jamba kimi_k25 kimi_linear llava llava_next minicpm3 "
            "minicpmv minimax_m2 ministral ministral3 mistral mistral3 mixtral modernbert molmo "
            "nemotron olmo2 olmo3 opencua phi3 phi3_v phimoe pixtral stablelm step3_vl voxtral"
        ).split(),
        "TokenizersBackend",
    ),
}
