"""ggtok.convert: compares ids with the source's own package; tests the report and flags."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ggtok
from ggtok.vocabularies import spelling
from ggtok.vocabularies.convert import confirm, structure
from ggtok.vocabularies.convert.lines import lines_for
from ggtok.vocabularies.patterns import CHAIN_OF_PRE, CHAINS
from ggtok.vocabularies.pre_tokenizer_json import pre_tokenizer_of, published_pre_tokenizer_of
from tests.making.convert import sources
from tests.making.convert.reports import N, convert, exact, named, report_of
from tests.support.llamacpp import LlamaCpp

pytestmark = pytest.mark.filterwarnings("ignore::ggtok.VocabWarning")


# ---- tokenizer.json ----


@pytest.mark.parametrize("chain", [c for c in CHAINS if c.published], ids=lambda c: c.name)
def test_each_chain_is_found_by_its_structure_and_splits_alike(chain: Any, tmp_path: Path) -> None:
    for published in chain.published:
        document = sources.bpe(pre_tokenizer=sources.split(*published))
        ignores = chain.pres[0].ignore_merges
        document["model"]["ignore_merges"] = ignores
        v = convert(sources.write(tmp_path / "tokenizer.json", document))
        exact(v)
        assert CHAIN_OF_PRE[str(v.pre)] is chain
        assert "ignore-merges" not in named(v)


@pytest.mark.parametrize("chain", CHAINS, ids=lambda c: c.name)
def test_the_steps_of_a_chain_give_llamacpps_ids(chain: Any, tmp_path: Path) -> None:
    """The steps give llama.cpp's ids for each name that uses the chain."""
    document = sources.bpe(pre_tokenizer=sources.split(*chain.steps))
    document["model"]["ignore_merges"] = chain.pres[0].ignore_merges
    v = convert(sources.write(tmp_path / "tokenizer.json", document), pre=chain.pres[0].name)
    exact(v)
    assert "pre-tokenizer" not in named(v)


def test_all_names_of_byte_level_pre_tokenizers_have_a_chain() -> None:
    from ggtok.native import pre_names

    raw = {name for name in pre_names() if spelling.is_raw(name)}
    assert CHAIN_OF_PRE.keys() | raw == set(pre_names())


def test_chains_are_written_as_published() -> None:
    """Digits are written by name, and DeepSeek's expressions verbatim, because tokenizers 1.0
    supports no other forms."""
    for name, chain in CHAIN_OF_PRE.items():
        for made in pre_tokenizer_of, published_pre_tokenizer_of:
            found = structure.structure_of(made(chain))
            assert structure.chain_of(found) is chain, name
            newer = made is published_pre_tokenizer_of and r"\p{" in "".join(chain.steps).lower()
            assert found.newer_characters is newer, name
    steps = published_pre_tokenizer_of(CHAIN_OF_PRE["starcoder"])["pretokenizers"]
    assert steps[0] == {"type": "Digits", "individual_digits": True}
    written = published_pre_tokenizer_of(CHAIN_OF_PRE["deepseek-v3"])["pretokenizers"]
    assert "[^\r\n\\p{L}" in written[2]["pattern"]["Regex"]


def test_a_long_expression_gives_a_short_message(tmp_path: Path) -> None:
    document = sources.bpe(pre_tokenizer=sources.split(r"\p{L}" * 13_000))
    path = sources.write(tmp_path / "tokenizer.json", document)
    with pytest.raises(ggtok.UnknownPreTokenizerError, match=r"\.\.\.' where the nearest") as e:
        ggtok.convert(path)
    assert len(str(e.value)) < 4000


def test_an_unknown_structure_names_the_nearest(tmp_path: Path) -> None:
    (step,) = CHAIN_OF_PRE["qwen2"].published[0]
    step = step.replace(r"|\p{N}| ?[^\s\p{L}\p{N}]", r"|\p{N}{1,2}| ?[^\s\p{L}\p{N}]")
    document = sources.bpe(pre_tokenizer=sources.split(step))
    path = sources.write(tmp_path / "tokenizer.json", document)
    with pytest.raises(ggtok.UnknownPreTokenizerError) as e:
        ggtok.convert(path)
    assert r"has '\p{N}{1,2}' where the nearest has '\p{N}{1,3}'" in str(e.value)
    assert "llama-bpe" in e.value.suggestions
    assert ggtok.convert(path, pre="qwen2").pre == "qwen2"
    with pytest.raises(ggtok.UnknownPreTokenizerError, match="no pre-tokenizer has the name"):
        ggtok.convert(path, pre="qwen")


@pytest.mark.parametrize(
    ("pre_tokenizer", "message"),
    [
        ({"type": "Whitespace"}, "has Whitespace"),
        (None, "has no ByteLevel"),
        ({"type": "Split"}, "pattern: is null"),
        (sources.split(), "it has no expressions"),
        (sources.split(r"\p{N}", sources.CHAIN_OF_PRE["gpt-2"].steps[0], "x"), "no step 3"),
        (sources.split("a" * 70000), "too long"),
        ({"type": "Sequence", "pretokenizers": [{"type": "ByteLevel"}] * 65}, "more than 64 steps"),
    ],
)
def test_unsupported_structures(pre_tokenizer: Any, message: str, tmp_path: Path) -> None:
    path = sources.write(tmp_path / "tokenizer.json", sources.bpe(pre_tokenizer=pre_tokenizer))
    with pytest.raises(ggtok.VocabError) as e:
        ggtok.convert(path)
    assert message in str(e.value)


def test_differences_are_named_with_their_shares(tmp_path: Path) -> None:
    document = sources.bpe("gpt-4o", normalizer={"type": "NFKC"})
    document["pre_tokenizer"]["pretokenizers"][-1]["add_prefix_space"] = True
    document["model"]["ignore_merges"] = True
    document["added_tokens"][1] |= {"rstrip": True}
    v = convert(sources.write(tmp_path / "tokenizer.json", document))
    exact(v)
    shares = {d.name: d.share for d in report_of(v).differences}
    assert shares.keys() == {
        "added-tokens",
        "pre-tokenizer",
        "ignore-merges",
        "prefix-space",
        "normalizer",
    }
    assert all(share is not None for share in shares.values())
    assert (
        shares["normalizer"] > 0.01 and shares["prefix-space"] > 0.3 and shares["added-tokens"] > 0
    )
    text = str(v.report)
    assert "normalizer: the source normalizes text (NFKC): llama.cpp doesn't;" in text
    assert f"of {N} lines differ (" in text


def test_a_prefix_space_is_not_mistaken_for_newer_characters(tmp_path: Path) -> None:
    document = sources.bpe("gpt-2")
    document["pre_tokenizer"] = {**sources.BYTE_LEVEL, "add_prefix_space": True}
    v = convert(sources.write(tmp_path / "tokenizer.json", document))
    exact(v)
    shares = {d.name: d.share or 0 for d in report_of(v).differences}
    assert shares["prefix-space"] > 0.3 and shares["unicode"] < 0.1


def test_special_tokens_flags_and_templates(tmp_path: Path) -> None:
    processor = {
        "type": "TemplateProcessing",
        "single": [
            {"SpecialToken": {"id": "<|im_start|>", "type_id": 0}},
            {"Sequence": {"id": "A", "type_id": 0}},
            {"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}},
        ],
        "pair": [],
        "special_tokens": {},
    }
    document = sources.bpe(
        "llama-bpe", post_processor={"type": "Sequence", "processors": [processor]}
    )
    document["added_tokens"].append(
        {**document["added_tokens"][0], "id": 905, "content": "<tool>", "special": False}
    )
    sources.write(tmp_path / "tokenizer.json", document)
    sources.write(
        tmp_path / "tokenizer_config.json",
        {
            "eos_token": "<|im_start|>",
            "pad_token": {"content": "<|endoftext|>"},
            "clean_up_tokenization_spaces": False,
            "chat_template": [
                {"name": "default", "template": "a"},
                {"name": "tools", "template": "b"},
            ],
        },
    )
    sources.write(tmp_path / "config.json", {"vocab_size": 910, "unk_token_id": 7})
    v = ggtok.convert(tmp_path)
    assert len(v) == 910
    assert v.special_ids == {"eos": 0, "pad": 0, "unk": 7, "bos": 1, "eot": 1}
    assert v.flags == {"add_bos": True, "add_eos": True}
    assert (v.chat_template, v.chat_templates) == ("a", {"tools": "b"})
    assert (v.types[900], v.types[901]) == (spelling.USER_DEFINED, spelling.UNUSED)
    assert v.texts[901] == b"[PAD901]"
    assert "1 added tokens such as '<tool>' have other ids than the file says" in str(v.report)
    assert "ids without a token" in str(v.report)
    tok = v.tokenizer()
    assert tok.encode("a") == [1, *tok.encode("a", add_special=False), 0]
    sources.write(tmp_path / "chat_template.jinja", "c")
    (tmp_path / "additional_chat_templates").mkdir()
    sources.write(tmp_path / "additional_chat_templates" / "x.jinja", "d")
    v = ggtok.convert(tmp_path)
    assert (v.chat_template, v.chat_templates) == ("c", {"x": "d"})


def test_transformers_classes_follow_their_configuration(tmp_path: Path) -> None:
    sources.write(tmp_path / "tokenizer.json", sources.bpe())
    config = {"tokenizer_class": "LlamaTokenizerFast", "bos_token": "<|im_start|>"}
    sources.write(tmp_path / "tokenizer_config.json", {**config, "add_bos_token": True})
    v = ggtok.convert(tmp_path)
    assert v.flags["add_bos"] and v.special_ids == {"bos": 1, "eos": 1}
    assert "LlamaTokenizerFast followed" in str(v.report)
    assert "has no EOS" in str(v.report)


def test_two_special_tokens_in_front_are_named(tmp_path: Path) -> None:
    item = {"SpecialToken": {"id": "<|im_start|>", "type_id": 0}}
    text = {"Sequence": {"id": "A", "type_id": 0}}
    processor: dict[str, Any] = {"type": "TemplateProcessing", "single": [item, item, text]}
    processor["pair"] = [text, {"Sequence": {"id": "B", "type_id": 0}}]
    row = {"id": "<|im_start|>", "ids": [1], "tokens": ["<|im_start|>"]}
    processor["special_tokens"] = {"<|im_start|>": row}
    path = sources.write(tmp_path / "tokenizer.json", sources.bpe(post_processor=processor))
    v = convert(path)
    exact(v)
    (template,) = (d for d in report_of(v).differences if d.name == "template")
    assert template.lines is None  # lines are compared without BOS and EOS


def test_byte_fallback_merges_by_score(tmp_path: Path) -> None:
    v = convert(sources.write(tmp_path / "tokenizer.json", sources.byte_fallback()))
    exact(v)
    assert (v.model, v.flags["add_space_prefix"]) == ("llama", True)


def test_byte_fallback_with_lacking_merges_and_other_normalizers(tmp_path: Path) -> None:
    document = sources.byte_fallback()
    document["normalizer"]["normalizers"].insert(0, {"type": "NFKC"})
    document["model"]["merges"] = document["model"]["merges"][:-40][::-1]
    v = convert(sources.write(tmp_path / "tokenizer.json", document))
    assert {"normalizer", "merge-order"} <= named(v)
    assert "normalizes text (NFKC)" in str(v.report)


@pytest.mark.parametrize("scheme", ["always", "first", "never", None])
def test_metaspace(scheme: str | None, tmp_path: Path) -> None:
    document = sources.byte_fallback(normalizer=None)
    row: dict[str, Any] = {"type": "Metaspace", "replacement": "\u2581", "split": False}
    row |= {"add_prefix_space": False} if scheme is None else {"prepend_scheme": scheme}
    if scheme is None:
        row["prepend_scheme"] = "never"
    document["pre_tokenizer"] = row
    v = convert(sources.write(tmp_path / "tokenizer.json", document))
    assert v.flags["add_space_prefix"] == (scheme in ("always", "first"))
    assert ("space-prefix" in named(v)) == (scheme == "first")
    exact(v)


def test_wordpiece(tmp_path: Path) -> None:
    v = convert(sources.write(tmp_path / "tokenizer.json", sources.wordpiece()))
    exact(v)
    assert v.model == "bert" and v.special_ids == {"unk": 0, "bos": 1, "sep": 2, "eos": 2}
    assert v.tokenizer().encode("hello") == [1, v.texts.index("\u2581hello".encode()), 2]
    normalizer = {
        "type": "Sequence",
        "normalizers": [{"type": t} for t in ("NFD", "Lowercase", "StripAccents", "NFKC")],
    }
    v = convert(
        sources.write(tmp_path / "tokenizer.json", sources.wordpiece(normalizer=normalizer)),
        lines=0,
    )
    assert "normalizer" in named(v)


def test_unigram_of_a_tokenizer_json(tmp_path: Path) -> None:
    path = sources.write(
        tmp_path / "x.model", sources.spm("unigram", normalization_rule_name="nmt_nfkc")
    )
    v = convert(path)
    exact(v)
    v.save(tmp_path / "tokenizer.json", inexact=True)
    again = convert(tmp_path / "tokenizer.json", lines=0)
    assert (again.texts, again.scores, again.types) == (v.texts, v.scores, v.types)
    assert again.keys == v.keys and again.flags["remove_extra_whitespaces"]
    document = json.loads((tmp_path / "tokenizer.json").read_text())
    document["normalizer"]["normalizers"] += [{"type": "Strip"}, {"type": "NFC"}]
    document["model"]["byte_fallback"] = True
    document["model"].pop("type")
    v = convert(sources.write(tmp_path / "tokenizer.json", document), lines=0)
    assert "normalizer" in named(v)


def test_repeated_merges(tmp_path: Path) -> None:
    """If a merge is repeated, tokenizers uses the last one, and llama.cpp the first."""
    document = sources.bpe()
    n = len(document["model"]["merges"])
    document["model"]["merges"] += document["model"]["merges"][:30]
    v = convert(sources.write(tmp_path / "tokenizer.json", document))
    exact(v)
    assert len(v.merge_texts or ()) == n


def test_merges_in_any_order(tmp_path: Path) -> None:
    """A merge that produces a token may come after merges that use the token."""
    document = sources.bpe(model={"merges": sources.bpe()["model"]["merges"][::-1]})
    exact(convert(sources.write(tmp_path / "tokenizer.json", document)))


@pytest.mark.parametrize("mask", [True, False])
def test_spaces_before_a_mask(mask: bool, tmp_path: Path) -> None:
    """Some pre-tokenizers that split like GPT-2's make llama.cpp drop spaces before <mask>."""
    document = sources.bpe()
    row = {**document["added_tokens"][0], "id": 900, "content": "<mask>", "lstrip": mask}
    document["added_tokens"].append(row)
    path = sources.write(tmp_path / "tokenizer.json", document)
    v = convert(path)
    exact(v)
    assert "added-tokens" not in named(v)
    assert v.pre == ("jina-v2-de" if mask else "gpt-2")
    v = convert(path, pre="gpt-2" if mask else "jina-v2-code")
    exact(v)
    assert "added-tokens" in named(v)


def test_spaces_after_special_tokens(tmp_path: Path) -> None:
    """If the source drops spaces exactly as Phi-3 does, the converted model gets a name that makes
    llama.cpp drop them, too."""
    document = sources.phi3()
    v = convert(sources.write(tmp_path / "tokenizer.json", document))
    exact(v)
    assert v.keys["general.name"] == "Phi-3" and "added-tokens" not in named(v)
    tok = v.tokenizer()
    assert tok.encode("<|user|>  a", add_special=False, parse_special=True) == tok.encode(
        "<|user|>a", add_special=False, parse_special=True
    )
    document["added_tokens"][-2]["rstrip"] = True
    v = convert(sources.write(tmp_path / "tokenizer.json", document))
    exact(v)
    assert "general.name" not in v.keys and "added-tokens" in named(v)


def test_a_mask_of_a_unigram_model(tmp_path: Path) -> None:
    v = convert(sources.write(tmp_path / "tokenizer.json", sources.unigram_with_mask()), lines=0)
    assert v.pre == "jina-v2-de" and "added-tokens" not in named(v)
    tok = v.tokenizer()
    ids = [
        tok.encode(text, add_special=False, parse_special=True) for text in ("a <mask>", "a<mask>")
    ]
    assert ids[0] == ids[1]


# ---- unexplained differences ----


def with_two_swapped(v: ggtok.Vocabulary) -> tuple[ggtok.Vocabulary, set[int]]:
    texts = list(v.texts)
    a, b = texts.index(b"e"), texts.index(b"t")
    texts[a], texts[b] = texts[b], texts[a]
    return replace(v, texts=texts), {a, b}


@pytest.mark.parametrize("normalizer", [None, {"type": "NFKC"}])
def test_a_wrong_id_is_unexplained(normalizer: Any, tmp_path: Path) -> None:
    """Each line with a wrong id is reported, even if other differences have a reason."""
    document = sources.bpe(normalizer=normalizer)
    v = convert(sources.write(tmp_path / "tokenizer.json", document), lines=0)
    wrong, ids = with_two_swapped(v)
    report = report_of(confirm.confirm(wrong, confirm.hugging_face(document), 300))
    lines = lines_for(wrong, 300)
    tokenized = v.tokenizer().encode_batch(lines, add_special=False, parse_special=True)
    having = [line for line, found in zip(lines, tokenized, strict=True) if ids & {*found}]
    assert 20 < len(having) < 280
    assert sorted(report.unexplained) == sorted(having)
    assert f"{len(having)} lines differ for no known reason" in str(report)


# ---- other formats ----


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"normalization_rule_name": "nmt_nfkc"},
        {
            "user_defined_symbols": ["<x>", "\u2581\u2581", "\u2581\u2581\u2581"],
            "remove_extra_whitespaces": False,
        },
    ],
)
@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_sentencepiece(kind: str, options: dict[str, Any], tmp_path: Path) -> None:
    v = convert(sources.write(tmp_path / "x.model", sources.spm(kind, **options)))
    exact(v)
    assert v.special_ids == {"unk": 0, "bos": 1, "eos": 2}
    assert "llama.cpp's default applies" in str(v.report)


def test_unigram_with_bytes_and_bpe_without(tmp_path: Path) -> None:
    path = sources.write(tmp_path / "x.model", sources.spm("unigram", byte_fallback=True))
    v = convert(path)
    exact(v)
    assert "byte-fallback" in named(v)
    path = sources.write(tmp_path / "x.model", sources.spm("bpe", byte_fallback=False))
    assert "byte-fallback" in named(convert(path, lines=0))


def test_a_sentencepiece_folder(tmp_path: Path) -> None:
    n = len(ggtok.convert(sources.write(tmp_path / "tokenizer.model", sources.spm("bpe"))))
    sources.write(tmp_path / "added_tokens.json", {"<extra>": n})
    row = {"content": "<tool>", "special": False}
    sources.write(
        tmp_path / "tokenizer_config.json",
        {
            "tokenizer_class": "LlamaTokenizer",
            "add_eos_token": True,
            "added_tokens_decoder": {
                "0": {"content": "<unk>", "special": True},
                str(n + 1): {"content": "<go>", "special": True},
                str(n + 2): row,
            },
        },
    )
    v = ggtok.convert(tmp_path)
    # transformers doesn't read added_tokens.json if there is an added_tokens_decoder.
    assert v.texts[n:] == [b"[PAD%d]" % n, b"<go>", b"<tool>"]
    assert list(v.types[n:]) == [spelling.UNUSED, spelling.CONTROL, spelling.USER_DEFINED]
    assert "added_tokens_decoder disagree on added tokens ('<extra>')" in str(v.report)
    assert v.types[0] == spelling.UNKNOWN
    assert v.flags == {"add_space_prefix": True, "add_bos": True, "add_eos": True}


def test_fairseqs_ids(tmp_path: Path) -> None:
    path = sources.write(tmp_path / "sentencepiece.bpe.model", sources.spm("unigram"))
    n = len(ggtok.convert(path))
    v = convert(tmp_path, arch="XLMRobertaModel")
    exact(v)
    assert v.texts[:4] == [b"<s>", b"<pad>", b"</s>", b"<unk>"]
    assert v.texts[-1] == b"<mask>" and len(v) == n + 2
    with pytest.raises(ggtok.VocabError, match="CamembertModel numbers its pieces"):
        ggtok.convert(tmp_path, arch="CamembertModel")


def test_tiktoken_and_tekken(tmp_path: Path) -> None:
    path = sources.write(tmp_path / "x.tiktoken", sources.tiktoken_file())
    for pre in ("llama-bpe", "gpt-4o", "qwen2"):
        v = convert(path, pre=pre)
        exact(v)
        assert v.tokens[:256] == [bytes([byte]) for byte in range(256)]
    assert report_of(convert(path, pre="starcoder")).compared == 0
    with pytest.raises(ggtok.UnknownPreTokenizerError, match="doesn't say how text is split"):
        ggtok.convert(path)
    v = convert(sources.write(tmp_path / "tekken.json", sources.tekken()))
    exact(v)
    assert v.special_ids == {"unk": 0, "bos": 1, "eos": 2, "pad": 11}
    assert v.texts[29] == b"<SPECIAL_29>" and v.tokens[30] == b"\0"


def test_a_tiktoken_file_with_an_empty_token(tmp_path: Path) -> None:
    """As in Whisper's file, the last token is empty. It is ignored."""
    data = sources.tiktoken_file() + b"= %d\n" % len(sources.ranks())
    v = convert(sources.write(tmp_path / "x.tiktoken", data), pre="gpt-2")
    exact(v)
    assert len(v) == len(sources.ranks())


def test_words_that_no_merges_produce(tmp_path: Path) -> None:
    of = sources.ranks()
    of[b"zqxjk"] = len(of)
    path = sources.write(tmp_path / "x.tiktoken", sources.tiktoken_file(of))
    assert "ignore-merges" in named(convert(path, pre="qwen2"))
    assert "ignore-merges" not in named(convert(path, pre="llama-bpe"))
    assert convert(path, pre="llama-bpe").tokenizer().encode("zqxjk") == [len(of) - 1]


def test_vocab_and_merges(tmp_path: Path) -> None:
    model = sources.bpe()["model"]
    sources.write(tmp_path / "vocab.json", model["vocab"])
    merges = "\n".join(" ".join(pair) for pair in model["merges"])
    sources.write(tmp_path / "merges.txt", "#version: 0.2\n" + merges + "\n")
    v = convert(tmp_path)
    exact(v)
    assert (v.pre, v.special_ids) == ("gpt-2", {"bos": 0, "eos": 0, "unk": 0})
    config: dict[str, Any] = {"tokenizer_class": "Qwen2Tokenizer", "eos_token": "<|im_start|>"}
    config["added_tokens_decoder"] = {"1": {"content": "<|im_start|>", "special": True}}
    sources.write(tmp_path / "tokenizer_config.json", config)
    sources.write(tmp_path / "added_tokens.json", {"<tool>": 900})
    v = convert(tmp_path)
    exact(v)
    assert v.pre == "qwen2" and v.special_ids["eos"] == 1
    # transformers doesn't read added_tokens.json if there is an added_tokens_decoder.
    assert b"<tool>" not in v.texts and "on added tokens ('<tool>')" in str(v.report)
    sources.write(
        tmp_path / "tokenizer_config.json",
        {"tokenizer_class": "RobertaTokenizer", "bos_token": "<|endoftext|>"},
    )
    v = ggtok.convert(tmp_path)
    # The token before a text is CLS. llama.cpp puts BOS there, so CLS becomes BOS.
    assert v.texts[v.special_ids["bos"]] == b"<s>"
    sources.write(tmp_path / "tokenizer_config.json", {"added_tokens_decoder": {"x": {}}})
    with pytest.raises(ggtok.VocabError, match="'x' is not a token id"):
        ggtok.convert(tmp_path)
    (tmp_path / "merges.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"merges\.txt is missing in the same folder"):
        ggtok.convert(tmp_path / "vocab.json")


def test_rwkv(tmp_path: Path) -> None:
    tokens = [bytes([byte]) for byte in range(256)] + [
        b"\n\n",
        "caf\u00e9".encode(),
        b"it's",
        b'"x',
    ]
    lines = []
    for id, token in enumerate(tokens, 1):
        try:
            literal = repr(token.decode())
        except UnicodeDecodeError:
            literal = repr(token)
        lines.append(f"{id} {literal} {len(token)}\n")
    v = convert(sources.write(tmp_path / "rwkv_vocab_v20230424.txt", "".join(lines)))
    tok = v.tokenizer()
    assert tok.encode("it's caf\u00e9\n\n", add_special=False) == [259, 33, 258, 257]
    assert v.special_ids == {"bos": 0, "eos": 0, "eot": 257}
    assert [tok.token_to_piece(id) for id in range(1, 261)] == tokens
    assert "not compared" in str(v.report)


def test_plamo(tmp_path: Path) -> None:
    rows: list[list[Any]] = [["<|plamo:unk|>", 0.0, "UNKNOWN"], ["<|plamo:bos|>", 0, "CONTROL"]]
    rows += [["<|plamo:op|>", 0.0, "NORMAL"], ["<|plamo:eos|>", 0.0, "CONTROL"]]
    rows += [[f"<0x{byte:02X}>", 0.0, "BYTE"] for byte in range(256)]
    rows += [["a", -1.0, "NORMAL"], ["ab", -1.5]]
    data = "\n".join(map(json.dumps, rows)) + "\n\n"
    sources.write(tmp_path / "tokenizer.jsonl", data)
    config = {"bos_token": "<|plamo:bos|>", "unk_token": "<|plamo:unk|>"}
    sources.write(tmp_path / "tokenizer_config.json", config)
    sources.write(tmp_path / "config.json", {"vocab_size": 270})
    v = convert(tmp_path)
    assert (v.model, len(v)) == ("plamo2", 270)
    assert v.special_ids == {"bos": 1, "unk": 0, "eot": 2}
    assert v.types[2] == spelling.CONTROL
    assert v.tokenizer().encode("ab", add_special=False) == [261]


# ---- the reference ----


def test_llamacpp_loads_written_files_and_has_our_ids(tmp_path: Path) -> None:
    paths = [
        sources.write(tmp_path / "a.json", sources.bpe("llama-bpe")),
        sources.write(tmp_path / "b.json", sources.byte_fallback()),
        sources.write(tmp_path / "c.json", sources.wordpiece()),
        sources.write(tmp_path / "d.model", sources.spm("unigram")),
        sources.write(tmp_path / "tekken.json", sources.tekken()),
        sources.write(tmp_path / "e.json", sources.phi3()),
        sources.write(tmp_path / "f.json", sources.unigram_with_mask()),
    ]
    with LlamaCpp() as llama:
        for path in paths:
            v = convert(path, lines=0)
            out = tmp_path / f"{path.name}.gguf"
            v.save(out)
            lines = [line.encode() for line in lines_for(v, 400)]
            theirs = llama.load(str(out)).tokenize_many(lines, True, True)
            assert ggtok.load(out).encode_batch(lines, parse_special=True) == theirs
