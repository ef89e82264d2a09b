"""Converts other libraries' vocabularies, with one module for each source format."""

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
    """Convert another library's vocabulary for llama.cpp.

    The result produces the source's ids, except where llama.cpp's rules force differences, which
    ``v.report`` lists. If a package that loads the source is installed, the ids of several hundred
    natural and hostile lines are compared with that package's ids: transformers for a folder, else
    the file's own package (``tokenizers``, ``sentencepiece``, ``tiktoken``). The report has the
    share of lines that differ, and ``v.save`` refuses the vocabulary if lines differ for no known
    reason. The package runs in a child process with limits on time and memory. No code from the
    source is executed.

    Args:
        source: a Hugging Face folder, or a single file, which is then read without its folder:
            ``tokenizer.json``, ``*.model`` (SentencePiece), ``tekken.json``, ``*.tiktoken``,
            ``vocab.json`` (with ``merges.txt`` in the same folder), BERT's ``vocab.txt``, RWKV's
            ``*.txt`` or PLaMo's ``*.jsonl``.
        pre: llama.cpp's name for the pre-tokenizer. By default, it is found by comparing
            structures. Unknown ``.tiktoken`` files require it.
        arch: the name of the architecture, as in ``architectures`` in ``config.json``.

    Raises:
        FileError: a file is missing or can't be read.
        VocabError: a file is malformed, or llama.cpp has no such vocabulary.
        UnknownPreTokenizerError: no pre-tokenizer of llama.cpp splits text like the source.
        InvalidTypeError, InvalidValueError: an argument has a wrong type or value.
    """
    from ggtok.native import pre_names
    from ggtok.vocabularies.convert.source_formats import convert_source

    for name, value in (("pre", pre), ("arch", arch)):
        if value is not None and not isinstance(value, str):
            raise InvalidTypeError(f"{name} must be str, not {type(value).__name__}")
    if not isinstance(source, (str, os.PathLike)):
        raise InvalidTypeError(f"source must be str or a path, not {type(source).__name__}")
    if pre is not None and pre not in pre_names():
        raise UnknownPreTokenizerError(f"pre: no pre-tokenizer has the name {pre!r}", name=pre)
    return convert_source(os.fsdecode(os.fspath(source)), pre=pre, arch=arch)
