"""Random segmentations have the probabilities of their rule, which is another library's."""

from __future__ import annotations

import itertools
import math
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ggtok
from ggtok.inspect.parity.texts import CODE, PROSE
from ggtok.vocabularies import of_tokenizer
from tests.plain import sampling
from tests.plain.bpe import first_symbols, to_stored
from tests.plain.characters import value
from tests.plain.explain import normalized_bytes, vocabulary_of
from tests.properties.given import some_text
from tests.support.vocabularies import fixture, fixture_names, real

Load = Callable[[str], ggtok.Tokenizer]

BPE = ["bpe-llama3", "bpe-gpt2", "bpe-gemma4", "bpe-mmbert"]
SPM = ["spm", "spm-bytes", "spm-phi3"]
UGM = ["ugm", "ugm-plain", "ugm-nfc"]
RULES = [
    *((name, "dropout") for name in BPE + SPM),
    *((name, "alpha") for name in SPM + UGM),
]
SAMPLES = 20_000


def check_frequencies(
    found: Iterable[Hashable], expected: Mapping[Any, float], sigmas: float = 4
) -> None:
    """Compares frequencies with probabilities by a chi-squared test, in which results that are
    expected less than eight times count as one."""
    counts = Counter(found)
    n = counts.total()
    assert counts.keys() <= expected.keys(), counts.keys() - expected.keys()
    assert math.isclose(sum(expected.values()), 1)
    usual = [key for key, p in expected.items() if p * n >= 8]
    rows = [(counts[key], expected[key] * n) for key in usual]
    rest = n - sum(count for count, _ in rows), n - sum(want for _, want in rows)
    if rest[1] >= 8:
        rows.append(rest)
    else:
        assert rest[0] <= 8 + sigmas * 3
    chi_squared = sum((count - want) ** 2 / want for count, want in rows)
    freedom = len(rows) - 1
    assert freedom >= 1
    assert chi_squared < freedom + sigmas * math.sqrt(2 * freedom) + sigmas**2


def sampled(tok: ggtok.Tokenizer, text: str, **options: Any) -> list[tuple[int, ...]]:
    ids, offsets = tok.sample_batch_arrays([text] * SAMPLES, add_special=False, **options)
    flat = ids.tolist()
    return [tuple(flat[a:b]) for a, b in itertools.pairwise(offsets.tolist())]


def ids_of(tok: ggtok.Tokenizer, symbols: Mapping[tuple[bytes, ...], float]) -> dict[Any, float]:
    """Returns the probabilities by ids, where every symbol is a token."""
    v = vocabulary_of(tok._loaded)
    return {tuple(v.find(s) for s in found): p for found, p in symbols.items()}


def expected_merges(
    tok: ggtok.Tokenizer, word: str, p: float, returns: bool
) -> dict[tuple[int, ...], float]:
    v = vocabulary_of(tok._loaded)
    stored, order = normalized(tok, word), sampling.scores_of(v)
    if tok.vocab_type == "BPE":
        stored, order = to_stored(v, stored), sampling.ranks_of(v)
    return ids_of(
        tok, sampling.merge_probabilities(tuple(first_symbols(stored)), order, p, returns)
    )


@pytest.mark.parametrize("p", [0.1, 0.5])
@pytest.mark.parametrize(("name", "rule"), [row for row in RULES if row[0] not in UGM])
def test_merges_have_their_rules_probabilities(
    load_fixture: Load, name: str, rule: str, p: float
) -> None:
    tok = load_fixture(name)
    expected = expected_merges(tok, " there", p, rule == "dropout")
    check_frequencies(sampled(tok, " there", seed=1, **{rule: p}), expected)


def normalized(tok: ggtok.Tokenizer, text: str) -> bytes:
    return value(normalized_bytes(vocabulary_of(tok._loaded), text.encode(), True))


@pytest.mark.parametrize("nbest", [None, 5])
@pytest.mark.parametrize("alpha", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("name", UGM)
def test_paths_have_their_rules_probabilities(
    load_fixture: Load, name: str, alpha: float, nbest: int | None
) -> None:
    tok = load_fixture(name)
    text = normalized(tok, "the kettle")
    if nbest:  # a number that doesn't divide paths with the same score
        scores = sorted(p[1] for p in sampling.paths(vocabulary_of(tok._loaded), text))[::-1]
        while scores[nbest - 1] == scores[nbest]:
            nbest -= 1
    expected = sampling.path_probabilities(vocabulary_of(tok._loaded), text, alpha, nbest)
    check_frequencies(sampled(tok, "the kettle", alpha=alpha, nbest=nbest or -1, seed=2), expected)


@pytest.mark.parametrize("name", UGM)
@pytest.mark.parametrize("text", ["the kettle", "on fire", "", "a"])
def test_best_segmentations(load_fixture: Load, name: str, text: str) -> None:
    tok = load_fixture(name)
    every = sorted(
        sampling.paths(vocabulary_of(tok._loaded), normalized(tok, text)), key=lambda p: -p[1]
    )
    found = tok.nbest(text, 300, add_special=False)
    assert found[0][0] == tok.encode(text, add_special=False)
    assert [score for _, score in found] == [score for _, score in every[:300]]
    assert len({tuple(ids) for ids, _ in found}) == len(found)
    assert {(tuple(ids), score) for ids, score in found} <= set(every)
    assert tok.nbest(text, 1)[0][0] == tok.encode(text)


def test_best_segmentations_go_across_special_tokens(load_fixture: Load) -> None:
    """They are those of the parts between special tokens, combined."""
    tok = load_fixture("ugm")
    special = next(
        id
        for id in sorted(tok.special_ids)
        if tok.encode(tok.token_text(id), parse_special=True, add_special=False) == [id]
        and id not in tok.encode("")
    )
    middle = tok.token_text(special).decode()
    text = f"the kettle{middle}on fire"
    found = tok.nbest(text, 40, parse_special=True)
    parts = [tok.nbest(part, 40, add_special=False) for part in ("the kettle", "on fire")]
    pairs = itertools.product(*parts)
    scores = sorted((a + b for (_, a), (_, b) in pairs), reverse=True)[:40]
    assert [score for _, score in found] == pytest.approx(scores)
    assert found[0][0] == tok.encode(text, parse_special=True)
    for ids, _ in found:
        assert ids.count(special) == 1 and tok.decode(ids) == tok.decode(found[0][0])


@pytest.mark.parametrize(("name", "rule"), RULES)
@given(text=some_text, seed=st.integers(0, 2**64 - 1), parse=st.booleans())
def test_every_sample_decodes_to_the_text(
    load_fixture: Load, name: str, rule: str, text: str, seed: int, parse: bool
) -> None:
    tok = load_fixture(name)
    flags = {"parse_special": parse}
    usual = tok.encode(text, **flags)
    ids = tok.sample(text, **{rule: 0.3}, seed=seed, **flags)
    if tok.unk_id not in ids and tok.unk_id not in usual:
        assert tok.decode(ids) == tok.decode(usual)
    assert ids == tok.sample(text, **{rule: 0.3}, seed=seed, **flags)
    if rule == "dropout" or name in SPM:
        assert tok.sample(text, **{rule: 0}, **flags) == usual
    else:
        assert tok.sample(text, **{rule: 3}, nbest=1, **flags) == usual
        assert tok.nbest(text, 2, **flags)[0][0] == usual


@pytest.mark.parametrize(("name", "rule"), [row for row in RULES if row[0] not in UGM])
def test_a_probability_of_1_gives_the_initial_symbols(
    load_fixture: Load, name: str, rule: str
) -> None:
    tok = load_fixture(name)
    v = vocabulary_of(tok._loaded)
    text = "kettles, on fire\n"
    ids = tok.sample(text, **{rule: 1}, add_special=False)
    symbols = [s.symbols for f in tok.explain(text, add_special=False).fragments for s in f.words]
    assert len(ids) >= len([*itertools.chain.from_iterable(symbols)]) > 0
    assert all(len(v.text(id)) <= 3 or v.text(id).startswith(b"<0x") for id in ids)


def test_words_that_are_tokens_are_merged(load_fixture: Load) -> None:
    """With dropout, the flag ignore_merges doesn't apply."""
    tok = load_fixture("bpe-llama3")
    assert tok._loaded.flags["ignore_merges"]
    word = next(
        text
        for id in range(tok.n_tokens)
        if len(text := tok.token_to_piece(id)) > 5
        and text.isalpha()
        and tok.encode(text, add_special=False) == [id]
    )
    assert len(tok.sample(word, dropout=1e-9, seed=1, add_special=False)) >= 1
    assert len(tok.sample(word, dropout=1, add_special=False)) == len(word)


def test_ids_depend_on_seed_and_index(load_fixture: Load) -> None:
    tok = load_fixture("bpe-gpt2")
    texts = ["The quick brown kettle"] * 64
    first = tok.sample_batch_arrays(texts, dropout=0.4, seed=5, threads=1)
    again = tok.sample_batch_arrays(texts, dropout=0.4, seed=5, threads=4)
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    ids, offsets = first
    rows = [tuple(ids[a:b].tolist()) for a, b in itertools.pairwise(offsets.tolist())]
    assert rows[0] == tuple(tok.sample(texts[0], dropout=0.4, seed=5))
    assert len(set(rows)) > 20
    fewer, ends = tok.sample_batch_arrays(["x", *texts[1:9]], dropout=0.4, seed=5)
    assert fewer[ends[1] :].tolist() == ids[offsets[1] : offsets[9]].tolist()
    other, _ = tok.sample_batch_arrays(texts, dropout=0.4, seed=6)
    assert other.tolist() != ids.tolist()
    assert tok.sample(texts[0], dropout=0.4) != tok.sample(texts[0], dropout=0.4) or tok.sample(
        texts[0], dropout=0.4
    ) != tok.sample(texts[0], dropout=0.4)


# (vocabulary, rule, ids): the same on every platform.
RECORDED: list[tuple[str, dict[str, Any], list[int]]] = [
    (
        "bpe-gpt2",
        {"dropout": 0.3, "seed": 1},
        [51, 290, 220, 520, 72, 66, 74, 380, 627, 86, 77, 220, 74, 68, 83, 83, 321],
    ),
    (
        "spm",
        {"dropout": 0.5, "seed": 2},
        [
            1,
            609,
            717,
            263,
            609,
            718,
            621,
            613,
            627,
            626,
            295,
            383,
            674,
            612,
            294,
            611,
            614,
            614,
            274,
        ],
    ),
    (
        "spm",
        {"alpha": 0.3, "seed": 7},
        [1, 609, 717, 263, 469, 613, 627, 626, 295, 383, 674, 612, 294, 611, 614, 614, 274],
    ),
    (
        "ugm",
        {"alpha": 0.2, "seed": 3},
        [3, 2, 29, 3, 269, 7, 28, 26, 137, 9, 13, 283, 6, 139, 114, 8, 46, 1],
    ),
    (
        "ugm",
        {"alpha": 0.2, "nbest": 8, "seed": 4},
        [3, 2, 29, 3, 269, 7, 28, 26, 137, 9, 13, 283, 6, 139, 114, 8, 46, 1],
    ),
]


@pytest.mark.parametrize(("name", "options", "ids"), RECORDED)
def test_recorded_ids(
    load_fixture: Load, name: str, options: dict[str, Any], ids: list[int]
) -> None:
    assert load_fixture(name).sample("The quick brown kettle", **options) == ids


# ---- beside the rules' own libraries ----


def check_library_of_merges(
    tok: ggtok.Tokenizer, text: str, encode: Callable[[str], tuple[int, ...]], p: float, rule: str
) -> None:
    """Both libraries' samples have the exact probabilities."""
    expected = expected_merges(tok, text, p, rule == "dropout")
    check_frequencies(sampled(tok, text, seed=3, **{rule: p}), expected)
    # The library's random numbers have no seed.
    check_frequencies((encode(text) for _ in range(SAMPLES)), expected, sigmas=7)


def loaded(name: str) -> ggtok.Tokenizer:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ggtok.VocabWarning)
        return ggtok.load(fixture(name) if name in fixture_names() else real(name))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("bpe-gpt2", " there"),
        pytest.param("gpt-2", "kettle", marks=pytest.mark.full),
        pytest.param("llama-bpe", "kettle", marks=pytest.mark.full),
        pytest.param("qwen2", "kettle", marks=pytest.mark.full),
        pytest.param("llama-spm", "kettle", marks=pytest.mark.full),
    ],
)
def test_dropout_is_tokenizers_rule(tmp_path: Path, name: str, text: str) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    tok = loaded(name)
    path = tmp_path / "tokenizer.json"
    of_tokenizer.vocabulary_of(tok).save(path, inexact=True)
    other = tokenizers.Tokenizer.from_file(str(path))
    other.model.dropout = 0.3

    def encode(text: str) -> tuple[int, ...]:
        return tuple(other.encode(text, add_special_tokens=False).ids)

    check_library_of_merges(tok, text, encode, 0.3, "dropout")


def sentencepiece_model(folder: Path, name: str) -> tuple[ggtok.Tokenizer, Any]:
    """Returns a tokenizer and SentencePiece's for the same real vocabulary, or for one that is
    trained here."""
    sentencepiece = pytest.importorskip("sentencepiece")
    path = folder / "tokenizer.model"
    if name in ("bpe", "unigram"):
        with path.open("wb") as file:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter([*PROSE, *CODE]),
                model_writer=file,
                model_type=name,
                vocab_size=1200,
                hard_vocab_limit=False,
                minloglevel=2,
            )
        tok = ggtok.convert(path).tokenizer()
    else:
        tok = loaded(name)
        of_tokenizer.vocabulary_of(tok).save(path, inexact=True)
    sentencepiece.set_random_generator_seed(4)
    return tok, sentencepiece.SentencePieceProcessor(model_file=str(path))


@pytest.mark.parametrize("name", ["bpe", pytest.param("llama-spm", marks=pytest.mark.full)])
def test_alpha_of_merges_is_sentencepieces_rule(tmp_path: Path, name: str) -> None:
    tok, processor = sentencepiece_model(tmp_path, name)

    def encode(text: str) -> tuple[int, ...]:
        return tuple(processor.encode(text, enable_sampling=True, alpha=0.3, nbest_size=-1))

    check_library_of_merges(tok, "kettle", encode, 0.3, "alpha")


@pytest.mark.parametrize("nbest", [-1, 4])
@pytest.mark.parametrize(
    "name", ["unigram", pytest.param("nomic-bert-moe", marks=pytest.mark.full)]
)
def test_alpha_of_paths_is_sentencepieces_rule(tmp_path: Path, name: str, nbest: int) -> None:
    tok, processor = sentencepiece_model(tmp_path, name)
    text = "the kettle"
    expected = sampling.path_probabilities(
        vocabulary_of(tok._loaded), normalized(tok, text), 0.4, nbest if nbest > 0 else None
    )
    options = {"enable_sampling": True, "alpha": 0.4, "nbest_size": nbest}
    found = [tuple(processor.encode(text, **options)) for _ in range(SAMPLES)]
    check_frequencies(sampled(tok, text, alpha=0.4, nbest=nbest, seed=5), expected)
    check_frequencies(found, expected, sigmas=7)
    best = processor.NBestEncode(text, nbest_size=5)
    assert best == [ids for ids, _ in tok.nbest(text, 5, add_special=False)]


# ---- errors ----


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("spm", {}, "pass dropout or alpha"),
        ("spm", {"dropout": 0.1, "alpha": 0.1}, "pass dropout or alpha, not both"),
        ("spm", {"dropout": 1.5}, "dropout: must be a probability, from 0 to 1"),
        ("spm", {"alpha": float("nan")}, "alpha: must be a probability"),
        ("spm", {"dropout": 0.1, "nbest": 4}, "nbest: only a UGM vocabulary"),
        ("ugm", {"alpha": -1}, "alpha: must be a number from 0 to 1000000"),
        ("ugm", {"alpha": math.inf}, "alpha: must be a number from 0 to 1000000"),
        ("ugm", {"alpha": 1, "nbest": 1025}, "nbest: must be at most 1024"),
        ("ugm", {"dropout": 0.1}, "dropout: a UGM vocabulary has no merges to skip"),
        ("bpe-gpt2", {"alpha": 0.1}, "alpha: a BPE vocabulary has no scores"),
        ("wpm", {"dropout": 0.1}, "dropout: this vocabulary has one segmentation of each text"),
        ("spm", {"dropout": 0.1, "seed": -1}, r"seed must be from 0 to 2\*\*64 - 1, but is -1"),
    ],
)
def test_wrong_settings(
    load_fixture: Load, name: str, options: dict[str, Any], message: str
) -> None:
    tok = load_fixture(name)
    with pytest.raises(ggtok.InvalidValueError, match=message):
        tok.sample("x", **options)
    with pytest.raises(ggtok.InvalidValueError, match=message):
        tok.sample_batch_arrays(["x"], **options)


def test_settings_are_checked_without_texts(load_fixture: Load, tmp_path: Path) -> None:
    tok = load_fixture("bpe-gpt2")
    with pytest.raises(ggtok.InvalidValueError, match=r"^dropout: must be a probability"):
        tok.sample_batch_arrays([], dropout=2)
    (tmp_path / "a.txt").write_text("a")
    with pytest.raises(ggtok.InvalidValueError, match=r"^dropout: must be a probability"):
        tok.encode_files(tmp_path / "a.txt", tmp_path / "a.bin", dropout=2)
    for seed, error in ((-1, ggtok.InvalidValueError), ("x", ggtok.InvalidTypeError)):
        with pytest.raises(error, match="seed"):
            tok.encode_files(tmp_path / "a.txt", tmp_path / "a.bin", seed=seed)


def test_a_file_without_a_vocabulary(load_fixture: Load) -> None:
    tok = load_fixture("none")
    for call in (lambda: tok.sample("x", dropout=0.1), lambda: tok.nbest("x", 2)):
        with pytest.raises(ggtok.VocabError) as e:
            call()
        with pytest.raises(ggtok.VocabError) as same:
            tok.encode("x")
        assert str(e.value) == str(same.value)


def test_wrong_types(load_fixture: Load) -> None:
    tok = load_fixture("ugm")
    for options in ({"alpha": "1"}, {"alpha": True}, {"alpha": 1, "seed": 0.5}):
        with pytest.raises(ggtok.InvalidTypeError):
            tok.sample("x", **options)  # type: ignore[arg-type]
    with pytest.raises(ggtok.InvalidTypeError):
        tok.sample(3, alpha=1)  # type: ignore[arg-type]
    with pytest.raises(ggtok.TextEncodeError):
        tok.sample("\ud800", alpha=1)


def test_best_segmentations_of_long_texts_are_refused(load_fixture: Load) -> None:
    tok = load_fixture("ugm")
    assert len(tok.nbest("x" * 4000, 1000)) > 0
    with pytest.raises(ggtok.InvalidValueError, match="nbest: the normalized text has at least"):
        tok.nbest("x" * 4200, 1000)
    with pytest.raises(ggtok.InvalidValueError, match="n must be from 1 to 1024"):
        tok.nbest("x", 0)
    with pytest.raises(ggtok.InvalidValueError, match="nbest: only a UGM"):
        load_fixture("spm").nbest("x", 1)
