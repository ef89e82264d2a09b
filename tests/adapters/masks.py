"""What a grammar allows next, found without a tokenizer: each token's bytes are tried, one by one.

A mask is right if it holds exactly the tokens whose bytes the same grammar takes there as bytes,
and, where the text may end, those that end generation.

    python -m tests.adapters.masks    # every token of real vocabularies, in every state: minutes
"""

from __future__ import annotations

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
SHORT = '{"name":"Zoë <|eot_id|>","n":-1}'.encode()  # for these, in the tests
SAMPLE = 150

Adapter = Callable[[ggtok.Tokenizer], Any]


def fixtures() -> Iterator[tuple[str, ggtok.Tokenizer]]:
    for name in fixture_names():
        yield name, ggtok.load(fixture(name))


def usable(adapter: Adapter) -> list[str]:
    """The fixtures that an adapter takes."""
    names = []
    for name, tok in fixtures():
        try:
            adapter(tok)
        except ggtok.VocabError:
            continue
        names.append(name)
    return names


def load(name: str) -> ggtok.Tokenizer:
    return ggtok.load(real(name) if name in REAL else fixture(name))


class Vocabulary:
    """The bytes of each token that may stand for text, and which ids are tried."""

    def __init__(self, tok: ggtok.Tokenizer, sample: int | None) -> None:
        special = tok.special_ids
        self.special, self.ends, self.n = special, tok.eog_ids, tok.n_tokens
        self.pieces = [tok.token_to_piece(id) for id in range(tok.n_tokens)]
        self.texts = [b"" if id in special else piece for id, piece in enumerate(self.pieces)]
        ids: Iterable[int] = range(tok.n_tokens)
        if sample is not None and tok.n_tokens > sample:
            ids = random.Random(tok.n_tokens).sample(ids, sample)
        self.tried = frozenset(ids) | special
        self.by_text = {text: id for id, text in enumerate(self.texts) if text}
        self.longest = max(map(len, self.by_text))

    def spell(self, text: bytes) -> list[int]:
        """Tokens of this text, the longest first: any way to spell it will do."""
        ids, at = [], 0
        while at < len(text):
            n = next(n for n in range(self.longest, 0, -1) if text[at : at + n] in self.by_text)
            piece = text[at : at + n]
            ids.append(self.by_text[piece])
            at += len(piece)
        return ids

    def check(
        self, mask: Iterable[int], takes: Callable[[bytes], bool], ends: frozenset[int], at: object
    ) -> None:
        """That a mask is right: of the tokens tried, and of all in it if these are few."""
        found = set(mask)
        tried = self.tried | found if len(found) <= 2 * SAMPLE else self.tried
        known: dict[bytes, bool] = {}
        want = set(ends)
        for id in tried:
            text = self.texts[id]
            if text and text not in known:
                known[text] = takes(text)
            if text and known[text]:
                want.add(id)
        wrong = (found & tried) ^ want
        assert not wrong, (
            f"{at}: {[(id, self.pieces[id], id in found) for id in sorted(wrong)[:5]]}"
        )
        assert not found & self.special - ends, at


def bits(mask: Any, n: int) -> list[int]:
    flags = np.unpackbits(np.frombuffer(mask, np.uint8), bitorder="little")[:n]
    ids: list[int] = flags.nonzero()[0].tolist()
    return ids


# ---- one library each ----


def llguidance(tok: ggtok.Tokenizer, case: str, text: bytes, sample: int | None) -> int:
    """How many masks were right."""
    from llguidance import LLMatcher, LLTokenizer

    v = Vocabulary(tok, sample)
    grammar = (
        LLMatcher.grammar_from_json_schema({**SCHEMA, "x-guidance": {"whitespace_flexible": False}})
        if case == "schema"
        else LLMatcher.grammar_from_regex(REGEX)
    )
    matcher = LLMatcher(adapters.llguidance_tokenizer(tok), grammar)
    plain = LLMatcher(LLTokenizer("byte"), grammar)
    assert not matcher.is_error(), matcher.get_error()
    done = 0
    for id in [*v.spell(text), None]:
        mask = bits(matcher.compute_bitmask(), v.n)
        forced = matcher.compute_ff_tokens()
        if forced:  # the mask is the first of what must come
            assert mask == forced[:1]
            assert b"".join(v.texts[id] for id in forced)
            assert plain.validate_tokens(list(b"".join(v.texts[id] for id in forced)))
        else:
            ends = v.ends if plain.is_accepting() else frozenset[int]()
            v.check(
                mask,
                lambda piece: plain.validate_tokens(list(piece)) == len(piece),
                ends,
                (case, done),
            )
        done += 1
        if id is not None:
            assert matcher.consume_token(id), matcher.get_error()
            assert plain.consume_tokens(list(v.texts[id]))
    assert plain.is_accepting()
    return done


def outlines(tok: ggtok.Tokenizer, case: str, text: bytes, sample: int | None) -> int:
    from outlines_core import Index, json_schema
    from outlines_core import Vocabulary as OfBytes

    v = Vocabulary(tok, sample)

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

    state, of_bytes, done = index.get_initial_state(), plain.get_initial_state(), 0
    for id in [*v.spell(text), None]:
        ends = frozenset([end]) if plain.is_final_state(of_bytes) else frozenset[int]()
        mask = index.get_allowed_tokens(state) or []
        v.check(mask, lambda piece, s=of_bytes: after(s, piece) is not None, ends, (case, done))
        done += 1
        if id is not None:
            state = index.get_next_state(state, id)
            next_of_bytes = after(of_bytes, v.texts[id])
            assert state is not None and next_of_bytes is not None
            of_bytes = next_of_bytes
    assert plain.is_final_state(of_bytes)
    return done


def xgrammar(tok: ggtok.Tokenizer, case: str, text: bytes, sample: int | None) -> int:
    import xgrammar as library

    v = Vocabulary(tok, sample)
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

    def takes(piece: bytes) -> bool:
        taken = bool(plain.accept_string(piece))
        if taken:
            plain.rollback(1)
        return taken

    done = 0
    for id in [*v.spell(text), None]:
        matcher.fill_next_token_bitmask(mask)
        ends = v.ends if plain.is_completed() else frozenset[int]()
        v.check(bits(mask.tobytes(), v.n), takes, ends, (case, done))
        done += 1
        if id is not None:
            assert matcher.accept_token(id)
            assert plain.accept_string(v.texts[id])
    assert plain.is_completed()
    return done


def stand_ins() -> None:
    """xgrammar imports torch and transformers for functions that nothing here calls."""
    import tvm_ffi  # noqa: F401  # looks for the real torch

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
    """In a process of its own, because of the stand-ins."""
    stand_ins()
    for name in [*usable(adapters.xgrammar_tokenizer_info), *REAL]:
        done = sum(xgrammar(load(name), *case, SAMPLE) for case in cases(load(name)))
        print(name, done, flush=True)


def cases(tok: ggtok.Tokenizer) -> list[tuple[str, bytes]]:
    """Those whose text the vocabulary can spell."""
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


def main() -> None:
    for check in (outlines, llguidance, xgrammar):
        if check is xgrammar:
            stand_ins()
        for name in REAL:
            for case, text in CASES:
                done = check(load(name), case, text, None)
                print(f"{name}, {check.__name__}, {case}: {done} masks right", flush=True)


if __name__ == "__main__":
    run_xgrammar() if sys.argv[1:] == ["xgrammar"] else main()
