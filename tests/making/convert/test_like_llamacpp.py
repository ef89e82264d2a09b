"""like="llama.cpp": every tokenizer key beside the converter's own file."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import ggtok
from ggtok.vocabularies import spelling
from ggtok.vocabularies.convert import config_defaults, llamacpp_hashes
from ggtok.vocabularies.convert.sentencepiece_model import BPE, read_model, write_model
from tests.making.convert import sources
from tests.making.convert.beside import add_qwen, folder, written
from tests.support import converter

pytestmark = pytest.mark.filterwarnings("ignore::ggtok.VocabWarning")


def same(path: Path, tmp_path: Path, pre: str | None = None) -> ggtok.Vocabulary:
    """All keys in order, with their types and values. pre: the name that both are to write."""
    v, mine, real = written(path, tmp_path, pre)
    assert list(mine.raw) == list(real.raw)
    for key, raw in real.raw.items():
        if mine.raw[key] != raw:
            name = key.decode()
            assert (mine.type(name), mine.get(name)) == (real.type(name), real.get(name)), name
            raise AssertionError(f"{name}: other bytes")
    return v


def test_a_byte_fallback_tokenizer_json(tmp_path: Path) -> None:
    document = sources.byte_fallback()
    n = len(document["model"]["vocab"])
    path = folder(tmp_path / "f", "LlamaForCausalLM", "llama", vocab_size=n, bos_token_id=1)
    sources.write(path / "tokenizer.json", document)
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>"}
    sources.write(path / "tokenizer_config.json", {**config, "unk_token": "<unk>"})
    v = same(path, tmp_path)
    assert set(v.scores or ()) == {-1000.0}
    assert "scores: " in str(v.report)


def test_a_sentencepiece_folder(tmp_path: Path) -> None:
    data = sources.spm("bpe", user_defined_symbols=["<x>"])
    path = folder(tmp_path / "f", "MistralForCausalLM", "mistral", vocab_size=2000, eos_token_id=2)
    sources.write(path / "tokenizer.model", data)
    sources.write(path / "added_tokens.json", {"<extra>": 1990, "<far>": 4000})
    rows = {
        "0": {"content": "<unk>", "special": True},
        "1991": {"content": "a\u2581b", "special": False},
        "1992": {"content": "<|y|>", "special": False},
        "5000": {"content": "<z>", "special": True},
    }
    config = {"add_bos_token": True, "added_tokens_decoder": rows, "add_prefix_space": False}
    sources.write(path / "tokenizer_config.json", {**config, "chat_template": "x"})
    v = same(path, tmp_path)
    assert "types: " in str(v.report)


def test_t5(tmp_path: Path) -> None:
    data = sources.spm("unigram", normalization_rule_name="nmt_nfkc")
    path = folder(tmp_path / "f", "T5ForConditionalGeneration", "t5", vocab_size=2000)
    sources.write(path / "spiece.model", data)
    sources.write(path / "tokenizer_config.json", {"eos_token": "</s>"})
    assert same(path, tmp_path).model == "t5"
    for kind, message in ((3, "neither Unigram nor BPE"), (BPE, "no file that llama.cpp's")):
        model = read_model(data)
        model.model_type = kind
        sources.write(path / "spiece.model", write_model(model))
        with pytest.raises(ggtok.VocabError, match=message):
            ggtok.convert(path, like="llama.cpp")


def test_rwkv(tmp_path: Path) -> None:
    """Ids are the lines' numbers, whatever the lines say; the rest of vocab_size is filled."""
    sizes = {"head_size": 16, "rescale_every": 6, "layer_norm_epsilon": 1e-5}
    path = folder(tmp_path / "f", "Rwkv6ForCausalLM", "rwkv6", vocab_size=300, **sizes)
    rows = [f"{byte + 3} {bytes([byte])!r} 1\n" for byte in range(256)]
    sources.write(path / "rwkv_vocab_v20230424.txt", "".join(rows))
    sources.write(path / "tokenizer_config.json", {"pad_token": "<s>", "add_bos_token": False})
    v = same(path, tmp_path)
    assert list(v.special_ids) == ["eot", "bos", "eos"] and v.chat_template == "rwkv-world"
    assert "texts: " in str(v.report)
    other = folder(tmp_path / "g", "Rwkv6ForCausalLM", "rwkv6", **sizes)
    sources.write(other / "rwkv_vocab_v20230424.txt", "".join(rows))
    assert len(same(other, tmp_path)) == 65536


def test_the_hash_of_known_ids_names_the_pre_tokenizer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it is the hash of: here the converter's table gets one more row."""
    document = sources.bpe(
        "llama-bpe",
        post_processor={
            "type": "TemplateProcessing",
            "single": [
                {"SpecialToken": {"id": "<|im_start|>", "type_id": 0}},
                {"Sequence": {"id": "A", "type_id": 0}},
            ],
            "pair": [
                {"SpecialToken": {"id": "<|im_start|>", "type_id": 0}},
                {"Sequence": {"id": "A", "type_id": 0}},
                {"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}},
                {"Sequence": {"id": "B", "type_id": 1}},
            ],
            "special_tokens": {
                text: {"id": text, "ids": [id], "tokens": [text]}
                for id, text in enumerate(("<|endoftext|>", "<|im_start|>"))
            },
        },
    )
    document["added_tokens"].append(
        {**document["added_tokens"][0], "id": 905, "content": "<tool>", "special": False}
    )
    path = folder(tmp_path / "f", "Qwen3ForCausalLM", "qwen3", vocab_size=910)
    sources.write(path / "tokenizer.json", document)
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|endoftext|>"}
    sources.write(path / "tokenizer_config.json", {**config, "cls_token": "<|im_start|>"})
    with pytest.raises(ggtok.UnknownPreTokenizerError) as e:
        ggtok.convert(path, like="llama.cpp")
    digest = str(e.value).split("hash ")[1].split(":")[0]
    with pytest.raises(converter.ConverterRefused, match=digest):
        converter.convert(path, tmp_path / "real.gguf")
    monkeypatch.setitem(llamacpp_hashes.PRE_OF_HASH, digest, "smaug-bpe")
    v = ggtok.convert(path, like="llama.cpp")
    assert v.pre == "smaug-bpe" and "should be 'dbrx'" in str(v.report)
    assert v.special_ids == {"bos": 1, "eos": 0, "sep": 0}
    assert v.flags == {"add_bos": True, "add_sep": True}
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    assert ggtok.convert(path, like="llama.cpp").pre == "smaug-bpe"
    assert ggtok.convert(path, like="llama.cpp", pre="qwen2").pre == "qwen2"


def _digest(path: Path) -> str:
    """The hash that neither we nor the converter know, which is the same one."""
    with pytest.raises(ggtok.UnknownPreTokenizerError) as e:
        ggtok.convert(path, like="llama.cpp")
    digest = str(e.value).split("hash ")[1].split(":")[0]
    with pytest.raises(converter.ConverterRefused, match=digest):
        converter.convert(path, path / "real.gguf")
    return digest


def test_sizes_that_config_json_leaves_to_transformers() -> None:
    transformers = pytest.importorskip("transformers")  # which wants a later Python than ggtok
    for kind, size in config_defaults.VOCAB_SIZES.items():
        config = transformers.CONFIG_MAPPING[kind]().to_dict()
        assert (config.get("text_config") or config)["vocab_size"] == size, kind


def test_a_size_that_config_json_leaves_to_transformers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in Gemma 3's own folders."""
    path = tmp_path / "f"
    path.mkdir()
    text = {"model_type": "gemma3_text", "hidden_size": 64, "num_hidden_layers": 1}
    config = {"architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3"}
    sources.write(path / "config.json", {**config, "text_config": text})
    sources.write(path / "tokenizer.model", sources.spm("bpe"))
    sources.write(path / "tokenizer_config.json", {})
    assert len(same(path, tmp_path)) == 262208
    above = {**config, "text_config": text, "vocab_size": 2000}  # isn't the text model's
    sources.write(path / "config.json", above)
    assert len(same(path, tmp_path)) == 262208
    (path / "tokenizer.model").unlink()
    sources.write(path / "config.json", {**config, "text_config": text})
    sources.write(path / "tokenizer.json", sources.bpe("llama-bpe"))
    monkeypatch.setitem(config_defaults.VOCAB_SIZES, "gemma3_text", 800)
    with pytest.raises(
        ggtok.VocabError, match="is 800, transformers' default for the model_type, but"
    ):
        ggtok.convert(path, like="llama.cpp", pre="qwen2")


BEGIN = {"SpecialToken": {"id": "<|im_start|>", "type_id": 0}}
TWICE = {
    "type": "TemplateProcessing",
    "single": [BEGIN, BEGIN, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
    "special_tokens": {
        "<|im_start|>": {"id": "<|im_start|>", "ids": [1], "tokens": ["<|im_start|>"]}
    },
}


def test_the_hash_has_the_special_tokens_of_the_post_processor(tmp_path: Path) -> None:
    """Not those of tokenizer_config.json, as transformers' own classes had before 5."""
    path = folder(tmp_path / "f", "DeepseekV3ForCausalLM", "deepseek_v3", vocab_size=910)
    document = sources.bpe("llama-bpe")
    sources.write(path / "tokenizer.json", document)
    config = {"tokenizer_class": "LlamaTokenizerFast", "bos_token": "<|im_start|>"}
    sources.write(path / "tokenizer_config.json", {**config, "add_bos_token": True})
    without = _digest(path)
    document["post_processor"] = TWICE
    sources.write(path / "tokenizer.json", document)
    sources.write(path / "tokenizer_config.json", {**config, "add_bos_token": False})
    assert _digest(path) != without


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"tokenizer_class": "BertTokenizer", "cls_token": "[PAD]"},
        {"tokenizer_class": "DistilBertTokenizerFast", "do_lower_case": False},
        {"tokenizer_class": "BertTokenizerFast", "strip_accents": False},
        {"tokenizer_class": "PreTrainedTokenizerFast"},
        {"tokenizer_class": "TokenizersBackend", "do_lower_case": False},
    ],
)
@pytest.mark.parametrize("swapped", [False, True])
def test_what_transformers_class_for_bert_makes_of_a_folder(
    config: dict[str, Any], swapped: bool, tmp_path: Path
) -> None:
    """It has special tokens and a normalizer of its own, whatever tokenizer.json says."""
    document = sources.wordpiece()
    vocab = document["model"]["vocab"]
    vocab["##x"] = vocab.pop("##")  # which the converter leaves without a text
    row = {"type": "BertProcessing", "sep": ["[CLS]", 1], "cls": ["[SEP]", 2]}
    document["post_processor"] = row if swapped else None
    document["normalizer"]["lowercase"] = not swapped
    path = folder(tmp_path / "f", "BertModel", "bert", vocab_size=len(vocab) + 3)
    sources.write(path / "tokenizer.json", document)
    sources.write(path / "tokenizer_config.json", config)
    _digest(path)


@pytest.mark.parametrize("where", ["config.json", "tokenizer_config.json"])
def test_a_class_that_drops_the_template(where: str, tmp_path: Path) -> None:
    document = sources.bpe("llama-bpe", post_processor=TWICE)
    config = {"tokenizer_class": "GPTNeoXTokenizerFast"}
    more = config if where == "config.json" else {}
    path = folder(tmp_path / "f", "OlmoForCausalLM", "olmo", vocab_size=910, **more)
    sources.write(path / "tokenizer.json", document)
    in_tokenizer = config if where != "config.json" else {}
    sources.write(path / "tokenizer_config.json", in_tokenizer)
    _digest(path)


@pytest.mark.parametrize("normalizers", [None, ["StripAccents", "Lowercase"]])
def test_bert(normalizers: list[str] | None, tmp_path: Path) -> None:
    document = sources.wordpiece()
    vocab = document["model"]["vocab"]
    vocab["##x"] = vocab.pop("##")  # which the converter leaves without a text
    if normalizers is not None:
        rows = [{"type": name} for name in normalizers]
        document["normalizer"] = {"type": "Sequence", "normalizers": rows}
    n = len(document["model"]["vocab"]) + 3
    path = folder(tmp_path / "f", "BertModel", "bert", vocab_size=n)
    sources.write(path / "tokenizer.json", document)
    names = {"cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]"}
    config = {**names, "pad_token": "[PAD]", "tokenizer_class": "PreTrainedTokenizerFast"}
    sources.write(path / "tokenizer_config.json", {**config, "chat_template": "x"})
    v = same(path, tmp_path, pre="default")
    assert v.special_ids == {"bos": 1, "eos": 2, "unk": 0, "sep": 2, "pad": 3}


def test_byte_level(tmp_path: Path) -> None:
    """Whatever name the hash gives: spaces in merges, templates by name, an end of turns."""
    document = sources.bpe("llama-bpe")
    last = {"SpecialToken": {"id": "<|im_start|>", "type_id": 0}}
    document["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [{"Sequence": {"id": "A", "type_id": 0}}, last],
        "pair": [],
        "special_tokens": {
            "<|im_start|>": {"id": "<|im_start|>", "ids": [1], "tokens": ["<|im_start|>"]}
        },
    }
    row = {**document["added_tokens"][0], "special": False}
    document["added_tokens"] += [
        {**row, "id": 903, "content": "a\u2581b"},
        {**row, "id": 904, "content": "<|looks|>"},
    ]
    path = folder(tmp_path / "f", "Qwen3ForCausalLM", "qwen3", vocab_size=910, pad_token_id=5)
    sources.write(path / "tokenizer.json", document)
    templates = [{"name": "default", "template": "a"}, {"name": "tools", "template": "b"}]
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|endoftext|>"}
    config |= {"chat_template": templates, "add_bos_token": True}
    sources.write(path / "tokenizer_config.json", config)
    v = same(path, tmp_path, pre="qwen2")
    assert v.special_ids == {"eos": 1, "eot": 0, "pad": 5}


START, END = ({"SpecialToken": {"id": t, "type_id": 0}} for t in ("<|im_start|>", "<|endoftext|>"))
A, B = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
KNOWN = {t: {"id": t, "ids": [i], "tokens": [t]} for i, t in enumerate(sources.SPECIAL)}
ROBERTA = {"type": "RobertaProcessing", "trim_offsets": True, "add_prefix_space": False}
POST_PROCESSORS: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "bytes": (
        {"type": "Sequence", "processors": [{**sources.BYTE_LEVEL, "use_regex": False}]},
        {"cls_token": "<|im_start|>", "sep_token": "<|endoftext|>"},
    ),
    "roberta": ({**ROBERTA, "cls": ["<|im_start|>", 1], "sep": ["<|endoftext|>", 0]}, {}),
    "unnamed": (
        {"type": "TemplateProcessing", "single": [START, A, END], "pair": [START, A, B, END]},
        {},
    ),
    "between": (
        {"type": "TemplateProcessing", "single": [START, A], "pair": [START, A, END, END, B]},
        {"eos_token": "<|endoftext|>", "bos_token": "<|im_start|>"},
    ),
}


@pytest.mark.parametrize("name", POST_PROCESSORS)
def test_post_processors(name: str, tmp_path: Path) -> None:
    """What they say of special tokens wins over the configuration, or adds to it."""
    processor, config = POST_PROCESSORS[name]
    if processor["type"] == "TemplateProcessing":
        processor = {**processor, "special_tokens": KNOWN}
    document = sources.bpe("qwen2", post_processor=processor)
    path = folder(tmp_path / "f", "Qwen3ForCausalLM", "qwen3", vocab_size=900)
    sources.write(path / "tokenizer.json", document)
    config = {"tokenizer_class": "PreTrainedTokenizerFast", **config}
    sources.write(path / "tokenizer_config.json", config)
    same(path, tmp_path, pre="qwen2")


def test_a_folder_without_a_configuration(tmp_path: Path) -> None:
    """The post-processor's tokens then stand for themselves."""
    processor = {"type": "TemplateProcessing", "single": [START, A, END], "pair": [B, A]}
    processor["special_tokens"] = KNOWN
    # Else transformers takes Qwen's own class, which goes by its own rules.
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "vocab_size": 900}
    path = folder(tmp_path / "f", "Qwen3ForCausalLM", "qwen3", **config)
    sources.write(path / "tokenizer.json", sources.bpe("qwen2", post_processor=processor))
    assert len(same(path, tmp_path, pre="qwen2")) == 900


@pytest.mark.parametrize("special", [False, True])
def test_added_tokens_of_a_byte_fallback_tokenizer_json(special: bool, tmp_path: Path) -> None:
    """Those that the model hasn't; and without a sequence of decoders it is taken for another."""
    document = sources.byte_fallback()
    n = len(document["model"]["vocab"])
    row = {**document["added_tokens"][0], "special": special, "id": n, "content": "<new>"}
    document["added_tokens"].append(row)
    path = folder(tmp_path / "f", "LlamaForCausalLM", "llama", vocab_size=n + 1)
    sources.write(path / "tokenizer.json", document)
    config = {"tokenizer_class": "PreTrainedTokenizerFast"}
    more = {"additional_special_tokens": ["<new>"]} if special else {}
    sources.write(path / "tokenizer_config.json", {**config, **more})
    kind = spelling.CONTROL if special else spelling.USER_DEFINED
    assert same(path, tmp_path).types[n] == kind
    sources.write(path / "tokenizer.json", {**document, "decoder": {"type": "ByteFallback"}})
    assert same(path, tmp_path, pre="default").model == "gpt2"


def test_llama_3(tmp_path: Path) -> None:
    """Neither a SentencePiece model nor one with byte fallback; tekken.json counts alone."""
    path = folder(tmp_path / "f", "LlamaForCausalLM", "llama", vocab_size=900)
    sources.write(path / "tokenizer.json", sources.bpe("llama-bpe"))
    sources.write(path / "tekken.json", "{}")
    sources.write(path / "tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast"})
    assert same(path, tmp_path, pre="llama-bpe").model == "gpt2"
    document = sources.bpe("llama-bpe", model={"end_of_word_suffix": "</w>"})
    sources.write(path / "tokenizer.json", document)
    v = ggtok.convert(path, like="llama.cpp", pre="llama-bpe")
    assert "there is no faithful conversion to compare with" in str(v.report)


def test_code_llamas_size_and_granites(tmp_path: Path) -> None:
    """The converter knows them by config.json's vocab_size alone."""
    data = sources.spm("bpe")
    for n, id in ((32016, 32010), (49152, None)):
        path = folder(tmp_path / str(n), "LlamaForCausalLM", "llama", vocab_size=n)
        sources.write(path / "tokenizer.model", data)
        config = {"add_bos_token": n == 49152, "add_prefix_space": True, "bos_token": "<s>"}
        sources.write(path / "tokenizer_config.json", {**config, "chat_template": "x"})
        v = same(path, tmp_path)
        assert v.special_ids.get("eot") == id and v.flags["add_bos"] is False


def test_gemma4(tmp_path: Path) -> None:
    sources.gemma4().save(tmp_path / "tokenizer.json")
    document = json.loads((tmp_path / "tokenizer.json").read_bytes())
    n = len(document["model"]["vocab"])
    path = folder(tmp_path / "f", "Gemma4ForCausalLM", "gemma4_text", vocab_size=n, eos_token_id=1)
    sources.write(path / "tokenizer.json", document)
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<bos>"}
    sources.write(path / "tokenizer_config.json", {**config, "unk_token": "<unk>"})
    v = same(path, tmp_path)
    assert (v.flags["add_space_prefix"], v.flags["add_bos"]) == (False, True)
    assert v.types[v.texts.index(b"<|tool_response>")] == spelling.USER_DEFINED


def test_xlm_roberta(tmp_path: Path) -> None:
    path = folder(tmp_path / "f", "XLMRobertaModel", "xlm-roberta", vocab_size=1700)
    options = {"normalization_rule_name": "nmt_nfkc", "user_defined_symbols": ["<x>"]}
    sources.write(path / "sentencepiece.bpe.model", sources.spm("unigram", **options))
    config = {"bos_token": "<s>", "cls_token": "<s>", "add_bos_token": True}
    sources.write(path / "tokenizer_config.json", config)
    v = same(path, tmp_path)
    assert (v.model, v.texts[3], v.types[3]) == ("t5", b"<unk>", spelling.UNKNOWN)
    assert v.texts[-1] == b"[PAD1698]" and "bos is None, should be 0" in str(v.report)
    model = read_model((path / "sentencepiece.bpe.model").read_bytes())
    model.model_type = BPE
    sources.write(path / "sentencepiece.bpe.model", write_model(model))
    with pytest.raises(ggtok.VocabError, match="wants a Unigram model"):
        ggtok.convert(path, like="llama.cpp")
    (path / "sentencepiece.bpe.model").unlink()
    sources.write(path / "tokenizer.json", "{}")
    with pytest.raises(ggtok.VocabError, match="depends on transformers' version"):
        ggtok.convert(path, like="llama.cpp")


def test_qwen_1(tmp_path: Path) -> None:
    """Its class comes with it, of which the converter asks for ranks and special tokens."""
    path = folder(tmp_path / "f", "QWenLMHeadModel", "qwen", vocab_size=1100)
    sources.write(path / "qwen.tiktoken", sources.tiktoken_file())
    add_qwen(path)
    v = same(path, tmp_path, pre="qwen2")
    end = len(sources.ranks())
    assert v.special_ids == {"bos": end, "eos": end, "unk": end}
    sources.write(path / "config.json", {"vocab_size": 1100, "eos_token_id": 7})
    v = ggtok.convert(path, like="llama.cpp", pre="qwen2", arch="QWenLMHeadModel")
    assert v.special_ids == {"eos": 7, "unk": end}
    with pytest.raises(ggtok.UnknownPreTokenizerError, match="doesn't say how text is cut"):
        ggtok.convert(path, like="llama.cpp", arch="QWenLMHeadModel")
    of = sources.ranks()
    of[b"zqxjk"] = len(of)
    sources.write(path / "qwen.tiktoken", sources.tiktoken_file(of))
    with pytest.raises(ggtok.VocabError, match="no merges make b'zqxjk'"):
        ggtok.convert(path, like="llama.cpp", pre="qwen2", arch="QWenLMHeadModel")
    sources.write(path / "config.json", {"vocab_size": 900})
    with pytest.raises(ggtok.VocabError, match="vocab_size is 900, but there is a token"):
        ggtok.convert(path, like="llama.cpp", pre="qwen2", arch="QWenLMHeadModel")


def test_tekken(tmp_path: Path) -> None:
    path = folder(tmp_path / "f", "MistralForCausalLM", "mistral", vocab_size=2000)
    texts = ["<unk>", "<s>", "</s>", "[INST]", "<pad>"]
    rows = [{"rank": i, "token_str": t, "is_control": True} for i, t in enumerate(texts)]
    document = sources.tekken(special_tokens=rows)
    document["config"]["version"] = "v7"
    document["config"]["default_vocab_size"] += 10
    sources.write(path / "tekken.json", document)
    sources.write(path / "tokenizer_config.json", {"add_prefix_space": True})
    v = same(path, tmp_path)
    assert (v.chat_template, v.pre) == ("mistral-v7-tekken", "tekken")
    assert len(v.merge_texts or ()) > len(ggtok.convert(path).merge_texts or ())
    assert "merges: the converter's differ" in str(v.report)
    document["config"]["version"] = "v13"
    sources.write(path / "tekken.json", document)
    assert "writes a chat template for v13" in str(ggtok.convert(path, like="llama.cpp").report)
    rows.pop()
    sources.write(path / "tekken.json", document)
    with pytest.raises(ggtok.VocabError, match="'<pad>' isn't there"):
        ggtok.convert(path, like="llama.cpp")
    row = {"token_bytes": "enF4ams=", "token_str": None}
    document["vocab"].append({"rank": len(document["vocab"]), **row})
    document["config"]["default_vocab_size"] += 1
    sources.write(path / "tekken.json", document)
    with pytest.raises(ggtok.VocabError, match="no two tokens make b'zqxjk'"):
        ggtok.convert(path, like="llama.cpp")


def test_plamo(tmp_path: Path) -> None:
    path = folder(tmp_path / "f", "Plamo2ForCausalLM", "plamo2", vocab_size=280)
    rows: list[list[Any]] = [["<|plamo:unk|>", 0.0, "UNKNOWN"], ["<|plamo:bos|>", 0, "CONTROL"]]
    rows += [["<|plamo:eos|>", 0.0, "CONTROL"], ["<|plamo:pad|>", 0.0, "NORMAL", 1, 2]]
    rows += [["<|plamo:op|>", 0.0, "NORMAL"]]
    rows += [[f"<0x{byte:02X}>", 0.0, "BYTE"] for byte in range(256)]
    rows += [["a", -1.25, "NORMAL"], ["ab", -1.5], ["b", 1, "OTHER"]]
    sources.write(path / "tokenizer.jsonl", "\n".join(map(json.dumps, rows)) + "\n\n")
    config = {"bos_token": "<|plamo:bos|>", "unk_token": "<|plamo:unk|>", "sep_token": None}
    config["pad_token"] = "<|plamo:pad|>"
    sources.write(path / "tokenizer_config.json", config)
    v = same(path, tmp_path)
    assert v.special_ids == {"bos": 1, "pad": 3, "unk": 0, "eot": 4}
    assert v.texts[-1] == b"[PAD16]" and "texts: 16 tokens" in str(v.report)
    sources.write(path / "tokenizer_config.json", {"eos_token": "</s>"})
    with pytest.raises(ggtok.VocabError, match="eos_token: '</s>' is no token"):
        ggtok.convert(path, like="llama.cpp")


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ggtok.VocabError, match="names no architecture"):
        ggtok.convert(tmp_path, like="llama.cpp")
    with pytest.raises(ggtok.VocabError, match="'XForCausalLM' isn't known here: LLaMA"):
        ggtok.convert(tmp_path, like="llama.cpp", arch="XForCausalLM")
    with pytest.raises(ggtok.VocabError, match=r"no file that llama\.cpp's converter reads"):
        ggtok.convert(tmp_path, like="llama.cpp", arch="LlamaForCausalLM")
    path = sources.write(tmp_path / "tokenizer.json", sources.bpe())
    with pytest.raises(ggtok.InvalidValueError, match="needs a folder"):
        ggtok.convert(path, like="llama.cpp")
    sources.write(tmp_path / "config.json", {"vocab_size": 100})
    with pytest.raises(ggtok.VocabError, match="vocab_size is 100, but there is a token 899"):
        ggtok.convert(tmp_path, like="llama.cpp", arch="GPT2LMHeadModel")
    with pytest.raises(ggtok.InvalidValueError, match="like must be None"):
        ggtok.convert(path, like="x")  # type: ignore[arg-type]
