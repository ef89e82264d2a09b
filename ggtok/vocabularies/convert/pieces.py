"""Converts a SentencePiece model: BPE to llama.cpp's "llama", Unigram to "t5"."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet

from ggtok.errors import VocabError
from ggtok.vocabularies import spelling
from ggtok.vocabularies.contents import Difference
from ggtok.vocabularies.convert.confirm import Original
from ggtok.vocabularies.convert.draft import (
    Draft,
    add_configured,
    set_configured,
    unigram_fallback,
)
from ggtok.vocabularies.convert.folder import SourceFolder
from ggtok.vocabularies.convert.originals import Package
from ggtok.vocabularies.convert.sentencepiece_model import (
    BPE,
    MODEL_TYPES,
    UNIGRAM,
    SentencePieceModel,
    write_model,
)
from ggtok.vocabularies.convert.source_files import utf8
from ggtok.vocabularies.gguf_writer import CHARSMAP

_MARK = "\u2581".encode()
# Classes in transformers that number the pieces as fairseq does.
_SHIFTED = ("XLMRobertaTokenizer", "XLMRobertaModel", "XLMRobertaForSequenceClassification")
_OTHERWISE_SHIFTED = ("Camembert", "MBart", "Nllb", "M2M100", "BartphoTokenizer")
# Whether a class in transformers adds BOS, and whether it adds EOS.
_ADDED = {
    "LlamaTokenizer": (True, False),
    "CodeLlamaTokenizer": (True, False),
    "GemmaTokenizer": (True, False),
    "T5Tokenizer": (False, True),
    "XLMRobertaTokenizer": (True, True),
}


def draft_of(
    model: SentencePieceModel, where: str, folder: SourceFolder, arch: str | None
) -> tuple[Draft, str]:
    """Returns the draft of a model's vocabulary, and the name of its format."""
    kind = MODEL_TYPES.get(model.model_type, str(model.model_type))
    if model.model_type not in (BPE, UNIGRAM):
        raise VocabError(f"trainer_spec.model_type: llama.cpp doesn't support {kind}")
    _refuse(model)
    draft = Draft(model="llama" if model.model_type == BPE else "t5", pre="default", scores={})
    draft.filler_score = -10000.0
    draft.size = folder.vocab_size
    runs = _mergeable_runs(model) if model.model_type == BPE else set()
    for id, piece in enumerate(model.pieces):
        draft.set(id, _text(piece.text, id), _type(piece.type, id), piece.score)
        if piece.type == spelling.USER_DEFINED:
            if piece.text in runs:
                draft.types[id] = spelling.NORMAL
            else:
                draft.texts[id] = piece.text.replace(_MARK, b" ")
    for name in ("unk", "bos", "eos", "pad"):
        id = getattr(model, name + "_id")
        if 0 <= id < len(model.pieces):
            draft.special_ids[name] = id
    _set_flags(draft, model, folder)
    if is_shifted(folder, arch):
        _shift(draft, len(model.pieces))
    add_configured(draft, folder, where)
    _note(draft, model)
    set_configured(
        draft, folder, {text.decode("utf-8", "replace"): i for i, text in draft.texts.items()}
    )
    if draft.model == "llama":
        _check_bytes(draft)
    return draft, f"SentencePiece model ({kind})"


def _mergeable_runs(model: SentencePieceModel) -> set[bytes]:
    """Returns user-defined tokens that are runs of spaces, and that merges produce, too.

    They become normal tokens, which llama.cpp finds after it prepends a space to the text, as the
    source does. It parses user-defined tokens before that.
    """
    own = {piece.text for piece in model.pieces if piece.type == spelling.USER_DEFINED}
    runs = set()
    run = _MARK * 2
    while run in own:
        runs.add(run)
        run += _MARK
    return runs


def _refuse(model: SentencePieceModel) -> None:
    if model.whitespace_as_suffix:
        raise VocabError("trainer_spec.treat_whitespace_as_suffix: llama.cpp doesn't support it")
    if not model.escape_whitespaces:
        raise VocabError("normalizer_spec.escape_whitespaces: is off, but llama.cpp needs it")


def _text(text: bytes, id: int) -> bytes:
    try:
        return utf8(text.decode(), f"piece {id}")
    except UnicodeDecodeError:
        raise VocabError(f"piece {id}: {text[:40]!r} is not UTF-8") from None


def _type(type: int, id: int) -> int:
    if not spelling.NORMAL <= type <= spelling.BYTE:
        raise VocabError(f"piece {id}: has the unknown type {type}")
    return type


def _check_bytes(draft: Draft) -> None:
    texts = set(draft.texts.values())
    lacking = [byte for byte in range(256) if spelling.byte_token(byte) not in texts]
    if lacking:
        draft.differences.append(
            Difference(
                "byte-fallback",
                f"{len(lacking)} bytes have no token: for unknown characters, the source produces "
                "<unk>, and llama.cpp aborts",
                without=_without_unknown(texts),
            )
        )


def _set_flags(draft: Draft, model: SentencePieceModel, folder: SourceFolder) -> None:
    draft.flags["add_space_prefix"] = model.add_dummy_prefix
    if draft.model == "t5":
        draft.flags["remove_extra_whitespaces"] = model.remove_extra_whitespaces
        if model.charsmap:
            draft.keys[CHARSMAP] = model.charsmap
    name = folder.tokenizer_class
    defaults = dict(zip(("add_bos", "add_eos"), _ADDED.get(name, ()), strict=False))
    unsaid = []
    for flag in "add_bos", "add_eos":
        on = folder.tokenizer_config.get(flag + "_token")
        if isinstance(on, bool):
            draft.flags[flag] = on
        else:
            unsaid.append(flag)
            draft.flags |= {flag: defaults[flag]} if flag in defaults else {}
    if unsaid:
        rule = f"that of {name} before transformers 5" if defaults else "llama.cpp's default"
        draft.differences.append(
            Difference(
                "template",
                f"the source doesn't say whether BOS and EOS are added ({', '.join(unsaid)}): "
                f"{rule} applies",
            )
        )


# ---- differences ----


def _note(draft: Draft, model: SentencePieceModel) -> None:
    if draft.model == "llama":
        _note_bpe(draft, model)
    elif model.byte_fallback:
        draft.differences.append(unigram_fallback(_without_fallback))
    own = [
        draft.texts[id].decode("utf-8", "replace")
        for id, type in draft.types.items()
        if type == spelling.USER_DEFINED
    ]
    if own:
        draft.differences.append(
            Difference(
                "user-defined",
                f"llama.cpp parses {len(own)} user-defined tokens, such as {own[0]!r}, before it "
                "normalizes and prepends a space, and inserts a space after each",
                without=_without_texts(own),
            )
        )
    if model.remove_extra_whitespaces and draft.model == "t5":
        draft.differences.append(
            Difference(
                "mark",
                "the source treats U+2581 in a text as a space: llama.cpp doesn't when it removes "
                "spaces",
                without=lambda line: line.replace("\u2581", " "),
            )
        )


def _without_unknown(texts: AbstractSet[bytes]) -> Callable[[str], str]:
    """Returns a function that removes characters that aren't tokens."""
    return lambda line: "".join(
        c for c in line if c == " " or c.encode("utf-8", "replace") in texts
    )


def _without_texts(own: Sequence[str]) -> Callable[[str], str]:
    """Returns a function that removes these texts until none occurs. It replaces a text that
    consists of spaces by one space."""
    longest = sorted(own, key=len, reverse=True)
    pattern = re.compile("|".join(map(re.escape, longest)))

    def without(line: str) -> str:
        line, before = " " + line.replace("\u2581", " "), ""
        while line != before:
            before = line
            line = pattern.sub(lambda found: " " if found[0].isspace() else "", line)
        return line.removeprefix(" ")

    return without


def _note_bpe(draft: Draft, model: SentencePieceModel) -> None:
    if model.charsmap:
        draft.differences.append(
            Difference(
                "normalizer",
                f"the source normalizes text ({model.normalizer.decode('utf-8', 'replace')}): "
                "llama.cpp doesn't",
                change=_without_charsmap,
            )
        )
    if model.remove_extra_whitespaces:
        draft.differences.append(
            Difference(
                "extra-spaces",
                "the source removes spaces at the ends and repeated ones: llama.cpp doesn't",
                change=_with_spaces,
            )
        )


def _without_charsmap(model: SentencePieceModel) -> None:
    model.charsmap, model.normalizer = b"", b"identity"


def _with_spaces(model: SentencePieceModel) -> None:
    model.remove_extra_whitespaces = False


def _without_fallback(model: SentencePieceModel) -> None:
    model.byte_fallback = False
    for piece in model.pieces:
        if piece.type == spelling.BYTE:
            piece.type = spelling.UNUSED


# ---- fairseq's ids ----


def is_shifted(folder: SourceFolder, arch: str | None) -> bool:
    names = (arch, folder.architecture, folder.tokenizer_class)
    known = [name.removesuffix("Fast") for name in names if isinstance(name, str)]
    for name in known:
        if name.startswith(_OTHERWISE_SHIFTED):
            raise VocabError(f"{name} numbers its pieces in a way that ggtok doesn't support")
    return any(name in _SHIFTED for name in known)


def _shift(draft: Draft, n: int) -> None:
    """Renumbers tokens as in XLM-RoBERTa: <s>, <pad>, </s>, <unk>, the pieces from the fourth on,
    <mask>."""
    assert draft.scores is not None
    first = ((b"<s>", 3), (b"<pad>", 3), (b"</s>", 3), (b"<unk>", 2))
    texts, types, scores = draft.texts, draft.types, draft.scores
    draft.texts = {id + 1: texts[id] for id in range(3, n)}
    draft.types = {id + 1: types[id] for id in range(3, n)}
    draft.scores = {id + 1: scores[id] for id in range(3, n)}
    for id, (text, type) in enumerate(first):
        draft.set(id, text, type)
    draft.set(n + 1, b"<mask>", spelling.CONTROL)
    draft.special_ids = {"bos": 0, "pad": 1, "eos": 2, "sep": 2, "unk": 3, "mask": n + 1}
    draft.notes.append(
        "ids are XLM-RoBERTa's: from the fourth piece on, they are one more than the model's"
    )


# ---- the source's own package ----


def original_of(model: SentencePieceModel, shift: bool) -> Original:
    number = _fairseq_id if shift else None
    package = Package("sentencepiece")
    return Original(model, package, write_model, parses_special=False, number=number)


def _fairseq_id(id: int) -> int:
    return 3 if id == 0 else id + 1
