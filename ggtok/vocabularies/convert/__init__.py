"""Other libraries' vocabularies as llama.cpp's: one module for each format of source."""

from __future__ import annotations

import os

from ggtok.errors import InvalidTypeError, UnknownPreTokenizerError
from ggtok.vocabularies.vocabulary import Vocabulary


def convert(
    source: str | os.PathLike[str],
    *,
    pre: str | None = None,
    arch: str | None = None,
) -> Vocabulary:
    """A vocabulary of another library, to be used by llama.cpp.

    The result gives the source's ids as far as llama.cpp's rules allow. ``v.report`` names each
    difference that they force. The ids of some hundred hostile and natural lines are compared with
    those of what loads the source, if it is installed: transformers for a folder, else the file's
    own package (``tokenizers``, ``sentencepiece``, ``tiktoken``). The report says which share
    differs, and ``v.save`` refuses a vocabulary of which lines differ for no known reason. The
    package runs in a child process with limits of time and memory; no code of the source is
    executed.

    Args:
        source: a Hugging Face folder, or one file, which then stands alone: ``tokenizer.json``,
            ``*.model`` (SentencePiece), ``tekken.json``, ``*.tiktoken``, ``vocab.json`` (with
            ``merges.txt`` beside it), BERT's ``vocab.txt``, RWKV's ``*.txt`` or PLaMo's
            ``*.jsonl``.
        pre: the pre-tokenizer, by llama.cpp's name, in place of the one found by comparing the
            source's structure. ``.tiktoken`` files that aren't known need it.
        arch: the name of the architecture, as of ``config.json``'s ``architectures``.

    Raises:
        FileError: a file is missing or can't be read.
        VocabError: a file is malformed, or llama.cpp has no such vocabulary.
        UnknownPreTokenizerError: none of llama.cpp's pre-tokenizers cuts text as the source's.
        InvalidTypeError, InvalidValueError: an argument makes no sense.
    """
    from ggtok.native import pre_names
    from ggtok.vocabularies.convert.formats import converted

    for name, value in (("pre", pre), ("arch", arch)):
        if value is not None and not isinstance(value, str):
            raise InvalidTypeError(f"{name} must be str, not {type(value).__name__}")
    if not isinstance(source, (str, os.PathLike)):
        raise InvalidTypeError(f"source must be str or a path, not {type(source).__name__}")
    if pre is not None and pre not in pre_names():
        raise UnknownPreTokenizerError(f"pre: no pre-tokenizer has the name {pre!r}", name=pre)
    return converted(os.fsdecode(os.fspath(source)), pre=pre, arch=arch)
