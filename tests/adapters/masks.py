"""Checks masks for constrained decoding by brute force, without a tokenizer.

A mask is right if it contains exactly the tokens whose bytes the same grammar, applied byte by
byte, accepts next, and the end-of-generation tokens where the text may end.

    python -m tests.adapters.masks                  # every token in every state: minutes
    python -m tests.adapters.masks --walks 20       # also random texts with random tokens
    python -m tests.adapters.masks llguidance --names llama-spm --walks 99 --sample 9999 --seed 2
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import Any

import numpy as np

import ggtok
from ggtok import adapters
from tests.support.vocabularies import fixture, fixture_names, real

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "n": {"type": "integer"}},
    "required": ["name", "n"],
}
JSON = '{"name":"Zoë \\"x\\" 日本 <|eot_id|></s>\\n","n":-12}'.encode()
REGEX = r"(the |日本 ?)+[ a-zß-ö]{2,9}\."
PROSE = "the 日本 the öl kettle.".encode()
CASES = [("schema", JSON), ("regex", PROSE)]
REAL = "llama-bpe", "llama-spm"
SHORT = '{"name":"Zoë <|eot_id|>","n":-1}'.encode()  # text for the vocabularies in REAL
SAMPLE = 150

Adapter = Callable[[ggtok.Tokenizer], Any]


def fixtures() -> Iterator[tuple[str, ggtok.Tokenizer]]:
    for name in fixture_names():
        yield name, ggtok.load(fixture(name))


def usable(adapter: Adapter) -> list[str]:
    """Returns the fixtures that an adapter supports."""
    names = []
    for name, tok in fixtures():
        try:
            adapter(tok)
        except ggtok.VocabError:
            continue
        names.append(name)
    return names


def load(name: str) -> ggtok.Tokenizer:
    return ggtok.load(fixture(name) if name in fixture_names() else real(name))


class Vocabulary:
    """The bytes of each token that isn't special, and a sample of ids to check.

    A seed changes the sample, and makes `spell` choose random tokens instead of the longest ones.
    """

    def __init__(self, tok: ggtok.Tokenizer, sample: int | None, seed: int | None = None) -> None:
        special = tok.special_ids
        self.special, self.ends, self.n = special, tok.eog_ids, tok.n_tokens
        self.pieces = [tok.token_to_piece(id) for id in range(tok.n_tokens)]
        self.texts = [b"" if id in special else piece for id, piece in enumerate(self.pieces)]
        ids: Iterable[int] = range(tok.n_tokens)
        if sample is not None and tok.n_tokens > sample:
            ids = random.Random(seed or tok.n_tokens).sample(ids, sample)
        self.tried = frozenset(ids) | special
        self.by_text = {text: id for id, text in enumerate(self.texts) if text}
        self.longest = max(map(len, self.by_text))
        self.choice = None if seed is None else random.Random(seed).choice

    def spell(self, text: bytes) -> list[int]:
        """Returns tokens whose joined bytes are the text; they may differ from encode's."""
        ids, at = [], 0
        while at < len(text):
            pieces = (text[at : at + n] for n in range(self.longest, 0, -1))
            matching = (piece for piece in pieces if piece in self.by_text)
            piece = next(matching) if self.choice is None else self.choice([*matching])
            ids.append(self.by_text[piece])
            at += len(piece)
        return ids

    def check(
        self,
        mask: Iterable[int],
        accepts: Callable[[bytes], bool],
        ends: frozenset[int],
        at: object,
    ) -> None:
        """Asserts that a mask is right for the sampled ids and, if the mask contains few ids, for
        all of its ids."""
        found = set(mask)
        checked = self.tried | found if len(found) <= 2 * SAMPLE else self.tried
        accepted: dict[bytes, bool] = {}
        want = set(ends)
        for id in checked:
            text = self.texts[id]
            if text and text not in accepted:
                accepted[text] = accepts(text)
            if text and accepted[text]:
                want.add(id)
        wrong = (found & checked) ^ want
        assert not wrong, (
            f"{at}: {[(id, self.pieces[id], id in found) for id in sorted(wrong)[:5]]}"
        )
        assert not found & self.special - ends, at


def bits(mask: Any, n: int) -> list[int]:
    flags = np.unpackbits(np.frombuffer(mask, np.uint8), bitorder="little")[:n]
    ids: list[int] = flags.nonzero()[0].tolist()
    return ids


# ---- one check for each library ----


def llguidance(
    tok: ggtok.Tokenizer, case: str, text: bytes, sample: int | None, seed: int | None = None
) -> int:
    """Checks llguidance's mask before each token of a text and at its end; returns their number."""
    from llguidance import LLMatcher, LLTokenizer

    v = Vocabulary(tok, sample, seed)
    grammar = (
        LLMatcher.grammar_from_json_schema({**SCHEMA, "x-guidance": {"whitespace_flexible": False}})
        if case == "schema"
        else LLMatcher.grammar_from_regex(REGEX)
    )
    matcher = LLMatcher(adapters.llguidance_tokenizer(tok), grammar)
    plain = LLMatcher(LLTokenizer("byte"), grammar)
    assert not matcher.is_error(), matcher.get_error()
    n_masks = 0
    for id in [*v.spell(text), None]:
        mask = bits(matcher.compute_bitmask(), v.n)
        forced = matcher.compute_ff_tokens()
        if forced:  # then the mask contains only the first forced token
            assert mask == forced[:1]
            assert b"".join(v.texts[id] for id in forced)
            assert plain.validate_tokens(list(b"".join(v.texts[id] for id in forced)))
        else:
            ends = v.ends if plain.is_accepting() else frozenset[int]()
            v.check(
                mask,
                lambda piece: plain.validate_tokens(list(piece)) == len(piece),
                ends,
                (case, n_masks),
            )
        n_masks += 1
        if id is not None:
            assert matcher.consume_token(id), matcher.get_error()
            assert plain.consume_tokens(list(v.texts[id]))
    assert plain.is_accepting()
    return n_masks


def outlines(
    tok: ggtok.Tokenizer, case: str, text: bytes, sample: int | None, seed: int | None = None
) -> int:
    from outlines_core import Index, json_schema
    from outlines_core import Vocabulary as OfBytes

    v = Vocabulary(tok, sample, seed)

    regex = json_schema.build_regex_from_schema(json.dumps(SCHEMA)) if case == "schema" else REGEX
    index = Index(regex, adapters.outlines_vocabulary(tok))
    plain = Index(regex, OfBytes(256, {bytes([byte]): [byte] for byte in range(256)}))
    end = tok.eos_id if tok.eos_id in tok.eog_ids else min(tok.eog_ids)
    assert end is not None

    def after(state: int, piece: bytes) -> int | None:
        now: int | None = state
        for byte in piece:
            now = None if now is None else plain.get_next_state(now, byte)
        return now

    state, of_bytes, n_masks = index.get_initial_state(), plain.get_initial_state(), 0
    for id in [*v.spell(text), None]:
        ends = frozenset([end]) if plain.is_final_state(of_bytes) else frozenset[int]()
        mask = index.get_allowed_tokens(state) or []
        v.check(mask, lambda piece, s=of_bytes: after(s, piece) is not None, ends, (case, n_masks))
        n_masks += 1
        if id is not None:
            state = index.get_next_state(state, id)
            next_of_bytes = after(of_bytes, v.texts[id])
            assert state is not None and next_of_bytes is not None
            of_bytes = next_of_bytes
    assert plain.is_final_state(of_bytes)
    return n_masks


def xgrammar(
    tok: ggtok.Tokenizer, case: str, text: bytes, sample: int | None, seed: int | None = None
) -> int:
    import xgrammar as library

    v = Vocabulary(tok, sample, seed)
    compiler = library.GrammarCompiler(adapters.xgrammar_tokenizer_info(tok))
    compiled = (
        compiler.compile_json_schema(
            json.dumps(SCHEMA), any_whitespace=False, separators=(",", ":")
        )
        if case == "schema"
        else compiler.compile_regex(REGEX)
    )
    matcher, plain = library.GrammarMatcher(compiled), library.GrammarMatcher(compiled)
    mask = np.zeros((1, (v.n + 31) // 32), np.int32)

    def accepts(piece: bytes) -> bool:
        accepted = bool(plain.accept_string(piece))
        if accepted:
            plain.rollback(1)
        return accepted

    n_masks = 0
    for id in [*v.spell(text), None]:
        matcher.fill_next_token_bitmask(mask)
        ends = v.ends if plain.is_completed() else frozenset[int]()
        v.check(bits(mask.tobytes(), v.n), accepts, ends, (case, n_masks))
        n_masks += 1
        if id is not None:
            assert matcher.accept_token(id)
            assert plain.accept_string(v.texts[id])
    assert plain.is_completed()
    return n_masks


def stand_ins() -> None:
    """Replaces torch and transformers, which xgrammar imports but these checks don't use."""
    import tvm_ffi  # noqa: F401  # imported first, because it looks for the real torch

    class StandIn(ModuleType):
        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            return type(name, (), {})

    for name in ("torch", "transformers"):
        sys.modules[name] = StandIn(name)
    sys.modules["torch"].int32 = np.int32  # type: ignore[attr-defined]
    sys.modules["torch"].tensor = lambda value, dtype: np.array(value, dtype)  # type: ignore


def run_xgrammar() -> None:
    """Runs the checks for xgrammar in a separate process, because of the stand-ins."""
    stand_ins()
    for name in [*usable(adapters.xgrammar_tokenizer_info), *REAL]:
        n_masks = sum(xgrammar(load(name), *case, SAMPLE) for case in cases(load(name)))
        print(name, n_masks, flush=True)


def cases(tok: ggtok.Tokenizer) -> list[tuple[str, bytes]]:
    """Returns the cases whose text the vocabulary's tokens can produce."""
    if tok.n_tokens > 10_000:
        return [("schema", SHORT)]
    v = Vocabulary(tok, 0)
    spelt = []
    for case, text in CASES:
        try:
            v.spell(text)
        except StopIteration:
            continue
        spelt.append((case, text))
    return spelt


def random_case(tok: ggtok.Tokenizer, seed: int) -> tuple[str, bytes]:
    """Returns a random text that matches one of the grammars, with special tokens and rare
    characters."""
    chosen = random.Random(seed)
    if chosen.random() < 0.4:
        words = chosen.choices(["the ", "日本", "日本 "], k=chosen.randint(1, 4))
        letters = chosen.choices(" abz" + "".join(map(chr, range(0xDF, 0xF7))), k=7)
        return "regex", ("".join(words) + "".join(letters)[: chosen.randint(2, 7)] + ".").encode()
    special = [tok.token_to_piece(id).decode("utf-8", "ignore") for id in sorted(tok.special_ids)]
    parts = [*(p for p in special if p.isprintable()), "</s>", "<|eot_id|>", "<0x41>", "\u2581"]
    parts += [
        '"',
        "\\",
        "\n",
        "  ",
        "a",
        "é",
        "e\u0301",
        "日本",
        "\U0001f469\u200d\U0001f680",
        "\uffff",
    ]
    name = "".join(chosen.choices(parts, k=chosen.randint(0, 6)))
    shown = json.dumps({"name": name, "n": chosen.randint(-(10**6), 10**9)}, ensure_ascii=False)
    return "schema", shown.replace('", "n": ', '","n":').replace('{"name": ', '{"name":').encode()


CHECKS = {check.__name__: check for check in (outlines, llguidance, xgrammar)}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.adapters.masks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("libraries", nargs="*", metavar="LIBRARY", help=", ".join(CHECKS))
    parser.add_argument("--names", nargs="+", default=REAL, metavar="NAME")
    parser.add_argument("--walks", type=int, default=0, metavar="N", help="random texts per name")
    parser.add_argument("--sample", type=int, metavar="N", help="tokens tried; default: all")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    args = parser.parse_args()
    if unknown := set(args.libraries) - set(CHECKS):
        parser.error(f"no such library: {', '.join(sorted(unknown))}")
    for library in args.libraries or CHECKS:
        check = CHECKS[library]
        if check is xgrammar:
            stand_ins()
        for name in args.names:
            tok = load(name)
            for case, text in CASES:
                n_masks = check(tok, case, text, args.sample)
                print(f"{name}, {library}, {case}: {n_masks} masks right", flush=True)
            n_masks = 0
            for seed in range(args.seed * 10_000, args.seed * 10_000 + args.walks):
                n_masks += check(tok, *random_case(tok, seed), args.sample, seed)
            if n_masks:
                print(f"{name}, {library}, random texts: {n_masks} masks right", flush=True)


if __name__ == "__main__":
    main()
