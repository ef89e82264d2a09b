"""Compares files with the repository or folder of the original models."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ggtok
from ggtok.inspect.doctor import against as sources
from ggtok.inspect.doctor import engines
from ggtok.inspect.doctor.codes import KINDS
from ggtok.inspect.doctor.file import File
from tests.cli.command import COMMAND
from tests.support.patch import GGUF
from tests.support.servers import Hub, Server
from tests.support.vocabularies import fixture

GGML = "tokenizer.ggml."
CHAT = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
Fault = Callable[[GGUF], None]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Creates a model, and the folder of its original."""
    folder = tmp_path_factory.mktemp("original")
    model = folder / "model.gguf"
    gguf = GGUF.read(fixture("bpe-qwen2"))
    gguf.set(GGML + "eos_token_id", token(gguf, "<|im_end|>"), "u32")
    gguf.set(GGML + "padding_token_id", token(gguf, "<|endoftext|>"), "u32")
    gguf.set(GGML + "add_bos_token", False)
    gguf.set("tokenizer.chat_template", CHAT)
    gguf.write(model)
    ggtok.vocabulary(model).save_pretrained(folder / "hf")
    ends = [token(gguf, "<|im_end|>"), token(gguf, "<|endoftext|>")]
    (folder / "hf" / "generation_config.json").write_text(json.dumps({"eos_token_id": ends}))
    return model, folder / "hf"


def token(gguf: GGUF, text: str) -> int:
    return gguf.strings(GGML + "tokens").index(text.encode())


def codes(found: list[ggtok.Finding]) -> list[str]:
    return [each.code for each in found if each.code >= "GGT7"]


def set_type(text: str, type: int) -> Fault:
    def fault(gguf: GGUF) -> None:
        types = gguf.array(GGML + "token_type")
        types[token(gguf, text)] = type
        gguf.set(GGML + "token_type", types, "i32")

    return fault


def set_text(id: int, text: str) -> Fault:
    def fault(gguf: GGUF) -> None:
        texts = gguf.array(GGML + "tokens")
        texts[id] = text
        gguf.set(GGML + "tokens", texts, "str")

    return fault


def without_token(gguf: GGUF) -> None:
    for key, kind in ("tokens", "str"), ("token_type", "i32"):
        gguf.set(GGML + key, gguf.array(GGML + key)[:-1], kind)


def fewer_merges(gguf: GGUF) -> None:
    gguf.set(GGML + "merges", gguf.array(GGML + "merges")[:-20], "str")


def swapped_merges(gguf: GGUF) -> None:
    merges = gguf.array(GGML + "merges")
    gguf.set(GGML + "merges", [merges[1], merges[0], *merges[2:]], "str")


def other_eos(gguf: GGUF) -> None:
    gguf.set(GGML + "eos_token_id", token(gguf, "<|repo_name|>"), "u32")


def other_padding(gguf: GGUF) -> None:
    gguf.set(GGML + "padding_token_id", token(gguf, "<|repo_name|>"), "u32")


FAULTS: list[tuple[str, Fault, set[str]]] = [
    ("another text", set_text(300, "zz"), {"GGT702"}),
    ("a token is missing", without_token, {"GGT702"}),
    ("lost special token", set_type("<|im_start|>", 1), {"GGT703"}),
    ("another special type", set_type("<|im_start|>", 4), {"GGT704"}),
    ("fewer merges", fewer_merges, {"GGT705", "GGT707"}),
    ("merges in another order", swapped_merges, {"GGT705"}),
    ("another pre-tokenizer", lambda g: g.set(GGML + "pre", "gpt-2"), {"GGT706"}),
    ("unknown pre-tokenizer", lambda g: g.set(GGML + "pre", "no-such"), {"GGT706"}),
    ("another EOS", other_eos, {"GGT708"}),
    ("another padding", other_padding, {"GGT709"}),
    ("BOS is added", lambda g: g.set(GGML + "add_bos_token", True), {"GGT711"}),
    ("no template", lambda g: g.remove("tokenizer.chat_template"), {"GGT712"}),
    (
        "another template",
        lambda g: g.set("tokenizer.chat_template", CHAT.replace("m.content", "m.content | trim")),
        {"GGT713"},
    ),
    (
        "another template with the same prompts",
        lambda g: g.set("tokenizer.chat_template", "{# ours #}" + CHAT),
        {"GGT714"},
    ),
]


def test_the_original_has_no_findings(pair: tuple[Path, Path]) -> None:
    model, original = pair
    assert codes(ggtok.doctor(model, against=original)) == []
    assert codes(ggtok.doctor(model, against=original / "tokenizer.json")) == []
    assert codes(ggtok.doctor(model)) == []


@pytest.mark.parametrize(("fault", "expected"), [f[1:] for f in FAULTS], ids=[f[0] for f in FAULTS])
def test_each_fault_is_found_and_fixed(
    pair: tuple[Path, Path], tmp_path: Path, fault: Fault, expected: set[str]
) -> None:
    model, original = pair
    gguf = GGUF.read(model)
    fault(gguf)
    faulty = tmp_path / "faulty.gguf"
    gguf.write(faulty)
    found = ggtok.doctor(faulty, against=original)
    assert expected <= set(codes(found)), found
    changes: dict[str, Any] = {}
    for each in found:
        if each.code >= "GGT7":
            assert each.source == str(original)
            changes |= each.changes
    if "GGT702" in expected and fault is without_token:
        return  # the embedding lacks a row, which no edit can add
    if changes:
        planned = ggtok.edit(faulty, changes, dry_run=True)
        fixed = [each.code for each in found if each.code >= "GGT7" and each.changes]
        assert ggtok.edit(faulty, fix=fixed, against=original, dry_run=True).after == planned.after
        ggtok.edit(faulty, changes)
        assert codes(ggtok.doctor(faulty, against=original)) == []
        ours, theirs = ggtok.load(faulty), ggtok.load(model)
        for text in "Hello 123 world's\n\n<|im_start|>user", "naïve über 東京":
            for parse in False, True:
                ids = ours.encode(text, parse_special=parse)
                assert ids == theirs.encode(text, parse_special=parse)
        chat = [{"role": "user", "content": " Hi "}]
        assert ours.encode_chat(chat) == theirs.encode_chat(chat)
    else:
        assert expected == {"GGT714"}


def test_another_vocabulary_type_is_the_only_finding(pair: tuple[Path, Path]) -> None:
    found = ggtok.doctor(fixture("spm"), against=pair[1])
    assert codes(found) == ["GGT701"]


def test_ends_missing_from_the_file_are_found(pair: tuple[Path, Path], tmp_path: Path) -> None:
    model, original = shutil.copy(pair[0], tmp_path), tmp_path / "hf"
    shutil.copytree(pair[1], original)
    gguf = GGUF.read(model)
    config = original / "generation_config.json"
    start, name = token(gguf, "<|im_start|>"), token(gguf, "<|repo_name|>")
    config.write_text(json.dumps({"eos_token_id": [start, name, start, -1, "x", 1 << 40]}))
    [found] = [each for each in ggtok.doctor(model, against=original) if each.code >= "GGT7"]
    missing = [id for id in (start, name) if not ggtok.load(model).is_eog(id)]
    assert (found.code, list(found.ids)) == ("GGT710", missing)
    assert "the model will not stop at" in found.detail
    ggtok.edit(model, fix="GGT710", against=original)
    assert codes(ggtok.doctor(model, against=original)) == []
    assert all(map(ggtok.load(model).is_eog, missing))
    # A token that isn't in the file can't end generation.
    texts = gguf.strings(GGML + "tokens")
    last = len(texts) - 1
    config.write_text(json.dumps({"eos_token_id": last}))
    without_token(gguf)
    gguf.write(model)
    found = ggtok.doctor(model, against=original)
    assert "GGT702" in codes(found) and "GGT710" not in codes(found)
    config.write_text("[")
    with pytest.raises(ggtok.VocabError, match=r"generation_config\.json"):
        ggtok.doctor(model, against=original)


def test_slow_templates_stop_the_comparison(
    pair: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The comparison of templates stops at its time limit, and the finding says so."""
    gguf = GGUF.read(pair[0])
    gguf.set("tokenizer.chat_template", CHAT.replace("m.content", "m.content | trim"))
    model = gguf.write(tmp_path / "other.gguf")
    monkeypatch.setattr(engines, "_SECONDS", -1.0)
    [found] = [each for each in ggtok.doctor(model, against=pair[1]) if each.code >= "GGT7"]
    assert found.code == "GGT714"
    assert found.detail.endswith("not every conversation was compared")


def test_every_code_is_found() -> None:
    tested = {code for _, _, codes in FAULTS for code in codes} | {"GGT701", "GGT710"}
    assert tested == {code for code in KINDS if code >= "GGT7"}


def test_the_repository_that_a_file_names(tmp_path: Path) -> None:
    """--against=auto uses the first address in the metadata that is a repository of the Hub."""
    source, base = "general.source.repo_url", "general.base_model.0.repo_url"
    gguf = GGUF.read(fixture("spm"))
    for address, expected in (
        ("https://huggingface.co/user/repo/tree/main", "user/repo/tree"),
        ("https://github.com/user/code", "huggingface.co/base/model"),
        ("/etc/passwd", "huggingface.co/base/model"),
        ("hf://..", "huggingface.co/base/model"),
    ):
        gguf.set(source, address, "str")
        gguf.set(base, "https://huggingface.co/base/model", "str")
        path = gguf.write(tmp_path / "m.gguf")
        assert expected in sources._repository_of(File(path))
    gguf.remove(base)
    path = gguf.write(tmp_path / "m.gguf")
    with pytest.raises(ggtok.InvalidValueError, match=r"comes from hf://\.\., which isn't"):
        ggtok.doctor(path, against="auto")


# ---- the Hub ----


@pytest.fixture
def hub(pair: tuple[Path, Path]) -> Iterator[Hub]:
    with Server() as store, Hub(store) as running:
        files: dict[str, bytes | Path] = {path.name: path for path in pair[1].iterdir()}
        running.add("user/repo", {**files, "model.safetensors": b"weights", "README.md": b"x"})
        running.add("user/other", {"README.md": b"x"})
        yield running


def doctor(hub: Hub | None, home: Path, *argv: str, **more: str) -> tuple[int, Any, str]:
    """Runs the command in a process, since huggingface_hub reads its settings on import; returns
    the exit status, JSON and messages."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("HF_", "GGTOK_")) and not name.lower().endswith("_proxy")
    }
    environment |= {"HOME": str(home), **more}
    if hub is not None:
        environment["HF_ENDPOINT"] = hub.origin
    completed = subprocess.run(
        [*COMMAND, "doctor", *argv, "--json"], capture_output=True, text=True, env=environment
    )
    return completed.returncode, json.loads(completed.stdout or "null"), completed.stderr


@pytest.mark.full
@pytest.mark.skipif(sys.platform == "win32", reason="needs HOME")
def test_the_original_may_be_a_repository(
    hub: Hub, pair: tuple[Path, Path], tmp_path: Path
) -> None:
    gguf = GGUF.read(pair[0])
    gguf.set(GGML + "add_bos_token", True)
    gguf.set("general.source.repo_url", "https://huggingface.co/user/repo")
    faulty = str(gguf.write(tmp_path / "faulty.gguf"))
    status, found, _ = doctor(hub, tmp_path, faulty, "--against", "user/repo")
    assert status == 1
    assert [each["code"] for each in found if each["code"] >= "GGT7"] == ["GGT711"]
    assert not any("safetensors" in path or "README" in path for path in map(str, hub.requests))
    for name in "auto", "hf://user/repo", "https://huggingface.co/user/repo":
        repeated = doctor(hub, tmp_path, faulty, "--against", name)
        assert [each["code"] for each in repeated[1]] == [each["code"] for each in found], repeated
    # The original comes from huggingface_hub's cache, without a server.
    offline = doctor(None, tmp_path, faulty, "--against", "user/repo", HF_HUB_OFFLINE="1")
    assert offline[1] == found
    unreachable = doctor(
        None, tmp_path, faulty, "--against", "user/repo", HF_ENDPOINT=stopped_server()
    )
    assert unreachable[1] == found


@pytest.mark.skipif(sys.platform == "win32", reason="needs HOME")
def test_every_usual_name_of_a_tokenizer_file_is_downloaded(
    hub: Hub, pair: tuple[Path, Path], tmp_path: Path
) -> None:
    names = [
        "tokenizer.model.v3",
        "instruct.model.v7m1",
        "source.spm",
        "tiktoken.model",
        "x.tiktoken",
    ]
    names += ["encoder.json", "vocab.bpe"]
    others = ["pytorch.model", "model.spm.bin", "weights.model.v"]
    hub.add("user/names", dict.fromkeys([*names, *others], b"x"))
    status, _, error = doctor(hub, tmp_path, str(pair[0]), "--against", "user/names")
    assert (status, error.count("\n")) == (2, 1)
    requested = {request.path.rpartition("/")[2] for request in hub.requests}
    assert requested & {*names, *others} == set(names)


def stopped_server() -> str:
    """Returns the address of a server that has been stopped."""
    with Server() as server:
        return server.origin


@pytest.mark.skipif(sys.platform == "win32", reason="needs HOME")
def test_unusable_originals_raise_errors(hub: Hub, pair: tuple[Path, Path], tmp_path: Path) -> None:
    model = str(pair[0])
    (tmp_path / "empty").mkdir()
    hub.fail("user/missing", 404, "RepoNotFound")
    for against, message in [
        ("user/other", "the repository has no tokenizer files"),
        ("user/missing", "user/missing: no such file, nor such a repository"),
        ("auto", "the file doesn't say where it comes from"),
        ("nothing", "nothing: neither a file or folder nor the name of a repository"),
        ("", "'': neither a file or folder nor the name of a repository"),
        (str(tmp_path / "empty"), "the folder has no tokenizer"),
        (model, "already a vocabulary for llama.cpp"),
        ("user/repo:Q8_0", "nor the name of a repository"),
    ]:
        status, found, error = doctor(hub, tmp_path, model, "--against", against)
        assert (status, found) == (2, None), against
        assert message in error
        assert error.count("\n") == 1, error
    hub.json["/api/models/user/repo/tree/main"] = [
        {"type": "file", "path": "tokenizer.json", "size": 1 << 40, "oid": "0" * 40}
    ]
    status, _, error = doctor(hub, tmp_path, model, "--against", "user/repo")
    assert status == 2
    assert "too large for a tokenizer" in error
    hub.json["/api/models/user/repo/tree/main"] = [
        {"type": "file", "path": 5, "size": 1, "oid": "0" * 40}
    ]
    status, _, error = doctor(hub, tmp_path, model, "--against", "user/repo")
    assert status == 2
    assert "the repository has no tokenizer files" in error
    hub.json["/api/models/user/repo/tree/main"] = [
        {"type": "file", "path": f"{i}.tiktoken", "size": 1, "oid": "0" * 40} for i in range(1000)
    ]
    status, _, error = doctor(hub, tmp_path, model, "--against", "user/repo")
    assert status == 2
    assert "1000 files are like those of tokenizers" in error


def test_a_wrong_type_raises_an_error() -> None:
    with pytest.raises(ggtok.InvalidTypeError, match="against must be str or a path"):
        ggtok.doctor(fixture("spm"), against=1)  # type: ignore[arg-type]
