"""Compares ggtok with the live reference, at length.

    python -m tests.parity --texts 2000 --seed 1              # all vocabularies
    python -m tests.parity --vocab qwen2 --vocab spm          # some of them
    python -m tests.parity --pre all --texts 500              # gpt-2 and llama-bpe, every `pre`

For each vocabulary, it compares the metadata and the data of all tokens; then, with all four
combinations of flags, the ids of generated texts, and the texts decoded from these ids and from
random ids. It counts the differences, and prints the first few with shortened texts. The exit
status is 1 if there are any. Texts that crash the reference are counted separately.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import struct
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from pathlib import Path

import ggtok
from ggtok.inspect.parity.compare import FLAG_PAIRS, OVERLONG, shrink, special_of, words_of
from ggtok.inspect.parity.texts import texts
from tests.support.llamacpp import SPECIAL_NAMES, LlamaCpp, LlamaCppError, Vocab
from tests.support.patch import GGUF
from tests.support.vocabularies import OTHERS, PRE_NAMES, REAL, fixture, real, reference_names

PIECE_KINDS = [(True, 0), (True, 1), (False, 0), (False, 1)]  # values of (special, lstrip)
BATCH = 500
SHOWN = 5  # the maximum number of differences to print for each vocabulary


@dataclass
class Result:
    """The results for one vocabulary."""

    name: str
    texts: int = 0
    comparisons: int = 0
    differences: int = 0
    shown: list[str] = field(default_factory=list)
    # The differences in the ids of texts with UTF-8 that only older builds decode.
    overlong: int = 0
    # Texts that crashed the reference.
    deaths: int = 0
    seconds: float = 0.0

    def same(self, what: str, theirs: object, ours: object) -> bool:
        self.comparisons += 1
        if theirs == ours:
            return True
        self.differences += 1
        if len(self.shown) < SHOWN:
            self.shown.append(f"{what}\n  llama.cpp: {theirs!r}\n  ggtok:     {ours!r}")
        return False

    def each(
        self,
        what: str,
        theirs: Sequence[object],
        ours: Sequence[object],
        ids: Sequence[int] | None = None,
    ) -> None:
        """Calls same() for each token's value. `ids` are the tokens' ids (default: 0, 1, ...)."""
        if len(theirs) == len(ours) and theirs == ours:
            self.comparisons += len(theirs)
            return
        for id, their, our in zip(ids or range(len(theirs)), theirs, ours, strict=True):
            self.same(f"{what} {id}", their, our)


def attempt(call: Callable[[], object]) -> object:
    """Returns the call's result, or ggtok's error, which differs from every result."""
    try:
        return call()
    except ggtok.GGTokError as error:
        return error


def load(path: Path) -> ggtok.Tokenizer:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ggtok.VocabWarning)
        return ggtok.load(path)


def compare_vocabulary(
    vocab: Vocab, tok: ggtok.Tokenizer, result: Result, each: int = 1, seed: int = 0
) -> None:
    """Compares special ids, flags, each token's data, the pieces of all tokens that aren't NORMAL,
    and the pieces of one in `each` NORMAL tokens."""
    facts = vocab.facts()
    result.same("n_tokens", facts.n_tokens, tok.n_tokens)
    result.same("vocab_type", facts.vocab_type, tok.vocab_type)
    for name in SPECIAL_NAMES:
        result.same(f"{name}_id", facts.special[name], getattr(tok, f"{name}_id"))
    for name in ("add_bos", "add_eos", "add_sep", "chat_template"):
        result.same(name, getattr(facts, name), getattr(tok, name))
    result.same("suppress_tokens", facts.suppress_tokens, list(tok.suppress_tokens))
    result.same("eog_ids", facts.eog_ids, tok.eog_ids)
    ids = range(len(facts.texts))
    result.each("text", facts.texts, [tok.token_text(id) for id in ids])
    # Compare scores as bytes, because NaN doesn't equal itself.
    scores = struct.Struct("<f").pack
    theirs = [scores(score) for score in facts.scores]
    result.each("score", theirs, [scores(tok.token_score(id)) for id in ids])
    result.each("attr", facts.attrs, [int(tok.token_attr(id)) for id in ids])
    result.each("is_eog", facts.eog, [tok.is_eog(id) for id in ids])
    result.each("is_control", facts.control, [tok.is_control(id) for id in ids])
    chooser = random.Random(seed)
    normal = int(ggtok.TokenAttr.NORMAL)
    some = [
        id for id in ids if each == 1 or facts.attrs[id] != normal or not chooser.randrange(each)
    ]
    for special, lstrip in PIECE_KINDS:
        pieces = [tok.token_to_piece(id, special=special, lstrip=lstrip) for id in some]
        result.each(
            f"piece {special=} {lstrip=}", vocab.pieces(special, lstrip, some), pieces, some
        )


def compare_texts(
    vocab: Vocab, tok: ggtok.Tokenizer, batch: Sequence[bytes], result: Result
) -> list[list[int]]:
    """Compares ids with all pairs of flags. Returns the reference's ids, which are decoded next."""
    seen: dict[tuple[int, ...], None] = {}
    dead: set[bytes] = set()
    for add_special, parse_special in FLAG_PAIRS:
        alive = [text for text in batch if text not in dead]
        for text, theirs in zip(
            alive, vocab.survivors(alive, add_special, parse_special), strict=True
        ):
            if theirs is None:
                dead.add(text)
                continue
            seen[tuple(theirs)] = None

            def ours(text: bytes, add: bool = add_special, parse: bool = parse_special) -> object:
                return attempt(lambda: tok.encode(text, add_special=add, parse_special=parse))

            if theirs == ours(text):
                result.comparisons += 1
                continue
            result.overlong += OVERLONG.search(text) is not None
            if len(result.shown) < SHOWN:
                text, theirs = shrink(vocab, ours, text, add_special, parse_special, theirs)
            result.same(f"encode({text!r}, {add_special=}, {parse_special=})", theirs, ours(text))
    result.deaths += len(dead)
    return [list(ids) for ids in seen]


def compare_ids(
    vocab: Vocab, tok: ggtok.Tokenizer, lists: Sequence[list[int]], result: Result
) -> None:
    for remove_special, unparse_special in FLAG_PAIRS:
        theirs = vocab.detokenize_many(lists, remove_special, unparse_special)
        for ids, text in zip(lists, theirs, strict=True):
            ours = tok.decode_bytes(
                ids, remove_special=remove_special, unparse_special=unparse_special
            )
            result.same(f"decode({ids}, {remove_special=}, {unparse_special=})", text, ours)


def random_ids(seed: int, n: int, n_tokens: int, special: Sequence[int]) -> Iterator[list[int]]:
    chooser = random.Random(seed)
    for _ in range(n):
        ids = [chooser.randrange(n_tokens) for _ in range(chooser.choice((1, 2, 5, 20)))]
        for i in range(len(ids)):
            if special and chooser.random() < 0.15:
                ids[i] = chooser.choice(special)
        yield ids


def batched(items: Iterable[bytes]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    for item in items:
        batch.append(item)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def compare(
    name: str,
    path: Path,
    n: int,
    seed: int,
    corpus: Path | None = None,
    tokens: int = 1,
    llama: LlamaCpp | None = None,
) -> Result:
    """Makes all comparisons for one vocabulary. `tokens` is the `each` of compare_vocabulary; if it
    is 0, metadata and tokens aren't compared."""
    result = Result(name)
    started = time.monotonic()
    own = None if llama else LlamaCpp()
    try:
        vocab = (llama or own or LlamaCpp()).load(path)
        tok = load(path)
        if tokens:
            compare_vocabulary(vocab, tok, result, tokens, seed)
        if tok.vocab_type != "NONE":
            special = special_of(tok)
            special_texts = [tok.token_text(id) for id in special]
            generated = texts(seed, n, words_of(tok), special_texts, corpus)
            for batch in batched(generated):
                result.texts += len(batch)
                lists = compare_texts(vocab, tok, batch, result)
                lists += random_ids(seed + result.texts, len(batch) // 4, tok.n_tokens, special)
                compare_ids(vocab, tok, lists, result)
        vocab.free()
    except (LlamaCppError, ggtok.GGTokError) as error:
        theirs, ours = (error, None) if isinstance(error, LlamaCppError) else (None, error)
        result.same("the comparison itself", theirs, ours)
    finally:
        if own:
            own.close()
    result.seconds = time.monotonic() - started
    return result


def _plan(args: argparse.Namespace, folder: Path) -> dict[str, Path]:
    """Returns the names and files of the vocabularies to compare."""
    if not args.pre:
        available = {name: real(name) for name in (*REAL, *OTHERS)}
        # The reference reads only files in its host's byte order.
        available |= {name: fixture(name) for name in reference_names() if name != "big-endian"}
        names = args.vocab or list(available)
        unknown = set(names) - set(available)
        if unknown:
            raise SystemExit(f"no such vocabulary: {', '.join(sorted(unknown))}")
        return {name: available[name] for name in names}
    # With model gpt2 and the name `whitespace`, the reference aborts at the first space. The
    # fixture bpe-whitespace tests that name.
    pres = [p for p in PRE_NAMES if p != "whitespace"] if "all" in args.pre else args.pre
    plan = {}
    for name in args.vocab or ("gpt-2", "llama-bpe"):
        gguf = GGUF.read(real(name))
        for pre in pres:
            gguf.set("tokenizer.ggml.pre", pre)
            plan[f"{name}, pre={pre}"] = gguf.write(folder / f"{name}-{pre}.gguf")
    return plan


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.parity")
    parser.add_argument("--texts", type=int, default=200, help="texts for each vocabulary")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--vocab", action="append", help="a vocabulary; repeatable (default: all)")
    parser.add_argument("--pre", action="append", help="patch in this pre-tokenizer name, or all")
    parser.add_argument("--corpus", type=Path, help="a folder of files to take texts from")
    parser.add_argument("--json", type=Path, help="write the results here as well")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args()

    results: list[Result] = []
    with (
        tempfile.TemporaryDirectory(prefix="ggtok-parity-") as folder,
        ProcessPoolExecutor(args.jobs) as pool,
    ):
        jobs = [
            pool.submit(compare, name, path, args.texts, args.seed, args.corpus, int(not args.pre))
            for name, path in _plan(args, Path(folder)).items()
        ]
        for job in as_completed(jobs):
            result = job.result()
            results.append(result)
            for shown in result.shown:
                print(f"{result.name}: {shown}")
            print(
                f"{result.name}: {result.texts} texts, {result.comparisons} comparisons, "
                f"{result.differences} differences, {result.deaths} kill the reference, "
                f"{result.seconds:.1f} s",
                flush=True,
            )
    if args.json:
        args.json.write_text(json.dumps([asdict(result) for result in results], indent=1))
    differences = sum(result.differences for result in results)
    deaths = sum(result.deaths for result in results)
    print(
        f"parity: {len(results)} vocabularies, {sum(r.texts for r in results)} texts, "
        f"{sum(r.comparisons for r in results)} comparisons, {differences} differences"
        + (f" ({deaths} texts killed the reference)" if deaths else "")
    )
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
