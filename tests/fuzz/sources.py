"""python -m tests.fuzz.sources: fuzzes convert, which reads other libraries' JSON files.

    python -m tests.fuzz.sources --seconds 300 --seed 1

Replaces one value in a small source of each format, or in the configuration files next to it, and
converts the folder: the result must be a vocabulary or a ggtok error. Prints each finding with the
position and the new value, and a summary; the exit status is 1 if there is a finding.
"""

from __future__ import annotations

import json
import math
import random
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ggtok
from ggtok.vocabularies.convert.source_formats import convert_source
from tests.fuzz import command
from tests.making.convert import sources

JUNK: tuple[Any, ...] = (
    *(None, True, 5, -1, 1.5, 1 << 80, "", "x", "\ud800", [], {}, [[]], [5], ["\ud800"], {"a": 5}),
    *({"type": 5}, [{"type": "Sequence"}], {"content": 5}, {"id": "<s>"}),
)
TEMPLATE = {
    "type": "TemplateProcessing",
    "single": [
        {"SpecialToken": {"id": "<|im_start|>", "type_id": 0}},
        {"Sequence": {"id": "A", "type_id": 0}},
        {"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}},
    ],
    "pair": [
        {"Sequence": {"id": "A", "type_id": 0}},
        {"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}},
        {"Sequence": {"id": "B", "type_id": 0}},
    ],
    "special_tokens": {},
}
ROBERTA = {"type": "RobertaProcessing", "cls": ["<s>", 0], "sep": ["</s>", 2]}
PROCESSOR = {"type": "Sequence", "processors": [TEMPLATE, ROBERTA, {"type": "ByteLevel"}]}
NORMALIZER = {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Lowercase"}]}
CONFIGURATION: dict[str, Any] = {
    "tokenizer_config.json": {
        "tokenizer_class": "LlamaTokenizerFast",
        "bos_token": {"content": "<|im_start|>"},
        "eos_token": "<|endoftext|>",
        "cls_token": "<|im_start|>",
        "sep_token": None,
        "add_bos_token": True,
        "add_prefix_space": True,
        "clean_up_tokenization_spaces": False,
        "chat_template": [{"name": "default", "template": "a"}],
        "added_tokens_decoder": {"0": {"content": "<|endoftext|>", "special": True}},
        "additional_special_tokens": ["<|x|>"],
        "extra_special_tokens": {"a": "b"},
    },
    "config.json": {
        "architectures": ["LlamaForCausalLM"],
        "vocab_size": 3000,
        "eos_token_id": [1, 2],
        "type_vocab_size": 2,
        "text_config": {"bos_token_id": 3},
    },
    "added_tokens.json": {"<extra>": 950},
}
SPECIAL = [{"rank": i, "token_str": t} for i, t in enumerate(("<unk>", "<s>", "</s>", "<pad>"))]
PLAMO = [["<unk>", 0.0, "UNKNOWN"], ["a", 1, "NORMAL"], ["b", 1], ["c", 2], ["d", 0.5]]


def folders() -> Iterator[tuple[dict[str, Any], str]]:
    """Yields the files of each source by name, and the architecture that llama.cpp's converter
    assumes."""
    bpe = sources.bpe("llama-bpe", post_processor=PROCESSOR, normalizer=NORMALIZER)
    model = bpe["model"]
    yield {"tokenizer.json": bpe}, "Qwen3ForCausalLM"
    fallback = sources.byte_fallback(post_processor=PROCESSOR)
    yield {"tokenizer.json": fallback}, "LlamaForCausalLM"
    yield {"tokenizer.json": sources.wordpiece()}, "BertModel"
    yield {"tokenizer.json": sources.unigram_with_mask()}, "T5EncoderModel"
    yield {"tekken.json": sources.tekken(special_tokens=SPECIAL)}, "MistralForCausalLM"
    yield {"tokenizer.model": sources.spm("bpe")}, "LlamaForCausalLM"
    yield {"sentencepiece.bpe.model": sources.spm("unigram")}, "XLMRobertaModel"
    yield {"qwen.tiktoken": sources.tiktoken_file()}, "QWenLMHeadModel"
    merges = "\n".join(" ".join(pair) for pair in model["merges"])
    yield {"vocab.json": model["vocab"], "merges.txt": merges}, "GPT2LMHeadModel"
    yield {"tokenizer.jsonl": "\n".join(map(json.dumps, PLAMO))}, "PLaMo2ForCausalLM"


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yields the paths of values in a JSON document; in each table, of only the first 12."""
    yield path
    if isinstance(value, dict):
        inner = list(value.items())
    else:
        inner = list(enumerate(value)) if isinstance(value, list) else []
    for key, one in inner[:12]:
        yield from places(one, (*path, key))


def changed(value: Any, path: tuple[Any, ...], to: Any) -> Any:
    if not path:
        return to
    copy = value.copy()
    copy[path[0]] = changed(value[path[0]], path[1:], to)
    return copy


def fuzz(seed: int, seconds: float = math.inf, inputs: float = math.inf) -> tuple[int, int, int]:
    """Prints the findings. Returns the numbers of inputs, accepted inputs and findings."""
    pick = random.Random(seed)
    end = time.monotonic() + seconds
    kinds = [({**files, **CONFIGURATION}, arch) for files, arch in folders()]
    n = accepted = findings = 0
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore", ggtok.VocabWarning)
        for i, (files, _) in enumerate(kinds):
            (Path(name) / str(i)).mkdir()
            for file, data in files.items():
                sources.write(Path(name) / str(i) / file, data)
        while n < inputs and time.monotonic() < end:
            i = n % len(kinds)
            files, arch = kinds[i]
            file = pick.choice([file for file, data in files.items() if isinstance(data, dict)])
            path, junk = pick.choice([*places(files[file])]), pick.choice(JUNK)
            to = Path(name) / str(i) / file
            to.write_text(json.dumps(changed(files[file], path, junk)))
            n += 1
            try:
                convert_source(str(to.parent), pre="qwen2", arch=arch, lines=0)
                accepted += 1
            except ggtok.GGTokError:
                pass
            except Exception as e:  # any other error is a finding
                print(f"{arch}: {file}: {path} = {junk!r}: {type(e).__name__}: {e}")
                findings += 1
            sources.write(to, files[file])
    return n, accepted, findings


if __name__ == "__main__":
    sys.exit(command.main("python -m tests.fuzz.sources", __doc__, fuzz))
