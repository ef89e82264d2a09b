"""ggtok.edit(fix=...): which findings it accepts, and its errors. `test_corpus.py` tests how each
correction changes a file, `tests/cli/test_edit.py` tests the command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ggtok
from tests.checks.healthy import GGML, base, faulty

EOT = GGML + "eot_token_id"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return faulty().write(tmp_path / "model.gguf")


def codes(path: Path) -> list[str]:
    return [f.code for f in ggtok.doctor(path)]


def keys(edited: Any) -> list[str]:
    return [change.key for change in edited.changes]


def test_fixing_one_code_and_all(model: Path, tmp_path: Path) -> None:
    assert codes(model) == ["GGT204", "GGT301", "GGT401"]
    by_code = {f.code: f for f in ggtok.doctor(model)}
    end = ggtok.load(model).text_to_token("<|done|>")
    assert by_code["GGT204"].changes == {EOT: end}
    assert by_code["GGT204"].command == "ggtok edit MODEL --fix GGT204 --in-place"
    assert by_code["GGT401"].command is None and by_code["GGT401"].as_dict()["command"] is None
    out = tmp_path / "out.gguf"
    assert keys(ggtok.edit(model, fix="GGT204", out=out)) == [EOT]
    assert codes(out) == ["GGT301", "GGT401"]
    assert len(keys(ggtok.edit(model, fix=["GGT301", "GGT204"], dry_run=True))) == 2
    planned = ggtok.edit(model, fix="all", dry_run=True)
    assert ggtok.edit(model, fix="all").changes == planned.changes
    assert len(planned.changes) == 2
    assert codes(model) == ["GGT401"]
    assert keys(ggtok.edit(model, fix="all")) == []
    assert end in ggtok.load(model).eog_ids


def test_changes_come_after_corrections(model: Path) -> None:
    edited = ggtok.edit(model, {EOT: 5, "general.name": "x"}, fix="GGT204", dry_run=True)
    assert {c.key: c.after for c in edited.changes} == {EOT: 5, "general.name": "x"}


def test_wrong_codes_raise_errors(model: Path, tmp_path: Path) -> None:
    for fix, pattern in (
        ("GGT999", "'GGT999' is no finding's code"),
        ("GGT302", r"GGT302 \(.*\) isn't found in the file"),
        ("GGT401", r"GGT401 \(.*\) has no certain correction: Convert the model again"),
    ):
        with pytest.raises(ggtok.InvalidValueError, match=pattern):
            ggtok.edit(model, fix=fix)
    with pytest.raises(ggtok.InvalidTypeError, match="fix must be codes or 'all', not int"):
        ggtok.edit(model, fix=3)  # type: ignore[arg-type]
    with pytest.raises(ggtok.InvalidTypeError, match="changes must be a mapping"):
        ggtok.edit(model, [("a", 1)])  # type: ignore[arg-type]
    with pytest.raises(ggtok.FileError):
        ggtok.edit(tmp_path / "none.gguf", fix="all")
    assert codes(model) == ["GGT204", "GGT301", "GGT401"]


def test_corrections_of_one_key_are_combined(tmp_path: Path) -> None:
    """Removing malformed and repeated merges are changes to the same key."""
    gguf = base()
    merges = gguf.array(GGML + "merges")
    gguf.set(GGML + "merges", [*merges, "nospace", merges[3], merges[0]], "str")
    path = gguf.write(tmp_path / "model.gguf")
    assert codes(path) == ["GGT501", "GGT502"]
    [change] = ggtok.edit(path, fix="all").changes
    assert change.after == [m.decode() for m in merges if isinstance(m, bytes)]
    assert codes(path) == []
