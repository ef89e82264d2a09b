"""Trains Unigram vocabularies with the sentencepiece package."""

from __future__ import annotations

import io
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from ggtok.errors import InvalidValueError, MissingExtraError
from ggtok.vocabularies import spelling
from ggtok.vocabularies.contents import TrainingReport
from ggtok.vocabularies.corpus import Reading, paths, pieces
from ggtok.vocabularies.counts import WordCounts
from ggtok.vocabularies.models import check_least
from ggtok.vocabularies.training_options import check_specials
from ggtok.vocabularies.vocabulary import Vocabulary

# sentencepiece's message, with the least number of tokens.
_TOO_SMALL = re.compile(r"smaller than required_chars\. \d+ vs (\d+)")
_MAX_LINE = 1 << 30  # the most bytes in a line, limited by sentencepiece


class _Lines:
    """Iterates over the lines of the sources, and counts lines and bytes."""

    def __init__(self, sources: object, reading: Reading) -> None:
        self._pieces = pieces(sources, reading)
        self.bytes = self.n = 0

    def __iter__(self) -> Iterator[str]:
        for text, by_line in self._pieces:
            data = bytes(text)
            self.bytes += len(data)
            for line in data.split(b"\n") if by_line else [data]:
                if line:
                    self.n += 1
                    yield line.decode("utf-8", "replace")


def train_unigram(
    sources: object,
    size: int,
    *,
    reading: Reading,
    special_tokens: Iterable[str],
    named: dict[str, str | None],
    character_coverage: float,
    split_digits: bool,
    chat_template: str | None,
    threads: int,
) -> Vocabulary:
    """Implements ``ggtok.train`` for ``model="ugm"``, with the same arguments."""
    try:
        import sentencepiece
    except ModuleNotFoundError:
        raise MissingExtraError(
            "model 'ugm' needs the sentencepiece package: run 'pip install \"ggtok[spm]\"'"
        ) from None
    if isinstance(sources, WordCounts):
        raise InvalidValueError("model 'ugm' is trained on text, not on word counts")
    specials = check_specials(special_tokens, named)
    names = {"unk": named["unk"] or "<unk>", "bos": named["bos"] or "<s>"}
    names["eos"] = named["eos"] or "</s>"
    if named["pad"] is not None:
        names["pad"] = named["pad"]
    text, model, began = _Lines(sources, reading), io.BytesIO(), time.perf_counter()
    options: dict[str, Any] = {f"{name}_piece": piece for name, piece in names.items()}
    if "pad" in names:
        options["pad_id"] = 3
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(text),
            model_writer=model,
            model_type="unigram",
            vocab_size=size,
            control_symbols=[s for s in specials if s not in names.values()],
            character_coverage=character_coverage,
            split_digits=split_digits,
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            allow_whitespace_only_pieces=True,
            hard_vocab_limit=False,
            max_sentence_length=_MAX_LINE,
            num_threads=threads or 1,
            minloglevel=4,
            **options,
        )
    except (RuntimeError, OSError) as e:
        if too_small := _TOO_SMALL.search(str(e)):
            check_least(size, int(too_small[1]), by_coverage=True)
        raise InvalidValueError(f"sentencepiece: {' '.join(str(e).split())}") from None
    v = _vocabulary(sentencepiece.SentencePieceProcessor(model_proto=model.getvalue()), names)
    report = TrainingReport(
        notes=("trained by the sentencepiece package",),
        asked=size,
        made=len(v.texts),
        words=text.n,
        text_bytes=text.bytes,
        seconds={"train": time.perf_counter() - began},
    )
    return replace(v, report=report, chat_template=chat_template, inputs=paths(sources))


def _vocabulary(model: Any, names: dict[str, str]) -> Vocabulary:
    ids = range(model.get_piece_size())
    texts = [model.id_to_piece(id).encode() for id in ids]

    def type_of(id: int) -> int:
        if model.is_unknown(id):
            return spelling.UNKNOWN
        return spelling.CONTROL if model.is_control(id) else spelling.NORMAL

    return Vocabulary(
        model="t5",
        texts=texts,
        types=[type_of(id) for id in ids],
        scores=[model.get_score(id) for id in ids],
        special_ids={name: texts.index(text.encode()) for name, text in names.items()},
        flags={
            "add_bos": False,
            "add_eos": True,
            "add_space_prefix": True,
            "remove_extra_whitespaces": False,
        },
    )
