"""Files with exactly one fault each, and files without faults."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from string import ascii_letters

import pytest

import ggtok
from ggtok.inspect.doctor.codes import KINDS, SERIOUS
from tests.checks.healthy import CHAT, CONTROL, GGML, NORMAL, base, token
from tests.docs.pages import TEMPLATE
from tests.support.patch import GGUF, add_tokens
from tests.support.vocabularies import fixture

Fault = Callable[[GGUF], None]


def template(text: str) -> Fault:
    return lambda gguf: gguf.set("tokenizer.chat_template", text)


def merge(*texts: str) -> Fault:
    return lambda gguf: gguf.set(GGML + "merges", [*gguf.array(GGML + "merges"), *texts], "str")


def tokens(texts: list[str | bytes], type: int = NORMAL) -> Fault:
    return lambda gguf: add_tokens(gguf, texts, type)


def bos_twice(gguf: GGUF) -> None:
    add_tokens(gguf, ["<|begin|>"], CONTROL)
    gguf.set(GGML + "bos_token_id", token(gguf, "<|begin|>"), "u32")
    gguf.set(GGML + "add_bos_token", True)
    gguf.set("tokenizer.chat_template", "{{ bos_token }}" + CHAT)


def bos_missing(gguf: GGUF) -> None:
    bos_twice(gguf)
    gguf.set("tokenizer.chat_template", CHAT)


def bos_in_chats_alone(gguf: GGUF) -> None:
    bos_twice(gguf)
    gguf.set(GGML + "add_bos_token", False)


def endless(gguf: GGUF) -> None:
    add_tokens(gguf, ["<|done|>"], CONTROL)
    gguf.set("tokenizer.chat_template", CHAT.replace("<|im_end|>", "<|done|>"))


def overridden(gguf: GGUF) -> None:
    types = gguf.array(GGML + "token_type")
    types[token(gguf, "<|im_end|>")] = NORMAL
    gguf.set(GGML + "token_type", types, "i32")


def plain_eos(gguf: GGUF) -> None:
    gguf.remove(GGML + "eos_token_id", "tokenizer.chat_template")
    words = gguf.strings(GGML + "tokens")
    words[token(gguf, "<|im_end|>")] = b"<|other|>"
    gguf.set(GGML + "tokens", words, "str")


def normal_control(gguf: GGUF) -> None:
    add_tokens(gguf, ["<|turn|>"], NORMAL)
    gguf.set("tokenizer.chat_template", CHAT.replace("<|im_start|>", "<|turn|>"))


def pairs_of_letters(gguf: GGUF) -> None:
    """Adds a token and a merge for each pair of letters that isn't a token."""
    existing = set(gguf.strings(GGML + "tokens"))
    every = [a + b for a in ascii_letters for b in ascii_letters]
    new = [pair for pair in every if pair.encode() not in existing]
    add_tokens(gguf, new, NORMAL)
    merge(*(f"{a} {b}" for a, b in new))(gguf)


# For each code, a function that puts the fault into a file.
FAULTS: dict[str, Fault] = {
    "GGT001": tokens(["twice", "twice"]),
    "GGT002": lambda gguf: gguf.set(GGML + "metaspace.prepend_scheme", "always"),
    "GGT004": lambda gguf: gguf.remove(GGML + "model"),
    "GGT101": lambda gguf: gguf.remove(GGML + "pre"),
    "GGT102": lambda gguf: gguf.set(GGML + "pre", "default"),
    "GGT103": lambda gguf: gguf.set(GGML + "pre", "tomorrow"),
    "GGT201": bos_twice,
    "GGT202": bos_missing,
    "GGT203": bos_in_chats_alone,
    "GGT204": endless,
    "GGT205": template(CHAT.replace("<|im_end|>", "<|gone|>")),
    "GGT206": template(CHAT.replace("<|im_start|>", "<|gone|>")),
    "GGT207": template("{% if %}"),
    "GGT208": template(CHAT.replace("in parts", "in parts if true else []")),
    "GGT209": template(CHAT.replace("{{ m.role }}", "{{ [m.role, true] }}")),
    "GGT210": template("{{ enable_thinking is defined }}" + CHAT),
    "GGT211": template(
        "{{ raise_exception('no') if messages[1] and not messages[1].content is defined }}" + CHAT
    ),
    "GGT212": template(CHAT.replace("'\n' }}", "' ' }}")),
    "GGT301": overridden,
    "GGT302": lambda gguf: gguf.set(GGML + "mask_token_id", 99999, "u32"),
    "GGT303": plain_eos,
    "GGT304": normal_control,
    "GGT305": lambda gguf: gguf.set(GGML + "eot_token_id", token(gguf, "nd"), "u32"),
    "GGT401": tokens(["qzqzqz"]),
    "GGT403": tokens(["<reserved_0>", "[unused1]"]),
    "GGT405": tokens([""]),
    "GGT406": tokens([b"\xff\xfeq"]),
    "GGT501": merge("nospace"),
    "GGT503": merge("qqq zzz"),
    "GGT504": merge("q z"),
    "GGT602": lambda gguf: gguf.set("jina-bert-v2.vocab_size", 7, "u32"),
}


def codes(gguf: GGUF) -> list[str]:
    return [finding.code for finding in ggtok.doctor(gguf.dump())]


def test_nothing_is_found_in_a_healthy_file() -> None:
    assert ggtok.doctor(base().dump()) == []


@pytest.mark.parametrize("code", FAULTS)
def test_each_fault_has_one_finding(code: str) -> None:
    gguf = base()
    FAULTS[code](gguf)
    assert codes(gguf) == [code]


def test_types_of_newer_builds_are_found() -> None:
    gguf = base()
    types = gguf.array(GGML + "token_type")
    gguf.set(GGML + "token_type", [*types[:-1], 7], "i32")
    found = next(f for f in ggtok.doctor(gguf.dump()) if f.code == "GGT002")
    assert found.ids == (len(types) - 1,) and found.detail.startswith("the type 7: ")


def test_many_unknown_keys_are_counted() -> None:
    gguf = base()
    for i in range(20):
        gguf.set(f"{GGML}new.{i}", True)
    [found] = ggtok.doctor(gguf.dump())
    assert found.code == "GGT002"
    assert found.detail.splitlines()[15:] == [f"the key '{GGML}new.15'", "4 more keys"]


def test_a_file_that_asks_for_nfc_names_the_builds() -> None:
    """GGT003: b11549 ignores the key."""
    [found] = [f for f in ggtok.doctor(fixture("ugm-nfc")) if f.code < "GGT1"]
    assert (found.code, found.severity) == ("GGT003", "remark")
    assert "b11739" in found.means and "b11549 ignores the key" in found.means
    gguf = base()
    gguf.set(f"{GGML}normalizer.nfc", True)
    assert codes(gguf) == []  # llama.cpp composes the texts of no other type


def test_a_repeated_merge_is_found() -> None:
    gguf = base()
    merges = gguf.array(GGML + "merges")
    gguf.set(GGML + "merges", [*merges, merges[0]], "str")
    assert codes(gguf) == ["GGT502"]


def test_a_missing_pretokenizer_is_one_finding() -> None:
    """Findings that only follow from it aren't reported: they are those of the file with the
    likeliest name."""
    gguf = GGUF.read(fixture("bpe-llama3"))
    before = ggtok.doctor(gguf.dump())
    for pre, code in (None, "GGT101"), ("default", "GGT102"), ("tomorrow", "GGT103"):
        gguf.set(GGML + "pre", pre) if pre else gguf.remove(GGML + "pre")
        cause, *others = ggtok.doctor(gguf.dump())
        assert (cause.code, cause.options) == (code, "--pre llama-bpe")
        assert cause.likely_command == "ggtok edit MODEL --pre llama-bpe --in-place"
        assert others == before
        assert "'llama-bpe' splits 294 of 662 tokens; the vocabulary has '<|start_h" in cause.detail
        assert "\nthe other findings assume 'llama-bpe'" in cause.detail


def test_names_of_models_rank_pretokenizers() -> None:
    gguf = base()
    gguf.remove(GGML + "pre")
    alike = ggtok.doctor(gguf.dump())
    gguf.set("general.architecture", "llama", "str")
    gguf.set("general.name", "My Qwen2 7B", "str")
    named, *_ = ggtok.doctor(gguf.dump())
    assert (named.code, named.options) == ("GGT101", "--pre qwen2")
    assert "'general.name' is 'My Qwen2 7B'" in named.detail
    gguf.set("general.name", "mine", "str")
    unnamed, *_ = ggtok.doctor(gguf.dump())
    assert unnamed.likely_command is None and unnamed.as_dict()["likely_command"] is None
    assert "assume" not in unnamed.detail
    assert "GGT101" in {finding.code for finding in alike} and unnamed.code == "GGT101"


def test_a_few_unreachable_tokens_are_a_remark() -> None:
    """GGT402: a few unreachable tokens among thousands are only a remark; more are serious
    (GGT401)."""
    gguf = base()
    pairs_of_letters(gguf)
    assert codes(gguf) == []
    add_tokens(gguf, ["q#z"], NORMAL)
    [found] = ggtok.doctor(gguf.dump())
    assert (found.code, found.ids) == ("GGT402", (token(gguf, "q#z"),))


def test_a_token_that_the_pretokenizer_splits_is_found() -> None:
    """GGT404: merges produce the token, but the pre-tokenizer never puts a newline and a letter
    into the same word."""
    gguf = base()
    add_tokens(gguf, ["q\u010a", "q\u010az"], NORMAL)
    merge("q \u010a", "q\u010a z")(gguf)
    found = ggtok.doctor(gguf.dump())
    assert [f.code for f in found] == ["GGT404"]
    assert found[0].ids == (token(gguf, "q\u010a"), token(gguf, "q\u010az"))


def test_an_embedding_with_more_rows_than_tokens_is_found(tmp_path: Path) -> None:
    gguf = base()
    n = len(gguf.array(GGML + "tokens"))
    for rows, want in ((n, []), (n + 1, ["GGT601"])):
        data = bytearray(gguf.dump())
        struct.pack_into("<Q", data, 8, 2)
        for name, dims in (("blk.0.x", [4]), ("token_embd.weight", [8, rows])):
            data += struct.pack("<Q", len(name)) + name.encode() + struct.pack("<I", len(dims))
            data += struct.pack(f"<{len(dims)}QIQ", *dims, 0, 0)
        path = tmp_path / "model.gguf"
        path.write_bytes(data)
        assert [f.code for f in ggtok.doctor(path)] == want
        assert [f.code for f in ggtok.doctor(bytes(data))] == want
        path.write_bytes(data[:-20])  # truncated, so the number of rows is unknown
        assert ggtok.doctor(path) == []


@pytest.mark.parametrize(
    ("key", "kind", "removed"),
    [("eos_token_id", "str", True), ("add_bos_token", "u32", True), ("token_type", "u32", False)],
)
def test_a_key_of_a_wrong_type(key: str, kind: str, removed: bool, tmp_path: Path) -> None:
    """If the vocabulary loads without a special token or a flag, the command removes that key."""
    gguf = GGUF.read(fixture("bpe-llama3"))
    gguf.set(GGML + key, "7" if kind == "str" else 7, kind)
    gguf.write(tmp_path / "m.gguf")
    [found] = ggtok.doctor(tmp_path / "m.gguf")
    assert found.code == "GGT001" and f"'{GGML}{key}' has type" in found.detail
    command = f"ggtok edit MODEL --unset {GGML}{key} --in-place"
    assert found.likely_command == (command if removed else None)
    assert ggtok.doctor(gguf.dump())[0].likely_command is None
    if removed:
        ggtok.edit(tmp_path / "m.gguf", {GGML + key: None})
        assert "GGT001" not in {each.code for each in ggtok.doctor(tmp_path / "m.gguf")}
    gguf.set(GGML + "add_eos_token", 7, "u32")  # a second fault remains
    gguf.write(tmp_path / "m.gguf")
    assert ggtok.doctor(tmp_path / "m.gguf")[0].likely_command is None


def test_every_code_has_a_fault() -> None:
    elsewhere = {"GGT003", "GGT104", "GGT306", "GGT402", "GGT404", "GGT502", "GGT601"}
    elsewhere |= {code for code in KINDS if code >= "GGT7"}  # tested in test_against.py
    assert set(FAULTS) | elsewhere == set(KINDS)
    assert not set(FAULTS) & elsewhere


def test_findings_have_severities_and_texts() -> None:
    gguf = base()
    FAULTS["GGT103"](gguf)
    [found] = ggtok.doctor(gguf.dump())
    assert found.severity == SERIOUS and found.ids == ()
    assert "'tomorrow'" in found.detail and "names give other ids" in found.detail
    assert found.as_dict()["advice"] == KINDS["GGT103"].advice
    gguf = GGUF.read(fixture("bpe-llama3"))
    gguf.set("tokenizer.chat_template", TEMPLATE)
    assert "GGT201" in codes(gguf)


@pytest.mark.parametrize("name", ["none", "test", "rwkv", "plamo2", "ugm", "wpm", "spm-bytes"])
def test_other_vocabulary_types_have_no_findings_about_bpe(name: str) -> None:
    found = ggtok.doctor(fixture(name))
    assert not {f.code for f in found} & {"GGT001", "GGT101", "GGT103", "GGT503"}


def test_white_space_may_end_a_completion() -> None:
    """In RWKV's files, EOT is an empty line."""
    gguf = base()
    gguf.set(GGML + "eot_token_id", token(gguf, "\u010a"), "u32")
    assert codes(gguf) == []
