"""Reads a GGUF file's vocabulary, to write it in another format or to a separate file."""

from __future__ import annotations

import errno
import os
import struct
import warnings
from collections.abc import Sequence
from typing import Any, AnyStr

from ggtok import _types as types
from ggtok import sources
from ggtok.base import files
from ggtok.base.escape import printable
from ggtok.base.files import open_regular
from ggtok.errors import (
    InvalidValueError,
    UnknownPreTokenizerError,
    VocabError,
    VocabWarning,
    file_error,
)
from ggtok.native.gguf import ARRAY, STRING, FileHeader
from ggtok.sources.model_files import first_shard, shard
from ggtok.sources.prefix import read_file
from ggtok.tokenizer import load
from ggtok.vocabularies.gguf_writer import FLAG_KEYS, SPECIAL_KEYS
from ggtok.vocabularies.spelling import NORMAL
from ggtok.vocabularies.vocabulary import Vocabulary
from ggtok.vocabularies.writers import GGUF

_GGML = "tokenizer.ggml."
_MERGES = b"tokenizer.ggml.merges"
_TEMPLATE = "tokenizer.chat_template"
_LENGTH = ".context_length"


def vocabulary(source: str | os.PathLike[str] | types.Buffer | types.BinaryIO) -> Vocabulary:
    """Read the vocabulary of a GGUF file, for example to write it in another format.

    Texts and merges are as in llama.cpp: they end at a NUL, an empty text becomes
    ``[EMPTY_id]``, and merges without two parts, which have no effect, are dropped.

    Args:
        source: as for :func:`ggtok.load`.

    Raises:
        VocabError: the file has no vocabulary.
        FileError, GGUFError: as for :func:`ggtok.load`.
    """
    data, inputs = _read_metadata(source)
    metadata = FileHeader(data).values()

    def text_of(key: str) -> str | None:
        value = metadata.pop(key, None)
        return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else None

    def array_of(key: str, wanted: type | tuple[type, ...]) -> list[Any] | None:
        value = metadata.pop(key, None)
        if isinstance(value, bytearray):  # an array of 8-bit integers
            value = list(value)
        fits = isinstance(value, list) and all(isinstance(item, wanted) for item in value[:1])
        return value if fits else None

    # llama.cpp ignores a value whose type isn't the expected one, or refuses the file.
    model = text_of(_GGML + "model")
    texts = array_of(_GGML + "tokens", bytes)
    if texts is None or model is None:
        raise VocabError(f"there are no tokens in a vocabulary of model '{printable(str(model))}'")
    merges = array_of(_GGML + "merges", bytes)
    pre = text_of(_GGML + "pre")
    types = array_of(_GGML + "token_type", int)
    scores = array_of(_GGML + "scores", (int, float))
    specials = {name: f"{_GGML}{key}_token_id" for name, key in SPECIAL_KEYS.items()}
    flags = {name: _GGML + key for name, key in FLAG_KEYS.items()}
    template = text_of(_TEMPLATE)
    metadata.pop("tokenizer.chat_templates", None)
    named = {
        key[len(_TEMPLATE) + 1 :]: text
        for key in list(metadata)
        if key.startswith(_TEMPLATE + ".") and (text := text_of(key)) is not None
    }
    return Vocabulary(
        model=model,
        pre=pre,
        texts=[text.split(b"\0")[0] or b"[EMPTY_%d]" % id for id, text in enumerate(texts)],
        types=[NORMAL] * len(texts) if types is None else list(types[: len(texts)]),
        scores=None if scores is None else list(scores[: len(texts)]),
        merge_texts=None if merges is None else [*filter(None, pairs(merges))],
        special_ids={
            name: id
            for name, key in specials.items()
            if type(id := metadata.pop(key, None)) is int and 0 <= id < len(texts)
        },
        flags={
            name: on for name, key in flags.items() if type(on := metadata.pop(key, None)) is bool
        },
        chat_template=template,
        chat_templates=named,
        architecture=text_of("general.architecture") or "llama",
        keys={
            key: _value(value)
            for key, value in metadata.items()
            if _is_kept(key) and value != []  # the gguf package can't write an empty array
        },
        inputs=inputs,
    )


def pairs(merges: Sequence[AnyStr]) -> list[tuple[AnyStr, AnyStr] | None]:
    """Splits merges into their two parts as in llama.cpp, or None if there aren't two parts."""
    found: list[tuple[AnyStr, AnyStr] | None] = []
    if not merges:
        return found
    nul, space = ("\0", " ") if isinstance(merges[0], str) else (b"\0", b" ")
    for merge in merges:
        left, separator, right = merge.partition(space)
        if not left or nul in merge:  # a merge ends at NUL, and its first character can be a space
            merge = merge.partition(nul)[0]
            at = merge.find(space, 1)
            left, separator, right = merge[: max(at, 0)], space, merge[at + 1 :]
        found.append((left, right) if left and separator else None)
    return found


def merges_in(metadata: bytes) -> list[bytes]:
    """Returns the merges in a file's metadata as in :func:`vocabulary`, each as one text."""
    header = FileHeader(metadata)
    for pair in header.pairs():
        if pair.key == _MERGES and (pair.kind, pair.of) == (ARRAY, STRING):
            return [b" ".join(parts) for parts in pairs(header.strings(pair)) if parts is not None]
    return []


def _is_kept(key: str) -> bool:
    """Whether the key is part of the vocabulary: either tokens depend on it (llama.cpp has special
    rules for some models' names), or other libraries' tokenizers contain its value."""
    return key == "general.name" or key.startswith("tokenizer.") or key.endswith(_LENGTH)


def _value(value: Any) -> object:
    """Converts a value for Vocabulary.keys, in which an array of bytes is a bytes object."""
    if isinstance(value, bytearray):
        return bytes(value)
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


def _read_metadata(source: Any) -> tuple[bytes, tuple[str, ...]]:
    """Checks that ggtok can load a source; returns the metadata's bytes, and the file's paths."""
    from ggtok.loading.loaded import copy_metadata

    is_path = isinstance(source, (str, os.PathLike))
    data = source if is_path else copy_metadata(source)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VocabWarning)
        tok = load(data)
    if not is_path:
        return bytes(data), ()
    name, found = os.fsdecode(os.fspath(source)), tok._loaded.found
    path = os.path.abspath(name) if found is None else found.path
    inputs = () if path is None else (path, first_shard(path))
    return metadata_of(name)[1], inputs


# ---- extracting the vocabulary to a separate file without the weights ----

_SPLIT = b"split."  # keys that make llama.cpp look for the other files of a split model


def extract(source: str, out: str, *, force: bool = False) -> int:
    """Write a model's key/value pairs to a GGUF file without tensors.

    ggtok and llama.cpp (``vocab_only``) load the same vocabulary from that file. Keys keep their
    order, types and exact values, except that ``split.*`` is dropped. The file is little-endian
    and has version 3. It is written completely or not at all.

    Args:
        source: a path or a model's name, as for :func:`ggtok.load`.
        out: the file to write. An existing GGUF file is replaced and keeps its mode. Devices and
            FIFOs are written to.
        force: also replace a file that isn't a GGUF file, but never the source.

    Returns:
        The new file's size in bytes.

    Raises:
        InvalidValueError: `out` is the source, another file of a split source, or not a GGUF
            file.
        VocabError: llama.cpp couldn't load the vocabulary. (An unknown pre-tokenizer only causes
            a warning, because another version may know it.)
        FileError, GGUFError: as for :func:`ggtok.load`, or `out` can't be written.

    Warns:
        VocabWarning: ggtok doesn't know the pre-tokenizer.
    """
    path, data = metadata_of(source)
    inputs = () if path is None else (path,)
    files.check_target(out, GGUF, inputs=inputs, force=force)
    if path is not None:
        _check_shards(path, out)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VocabWarning)
        unknown = None
        try:
            load(data)
        except UnknownPreTokenizerError as e:
            unknown = str(e.name)
            load(data, pre="default")  # raises other errors, if there are any
    file = vocabulary_only(data)
    files.write(out, file, GGUF, inputs=inputs, force=force)
    if unknown is not None:
        warnings.warn(
            f"{source}: ggtok doesn't know the pre-tokenizer '{printable(unknown)}', which is also "
            f"in {out}",
            VocabWarning,
            stacklevel=2,
        )
    return len(file)


def metadata_of(source: str) -> tuple[str | None, bytes]:
    """Returns the path of a model's file (None if it isn't local), and its metadata."""
    path = first_shard(source)
    if not os.path.exists(path):
        found = sources.find_model(source)
        if found is None:
            raise file_error(errno.ENOENT, os.strerror(errno.ENOENT), source)
        if found.data is not None:
            return None, found.data
        path = str(found.source.path)
    with open_regular(path) as file:
        return path, read_file(file, path)


def _check_shards(path: str, out: str) -> None:
    ours, other = shard(os.path.realpath(path)), shard(os.path.realpath(out))
    if ours and other and (ours[0], ours[2]) == (other[0], other[2]):
        raise InvalidValueError(f"{out} is the source itself: choose another name")


def vocabulary_only(metadata: bytes) -> bytes:
    """Returns the new file's bytes, from well-formed metadata of either byte order."""
    header = FileHeader(metadata)
    pairs = [
        struct.pack("<Q", len(pair.key))
        + pair.key
        + struct.pack("<I", pair.kind)
        + header.little_endian(pair)
        for pair in header.pairs()
        if not pair.key.startswith(_SPLIT)
    ]
    return b"".join([b"GGUF", struct.pack("<IQQ", 3, 0, len(pairs)), *pairs])
