"""Tests the commands ``ggtok explain`` and ``ggtok merges``."""

from __future__ import annotations

import json
import warnings
from dataclasses import asdict
from pathlib import Path

import pytest

import ggtok
from ggtok import cli
from tests.cli.command import BPE, LLAMA3, SPM, spawn
from tests.support.patch import GGUF, add_tokens
from tests.support.vocabularies import fixture, fixture_names

EXPLAINED = """\
BPE vocabulary (model gpt2, pre-tokenizer llama-bpe)
added
      662  '<|begin_of_text|>'  added
           BOS, because the vocabulary's add_bos is on
special token, bytes 0 to 10
      664  '<|eot_id|>'  special
           a control token, parsed because parse_special is on
text, bytes 10 to 16: ' there'
  word ' there'
    rule of llama3: '[^\\r\\n\\p{L}\\p{N}]?\\p{L}+'
    symbols ' ' 't' 'h' 'e' 'r' 'e'
    merge ' ' + 't'  rank 21
    merge 'h' + 'e'  rank 34
    merge 'r' + 'e'  rank 39
    merge ' t' + 'he'  rank 74
        330  ' the'  merged
        295  're'  merged
ids: 662 664 330 295
"""


def test_steps_in_lines(run, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("<|eot_id|> there")
    for more, stdin in (
        (("<|eot_id|> there",), b""),
        (("-p", "<|eot_id|> there"), b""),
        (("-f", str(text)), b""),
        (("-f", "-"), text.read_bytes()),
    ):
        done = run("explain", LLAMA3, *more, "--parse-special", stdin=stdin)
        assert (done.status, done.out.decode(), done.errors) == (0, EXPLAINED, [])
    plain = run("explain", LLAMA3, "<|eot_id|>", "--no-special").out.decode()
    assert "special" not in plain and "added" not in plain
    assert "rule of llama3: ' ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*'" in plain


@pytest.mark.parametrize("name", [name for name in fixture_names() if name != "none"])
def test_json_and_lines_of_every_type(run, name: str) -> None:
    text = "The kettle\u2603 is <0x41>  on, na\u00efve\n12345 <dna>ACG</dna>" + "\u6f22\x1b[2J" * 30
    path = str(fixture(name))
    done = run("explain", path, text, "--json", "-q")
    found = json.loads(done.out)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ggtok.VocabWarning)
        assert found == asdict(ggtok.load(path).explain(text))
    lines = run("explain", path, text, "-q").out.decode()
    assert "\x1b" not in lines
    assert all(len(line) < 110 for line in lines.splitlines())
    shown = lines[lines.index("ids: ") :]
    assert [int(id) for id in shown.split()[1:]] == found["ids"]
    assert all(len(line) <= 60 for line in shown.splitlines())


def test_words_between_matches_and_many_symbols(run) -> None:
    shown = run("explain", SPM, "a" * 50, "--no-special").out.decode()
    assert "... and 35 more" in shown and "(51 characters)" in shown
    shown = run("explain", LLAMA3, "", "--no-special").out.decode()
    assert shown.endswith("ids: none\n")
    shown = run("explain", str(fixture("bpe-kimi")), "\u0301", "--no-special", "-q").out.decode()
    assert "rule of kimi_k2" in shown
    bloom = run("explain", BPE, "a.", "--no-special", "--pre", "bloom").out.decode()
    assert "    rule of bloom: between matches\n" in bloom


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["explain"], "no model"),
        (["explain", LLAMA3], "no text: give it as an argument, or use -p or -f"),
        (["explain", LLAMA3, "a", "b"], "one text is expected, not 2: put it in quotes"),
        (["explain", LLAMA3, "a", "-p", "b"], "two texts: 'a' and -p; give one of them"),
        (["explain", LLAMA3, "a", "-f", "-"], "two texts: 'a' and -f; give one of them"),
        (["explain", LLAMA3, "a" * 20000], "the text has 20,000 bytes, and at most 16,384 can"),
        (["explain", LLAMA3, "-f", "/nothing"], "/nothing: No such file or directory"),
        (["explain", str(fixture("none")), "a"], "the file has no vocabulary"),
        (["merges", LLAMA3], "give one token: its id or its text"),
        (["merges", LLAMA3, "1", "2"], "give one token: its id or its text"),
        (["merges", LLAMA3, "99999"], "no token 99999: the ids are 0 to 679"),
        (["merges", LLAMA3, " there"], "no token has the text ' there': it becomes tokens 330 295"),
        (
            ["merges", LLAMA3, "--text", "662"],
            "no token has the text '662': it becomes tokens 21 21 17",
        ),
        (["merges", str(fixture("ugm")), "5", "-q"], "a UGM vocabulary has no merges"),
    ],
)
def test_errors(run, argv: list[str], message: str) -> None:
    done = run(*argv)
    assert (done.status, done.out) == (2, b"")
    assert len(done.errors) == 1 and message in done.errors[0]


def test_a_tree(run) -> None:
    done = run("merges", LLAMA3, "330")
    assert done.out.decode() == (
        "token 330 ' the'\n"
        "  ignore_merges: a word equal to this token becomes it without merging\n"
        "  ' the'  rank 74\n"
        "    ' t'  rank 21\n"
        "      ' '\n"
        "      't'\n"
        "    'he'  rank 34\n"
        "      'h'\n"
        "      'e'\n"
    )
    assert run("merges", LLAMA3, " the").out == done.out
    assert "score -6\n" in run("merges", SPM, " the").out.decode()
    assert run("merges", BPE, "--text", "1").out.endswith(
        b"no merge: it is a symbol that merging starts from\n"
    )
    found = json.loads(run("merges", LLAMA3, "330", "--json").out)
    assert found == [asdict(ggtok.load(LLAMA3).merge_tree(330))]


def test_every_tree_is_whole(run) -> None:
    """The leaves of each tree are its symbols in order, even if merges join parts of characters."""
    tok = ggtok.load(BPE)
    for id in range(0, tok.n_tokens, 90):
        tree = tok.merge_tree(id)
        lines = run("merges", BPE, str(id)).out.decode().splitlines()
        if tree.reached and tree.merges:
            leaves = [line for line in lines[1:] if line.startswith("  ") and line.endswith("'")]
            assert len([line for line in leaves if "cuts it" not in line]) == len(tree.symbols)


def test_tokens_that_merging_does_not_give(run, tmp_path: Path) -> None:
    gguf = GGUF.read(BPE)
    add_tokens(gguf, ["there\x1bzq", "x" * 60], 1)
    path = str(gguf.write(tmp_path / "model.gguf"))
    n = ggtok.load(path).n_tokens
    shown = run("merges", path, str(n - 2)).out.decode()
    assert "\x1b" not in shown and "stands for no byte" in shown
    shown = run("merges", path, str(n - 1)).out.decode()
    assert "(60 characters)" in shown and "merging its own text doesn't produce it, but\n" in shown
    gguf.set(
        "tokenizer.ggml.merges", [*gguf.array("tokenizer.ggml.merges"), "x" * 30 + " " + "x" * 30]
    )
    path = str(gguf.write(tmp_path / "model.gguf"))
    assert "  pairs that would merge to it\n" in run("merges", path, str(n - 1)).out.decode()


def test_a_deep_tree_is_not_indented_without_end(run, tmp_path: Path) -> None:
    gguf = GGUF.read(BPE)
    merges = [f"{'q' * n} q" for n in range(1, 40)]
    add_tokens(gguf, ["q" * n for n in range(2, 41)], 1)
    gguf.set("tokenizer.ggml.merges", [*merges[::-1], *gguf.array("tokenizer.ggml.merges")])
    path = str(gguf.write(tmp_path / "model.gguf"))
    shown = run("merges", path, "q" * 40).out.decode()
    assert all(len(line) < 90 for line in shown.splitlines())


def test_locales_and_pipes(tmp_path: Path) -> None:
    latin = {"LC_ALL": "C", "PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}
    done = spawn(["explain", SPM, "-f", "-"], tmp_path, "\u2603".encode(), **latin)
    assert (done.returncode, done.stderr) == (0, b"")
    assert "becomes '\u2581\u2603'".encode() in done.stdout


def test_a_reader_that_is_gone(run, monkeypatch: pytest.MonkeyPatch) -> None:
    from ggtok.cli import messages, standard_output

    def gone(line: str) -> None:
        raise standard_output.OutputError(BrokenPipeError())

    monkeypatch.setattr(standard_output, "write_line", gone)
    monkeypatch.setattr(standard_output, "discard", lambda: None)
    for argv in (["explain", LLAMA3, "a"], ["merges", LLAMA3, "1"]):
        assert cli.main(argv) == messages.BROKEN_PIPE


def test_a_token_whose_merges_give_nothing(run, tmp_path: Path) -> None:
    """Neither the merge's result nor any of its bytes is a token."""
    gguf = GGUF.read(str(fixture("bpe-odd")))
    merges = gguf.array("tokenizer.ggml.merges")
    add_tokens(gguf, ["\u0120\u0120\u0120\u0101"], 1)
    gguf.set("tokenizer.ggml.merges", ["\u0120 \u0120", "\u0120\u0120 \u0120", *merges])
    path = str(gguf.write(tmp_path / "model.gguf"))
    tok = ggtok.load(path)
    shown = run("merges", path, str(tok.n_tokens - 1)).out.decode()
    assert "merging its own text doesn't produce it" in shown
    assert ("no token at all" in shown) == (not tok.merge_tree(tok.n_tokens - 1).tokens)
