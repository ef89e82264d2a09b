"""A GGUF file's vocabulary, to be written again."""

from __future__ import annotations

import os
import struct
import warnings
from typing import Any

from ggtok import _types as types
from ggtok.errors import VocabError, VocabWarning
from ggtok.making.contents import Pair
from ggtok.making.gguf_writer import FLAG_KEYS, SPECIAL_KEYS
from ggtok.making.spelling import NORMAL
from ggtok.making.vocabulary import Vocabulary

STRING, ARRAY = 8, 9
# GGUF's type numbers, as struct has them.
_SCALARS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
_GGML = "tokenizer.ggml."
_TEMPLATE = "tokenizer.chat_template"


def vocabulary(source: str | os.PathLike[str] | types.Buffer | types.BinaryIO) -> Vocabulary:
    """The vocabulary of a GGUF file: what :func:`ggtok.load` reads, but to be written again.

    Texts and merges are as llama.cpp reads them: they end at a NUL, an empty text is
    ``[EMPTY_id]``, and a merge without two parts, which merges nothing, is dropped.

    Args:
        source: as of :func:`ggtok.load`.

    Raises:
        VocabError: there is none.
        FileError, GGUFError: as of :func:`ggtok.load`.
    """
    data = _checked(source)
    metadata = Reader(data).metadata()
    model = metadata.pop(_GGML + "model")
    texts = metadata.pop(_GGML + "tokens", None)
    if texts is None:
        raise VocabError(f"there are no tokens in a vocabulary of model '{model.decode()}'")
    merges = metadata.pop(_GGML + "merges", None)
    pre = metadata.pop(_GGML + "pre", None)
    types = metadata.pop(_GGML + "token_type", None)
    scores = metadata.pop(_GGML + "scores", None)
    specials = {name: f"{_GGML}{key}_token_id" for name, key in SPECIAL_KEYS.items()}
    flags = {name: _GGML + key for name, key in FLAG_KEYS.items()}
    template = metadata.pop(_TEMPLATE, None)
    metadata.pop("tokenizer.chat_templates", None)
    named = {
        key[len(_TEMPLATE) + 1 :]: metadata.pop(key).decode("utf-8", "surrogateescape")
        for key in list(metadata)
        if key.startswith(_TEMPLATE + ".")
    }
    return Vocabulary(
        model=model.decode(),
        pre=None if pre is None else pre.decode(),
        texts=[text.split(b"\0")[0] or b"[EMPTY_%d]" % id for id, text in enumerate(texts)],
        types=[NORMAL] * len(texts) if types is None else list(types[: len(texts)]),
        scores=None if scores is None else list(scores[: len(texts)]),
        merge_texts=None if merges is None else [*filter(None, map(_pair, merges))],
        special_ids={
            name: id
            for name, key in specials.items()
            if (id := metadata.pop(key, None)) is not None and 0 <= id < len(texts)
        },
        flags={
            name: on for name, key in flags.items() if (on := metadata.pop(key, None)) is not None
        },
        chat_template=None if template is None else template.decode("utf-8", "surrogateescape"),
        chat_templates=named,
        architecture=metadata.get("general.architecture", b"llama").decode(),
        keys={key: _value(value) for key, value in metadata.items() if _is_kept(key)},
    )


def _pair(merge: bytes) -> Pair | None:
    """A merge's parts as llama.cpp splits them; None: there are none."""
    merge = merge.split(b"\0")[0]
    at = merge.find(b" ", 1)
    return (merge[:at], merge[at + 1 :]) if at > 0 else None


def _is_kept(key: str) -> bool:
    """Do tokens depend on that key? llama.cpp treats some models' by their name."""
    return key == "general.name" or key.startswith("tokenizer.")


def _value(value: Any) -> object:
    """As Vocabulary.keys has it: bytes are an array of bytes there."""
    if isinstance(value, bytearray):
        return bytes(value)
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


def _checked(source: Any) -> bytes:
    """The bytes of a file's metadata, which ggtok can load."""
    from ggtok._open import _has_buffer
    from ggtok.sources.prefix import read_file
    from ggtok.tokenizer import load

    if not isinstance(source, (str, os.PathLike)):
        data = bytes(memoryview(source if _has_buffer(source) else read_file(source)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", VocabWarning)
            return data[: load(data)._native.metadata_bytes()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VocabWarning)
        size = load(source)._native.metadata_bytes()
    return first_bytes(os.fsdecode(os.fspath(source)), size)


def first_bytes(source: str | bytes, size: int) -> bytes:
    """The metadata of what :func:`ggtok.load` has loaded: a path, a model's name or its bytes."""
    from ggtok import sources
    from ggtok.sources.split import first_shard

    if isinstance(source, bytes):
        return source[:size]
    path = first_shard(source) if "-of-" in source else source
    if not os.path.exists(path):
        found = sources.find(path)
        if found is not None and found.data is not None:
            return bytes(found.data[:size])
        path = path if found is None else str(found.source.path)
    with open(path, "rb") as file:
        return file.read(size)


class Reader:
    """Reads metadata that the C library has found well-formed."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 4
        self._order = "<" if struct.unpack_from("<I", data, 4)[0] < 1 << 16 else ">"

    def begin(self) -> int:
        """Reads the header; gives the number of key/values."""
        self.scalars("I", 1)  # version
        n: int = self.scalars("Q", 2)[1]
        return n

    def metadata(self) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for _ in range(self.begin()):
            key = self.string().decode("utf-8", "surrogateescape")
            value = self._value(self.scalars("I", 1)[0])
            values.setdefault(key, value)
        return values

    def scalars(self, kind: str, n: int) -> tuple[Any, ...]:
        form = f"{self._order}{n}{kind}"
        values = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return values

    def little(self, kind: int, n: int) -> bytes:
        """Scalars as they stand in a little-endian file, bit by bit."""
        size = struct.calcsize("<" + _SCALARS[kind])
        raw = self._data[self._at : self._at + n * size]
        self._at += len(raw)
        if self._order == "<" or size == 1:
            return raw
        swapped = bytearray(len(raw))
        for i in range(size):
            swapped[i::size] = raw[size - 1 - i :: size]
        return bytes(swapped)

    def string(self) -> bytes:
        (n,) = self.scalars("Q", 1)
        self._at += n
        return self._data[self._at - n : self._at]

    def strings(self, n: int) -> list[bytes]:
        """Many, as fast as Python can."""
        data, at, strings = self._data, self._at, []
        length = struct.Struct(self._order + "Q").unpack_from
        for _ in range(n):
            end = at + 8 + length(data, at)[0]
            strings.append(data[at + 8 : end])
            at = end
        self._at = at
        return strings

    def _value(self, kind: int) -> Any:
        if kind == STRING:
            return self.string()
        if kind != ARRAY:
            return self.scalars(_SCALARS[kind], 1)[0]
        (of,) = self.scalars("I", 1)
        (n,) = self.scalars("Q", 1)
        if of == STRING:
            return self.strings(n)
        values = self.scalars(_SCALARS[of], n)
        return bytearray(b & 0xFF for b in values) if _SCALARS[of] in "Bb" else list(values)
