"""Training: from text to a vocabulary."""

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
from ggtok.vocabularies.corpus import Reading
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
from ggtok.vocabularies.options import check_options, check_size, check_template
from ggtok.vocabularies.report import TrainingReport
from ggtok.vocabularies.sources import paths, pieces
from ggtok.vocabularies.vocabulary import Vocabulary


def _peak_memory() -> int:
    """The most bytes that this process has had in memory, as far as the system tells."""
    with contextlib.suppress(OSError):  # Linux: ru_maxrss there begins with the parent's
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    try:
        import resource
    except ImportError:  # Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


# ---- the report ----


def _text_bytes(counts: WordCounts) -> int:
    """Bytes of the text that the words came from. A U+2581 stands for a space there, and one that
    SentencePiece puts before a line for the line's newline."""
    n = counts._native.info().total_bytes
    if counts.model != "spm" and not spelling.is_raw(counts.pre):
        return n
    mark = ord(spelling.MARK.decode())
    marks = sum(times for code, times in counts._native.chars() if code == mark)
    return n - marks * (len(spelling.MARK) - 1)


def _made_but_unused(v: Vocabulary, rows: Any) -> tuple[int, ...]:
    """Ids of tokens whose every occurrence became part of another."""
    if not len(rows):
        return ()
    n = int(max(rows["made"].max(), rows["left"].max(), rows["right"].max())) + 1
    left_over = np.zeros(n, np.int64)
    for name, sign in (("made", 1), ("left", -1), ("right", -1)):
        np.add.at(left_over, rows[name].astype(np.int64), sign * rows["replaced"].astype(np.int64))
    made = rows["made"].astype(np.int64)
    numbers = made[left_over[made] == 0]
    if v.model != "gpt2":
        # SentencePiece's ids: merges come after special and byte tokens, the alphabet last.
        numbers += sum(type != spelling.NORMAL for type in v.types) - made[0]
    return tuple(numbers.tolist())


def _longest(v: Vocabulary) -> tuple[int, ...]:
    marked = spelling.scheme(v.model, v.pre) == "marks"
    length = spelling.marked_length if marked else spelling.characters_length
    stored = np.fromiter(map(len, v.texts), np.int64, len(v))
    stored[np.array(v.types) != spelling.NORMAL] = 0
    # A stored text has at most three times the bytes that it stands for. To decode all of them
    # takes as long as many merges.
    place = max(len(v) - 10, 0)
    tenth = np.partition(stored, place)[place]
    ids = np.flatnonzero((3 * stored >= tenth) & (stored > 0)).tolist()
    ids.sort(key=lambda number: -length(v.texts[number]))
    return tuple(ids[:10])


def _measure(v: Vocabulary, held_out: object, reading: Reading) -> tuple[int, int]:
    """Bytes and tokens of the held-out text."""
    tok = v.tokenizer()
    n_bytes = n_tokens = 0
    for text, _ in pieces(held_out, reading):
        n_bytes += len(text)
        n_tokens += tok.count(text, add_special=False)
    return n_bytes, n_tokens


def _counted(
    sources: object,
    cut: Cut,
    *,
    max_words: int,
    reading: Reading,
    threads: int,
    progress: ProgressFn | None,
) -> tuple[WordCounts, float]:
    """The sources' words, and the seconds that counting took."""
    began = time.perf_counter()
    if not isinstance(sources, WordCounts):
        counts = WordCounts(cut, max_words)
        fill(counts._native, sources, reading=reading, threads=threads, progress=progress)
        return counts, time.perf_counter() - began
    default = Cut("bpe", DEFAULT_PRE, None)  # of the arguments: the counts' own counts
    if cut not in (sources._cut, default) or cut.model != sources.model:
        raise InvalidValueError(f"the words of {sources!r} were cut in another way")
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

    The result is the same for any number of threads and any order of the text. With
    ``min_frequency=1`` or what the other trainer has, merges equal those of Hugging Face's
    tokenizers 0.23.3 (rule ``"huggingface"``), rustbpe and bpeasy (``"bytes"``), and ids and
    scores those of sentencepiece 0.2.3's BPE with identity normalization
    (``"sentencepiece"``). The corpus is streamed: memory depends on how many different words it
    has. Special tokens are not looked for in it, but by rule ``"sentencepiece"``, where their
    texts and those of byte tokens cut words, as there.

    Args:
        sources: what to train on. An ``os.PathLike`` is a file, a folder or a glob, of what
            ``Tokenizer.encode_files`` reads: UTF-8 text, JSON lines, Parquet and Arrow files,
            ``.gz``, ``.bz2``, ``.xz`` and ``.zst``. A ``str`` or bytes-like object is a text, an
            Arrow stream of strings is texts, and any other iterable is of these. Or the
            :class:`WordCounts` of :func:`count_words`.
        vocab_size: how many tokens to make, special ones included. There are fewer if the text
            gives no more (``v.report`` tells).
        model: ``"bpe"``: byte-level BPE. ``"spm"``: SentencePiece's BPE, with a byte token for
            each byte. ``"ugm"``: Unigram, by the sentencepiece package (extra ``spm``); of the
            options below those of words, merges and bytes have no effect on it.
        pre: the pre-tokenizer, by llama.cpp's name for it (BPE only).
        pre_patterns: regular expressions that cut words instead, as of :func:`ggtok.load`. No
            GGUF file can hold them.
        rule: which of the most frequent pairs is merged first: ``"huggingface"`` (the default for
            BPE): smaller ids first, the alphabet being ordered as GPT-2's byte characters are;
            ``"bytes"``: smaller ids first, ordered as the bytes are; ``"sentencepiece"`` (the
            only one for ``"spm"``): fewer characters first, then smaller bytes.
        special_tokens: texts of control tokens; for BPE they have the first ids, in this order.
        bos, eos, unk, pad: which of them (or which besides them) these are. SentencePiece's have
            the first ids and default to ``<unk>``, ``<s>``, ``</s>``. For BPE, ``eos`` defaults
            to ``<|endoftext|>``, and ``bos`` to ``eos``; a ``bos`` that is given is added before
            texts.
        chat_template: a chat template, in Jinja.
        alphabet: ``"bytes"``: all 256 bytes are tokens, so that no text is ever lost. ``"seen"``:
            those of the text; llama.cpp drops others (BPE only).
        byte_fallback: a token for each byte. Without them llama.cpp aborts on text that has other
            characters than the alphabet (SentencePiece only).
        character_coverage: the share of all characters that the alphabet has to cover
            (SentencePiece's alphabet, and BPE's where it is of characters: ``pre="gemma4"``).
        split_digits: digits are never merged (SentencePiece; BPE's pre-tokenizers see to that).
        min_frequency: pairs that occur less often are not merged.
        max_token_length: tokens are shorter than this, in bytes (BPE only; as Hugging Face's,
            two bytes may always be merged). SentencePiece's have at most 16 characters.
        documents: ``"lines"``: each line is cut by itself, newline included (SentencePiece:
            without). ``"whole"``: each file or text as a whole; one is held in memory.
        kind: of all files; None: by their names, as for ``Tokenizer.encode_files``.
        field: the field of JSON lines, or the column of tables, that is the text; default:
            ``"text"``.
        errors: what to do about documents of files that are malformed: not UTF-8, without the
            field, or empty. ``"raise"``: stop; ``"replace"``: take U+FFFD for what isn't UTF-8;
            ``"skip"``: drop them, of text files their lines. Binary files are always refused.
        max_words: keep about so many different words at most and drop the rarest when there are
            more. The result then depends on the order of the text; ``v.report`` says what was
            dropped.
        held_out: text to measure compression on, as ``sources``.
        threads: how many count words; 0: as many as this process may use cores.
        progress: called with a :class:`Progress`, several times a second, on this thread. What
            it raises ends the training.

    Raises:
        FileError: a file can't be read, or isn't text.
        DocumentError: a document of a file is malformed.
        UnknownPreTokenizerError: no pre-tokenizer has that name.
        TextEncodeError: a ``str`` with a lone surrogate.
        InvalidTypeError, InvalidValueError: an argument makes no sense, or no text is there.
        MissingExtraError: a package is needed that isn't installed (also an ``ImportError``).
    """
    byte_fallback = truth(byte_fallback, "byte_fallback")
    split_digits = truth(split_digits, "split_digits")
    reading = Reading.checked(check_documents(documents), field, errors, kind)
    limit = check_max_words(max_words)
    size, template = check_size(vocab_size), check_template(chat_template)
    named = {"bos": bos, "eos": eos, "unk": unk, "pad": pad}
    if model == "ugm":
        from ggtok.vocabularies.unigram import train_unigram

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
    cut = check_cut(model, pre, pre_patterns)
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
    counts, counting = _counted(
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
        unused=_made_but_unused(made, rows),
        seconds=seconds,
        memory={"count": info.memory, "peak": _peak_memory()},
    )
    return replace(made, report=report, inputs=paths(sources))
