"""Typing tests: mypy --strict and pyright check this file; it is never run."""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ggtok
from ggtok import adapters

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import assert_type

    from ggtok.arrow import ArrowIds
    from ggtok.explain.steps import Explanation, Merge, MergeTree


def loading(mapped: mmap.mmap) -> None:
    assert_type(ggtok.load("model.gguf"), ggtok.Tokenizer)
    ggtok.load(Path("model.gguf"), pre="llama-bpe")
    ggtok.load(b"GGUF", pre_patterns=[r"\w+"])
    ggtok.load(bytearray())
    ggtok.load(memoryview(b""))
    ggtok.load(mapped)
    with open("model.gguf", "rb") as file:
        ggtok.load(file)
    ggtok.load("user/repo:Q8_0", overrides={"a": False, "b": 1, "c": 0.5, "d": "text"})
    ggtok.load("model.gguf", overrides={"a": None})  # type: ignore[dict-item]
    ggtok.load(3)  # type: ignore[arg-type]
    ggtok.load("model.gguf", "llama-bpe")  # type: ignore[call-arg]


def explaining(tok: ggtok.Tokenizer) -> None:
    assert_type(tok.explain("text", add_special=False, parse_special=["<s>"]), Explanation)
    assert_type(tok.explain(b"text").fragments[0].words[0].merges, list[Merge])
    assert_type(tok.merge_tree(3), MergeTree)
    tok.merge_tree("the")  # type: ignore[arg-type]


def encoding(tok: ggtok.Tokenizer) -> None:
    assert_type(tok.encode("text"), list[int])
    assert_type(tok.encode(b"text", add_special=False, parse_special=True), list[int])
    tok.encode(memoryview(b"text"))
    tok.encode(None)  # type: ignore[arg-type]
    assert_type(tok.encode("text", continuation=True), list[int])
    assert_type(tok.encode_with_offsets("text", unit="char"), tuple[list[int], NDArray[np.int64]])
    tok.encode_with_offsets("text", unit="utf16")
    assert_type(
        tok.encode_batch_with_offsets(["text"], threads=1, continuation=True),
        list[tuple[list[int], NDArray[np.int64]]],
    )
    assert_type(
        tok.encode_batch_arrays_with_offsets(["text"], threads=1, unit="char"),
        tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]],
    )
    tok.encode_with_offsets("text", unit="word")  # type: ignore[arg-type]
    assert_type(tok.encode("text", parse_special=["<s>", 2, b"</s>"]), list[int])
    tok.encode("text", parse_special={"<s>"})
    tok.encode("text", parse_special=1.5)  # type: ignore[arg-type]
    assert_type(tok.count("text", continuation=True), int)
    assert_type(tok.count_batch(["text"], threads=1), list[int])
    assert_type(tok.encode_array("text", threads=2), NDArray[np.int32])
    assert_type(tok.encode_batch(["a", b"b"], threads=2), list[list[int]])
    assert_type(
        tok.encode_batch_arrays(text for text in ("a", "b")),
        tuple[NDArray[np.int32], NDArray[np.int64]],
    )


class Column:
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


def arrow(tok: ggtok.Tokenizer) -> None:
    ids = tok.encode_batch_arrow(Column(), add_special=False, threads=1)
    assert_type(ids, ArrowIds)
    assert_type(len(ids), int)
    assert_type(ids.null_count, int)
    assert_type(ids.__arrow_c_array__(), tuple[object, object])
    assert_type(tok.encode_batch(Column()), list[list[int]])
    assert_type(tok.encode_batch(ids), list[list[int]])  # accepted because it has __arrow_c_array__
    tok.encode_batch_arrow(["a", b"b"])
    tok.encode_batch_arrow(3)  # type: ignore[arg-type]


def adapting(tok: ggtok.Tokenizer) -> None:
    adapters.llguidance_tokenizer(tok, also_special=[1])
    adapters.xgrammar_tokenizer_info(tok, also_special=frozenset([1]))
    adapters.outlines_vocabulary(tok, eos_id=tok.eot_id)
    own = adapters.LlamaCppTokenizer(tok)
    count: int = adapters.counter(tok, add_special=True)("text")
    adapters.tokenizers_tokenizer(tok).encode("text").offsets[0][0].bit_length()
    adapters.transformers_tokenizer(tok, fast=True)("text", return_tensors="np")
    adapters.tiktoken_encoding(tok)
    adapters.counter(tok, True)  # type: ignore[call-arg]
    print(count)
    assert_type(own.tokenize(b"a", True, False), list[int])
    assert_type(own.detokenize([1], prev_tokens=None, special=True), bytes)
    assert_type(own.decode(own.encode("a")), str)
    adapters.outlines_vocabulary(tok, "</s>")  # type: ignore[arg-type]


def chat(tok: ggtok.Tokenizer) -> None:
    messages = [{"role": "user", "content": "Hi"}]
    assert_type(tok.apply_chat_template(messages, tools=[{}], thinking=True), str)
    assert_type(tok.apply_chat_template(messages, clock=datetime.now), str)
    assert_type(tok.encode_chat(messages, add_generation_prompt=False), list[int])
    assert_type(tok.encode_chat(messages, trusted=True, user_defined="plain"), list[int])
    assert_type(tok.apply_chat_template(messages, like="transformers"), str)
    assert_type(
        tok.encode_chat(messages, reasoning_effort="low", chat_template_kwargs={"x": 1}),
        list[int],
    )
    assert_type(tok.count_chat(messages, enable_thinking=False), int)
    assert_type(tok.count_chat(messages, image_tokens=256, media_marker="<image>"), int)
    assert_type(tok.count_chat(messages, image_tokens=lambda part: len(part["type"])), int)
    tok.count_chat(messages, image_tokens="256")  # type: ignore[arg-type]
    assert_type(tok.encode_chat_batch(iter([messages]), threads=2), list[list[int]])
    tok.encode_chat(messages, like="jinja2")  # type: ignore[call-overload]
    assert_type(tok.special_ids, frozenset[int])
    assert_type(tok.encode_chat(messages, return_assistant_mask=True), tuple[list[int], list[bool]])
    mask = len(messages) > 1
    assert_type(
        tok.encode_chat(messages, return_assistant_mask=mask),
        list[int] | tuple[list[int], list[bool]],
    )
    tok.apply_chat_template("Hi")  # type: ignore[arg-type]
    assert_type(tok.trim_chat(messages, 100), list[Any])
    assert_type(ggtok.compare_prompts(tok, messages, [1, 2]), ggtok.PromptComparison)
    assert_type(ggtok.trim_chat(tok, messages, 100, add_generation_prompt=False), list[Any])


class Message:
    def model_dump(self) -> dict[str, Any]:
        return {"role": "user", "content": "Hi"}


def models(tok: ggtok.Tokenizer) -> None:
    assert_type(tok.count_chat([Message(), {"role": "user", "content": "Hi"}]), int)
    tok.count_chat([object()])  # type: ignore[list-item]


def decoding(tok: ggtok.Tokenizer, array: NDArray[np.int32]) -> None:
    assert_type(tok.decode([1, 2]), str)
    assert_type(tok.decode(array, remove_special=True, errors="strict"), str)
    assert_type(tok.decode_bytes(iter([1, 2]), unparse_special=False), bytes)
    assert_type(tok.decode_batch([[1], array], clean_spaces=False), list[str])
    tok.decode([1], clean_spaces="no")  # type: ignore[arg-type]
    tok.decode("text")  # type: ignore[arg-type]


def sampling(tok: ggtok.Tokenizer) -> None:
    assert_type(tok.sample("text", dropout=0.1, seed=3), list[int])
    assert_type(tok.nbest(b"text", 3, add_special=False), list[tuple[list[int], float]])
    assert_type(
        tok.sample_batch_arrays(["a"], alpha=0.1, nbest=4, threads=2),
        tuple[NDArray[np.int32], NDArray[np.int64]],
    )
    tok.sample("text", alpha="x")  # type: ignore[arg-type]


def growing(tok: ggtok.Tokenizer) -> None:
    stream = tok.stream_encoder(add_special=False, parse_special=["<|eot_id|>", 3])
    assert_type(stream, ggtok.StreamEncoder)
    assert_type(stream.feed("text"), list[int])
    stream.feed(b"text")
    assert_type(stream.pending, list[int])
    assert_type(stream.count, int)
    assert_type(stream.copy(), ggtok.StreamEncoder)
    assert_type(stream.finish(), list[int])
    stream.feed(3)  # type: ignore[arg-type]
    stream.count = 3  # type: ignore[misc]


def streaming(tok: ggtok.Tokenizer, array: NDArray[np.int32]) -> None:
    stream = tok.stream_decoder(array, remove_special=True, errors="strict", stop=["a", "b"])
    tok.stream_decoder(clean_spaces=None, stop_ids=[1, np.int32(2)], stop_at_eog=True)
    assert_type(stream, ggtok.StreamDecoder)
    assert_type(stream.feed(3), str)
    stream.feed(np.int64(3))
    stream.feed(array)
    stream.feed(iter([1, 2]))
    assert_type(stream.finish(), str)
    assert_type(stream.stopped, str | int | None)
    assert_type(stream.copy(), ggtok.StreamDecoder)
    stream.reset()
    stream.feed("text")  # type: ignore[arg-type]
    tok.stream_decoder(stop=3)  # type: ignore[arg-type]


def fitting(tok: ggtok.Tokenizer) -> None:
    assert_type(tok.truncate("text", 3, side="left"), str)
    assert_type(tok.truncate(b"text", 3, add_special=False), bytes)
    assert_type(tok.truncate(memoryview(b"text"), 3), bytes)
    tok.truncate("text", 3, side="middle")  # type: ignore[call-overload]
    chunks = tok.chunks("text", 3, overlap=1, prefix="p", add_special=False, at=("\n", "."))
    assert_type(chunks, list[ggtok.Chunk])
    assert_type(chunks[0].start, int)
    start, end, n_tokens = chunks[0]
    assert_type((start, end, n_tokens), tuple[int, int, int])
    tok.chunks("text", 2.5)  # type: ignore[arg-type]
    assert_type(tok.is_canonical([1, 2]), bool)


def pieces(tok: ggtok.Tokenizer) -> None:
    assert_type(tok.vocab_bytes(), list[bytes])
    tok.vocab_bytes("keep")
    tok.vocab_bytes("all")  # type: ignore[arg-type]
    assert_type(tok.tokens_with_prefix(b"a"), list[int])
    tok.tokens_with_prefix("a")  # type: ignore[arg-type]
    assert_type(tok.heal([1, 2]), tuple[list[int], bytes])
    assert_type(tok == tok, bool)
    assert_type(hash(tok), int)


def tokens(tok: ggtok.Tokenizer) -> None:
    assert_type(tok.token_to_piece(1, lstrip=1, special=False), bytes)
    assert_type(tok.text_to_token("a"), int | None)
    assert_type(tok.text_to_token(b"a"), int | None)
    assert_type(tok.token_text(1), bytes)
    assert_type(tok.token_score(1), float)
    assert_type(tok.token_attr(1), ggtok.TokenAttr)
    assert_type(tok.token_attr(1) & ggtok.TokenAttr.CONTROL, ggtok.TokenAttr)
    assert_type(tok.is_eog(1), bool)
    assert_type(tok.is_control(1), bool)
    assert_type(tok.eog_ids, frozenset[int])
    assert_type(tok.suppress_tokens, tuple[int, ...])
    assert_type(tok.bos_id, int | None)
    assert_type(tok.add_bos, bool)
    tok.bos_id = 1  # type: ignore[assignment]
    assert_type(tok.fim_sep_id, int | None)


def vocabulary(tok: ggtok.Tokenizer) -> None:
    assert_type(tok.n_tokens, int)
    assert_type(len(tok), int)
    assert_type(tok.vocab_type, str)
    assert_type(tok.model, str)
    assert_type(tok.pre, str | None)
    assert_type(tok.add_bos, bool)
    assert_type(tok.metadata, Mapping[str, str | int | float | bool])
    assert_type(tok.chat_template, str | None)
    assert_type(tok.chat_templates, dict[str, str])
    tok.n_tokens = 3  # type: ignore[misc]


def errors(error: Any) -> None:
    try:
        ggtok.load("model.gguf")
    except ggtok.UnknownPreTokenizerError as e:
        assert_type(e.name, str | None)
        assert_type(e.suggestions, tuple[str, ...])
    except ggtok.GGUFError as e:
        assert_type(e.key, str | None)
        assert_type(e.offset, int | None)
    except ggtok.FileError as e:
        assert_type(e.errno, int | None)
    except ggtok.GGTokError:
        pass


def making(text: Path) -> None:
    v = ggtok.train(text, 1000, pre="qwen2", special_tokens=["<x>"], progress=print)
    assert_type(v, ggtok.Vocabulary)
    assert_type(v.tokens, list[bytes])
    assert_type(v.merges, list[tuple[bytes, bytes]])
    assert_type(v.smaller(500), ggtok.Vocabulary)
    assert_type(v.tokenizer(), ggtok.Tokenizer)
    v.save("own.gguf")
    names: list[str] = v.save_pretrained("folder", inexact=True)
    print(names)
    counts = ggtok.count_words([text, "text", b"text"], pre="gpt-2", max_words=10_000)
    assert_type(counts, ggtok.WordCounts)
    assert_type(ggtok.WordCounts.load("counts"), ggtok.WordCounts)
    assert_type(list(counts.items()), list[tuple[bytes, int]])
    assert_type(ggtok.vocabulary("model.gguf"), ggtok.Vocabulary)
    ggtok.train(text, 1000, model="wpm")  # type: ignore[arg-type]


def corpora(tok: ggtok.Tokenizer, texts: list[str]) -> None:
    for batch in tok.encode_batches(texts, batch_bytes=1 << 20, threads=2, progress=print):
        assert_type(batch, tuple[NDArray[np.int32], NDArray[np.int64]])
    tok.encode_batches(Path("lines.txt"))
    tok.encode_batches(b"text" for _ in range(3))
    summary = tok.encode_files(["a", Path("b")], "out", format="npy", dtype="uint16", errors="skip")
    assert_type(summary, ggtok.Summary)
    assert_type(summary.documents, int)
    tok.encode_files("a", "out", field=["meta.text", "title"], kind="jsonl", shards=2)
    tok.encode_files("a", "out", include="*.txt", exclude=["*.md"])
    assert_type(summary.already_complete, bool)
    tok.encode_files("a", "out", chat=True)
    tok.encode_files("a", "out", chat={"like": "transformers", "template": "x"})
    tok.encode_files("a", "out", chat="x")  # type: ignore[arg-type]
    tok.encode_files("a", "out", kind="csv")  # type: ignore[arg-type]
    tok.encode_files("a", "out", format="zip")  # type: ignore[arg-type]
    tok.encode_files("a", "out", progress=lambda p: p.bytes)
