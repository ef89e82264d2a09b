"""The Tokenizer and :func:`load`."""

from __future__ import annotations

import os
import warnings
from collections import namedtuple
from collections.abc import Mapping, Sequence

from ggtok import _types as types
from ggtok._attributes import TokenAttr as TokenAttr
from ggtok._explaining import Explaining
from ggtok.corpora.methods import Corpora
from ggtok.errors import InvalidTypeError, VocabWarning
from ggtok.loading.loaded import Opened, overrides_dict, patterns_tuple
from ggtok.native import results

TYPE_CHECKING = False  # as in _native/library.py
if TYPE_CHECKING:
    from typing import NamedTuple

# What Tokenizers have in their __dict__; all else there is a subclass's.
_OWN = frozenset(
    "_by_bytes _eog_ids _encode _explained _flags _metadata _n_tokens _native _overrides _path "
    "_last_plan _patterns _pickled _plans _pre _source _special_ids _specials _vocab_type "
    "_warned_of_no_template".split()
)
_NOT_GIVEN: tuple[str, ...] = ("",)
_CACHE_MAX = 29 << 20  # bytes, as ggtok.h says


if TYPE_CHECKING:

    class CacheInfo(NamedTuple):
        hits: int
        misses: int
        maxsize: int
        currsize: int

else:  # NamedTuple's module takes longer to import than all the rest
    CacheInfo = namedtuple("CacheInfo", ("hits", "misses", "maxsize", "currsize"))  # noqa: PYI024
    CacheInfo.__annotations__ = dict.fromkeys(CacheInfo._fields, int)

CacheInfo.__doc__ = """What :meth:`Tokenizer.cache_info` gives, like ``functools.lru_cache``'s.

hits: words, and parts of words, that were found; misses: those that had to be tokenized;
maxsize: bytes that a thread's cache takes at most; currsize: bytes that all take now.
"""


def load(
    source: str | os.PathLike[str] | types.Buffer | types.BinaryIO,
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
            - the bytes of a GGUF file, or at least of its metadata, in any bytes-like
              object. The metadata of ``bytes`` is kept with the tokenizer, so that it can
              be pickled. Of other memory (a ``bytearray``, an ``mmap``, a NumPy array) the
              metadata is copied first, at most ``GGTOK_METADATA_LIMIT`` bytes of it, since
              others may change such memory; nothing refers to it after the call;
            - a file opened for reading bytes, read from its current position;
            - a ``str`` that names no file: the name of a model, as ``user/repo[:quant]``,
              ``hf://user/repo[@revision]/file.gguf``, ``https://...``,
              ``ollama:name[:tag]`` or ``lmstudio:publisher/model``: see
              :mod:`ggtok.sources`.
        pre: a pre-tokenizer name in place of the file's ``tokenizer.ggml.pre``.
            BPE vocabularies only.
        pre_patterns: regular expressions (of the ``regex`` package) that cut text
            into words in place of the pre-tokenizer. The first cuts the text, the
            second each of the pieces, and so on; what lies between matches is a
            piece too. BPE vocabularies only.
        overrides: values for scalar keys, in place of the file's or where it has none,
            such as ``{"tokenizer.ggml.add_bos_token": False}``: llama.cpp's
            ``kv_overrides`` (``--override-kv``). Keys and strings have at most 127
            bytes; a value of another type than the key's is ignored with a warning.
            :attr:`Tokenizer.metadata` still gives what the file says.

    Raises:
        FileError: the file can't be read (also an ``OSError``, ``FileNotFoundError``...),
            or no model of that name can be found or fetched.
        MissingExtraError: the source needs a package that isn't installed (also an
            ``ImportError``).
        GGUFError: not a GGUF file, or a malformed one.
        VocabError: the vocabulary can't work; in particular
            UnknownPreTokenizerError: ggtok doesn't know the pre-tokenizer's name.
        InvalidTypeError, InvalidValueError: an argument is of a wrong type or value.

    Warns:
        VocabWarning: what llama.cpp warns of, too, when it loads the file; overrides of
            tokenizer keys that nothing reads.
    """
    patterns = None if pre_patterns is None else patterns_tuple(pre_patterns)
    tok = Tokenizer(source, pre, patterns, overrides)
    for sentence in tok._native.warnings():
        warnings.warn(sentence, VocabWarning, stacklevel=2)
    return tok


class Tokenizer(Explaining, Corpora):
    """The tokenizer of a GGUF file; :func:`load` makes them.

    It never changes, and any number of threads may use it at the same time. The GIL is
    released for batches and for texts of 2048 bytes or more; shorter ones take less time
    than releasing it. Signals are handled during long calls on the main thread, so that
    Ctrl-C stops them. A tokenizer works after ``os.fork``, except in a signal handler that
    forks during a batch: the child would wait for threads that it doesn't have.

    Tokenizers can be pickled, with ``pre``, ``pre_patterns`` and ``overrides``. The pickle of
    one loaded from a path or by a model's name holds the absolute path or the name, and
    unpickling loads that file again; of one loaded from ``bytes``, it holds the metadata. One
    loaded from other memory can't be pickled.
    """

    def __init__(
        self,
        source: object = None,
        pre: str | None = None,
        patterns: tuple[str, ...] | None = _NOT_GIVEN,
        overrides: Mapping[str, int | float | bool | str] | None = None,
    ) -> None:
        # Private: use load(), whose arguments these are.
        if patterns is _NOT_GIVEN:
            raise InvalidTypeError("tokenizers are made by ggtok.load: ggtok.load(source)")
        own_overrides = overrides_dict(overrides)
        opened = Opened(source, pre, patterns, own_overrides)
        super().__init__(opened.native, opened.path, opened.source)
        self._encode = opened.native.encode
        self._pickled = opened.pickled
        self._pre = pre
        self._patterns = patterns
        self._overrides = own_overrides or None

    # ---- text to ids ----

    def encode(
        self,
        text: types.Text,
        *,
        add_special: bool = True,
        parse_special: types.ParseSpecial = False,
        continuation: bool = False,
    ) -> list[int]:
        """The ids of a text: ``llama_tokenize``.

        Args:
            text: a ``str``, or a bytes-like object, taken as UTF-8 that may be malformed
                (each bad byte is treated as llama.cpp treats it).
            add_special: add the tokens that the vocabulary's flags ask for around
                the text (BOS, EOS; CLS and SEP).
            parse_special: where the text holds the text of a control token, such as
                ``<|im_start|>``, give that token. Off, such text is plain text; only
                user-defined tokens are found. A collection of texts or ids: only these
                control (and unknown) tokens are found, and user-defined ones.
            continuation: the text goes on after other tokens: nothing is added
                (``add_special`` is ignored), and no space is put before the text. After a
                special token inside the text a space is put as usual. Equals llama.cpp with
                ``tokenizer.ggml.add_space_prefix`` false, where no special token is found.

        Raises:
            TextEncodeError: a ``str`` with a lone surrogate.
            InvalidTypeError: ``text`` is neither ``str`` nor bytes-like.
            InvalidValueError: ``continuation``, but the vocabulary has no tokens for text that
                goes on (WPM; UGM that removes white space); an entry of ``parse_special``
                that is no special token, which the message names.
            VocabError: the vocabulary can't encode.
        """
        parse: object = parse_special
        if parse is not False and parse is not True:
            parse = self._native.parsed(parse)
        try:
            return self._encode(text, add_special, parse, continuation)
        except Exception as e:
            flags = add_special, parse, continuation
            return self._native.retry(self._encode, e, text, *flags)

    def encode_array(
        self,
        text: types.Text,
        *,
        add_special: bool = True,
        parse_special: types.ParseSpecial = False,
        continuation: bool = False,
    ) -> types.Int32Array:
        """As :meth:`encode`; a NumPy array, int32, shape ``(n_tokens,)``.

        Much faster than a list for large texts.
        """
        encode = self._native.encode_array
        parse: object = parse_special  # as _flags_of, whose call a short text would feel
        if parse is not False and parse is not True:
            parse = self._native.parsed(parse)
        try:
            return encode(text, add_special, parse, continuation)
        except Exception as e:
            return self._native.retry(encode, e, text, add_special, parse, continuation)

    def encode_batch(
        self,
        texts: types.Texts,
        *,
        add_special: bool = True,
        parse_special: types.ParseSpecial = False,
        continuation: bool = False,
        threads: int = 0,
    ) -> list[list[int]]:
        """:meth:`encode` for each text, on several threads.

        Args:
            texts: the texts, in an iterable or in a column of Arrow data (what has
                ``__arrow_c_stream__`` or ``__arrow_c_array__``: see
                :meth:`encode_batch_arrow`) without nulls. A single ``str`` is refused: it
                would count as one text for each character.
            add_special, parse_special, continuation: as for :meth:`encode`.
            threads: how many threads to use; 0: one for each processor core that this
                process may use.

        Raises:
            InvalidTypeError, InvalidValueError, TextEncodeError, VocabError: as for
                :meth:`encode`; the message says which text (``texts[3]``).
        """
        flags = self._flags_of(add_special, parse_special, continuation)
        lists: list[list[int]] = self._batch(texts, flags, threads, True, None)
        return lists

    def encode_batch_arrays(
        self,
        texts: types.Texts,
        *,
        add_special: bool = True,
        parse_special: types.ParseSpecial = False,
        continuation: bool = False,
        threads: int = 0,
    ) -> tuple[types.Int32Array, types.Int64Array]:
        """:meth:`encode_batch` into two arrays, in the layout of an Arrow list.

        Returns:
            ``(ids, offsets)``: int32 of shape ``(total,)`` and int64 of shape
            ``(n_texts + 1,)``; the i-th text's ids are
            ``ids[offsets[i]:offsets[i + 1]]``.
        """
        flags = self._flags_of(add_special, parse_special, continuation)
        return results.id_arrays(self._batch(texts, flags, threads, False, None))

    def encode_batch_arrow(
        self,
        texts: types.Texts,
        *,
        add_special: bool = True,
        parse_special: types.ParseSpecial = False,
        continuation: bool = False,
        threads: int = 0,
    ) -> types.ArrowIds:
        """:meth:`encode_batch` from and to Arrow data, without an object for each text.

        Args:
            texts: what has ``__arrow_c_stream__`` or ``__arrow_c_array__``: arrays, chunked
                arrays, Series, tables and record batches of one column. The column is of
                strings or binaries (also large ones and views) or a dictionary of them, with
                nulls or without. A stream is read to its end first. Or an iterable of texts.
            add_special, parse_special, continuation, threads: as for :meth:`encode_batch`.

        Returns:
            What has ``__arrow_c_array__``: a ``large_list<int32>`` with an element for each
            text, null for a null. Its consumers share the memory that the ids were written to.

        The texts are read where they are; each thread copies the one that it encodes, since
        others may write to memory that isn't Python's. The interface doesn't tell the sizes of
        an array's buffers, so a library that hands out too short ones can crash the process;
        what else is malformed is found.

        Raises:
            InvalidTypeError: a column of another type, or more than one column.
            InvalidValueError: malformed data, or the stream's own error.
            TextEncodeError, VocabError: as for :meth:`encode_batch`.
        """
        from ggtok.arrow import ArrowIds

        flags = self._flags_of(add_special, parse_special, continuation)
        return ArrowIds(self._batch(texts, flags, threads, None, None))

    def count(
        self,
        text: types.Text,
        *,
        add_special: bool = True,
        parse_special: types.ParseSpecial = False,
        continuation: bool = False,
    ) -> int:
        """``len(encode(...))``, without making the list."""
        flags = self._flags_of(add_special, parse_special, continuation)
        try:
            return self._native.count(text, *flags)
        except Exception as e:
            return self._native.retry(self._native.count, e, text, *flags)

    def count_batch(
        self,
        texts: types.Texts,
        *,
        add_special: bool = True,
        parse_special: types.ParseSpecial = False,
        continuation: bool = False,
        threads: int = 0,
    ) -> list[int]:
        """:meth:`count` for each text, on several threads. Arguments and errors are those of
        :meth:`encode_batch`."""
        flags = self._flags_of(add_special, parse_special, continuation)
        _, offsets = results.id_arrays(self._batch(texts, flags, threads, False, None))
        counts: list[int] = (offsets[1:] - offsets[:-1]).tolist()
        return counts

    # ---- what encoding remembers ----

    def cache_info(self) -> CacheInfo:
        """What is remembered of the texts encoded so far, to encode similar texts faster.

        Threads that encode at the same time have a cache each. Caches in use at the moment
        aren't counted, nor the memory that each thread keeps for results (4 MB at most) and
        for a copy of its largest text, which many vocabularies need.
        """
        hits, misses, size = self._native.cache_info()
        return CacheInfo(hits, misses, _CACHE_MAX, size)

    def cache_clear(self) -> None:
        """Forget all texts and free the memory that they take. Ids never depend on it."""
        self._native.clear()

    # ---- Python ----

    def __len__(self) -> int:
        return self._n_tokens

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        source = f" {self._path!r}" if self._path is not None else ""
        pre = f" pre={self.pre!r}" if self.pre is not None else ""
        return f"<ggtok.Tokenizer{source} {self.vocab_type}{pre} n_tokens={self.n_tokens}>"

    def __eq__(self, other: object) -> bool:
        """Whether two have the same vocabulary, chat templates and options (`pre`,
        `pre_patterns`, `overrides`), wherever they were loaded from."""
        if type(other) is not type(self) or not isinstance(other, Tokenizer):
            return NotImplemented
        return self is other or (
            self._identity() == other._identity() and self._native.is_same(other._native)
        )

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[object, ...]:
        """What a tokenizer depends on besides tokens and merges. Texts of numbers, since NaN
        doesn't equal itself."""
        scalars = {k: repr(v) for k, v in self.metadata.items() if k.startswith("tokenizer.")}
        options = {k: repr(v) for k, v in (self._overrides or {}).items()}
        named = frozenset(scalars.items()), frozenset(options.items())
        return self._n_tokens, self._vocab_type, self._pre, self._patterns, *named

    def __copy__(self) -> Tokenizer:
        return self

    def __deepcopy__(self, memo: object) -> Tokenizer:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        if self._pickled is None:
            raise InvalidTypeError(
                "this tokenizer was loaded from memory other than bytes, so it can't be pickled: "
                "load it from a path or from bytes"
            )
        args = self._pickled, self._pre, self._patterns, self._overrides
        if type(self) is Tokenizer:
            return Tokenizer, args
        state = {name: value for name, value in vars(self).items() if name not in _OWN}
        return _restore, (type(self), *args), state


def _restore(cls: type[Tokenizer], *args: types.Any) -> Tokenizer:
    """A subclass's instance from its pickle, whatever its own __init__ takes."""
    tok = cls.__new__(cls)
    Tokenizer.__init__(tok, *args)
    return tok
