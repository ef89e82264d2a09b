"""The Tokenizer and :func:`load`."""

from __future__ import annotations

import operator
import os
import warnings
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from enum import IntFlag
from types import MappingProxyType

from ggtok import _native
from ggtok.errors import (
    FileError,
    InvalidTypeError,
    InvalidValueError,
    TextDecodeError,
    VocabWarning,
)

TYPE_CHECKING = False  # as in _native.py
if TYPE_CHECKING:
    from typing import Any, BinaryIO, SupportsIndex, TypeAlias, TypeVar

    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import Buffer

    from ggtok.sources import Source

    Text: TypeAlias = str | Buffer
    T = TypeVar("T")
    Ids: TypeAlias = Iterable[SupportsIndex] | NDArray[np.integer[Any]]

_TEMPLATE_KEY = "tokenizer.chat_template"
# Batches of fewer characters than this aren't worth a second thread.
_BATCH_ONE_THREAD = 16384
# Chunks per thread: more even out unequal texts, fewer cost less.
_CHUNKS_PER_THREAD = 8


class TokenAttr(IntFlag):
    """Attributes of a token: the bits of llama.cpp's ``llama_token_attr``."""

    UNDEFINED = 0
    UNKNOWN = 1 << 0
    UNUSED = 1 << 1
    NORMAL = 1 << 2
    CONTROL = 1 << 3
    USER_DEFINED = 1 << 4
    BYTE = 1 << 5
    NORMALIZED = 1 << 6
    LSTRIP = 1 << 7
    RSTRIP = 1 << 8
    SINGLE_WORD = 1 << 9


def load(
    source: str | os.PathLike[str] | Buffer | BinaryIO,
    *,
    pre: str | None = None,
    pre_patterns: Sequence[str] | None = None,
    overrides: Mapping[str, int | float | bool | str] | None = None,
) -> Tokenizer:
    """Load the vocabulary of a GGUF file.

    Only the file's metadata is read, never its tensors, so a file with weights
    loads as fast as one without. Equals ``llama_model_load_from_file`` with
    ``vocab_only``.

    Args:
        source: one of

            - a path; of the files of a split model, any (the first is read, which
              alone holds the vocabulary);
            - the bytes of a GGUF file (or of its beginning, as far as the metadata
              goes) in any bytes-like object, to which nothing refers after the call;
            - a file opened for reading bytes, read from where it stands;
            - of a ``str``, if there is no file of that name, a model by the name that
              ``user/repo[:quant]``, ``hf://user/repo[@revision]/file.gguf``,
              ``https://...``, ``ollama:name[:tag]`` or ``lmstudio:publisher/model``
              has where it lives: see :mod:`ggtok.sources`.
        pre: a pre-tokenizer name in place of the file's ``tokenizer.ggml.pre``.
            BPE vocabularies only.
        pre_patterns: regular expressions (of the ``regex`` package) that cut text
            into words in place of the pre-tokenizer. The first cuts the text, the
            second each of the pieces, and so on; what lies between matches is a
            piece too. BPE vocabularies only.
        overrides: values in place of those that the file has, or lacks, under scalar
            keys, such as ``{"tokenizer.ggml.add_bos_token": False}``: llama.cpp's
            ``kv_overrides`` (``--override-kv``). Keys and strings have at most 127
            bytes; a value of another type than the key's is ignored with a warning.
            :attr:`Tokenizer.metadata` goes on giving what the file says.

    Raises:
        FileError: the file can't be read (also an ``OSError``, ``FileNotFoundError``...),
            or no model of that name can be found or fetched.
        MissingExtraError: the source needs a package that isn't installed (also an
            ``ImportError``).
        GGUFError: not a GGUF file, or a malformed one.
        VocabError: the vocabulary can't work; in particular
            UnknownPreTokenizerError: ggtok doesn't know the pre-tokenizer's name.
        InvalidTypeError, InvalidValueError: an argument makes no sense.

    Warns:
        VocabWarning: what llama.cpp, too, warns of when loading, and overrides of a
            tokenizer's keys that nothing reads.
    """
    patterns = None if pre_patterns is None else _patterns(pre_patterns)
    tok = Tokenizer(source, pre, patterns, overrides)
    for sentence in tok._native.warnings():
        warnings.warn(sentence, VocabWarning, stacklevel=2)
    return tok


class Tokenizer:
    """The tokenizer of a GGUF file; :func:`load` makes them.

    It never changes, and any number of threads may use it at the same time; the
    GIL is released while text is tokenized. Tokenizers loaded from a path or by a
    model's name can be pickled: the name is, and the copy loads the file again.
    """

    def __init__(
        self,
        source: object,
        pre: str | None,
        patterns: tuple[str, ...] | None,
        overrides: Mapping[str, int | float | bool | str] | None = None,
    ) -> None:
        # Private: use load(), whose arguments these are.
        if pre is not None and not isinstance(pre, str):
            raise InvalidTypeError(f"pre must be str, not {type(pre).__name__}")
        if pre is not None and "\0" in pre:
            raise InvalidValueError("pre holds a NUL character")
        split = None
        if patterns is not None:
            from ggtok import _split

            split = _split.by_patterns(patterns)
        if overrides is not None and not isinstance(overrides, Mapping):
            raise InvalidTypeError(
                f"overrides must be a mapping of keys to values, not {type(overrides).__name__}"
            )
        options: Any = {"pre": pre, "split": split, "overrides": overrides}
        self._path: str | None = None  # what a pickle says, and `source` comes from
        self._source: Source | None = None
        if isinstance(source, (str, os.PathLike)):
            path = os.fspath(source)
            try:
                os.fsencode(path)
            except UnicodeEncodeError as e:
                raise InvalidValueError(f"source: no path can hold it ({e})") from None
            if (b"\0" if isinstance(path, bytes) else "\0") in path:
                raise InvalidValueError("source: a path with a NUL character")
            self._native = self._by_name(path, isinstance(source, str), options)
        else:
            if hasattr(source, "read") and not _has_buffer(source):
                from ggtok.sources.prefix import read_file

                source = read_file(source)
            self._native = _native.Native(data=source, **options)
        self._pre = pre
        self._patterns = patterns
        self._overrides = dict(overrides) if overrides else None
        self._n_tokens = self._native.n_tokens()
        self._vocab_type = self._native.vocab_type()
        self._specials: dict[str, int | None] = {}
        self._flags = self._native.flags()
        self._eog_ids = frozenset(self._native.eog_ids())
        self._metadata: Mapping[str, str | int | float | bool] | None = None

    def _by_name(self, path: str | bytes, may_be_name: bool, options: Any) -> _native.Native:
        name = os.fsdecode(path)
        self._path = os.path.abspath(name)
        if "-of-" in name:
            from ggtok.sources.split import first_shard

            path = first_shard(name)
        try:
            return _native.Native(path=path, **options)
        except FileError as e:
            if not may_be_name or os.path.exists(path):
                raise
            missing = e
        # Only now, so that a file costs nothing more, and goes before a name.
        from ggtok import sources

        found = sources.find(name)
        if found is None:
            raise missing
        self._path, self._source = name, found.source
        if found.data is None:
            return _native.Native(path=found.source.path, **options)
        return _native.Native(data=found.data, name=name, **options)

    # ---- text to ids ----

    def encode(
        self, text: Text, *, add_special: bool = True, parse_special: bool = False
    ) -> list[int]:
        """The ids of a text: ``llama_tokenize``.

        Args:
            text: a ``str``, or a bytes-like object taken as UTF-8 of any quality
                (each bad byte is treated as llama.cpp treats it).
            add_special: add the tokens that the vocabulary's flags ask for around
                the text (BOS, EOS; CLS and SEP).
            parse_special: where the text holds the text of a control token, such as
                ``<|im_start|>``, give that token. Off, such text is plain text; only
                user-defined tokens are found.

        Raises:
            TextEncodeError: a ``str`` with a lone surrogate.
            InvalidTypeError: ``text`` is neither ``str`` nor bytes-like.
            VocabError: the vocabulary can't encode.
        """
        return self._native.encode(text, (1 if add_special else 0) | (2 if parse_special else 0))

    def encode_array(
        self, text: Text, *, add_special: bool = True, parse_special: bool = False
    ) -> NDArray[np.int32]:
        """As :meth:`encode`; a NumPy array, int32, shape ``(n_tokens,)``.

        For large texts this is much the faster way.
        """
        return self._native.encode_array(text, _flags(add_special, parse_special))

    def encode_batch(
        self,
        texts: Iterable[Text],
        *,
        add_special: bool = True,
        parse_special: bool = False,
        threads: int = 0,
    ) -> list[list[int]]:
        """:meth:`encode` for each text, on several threads.

        Args:
            texts: the texts. One ``str`` is refused: it would be taken apart.
            add_special, parse_special: as for :meth:`encode`.
            threads: how many threads to use; 0 means as many as this process may
                use processor cores.
        """
        encode, flags = self._native.encode, _flags(add_special, parse_special)

        def work(numbered: Iterable[tuple[int, Text]]) -> list[list[int]]:
            return [_numbered(encode, i, text, flags) for i, text in numbered]

        return [ids for part in _in_threads(work, texts, threads) for ids in part]

    def encode_batch_arrays(
        self,
        texts: Iterable[Text],
        *,
        add_special: bool = True,
        parse_special: bool = False,
        threads: int = 0,
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """:meth:`encode_batch` into two arrays, in the layout of an Arrow list.

        Returns:
            ``(ids, offsets)``: int32 of shape ``(total,)`` and int64 of shape
            ``(n_texts + 1,)``; the i-th text's ids are
            ``ids[offsets[i]:offsets[i + 1]]``.
        """
        import numpy as np

        append, flags = self._native.encode_append, _flags(add_special, parse_special)

        def work(numbered: Iterable[tuple[int, Text]]) -> tuple[array[int], list[int]]:
            ids = array("i")
            counts = [_numbered(append, i, text, flags, ids) for i, text in numbered]
            return ids, counts

        parts = _in_threads(work, texts, threads)
        arrays = [np.frombuffer(ids, np.int32) for ids, _ in parts if ids]
        counts = [n for _, part in parts for n in part]
        offsets = np.zeros(len(counts) + 1, np.int64)
        np.cumsum(counts, out=offsets[1:])
        if len(arrays) == 1:
            return arrays[0], offsets
        return np.concatenate(arrays) if arrays else np.empty(0, np.int32), offsets

    def count(self, text: Text, *, add_special: bool = True, parse_special: bool = False) -> int:
        """``len(encode(...))``, without making the list."""
        return self._native.count(text, _flags(add_special, parse_special))

    # ---- ids to text ----

    def decode(
        self,
        ids: Ids,
        *,
        remove_special: bool = False,
        unparse_special: bool = True,
        errors: str = "replace",
    ) -> str:
        """The text of some ids: ``llama_detokenize``, decoded from UTF-8.

        Args:
            ids: an iterable of integers, or an integer array (int32: no copy).
            remove_special: leave out a BOS at the start and an EOS at the end, if
                the vocabulary adds them.
            unparse_special: give control and unknown tokens as their text; off,
                they give nothing.
            errors: what to do about bytes that are no UTF-8 (a token may end inside
                a character), as in ``bytes.decode``.

        Raises:
            TokenIdError: an id outside the vocabulary.
            TextDecodeError: bad bytes, with ``errors="strict"``.
        """
        data = self.decode_bytes(
            ids, remove_special=remove_special, unparse_special=unparse_special
        )
        try:
            return data.decode("utf-8", errors)
        except UnicodeDecodeError as e:
            raise TextDecodeError(*e.args) from None
        except (LookupError, TypeError, ValueError) as e:
            raise InvalidValueError(f"errors: {e}") from None

    def decode_bytes(
        self, ids: Ids, *, remove_special: bool = False, unparse_special: bool = True
    ) -> bytes:
        """The bytes of some ids: ``llama_detokenize``. Arguments as for :meth:`decode`."""
        flags = (_native.REMOVE_SPECIAL if remove_special else 0) | (
            _native.UNPARSE_SPECIAL if unparse_special else 0
        )
        return self._native.decode(ids, flags)

    # ---- tokens ----

    def token_to_piece(self, id: SupportsIndex, *, lstrip: int = 0, special: bool = True) -> bytes:
        """What one token prints: ``llama_token_to_piece``.

        Args:
            id: a token id.
            lstrip: how many leading spaces to leave out, at most.
            special: give control and unknown tokens as their text; off, they give
                ``b""``.

        Raises:
            TokenIdError: ``id`` is outside the vocabulary.
        """
        lstrip = _index(lstrip, "lstrip")
        if lstrip < 0:
            raise InvalidValueError(f"lstrip must not be negative, but is {lstrip}")
        return self._native.piece(_index(id, "id"), min(lstrip, 2**31 - 1), bool(special))

    def text_to_token(self, text: Text) -> int | None:
        """The id of the token with exactly this text, as stored in the vocabulary, or None."""
        return self._native.find(text)

    def token_text(self, id: SupportsIndex) -> bytes:
        """A token's text as stored (not what it prints): ``llama_vocab_get_text``."""
        return self._native.text(_index(id, "id"))

    def token_score(self, id: SupportsIndex) -> float:
        """A token's score, a float32: ``llama_vocab_get_score``."""
        return self._native.score(_index(id, "id"))

    def token_attr(self, id: SupportsIndex) -> TokenAttr:
        """A token's attributes after llama.cpp's corrections: ``llama_vocab_get_attr``."""
        return TokenAttr(self._native.attr(_index(id, "id")))

    def is_eog(self, id: SupportsIndex) -> bool:
        """Whether a token ends generation: ``llama_vocab_is_eog``. False outside the vocabulary."""
        return _index(id, "id") in self._eog_ids

    def is_control(self, id: SupportsIndex) -> bool:
        """Whether a token is a control token: ``llama_vocab_is_control``."""
        return TokenAttr.CONTROL in self.token_attr(id)

    @property
    def eog_ids(self) -> frozenset[int]:
        """The ids that end generation."""
        return self._eog_ids

    @property
    def suppress_tokens(self) -> tuple[int, ...]:
        """The file's ``tokenizer.ggml.suppress_tokens``, in its order."""
        return self._native.suppress_tokens()

    # ---- special tokens ----

    def _special(self, name: str) -> int | None:
        # Asked for when needed: telling which of two EOT texts llama.cpp finds first
        # takes milliseconds (ggtok_special_id).
        if name not in self._specials:
            self._specials[name] = self._native.special(name)
        return self._specials[name]

    @property
    def bos_id(self) -> int | None:
        """Beginning of sequence, or None: ``llama_vocab_bos``."""
        return self._special("bos")

    @property
    def eos_id(self) -> int | None:
        """End of sequence, or None: ``llama_vocab_eos``."""
        return self._special("eos")

    @property
    def eot_id(self) -> int | None:
        """End of turn, or None: ``llama_vocab_eot``."""
        return self._special("eot")

    @property
    def eom_id(self) -> int | None:
        """End of message, or None."""
        return self._special("eom")

    @property
    def unk_id(self) -> int | None:
        """Unknown text, or None."""
        return self._special("unk")

    @property
    def sep_id(self) -> int | None:
        """Separator, or None: ``llama_vocab_sep``."""
        return self._special("sep")

    @property
    def nl_id(self) -> int | None:
        """Newline, or None: ``llama_vocab_nl``."""
        return self._special("nl")

    @property
    def pad_id(self) -> int | None:
        """Padding, or None: ``llama_vocab_pad``."""
        return self._special("pad")

    @property
    def mask_id(self) -> int | None:
        """Mask, or None: ``llama_vocab_mask``."""
        return self._special("mask")

    @property
    def fim_pre_id(self) -> int | None:
        """Fill-in-the-middle prefix, or None: ``llama_vocab_fim_pre``."""
        return self._special("fim_pre")

    @property
    def fim_suf_id(self) -> int | None:
        """Fill-in-the-middle suffix, or None: ``llama_vocab_fim_suf``."""
        return self._special("fim_suf")

    @property
    def fim_mid_id(self) -> int | None:
        """Fill-in-the-middle middle, or None: ``llama_vocab_fim_mid``."""
        return self._special("fim_mid")

    @property
    def fim_pad_id(self) -> int | None:
        """Fill-in-the-middle padding, or None: ``llama_vocab_fim_pad``."""
        return self._special("fim_pad")

    @property
    def fim_rep_id(self) -> int | None:
        """Fill-in-the-middle repository name, or None: ``llama_vocab_fim_rep``."""
        return self._special("fim_rep")

    @property
    def fim_sep_id(self) -> int | None:
        """Fill-in-the-middle file separator, or None: ``llama_vocab_fim_sep``."""
        return self._special("fim_sep")

    # ---- the vocabulary ----

    @property
    def n_tokens(self) -> int:
        """The number of tokens: ids are 0 to ``n_tokens - 1``. Also ``len(tok)``."""
        return self._n_tokens

    @property
    def vocab_type(self) -> str:
        """``"SPM"``, ``"BPE"``, ``"WPM"``, ``"UGM"``, ``"RWKV"``, ``"PLAMO2"``, ``"PLAMO3"``,
        ``"TEST"`` or ``"NONE"``: ``llama_vocab_type``."""
        return self._vocab_type

    @property
    def model(self) -> str:
        """The file's ``tokenizer.ggml.model``, such as ``"gpt2"`` or ``"llama"``."""
        return self._native.model()

    @property
    def pre(self) -> str | None:
        """The name of the pre-tokenizer in effect; None outside BPE."""
        return self._native.pre()

    @property
    def add_bos(self) -> bool:
        """Whether ``add_special`` puts BOS first: ``llama_vocab_get_add_bos``."""
        return self._flags["add_bos"]

    @property
    def add_eos(self) -> bool:
        """Whether ``add_special`` puts EOS last: ``llama_vocab_get_add_eos``."""
        return self._flags["add_eos"]

    @property
    def add_sep(self) -> bool:
        """Whether ``add_special`` puts SEP last: ``llama_vocab_get_add_sep``."""
        return self._flags["add_sep"]

    @property
    def add_space_prefix(self) -> bool:
        """Whether a space is put before the text (SPM, UGM)."""
        return self._flags["add_space_prefix"]

    @property
    def metadata(self) -> Mapping[str, str | int | float | bool]:
        """The file's scalar key/values, in its order; arrays are left out.

        Bytes that are no UTF-8 are kept as lone surrogates (``surrogateescape``).
        """
        if self._metadata is None:
            self._metadata = MappingProxyType(self._native.scalars())
        return self._metadata

    @property
    def chat_template(self) -> str | None:
        """The file's ``tokenizer.chat_template``: Jinja source, or None."""
        template = self.metadata.get(_TEMPLATE_KEY)
        return template if isinstance(template, str) else None

    @property
    def chat_templates(self) -> dict[str, str]:
        """All chat templates by name; the unnamed one is ``"default"``."""
        named = {
            key[len(_TEMPLATE_KEY) + 1 :]: value
            for key, value in self.metadata.items()
            if key.startswith(_TEMPLATE_KEY + ".") and isinstance(value, str)
        }
        unnamed = self.chat_template
        return named if unnamed is None else {**named, "default": unnamed}

    @property
    def source(self) -> Source | None:
        """Where the vocabulary came from (:class:`ggtok.sources.Source`); None: from memory."""
        if self._source is None and self._path is not None:
            from ggtok.sources import Source

            self._source = Source(name=self._path, kind="file", path=self._path)
        return self._source

    # ---- Python ----

    def __len__(self) -> int:
        return self._n_tokens

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        pre = f" pre={self.pre!r}" if self.pre is not None else ""
        return f"<ggtok.Tokenizer {self.vocab_type}{pre} n_tokens={self.n_tokens}>"

    def __copy__(self) -> Tokenizer:
        return self

    def __deepcopy__(self, memo: object) -> Tokenizer:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        if self._path is None:
            raise InvalidTypeError(
                "only a tokenizer loaded from a path can be pickled, not one loaded from memory"
            )
        return Tokenizer, (self._path, self._pre, self._patterns, self._overrides)


def _has_buffer(source: object) -> bool:
    try:
        memoryview(source)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True


def _flags(add_special: bool, parse_special: bool) -> int:
    return (_native.ADD_SPECIAL if add_special else 0) | (
        _native.PARSE_SPECIAL if parse_special else 0
    )


def _index(value: SupportsIndex, what: str) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise InvalidTypeError(f"{what} must be an integer, not {type(value).__name__}") from None


def _patterns(patterns: Sequence[str]) -> tuple[str, ...]:
    if isinstance(patterns, (str, bytes)) or not isinstance(patterns, Iterable):
        raise InvalidTypeError(
            f"pre_patterns must be a list of regular expressions, not {type(patterns).__name__}"
        )
    return tuple(patterns)


# ---- batches ----


def _numbered(function: Callable[..., T], i: int, *args: Any) -> T:
    """function(*args), whose errors say that they are about texts[i]."""
    try:
        return function(*args)
    except Exception as e:
        if hasattr(e, "add_note"):  # Python 3.11
            e.add_note(f"in texts[{i}]")
        raise


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _in_threads(
    work: Callable[[Iterable[tuple[int, Text]]], T], texts: Iterable[Text], threads: int
) -> Iterable[T]:
    """work() for runs of consecutive texts, given as (index, text); the results in order."""
    if isinstance(texts, (str, bytes, bytearray, memoryview)):
        raise InvalidTypeError(f"texts must be an iterable of texts, not {type(texts).__name__}")
    try:
        items = list(texts)
    except TypeError:
        raise InvalidTypeError(
            f"texts must be an iterable of texts, not {type(texts).__name__}"
        ) from None
    threads = _index(threads, "threads")
    if threads < 0:
        raise InvalidValueError(f"threads must not be negative, but is {threads}")
    sizes = [len(text) if isinstance(text, Sized) else 0 for text in items]
    threads = min(threads or _cores(), len(items))
    if threads <= 1 or sum(sizes) < _BATCH_ONE_THREAD:
        return [work(enumerate(items))]

    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, _chunks(items, sizes, threads * _CHUNKS_PER_THREAD)))


def _chunks(items: list[Text], sizes: list[int], n: int) -> Iterator[list[tuple[int, Text]]]:
    """Consecutive runs of about 1/n of the characters each."""
    target = sum(sizes) / n
    run: list[tuple[int, Text]] = []
    size = 0
    for i, item in enumerate(items):
        run.append((i, item))
        size += sizes[i]
        if size >= target:
            yield run
            run, size = [], 0
    if run:
        yield run
