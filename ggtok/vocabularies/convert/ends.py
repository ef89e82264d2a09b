"""Writes the ends of generation that a folder names: GGUF has one key each for EOS, EOT and EOM."""

from __future__ import annotations

from dataclasses import replace

from ggtok.vocabularies.contents import ConversionReport, Difference
from ggtok.vocabularies.convert.folder import SourceFolder
from ggtok.vocabularies.vocabulary import Vocabulary

_KEYS = ("eot", "eom")


def with_ends(vocabulary: Vocabulary, folder: SourceFolder) -> Vocabulary:
    """Returns the vocabulary with the folder's ends of generation as EOT and EOM, as far as
    llama.cpp doesn't end generation there anyway.

    The report names the ends that no key can hold, and those that llama.cpp adds.
    """
    if not folder.ends:
        return vocabulary
    texts, where = vocabulary.texts, folder.ends[0].where
    ids = [end.id for end in folder.ends if end.id < len(texts)]
    tok = vocabulary.tokenizer()
    missing = [id for id in ids if not tok.is_eog(id)]
    # A key for a token that llama.cpp finds by its text would replace that token.
    free = [name for name in _KEYS if name not in vocabulary.special_ids]
    free.sort(key=lambda name: getattr(tok, f"{name}_id") is not None)
    keys = dict(zip(free, missing, strict=False))
    lost = [_quote_token(texts[id]) for id in missing[len(keys) :]]
    more = [_quote_token(texts[id]) for id in sorted(tok.eog_ids - set(ids)) if id < len(texts)]
    differences, notes = [], []
    if lost:
        differences.append(
            Difference(
                "ends",
                f"{where} ends generation at more tokens than GGUF has keys for (EOS, EOT, EOM): "
                f"llama.cpp doesn't stop at {', '.join(lost)}",
            )
        )
    if more:
        differences.append(
            Difference(
                "ends",
                f"llama.cpp also ends generation at {', '.join(more)}, which {where} doesn't name",
            )
        )
    if len(ids) < len(folder.ends):
        outside = [end.id for end in folder.ends if end.id >= len(texts)]
        notes.append(f"{where}: eos_token_id {outside[0]} is not a token: it is ignored")
    report = vocabulary.report
    assert isinstance(report, ConversionReport)
    report = replace(
        report,
        differences=(*report.differences, *differences),
        notes=(*report.notes, *notes),
    )
    special_ids = {**vocabulary.special_ids, **keys}
    return replace(vocabulary, special_ids=special_ids, report=report)


def _quote_token(text: bytes) -> str:
    return repr(text.decode("utf-8", "replace"))
