"""encode_files with random segmentations."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ggtok
from ggtok.corpora import document_batches, run
from tests.support.vocabularies import fixture

TEXT = "The quick brown kettle was on fire"


@pytest.fixture(scope="module")
def tok() -> ggtok.Tokenizer:
    return ggtok.load(fixture("bpe-gpt2"))


def documents_in(path: Path) -> list[list[int]]:
    ids = np.fromfile(path, "<u2")
    offsets = np.fromfile(f"{path}.offsets", "<i8").tolist()
    return [ids[a:b].tolist() for a, b in itertools.pairwise(offsets)]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """JSON lines with faulty records, a large text file, and many documents in one file."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    rows = [json.dumps({"text": f"{TEXT} {i}"}) for i in range(300)]
    rows[7:9] = ["{}", '{"text": ""}']
    (folder / "a.jsonl").write_text("\n".join(rows))
    (folder / "b.txt").write_text(f"{TEXT}\0" * 900)
    (folder / "c.txt").write_text(f"{TEXT}. " * 4000)
    return folder


def encode(tok: ggtok.Tokenizer, corpus: Path, out: Path, **options: Any) -> list[list[int]]:
    tok.encode_files(
        corpus, out, errors="skip", separator="\0", **{"dropout": 0.3, "seed": 9, **options}
    )
    return documents_in(out)


def test_documents_have_the_ids_of_their_numbers(
    tok: ggtok.Tokenizer, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = encode(tok, corpus, tmp_path / "x.bin", threads=3)
    texts = [f"{TEXT} {i}" for i in range(300) if i not in (7, 8)]
    texts += [TEXT] * 900 + [f"{TEXT}. " * 4000]
    ids, offsets = tok.sample_batch_arrays(texts, dropout=0.3, seed=9)
    ends = offsets.tolist()
    assert len(found) == len(texts)
    for i, document in enumerate(found):
        assert document == [*ids[ends[i] : ends[i + 1]].tolist(), tok.eos_id], i
    monkeypatch.setattr(run, "BYTES", 5000)
    assert encode(tok, corpus, tmp_path / "y.bin", threads=1) == found
    assert encode(tok, corpus, tmp_path / "z.bin", seed=10) != found


def test_a_resumed_run_writes_the_same_bytes(
    tok: ggtok.Tokenizer, corpus: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    encode(tok, corpus, tmp_path / "whole.bin")
    request.getfixturevalue("small")
    n = 0

    def stop(progress: ggtok.EncodeProgress) -> None:
        nonlocal n
        n += 1
        if n == 40:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        encode(tok, corpus, tmp_path / "x.bin", progress=stop)
    with pytest.raises(ggtok.InvalidValueError, match="seed was 9, is 8"):
        encode(tok, corpus, tmp_path / "x.bin", seed=8)
    with pytest.raises(ggtok.InvalidValueError, match=r"dropout was 0\.3, is null"):
        encode(tok, corpus, tmp_path / "x.bin", dropout=None)
    summary = tok.encode_files(
        corpus, tmp_path / "x.bin", errors="skip", separator="\0", dropout=0.3, seed=9
    )
    assert 0 < summary.resumed < summary.ids
    for name in ("", ".offsets"):
        whole, resumed = tmp_path / f"whole.bin{name}", tmp_path / f"x.bin{name}"
        assert whole.read_bytes() == resumed.read_bytes()


def test_shards_are_sampled_independently(tok: ggtok.Tokenizer, tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text(TEXT * 20)
    tok.encode_files(tmp_path, tmp_path / "x.bin", shards=2, dropout=0.3, seed=9)
    first, second = (documents_in(tmp_path / f"x-0000{i}-of-00002.bin") for i in range(2))
    assert len(first) == len(second) == 1 and first != second
    assert first == [[*tok.sample(TEXT * 20, dropout=0.3, seed=9), tok.eos_id]]


def test_wrong_settings(tok: ggtok.Tokenizer, corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(ggtok.InvalidValueError, match="alpha: a BPE vocabulary has no scores"):
        encode(tok, corpus, tmp_path / "x.bin", dropout=None, alpha=0.5)
    with pytest.raises(ggtok.InvalidValueError, match="pass dropout or alpha, not both"):
        encode(tok, corpus, tmp_path / "x.bin", alpha=0.5)
    with pytest.raises(ggtok.InvalidValueError, match="dropout has no effect with chat"):
        tok.encode_files(corpus / "a.jsonl", tmp_path / "x.bin", chat=True, dropout=0.5)
    assert not list(tmp_path.glob("x.bin*"))
    assert document_batches.BYTES == run.BYTES
