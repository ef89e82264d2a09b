"""Runs the examples in docs/coming-from.md, and each row of its tables on real vocabularies."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

import ggtok
from fixtures.build import CHAT, CHAT_TEMPLATE
from tests.chat.llamaserver import Server, Servers
from tests.docs import coming_from as page
from tests.docs.pages import run_page, surroundings
from tests.support.full import full
from tests.support.llamacpp import LlamaCpp
from tests.support.patch import GGUF
from tests.support.vocabularies import real

# One vocabulary of each type that another tool supports; for BPE two, which differ in clean_spaces
# and BOS.
REAL = ("llama-spm", "gpt-2", "llama-bpe", "nomic-bert-moe", "bert-bge")
REFUSED = ("enc.encode(text)", "enc.encode_to_numpy(text)", "enc.encode_batch([text, text])")
RANKS = (
    "gpt-2",
    "llama-bpe",
    "qwen2",
    "qwen35",
)  # vocabularies that a .tiktoken file can store
TEXTS = [
    "Hello, the kettle",
    "it 's on !",
    " ls ./x ? ok !",
    "Zoë\u2019s café, 日本 🦊",
    "def f(x):\n\treturn x  # don't",
]


@pytest.mark.full
@pytest.mark.skipif(sys.platform == "win32" or not shutil.which("bash"), reason="needs bash")
def test_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in "transformers", "tokenizers", "tiktoken":
        pytest.importorskip(package, exc_type=ImportError)
    surroundings(tmp_path)
    monkeypatch.chdir(tmp_path)
    for block, shown in run_page(page.PAGE, tmp_path):
        assert shown == block.text, f"coming-from.md, line {block.line}"


class Tools:
    """The other tools for one vocabulary, created on first use."""

    def __init__(self, name: str, folder: Path, llama: LlamaCpp) -> None:
        self._folder, self._llama, self.path = folder, llama, folder / f"{name}.gguf"
        gguf = GGUF.read(CHAT if name == "chat" else real(name))
        gguf.set("tokenizer.chat_template", CHAT_TEMPLATE)
        self.path.write_bytes(gguf.dump())
        self.tok = ggtok.load(self.path)
        self._servers: list[Any] = []

    @cached_property
    def llm(self) -> page.Llama:
        return page.Llama(self._llama.load(self.path))

    @cached_property
    def server(self) -> Server:
        if sys.platform != "linux":
            pytest.skip("llama-server comes with a package for Linux")
        pytest.importorskip("xllamacpp", exc_type=ImportError)
        servers = Servers(self.path)
        server = servers.start(CHAT_TEMPLATE)
        self._servers += [server, servers]
        return server

    def _exported(self, suffix: str) -> Path:
        path = self.path.with_suffix(suffix)
        ggtok.vocabulary(self.path).save(path, inexact=True)
        return path

    @cached_property
    def hf(self) -> Any:
        pytest.importorskip("transformers", exc_type=ImportError)
        return page.transformers_tokenizer(self.tok, self._exported(".json"))

    @cached_property
    def t(self) -> Any:
        tokenizers = pytest.importorskip("tokenizers", exc_type=ImportError)
        return tokenizers.Tokenizer.from_str(self.hf.backend_tokenizer.to_str())

    @cached_property
    def enc(self) -> Any:
        pytest.importorskip("tiktoken", exc_type=ImportError)
        return page.tiktoken_encoding(self.tok, self._exported(".tiktoken"))

    def close(self) -> None:
        for server in self._servers:
            server.close()


@pytest.fixture(scope="module", params=["chat", *map(full, dict.fromkeys((*REAL, *RANKS)))])
def tools(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, llama: LlamaCpp
) -> Iterator[Tools]:
    created = Tools(request.param, tmp_path_factory.mktemp("coming-from"), llama)
    yield created
    created.close()


def each_text(tools: Tools, parse_special: bool) -> Iterator[dict[str, Any]]:
    special = tools.tok.token_text(page.end_of(tools.tok)).decode()
    for text in (*TEXTS, f"Hi{special} you"):
        yield page.names_of(tools.tok, text, parse_special)


@pytest.mark.parametrize("row", page.rows("llama-server"), ids=lambda row: row.left[:40])
def test_llama_server(tools: Tools, row: page.Row) -> None:
    code = row.ours(tools.tok.vocab_type)
    assert code is not None
    if row.left == page.STREAM:
        streamed(tools, code)
        return
    for names in each_text(tools, parse_special=True):
        theirs = page.server_answer(tools.server, row, names)
        assert theirs == page.evaluate(code, names), names["text"]


def streamed(tools: Tools, code: str) -> None:
    tok = tools.tok
    for text in ("it 's on !", "ok , ls ./x ?"):
        request = {"prompt": "the", "grammar": f"root ::= {json.dumps(text)}", "n_predict": 64}
        status, answer = tools.server.post("/completion", {**request, "return_tokens": True})
        assert status == 200, answer
        stream = page.evaluate(code, {"tok": tok, "prompt": tools.server.ids("the")})
        assert stream.feed(answer["tokens"]) + stream.finish() == answer["content"] == text


@pytest.mark.parametrize("row", page.rows("llama-cpp-python"), ids=lambda row: row.left)
def test_llama_cpp_python(tools: Tools, row: page.Row) -> None:
    code = row.ours(tools.tok.vocab_type)
    assert code is not None
    for names in each_text(tools, parse_special=False):
        theirs = page.evaluate(row.left, {"llm": tools.llm, **names})
        assert (None if theirs == -1 else theirs) == page.evaluate(code, names), names["text"]


@pytest.mark.full
@pytest.mark.parametrize(
    "row", page.rows("transformers") + page.rows("tokenizers"), ids=lambda row: row.left
)
def test_hugging_face(tools: Tools, row: page.Row) -> None:
    tok = tools.tok
    code = row.ours(tok.vocab_type)
    for names in each_text(tools, parse_special=True):
        text, theirs = (
            names["text"],
            page.evaluate(row.left, {"hf": tools.hf, "t": tools.t, **names}),
        )
        if code is None:
            check_offsets(tok, text, theirs)
        elif "truncate" not in code:
            assert theirs == page.evaluate(code, names), text
        elif names["special"] not in text:
            check_truncated(tok, theirs, page.evaluate(code, names))


def check_offsets(tok: ggtok.Tokenizer, text: str, theirs: list[list[int]]) -> None:
    """Asserts that offsets are equal, except where the page says otherwise: for spaces, added
    special tokens, and exported WPM."""
    ids, spans = tok.encode_with_offsets(text, parse_special=True, unit="char")
    assert len(theirs) == len(spans)
    for id, (begin, end), (their_begin, their_end) in zip(ids, spans.tolist(), theirs, strict=True):
        if tok.is_control(id) and begin == end:
            assert (their_begin, their_end) == (0, 0)
        elif tok.vocab_type == "SPM" and tok.token_to_piece(id) != b" ":
            assert (their_begin, their_end) == (begin, end)
        elif tok.token_to_piece(id) != b" ":
            their_begin += tok.vocab_type == "WPM" and their_begin == begin - 1
            assert text[begin:end].strip() == text[their_begin:their_end].strip()


def check_truncated(tok: ggtok.Tokenizer, theirs: list[int], ours: list[int]) -> None:
    """Asserts that ids are equal, except that the other tool's may end inside a character."""
    if theirs != ours:
        assert theirs[: len(ours)] == ours
        with pytest.raises(ggtok.TextDecodeError):
            tok.decode(theirs[len(ours) :], errors="strict")


@pytest.mark.full
@pytest.mark.parametrize("row", page.rows("tiktoken"), ids=lambda row: row.left)
def test_tiktoken(tools: Tools, row: page.Row) -> None:
    if tools.tok.pre not in RANKS:
        pytest.skip("tiktoken has no such vocabulary")
    code = row.ours("BPE")
    assert code is not None
    for names in each_text(tools, parse_special=False):
        refused = names["special"] in names["text"] and row.left in REFUSED
        if refused:
            with pytest.raises(ValueError, match="disallowed special token"):
                page.evaluate(row.left, {"enc": tools.enc, **names})
            continue
        theirs = page.evaluate(row.left, {"enc": tools.enc, **names})
        ours = page.evaluate(code, names)
        if row.left == "enc.n_vocab":
            ours -= sum(tools.tok.token_text(id).startswith(b"[PAD") for id in range(ours))
        assert theirs == ours, names["text"]


@pytest.mark.full
def test_defaults(tools: Tools) -> None:
    tok = tools.tok

    def stream(ids: list[int]) -> str:
        decoder = tok.stream_decoder()
        return decoder.feed(ids) + decoder.finish()

    def post(path: str, key: str, value: object) -> Any:
        _, answer = tools.server.post(path, {key: value})
        return answer["tokens" if key == "content" else "content"]

    calls: dict[str, tuple[page.Encode | None, page.Decode]] = {
        "ggtok": (tok.encode, tok.decode),
        "ggtok, streams": (None, stream),
        "llama-cpp-python": (
            lambda text: tools.llm.tokenize(text.encode()),
            lambda ids: tools.llm.detokenize(ids).decode(),
        ),
        "llama-server": (
            lambda text: post("/tokenize", "content", text),
            lambda ids: post("/detokenize", "tokens", ids),
        ),
        "transformers": (lambda text: tools.hf.encode(text), lambda ids: tools.hf.decode(ids)),
        "tokenizers": (lambda text: tools.t.encode(text).ids, lambda ids: tools.t.decode(ids)),
    }
    table = page.defaults()
    if tok.pre in RANKS:
        calls["tiktoken"] = tools.enc.encode, tools.enc.decode
    for tool, (encode, decode) in calls.items():
        columns = dict(zip(page.COLUMNS, table[tool], strict=True))
        for column, observed in page.observed(tok, encode, decode):
            assert observed == page.expected(tok, column, columns[column]), (tool, column)


@pytest.mark.full
def test_berts_own_tokenizer() -> None:
    """BERT's own tokenizer decodes and spells tokens as the page says, and its spans are exact."""
    transformers = pytest.importorskip("transformers", exc_type=ImportError)
    tok = ggtok.load(real("bert-bge"))
    texts = [tok.token_text(id).decode() for id in range(tok.n_tokens)]
    spelt = [
        text[1:] if text[0] == "▁" else text if tok.is_control(id) else f"##{text}"
        for id, text in enumerate(texts)
    ]
    hf = transformers.BertTokenizerFast(vocab={text: id for id, text in enumerate(spelt)})
    text = "Hello, it 's on !"
    ids, spans = tok.encode_with_offsets(text, unit="char")
    assert hf.encode(text) == ids
    assert hf.decode(ids) == "[CLS] hello, it ' s on! [SEP]"
    assert tok.decode(ids) == "[CLS] hello, it's on![SEP]"
    assert hf.decode(ids, skip_special_tokens=True) == "hello, it ' s on!"
    assert tok.decode(ids, unparse_special=False) == " hello, it's on!"
    theirs = hf(text, return_offsets_mapping=True).offset_mapping
    assert theirs[:-1] == list(map(tuple, spans.tolist()))[:-1] and theirs[-1] == (0, 0)
    assert hf.convert_tokens_to_ids(["##ing", "the"]) == list(
        map(tok.text_to_token, ["ing", "▁the"])
    )
