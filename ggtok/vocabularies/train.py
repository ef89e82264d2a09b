"""Trains vocabularies: :func:`ggtok.train`."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ggtok.errors import InvalidValueError
from ggtok.native.arguments import truth
from ggtok.vocabularies import spelling
from ggtok.vocabularies.contents import TrainingReport
from ggtok.vocabularies.corpus import Reading, paths, pieces
from ggtok.vocabularies.counts import (
    DEFAULT_PRE,
    Cut,
    Progress,
    ProgressFn,
    WordCounts,
    check_cut,
    check_documents,
    check_max_words,
    check_threads,
    fill,
)
from ggtok.vocabularies.models import train_bpe, train_spm
from ggtok.vocabularies.training_options import check_options, check_size, check_template, refuse
from ggtok.vocabularies.vocabulary import Vocabulary


def _peak_memory() -> int:
    """Returns the peak memory of this process in bytes, or 0 if unknown."""
    with contextlib.suppress(OSError):  # on Linux, ru_maxrss includes the parent's peak
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    try:
        import resource
    except ImportError:  # on Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


# ---- the report ----


def _text_bytes(counts: WordCounts) -> int:
    """Returns the number of bytes in the counted text.

    In SentencePiece's words, U+2581 represents a space or, at the start of a line, a newline.
    """
    n = counts._native.info().total_bytes
    if counts.model != "spm" and not spelling.is_raw(counts.pre):
        return n
    mark = ord(spelling.MARK.decode())
    marks = sum(times for code, times in counts._native.chars() if code == mark)
    return n - marks * (len(spelling.MARK) - 1)


def _unused_ids(v: Vocabulary, rows: Any) -> tuple[int, ...]:
    """Returns the ids of tokens whose occurrences have all become parts of other tokens."""
    if not len(rows):
        return ()
    n = int(max(rows["made"].max(), rows["left"].max(), rows["right"].max())) + 1
    left_over = np.zeros(n, np.int64)
    for name, sign in (("made", 1), ("left", -1), ("right", -1)):
        np.add.at(left_over, rows[name].astype(np.int64), sign * rows["replaced"].astype(np.int64))
    made = rows["made"].astype(np.int64)
    numbers = made[left_over[made] == 0]
    if v.model != "gpt2":
        # In SentencePiece's ids, merges follow special and byte tokens, and the alphabet is last.
        numbers += sum(type != spelling.NORMAL for type in v.types) - made[0]
    return tuple(numbers.tolist())


def _longest(v: Vocabulary) -> tuple[int, ...]:
    marked = spelling.scheme(v.model, v.pre) == "marks"
    length = spelling.marked_length if marked else spelling.characters_length
    stored = np.fromiter(map(len, v.texts), np.int64, len(v))
    stored[np.array(v.types) != spelling.NORMAL] = 0
    # A stored text is at most three times as long as the bytes that it represents, so only long
    # stored texts need to be decoded. Decoding all of them would take as long as many merges.
    place = max(len(v) - 10, 0)
    tenth = np.partition(stored, place)[place]
    ids = np.flatnonzero((3 * stored >= tenth) & (stored > 0)).tolist()
    ids.sort(key=lambda number: -length(v.texts[number]))
    return tuple(ids[:10])


def _measure(v: Vocabulary, held_out: object, reading: Reading) -> tuple[int, int]:
    """Returns the number of bytes and tokens in the held-out text."""
    tok = v.tokenizer()
    n_bytes = n_tokens = 0
    for text, _ in pieces(held_out, reading):
        n_bytes += len(text)
        n_tokens += tok.count(text, add_special=False)
    return n_bytes, n_tokens


def _count_sources(
    sources: object,
    cut: Cut,
    *,
    max_words: int,
    reading: Reading,
    threads: int,
    progress: ProgressFn | None,
) -> tuple[WordCounts, float]:
    """Returns the counts of the words in the sources, and the time that counting took in seconds.
    `sources` may already be counts."""
    began = time.perf_counter()
    if not isinstance(sources, WordCounts):
        counts = WordCounts(cut, max_words)
        fill(counts._native, sources, reading=reading, threads=threads, progress=progress)
        return counts, time.perf_counter() - began
    default = Cut("bpe", DEFAULT_PRE, None)  # the default arguments fit all counts
    if cut not in (sources._cut, default) or cut.model != sources.model:
        raise InvalidValueError(f"the words of {sources!r} were split in another way")
    return sources, 0.0


def train(
    sources: object,
    vocab_size: int,
    *,
    model: Literal["bpe", "spm", "ugm"] = "bpe",
    pre: str = DEFAULT_PRE,
    pre_patterns: Sequence[str] | None = None,
    rule: Literal["huggingface", "bytes", "sentencepiece"] | None = None,
    special_tokens: Iterable[str] = (),
    bos: str | None = None,
    eos: str | None = None,
    unk: str | None = None,
    pad: str | None = None,
    chat_template: str | None = None,
    alphabet: Literal["bytes", "seen"] = "bytes",
    byte_fallback: bool = True,
    character_coverage: float = 1.0,
    split_digits: bool = False,
    min_frequency: int = 2,
    max_token_length: int | None = None,
    documents: Literal["lines", "whole"] = "lines",
    kind: Literal["text", "jsonl", "parquet", "arrow"] | None = None,
    field: str | Sequence[str] | None = None,
    errors: Literal["raise", "replace", "skip"] = "raise",
    max_words: int | None = None,
    held_out: object = None,
    threads: int = 0,
    progress: ProgressFn | None = None,
) -> Vocabulary:
    """Train a vocabulary on text.

    The result doesn't depend on the number of threads or the order of the text. With equal
    ``min_frequency``, merges equal those of Hugging Face's tokenizers 0.23.3 (rule
    ``"huggingface"``), rustbpe and bpeasy (``"bytes"``), and ids and scores equal those of
    sentencepiece 0.2.3's BPE with identity normalization (``"sentencepiece"``). The corpus is
    streamed; memory depends on the number of distinct words. Special tokens are not parsed in the
    text, except that with the rule ``"sentencepiece"``, the texts of special and byte tokens split
    words, as in SentencePiece.

    Args:
        sources: the text to train on. An ``os.PathLike`` is a file, a folder or a glob, in the
            formats that ``Tokenizer.encode_files`` reads: UTF-8 text, JSON lines, Parquet and
            Arrow files, also with ``.gz``, ``.bz2``, ``.xz`` and ``.zst``. A ``str`` or bytes-like
            object is a text, an Arrow stream of strings is a sequence of texts, and any other
            iterable contains such sources. Alternatively, :class:`WordCounts` from
            :func:`count_words`.
        vocab_size: the number of tokens, including special tokens. If the text doesn't have enough
            pairs, the vocabulary is smaller (see ``v.report``).
        model: ``"bpe"``: byte-level BPE. ``"spm"``: SentencePiece's BPE, with a byte token for
            each byte. ``"ugm"``: Unigram, trained by the sentencepiece package (extra ``spm``),
            without the options for words, merges and bytes.
        pre: llama.cpp's name for the pre-tokenizer (BPE only).
        pre_patterns: regular expressions that split text into words instead, as for
            :func:`ggtok.load`. GGUF files can't contain them.
        rule: which of the equally frequent pairs is merged first. ``"huggingface"`` (the default
            for BPE): smaller ids first, with the alphabet in the order of GPT-2's byte
            characters. ``"bytes"``: smaller ids first, with the alphabet in the order of bytes.
            ``"sentencepiece"`` (the only rule for ``"spm"``): fewer characters first, then
            smaller bytes.
        special_tokens: the texts of control tokens. For BPE, they have the first ids, in this
            order.
        bos, eos, unk, pad: the texts of these tokens, which are added to ``special_tokens`` if
            they are missing there. For SentencePiece, they have the first ids, and default to
            ``<unk>``, ``<s>`` and ``</s>``. For BPE, ``eos`` defaults to ``<|endoftext|>``, and
            ``bos`` to ``eos``; if ``bos`` is passed, it is added before texts.
        chat_template: a chat template, in Jinja.
        alphabet: ``"bytes"``: all 256 bytes are tokens, so no text is ever lost. ``"seen"``: only
            bytes that occur in the text are tokens; llama.cpp drops other bytes (BPE only).
        byte_fallback: include a token for each byte. Without these, llama.cpp aborts for
            characters that aren't in the alphabet (SentencePiece only).
        character_coverage: the share of all characters that the alphabet must cover
            (SentencePiece, and BPE with an alphabet of characters: ``pre="gemma4"``).
        split_digits: never merge digits (SentencePiece only; for BPE, the pre-tokenizer decides).
        min_frequency: how often a pair must occur to be merged.
        max_token_length: tokens are shorter than this, in bytes (BPE only; as in Hugging Face's
            tokenizers, two bytes may always be merged). SentencePiece's tokens have at most 16
            characters.
        documents: ``"lines"``: split each line separately, including its newline (SentencePiece:
            without it). ``"whole"``: split each file or text as a whole; one at a time is held in
            memory.
        kind: the format of all files. By default, their extensions select it, as for
            ``Tokenizer.encode_files``.
        field: the field of JSON lines, or the column of tables, that contains the text; by
            default ``"text"``.
        errors: what to do about malformed documents in files (not UTF-8, without the field, or
            empty). ``"raise"``: stop. ``"replace"``: replace invalid bytes by U+FFFD. ``"skip"``:
            drop the document or, in text files, the line. Binary files are always refused.
        max_words: the approximate maximum number of distinct words in memory. If there are more,
            the rarest are dropped; the result then depends on the order of the text, and
            ``v.report`` has the number of dropped words.
        held_out: text on which to measure compression, of the same types as ``sources``.
        threads: the number of threads that count words; 0 means one for each core that this
            process may use.
        progress: called with a :class:`Progress` several times a second, on this thread. If it
            raises an exception, training ends with that exception.

    Raises:
        FileError: a file can't be read, or isn't text.
        DocumentError: a document of a file is malformed.
        UnknownPreTokenizerError: the pre-tokenizer's name is unknown.
        TextEncodeError: a ``str`` contains a lone surrogate.
        InvalidTypeError, InvalidValueError: an argument has a wrong type or value, or there is no
            text.
        MissingExtraError: a required package isn't installed (also an ``ImportError``).
    """
    byte_fallback = truth(byte_fallback, "byte_fallback")
    split_digits = truth(split_digits, "split_digits")
    reading = Reading.checked(check_documents(documents), field, errors, kind)
    limit = check_max_words(max_words)
    size, template = check_size(vocab_size), check_template(chat_template)
    named = {"bos": bos, "eos": eos, "unk": unk, "pad": pad}
    if model == "ugm":
        from ggtok.vocabularies.train_unigram import train_unigram

        passed = {
            "pre": pre != DEFAULT_PRE,
            "pre_patterns": pre_patterns is not None,
            "rule": rule is not None,
            "alphabet": alphabet != "bytes",
            "byte_fallback": not byte_fallback,
            "min_frequency": min_frequency != 2,
            "max_token_length": max_token_length is not None,
            "max_words": max_words is not None,
        }
        refuse(model, False, passed)
        made = train_unigram(
            sources,
            size,
            reading=reading,
            special_tokens=special_tokens,
            named=named,
            character_coverage=character_coverage,
            split_digits=split_digits,
            chat_template=template,
            threads=threads,
        )
        if held_out is None:
            return made
        assert isinstance(made.report, TrainingReport)
        n_bytes, n_tokens = _measure(made, held_out, reading)
        report = replace(made.report, held_out_bytes=n_bytes, held_out_tokens=n_tokens)
        return replace(made, report=report)
    cut = check_cut(model, pre, pre_patterns, ("bpe", "spm", "ugm"))
    options = check_options(
        model=model,
        raw=spelling.is_raw(sources.pre if isinstance(sources, WordCounts) else cut.pre),
        size=size,
        rule=rule,
        special_tokens=special_tokens,
        named=named,
        alphabet=alphabet,
        byte_fallback=byte_fallback,
        character_coverage=character_coverage,
        split_digits=split_digits,
        min_frequency=min_frequency,
        max_token_length=max_token_length,
    )
    counts, counting = _count_sources(
        sources,
        cut,
        max_words=limit,
        reading=reading,
        threads=check_threads(threads, cut),
        progress=progress,
    )
    began = time.perf_counter()

    def merging(done: int, count: int) -> None:
        if progress is not None:
            seconds = time.perf_counter() - began
            progress(Progress("merge", seconds, tokens=done, of=size, count=count))

    info = counts._native.info()
    if not info.n_words:
        raise InvalidValueError("sources: there is no text to train on")
    train_model = train_bpe if model == "bpe" else train_spm
    made, rows, n_symbols = train_model(counts, options, merging)
    seconds = {"count": counting, "merge": time.perf_counter() - began}
    flags = {"add_bos": model == "spm" or bos is not None, "add_eos": False}
    if model == "spm":
        flags["add_space_prefix"] = True
    made = replace(made, flags=flags, chat_template=template)
    held = _measure(made, held_out, reading) if held_out is not None else (0, 0)
    report = TrainingReport(
        asked=size,
        made=len(made),
        words=info.total,
        distinct_words=info.n_words,
        text_bytes=_text_bytes(counts),
        text_tokens=n_symbols - int(rows["replaced"].sum()),
        dropped_words=info.dropped_words,
        dropped=info.dropped,
        held_out_bytes=held[0],
        held_out_tokens=held[1],
        last_count=int(rows["count"][-1]) if len(rows) else 0,
        longest=_longest(made),
        unused=_unused_ids(made, rows),
        seconds=seconds,
        memory={"count": info.memory, "peak": _peak_memory()},
    )
    return replace(made, report=report, inputs=paths(sources))
