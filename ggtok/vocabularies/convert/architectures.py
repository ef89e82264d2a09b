"""Which of its helpers llama.cpp's converter (b11549) takes for an architecture: one row each.

A row names the helpers in the order in which they are tried, and what the class sets besides.
Architectures that aren't here are refused.
"""

from __future__ import annotations

from typing import NamedTuple


class Architecture(NamedTuple):
    gguf: str  # general.architecture
    helpers: tuple[str, ...]  # names of the HELPERS
    flags: tuple[tuple[str, bool], ...] = ()  # set after the helper


LLAMA = ("mistral", "sentencepiece", "llama_hf", "gpt2")
_EITHER = ("sentencepiece", "gpt2")
_NO_PREFIX = (("add_space_prefix", False),)

ARCHITECTURES: dict[str, Architecture] = {
    **dict.fromkeys(
        (
            *("LLaMAForCausalLM", "LlamaForCausalLM", "MistralForCausalLM", "MixtralForCausalLM"),
            "LlamaModel",
        ),
        Architecture("llama", LLAMA),
    ),
    "GraniteForCausalLM": Architecture("granite", LLAMA),
    "GraniteMoeForCausalLM": Architecture("granitemoe", LLAMA),
    "ArceeForCausalLM": Architecture("arcee", LLAMA),
    "SmolLM3ForCausalLM": Architecture("smollm3", LLAMA),
    "ApertusForCausalLM": Architecture("apertus", LLAMA),
    "Llama4ForCausalLM": Architecture("llama4", ("gpt2",)),
    "Llama4ForConditionalGeneration": Architecture("llama4", ("gpt2",)),
    "QWenLMHeadModel": Architecture("qwen", ("qwen",)),
    "Qwen2ForCausalLM": Architecture("qwen2", _EITHER),
    "Qwen2MoeForCausalLM": Architecture("qwen2moe", ("gpt2",)),
    "Qwen3ForCausalLM": Architecture("qwen3", _EITHER),
    "Qwen3MoeForCausalLM": Architecture("qwen3moe", ("gpt2",)),
    "GPT2LMHeadModel": Architecture("gpt2", ("gpt2",)),
    "GPTNeoXForCausalLM": Architecture("gptneox", ("gpt2",)),
    "GPTBigCodeForCausalLM": Architecture("starcoder", ("gpt2",)),
    "Starcoder2ForCausalLM": Architecture("starcoder2", ("gpt2",)),
    "GptOssForCausalLM": Architecture("gpt-oss", ("gpt2",)),
    "DeepseekV2ForCausalLM": Architecture("deepseek2", ("gpt2",)),
    "DeepseekV3ForCausalLM": Architecture("deepseek2", ("gpt2",)),
    "CohereForCausalLM": Architecture("command-r", ("gpt2",)),
    "Cohere2ForCausalLM": Architecture("cohere2", ("gpt2",)),
    "FalconForCausalLM": Architecture("falcon", ("gpt2",)),
    "BloomForCausalLM": Architecture("bloom", ("gpt2",)),
    "PhiForCausalLM": Architecture("phi2", ("gpt2",)),
    "OlmoForCausalLM": Architecture("olmo", ("gpt2",)),
    "Olmo2ForCausalLM": Architecture("olmo2", ("gpt2",)),
    "MiniCPMForCausalLM": Architecture("minicpm", ("sentencepiece",)),
    "BaichuanForCausalLM": Architecture("baichuan", ("sentencepiece",)),
    "OrionForCausalLM": Architecture("orion", ("sentencepiece",)),
    "Gemma2ForCausalLM": Architecture("gemma2", ("sentencepiece",), _NO_PREFIX),
    "Gemma3ForCausalLM": Architecture("gemma3", _EITHER, _NO_PREFIX),
    "Gemma3ForConditionalGeneration": Architecture("gemma3", _EITHER, _NO_PREFIX),
    **dict.fromkeys(
        ("Gemma4ForCausalLM", "Gemma4ForConditionalGeneration"),
        Architecture("gemma4", ("gemma4",), (*_NO_PREFIX, ("add_bos", True))),
    ),
    **dict.fromkeys(
        ("BertModel", "BertForMaskedLM", "BertForSequenceClassification"),
        Architecture("bert", ("bert",)),
    ),
    **dict.fromkeys(
        ("XLMRobertaModel", "XLMRobertaForSequenceClassification"),
        Architecture("bert", ("xlmr",)),
    ),
    **dict.fromkeys(
        ("T5ForConditionalGeneration", "T5WithLMHeadModel"), Architecture("t5", ("t5",))
    ),
    "T5EncoderModel": Architecture("t5encoder", ("t5",)),
    **dict.fromkeys(("Plamo2ForCausalLM", "PLaMo2ForCausalLM"), Architecture("plamo2", ("plamo",))),
    **dict.fromkeys(("Plamo3ForCausalLM", "PLaMo3ForCausalLM"), Architecture("plamo3", ("plamo",))),
    "Rwkv6ForCausalLM": Architecture("rwkv6", ("rwkv",)),
    "Rwkv7ForCausalLM": Architecture("rwkv7", ("rwkv",)),
}
