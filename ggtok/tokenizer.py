"""The Tokenizer and :func:`load`."""

from __future__ import annotations

import os
import warnings
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache

from ggtok import _types as types
from ggtok.errors import InvalidTypeError, InvalidValueError, VocabWarning
from ggtok.loading.loaded import Loaded, patterns_tuple
from ggtok.loading.loaded import TokenAttr as TokenAttr
from ggtok.native.arguments import index, int32_array, truth
from ggtok.text import Chunk, batch_encoding, decoding, sampling
from ggtok.text.stream_decoder import StreamDecoder
from ggtok.text.stream_encoder import StreamEncoder

TYPE_CHECKING = False  # avoids importing typing: see native/library.py
if TYPE_CHECKING:
    from typing import Any, Generic, Literal, NamedTuple, NoReturn, TypeVar, overload

    T_co = TypeVar("T_co", covariant=True)

    class _ReadOnly(Generic[T_co]):
        """A read-only attribute, for type checkers: at runtime, it is a property."""

        def __get__(self, instance: object, owner: object) -> T_co: ...
        def __set__(self, instance: object, value: NoReturn) -> None: ...


# The instance attributes of Tokenizer. Any others belong to a subclass.
_OWN = frozenset(("_encode", "_loaded"))
_MISSING: tuple[str, ...] = ("",)
_CACHE_MAX = 40 << 20  # maximum size of a cache, in bytes, as documented in ggtok.h


if TYPE_CHECKING:

    class CacheInfo(NamedTuple):
        hits: int
        misses: int
        maxsize: int
        currsize: int

else:  # importing typing for NamedTuple takes longer than importing the rest of ggtok
    CacheInfo = namedtuple("CacheInfo", ("hits", "misses", "maxsize", "currsize"))  # noqa: PYI024
    CacheInfo.__annotations__ = dict.fromkeys(CacheInfo._fields, int)

CacheInfo.__doc__ = """The result of :meth:`Tokenizer.cache_info`, as in ``functools.lru_cache``.

Attributes:
    hits: lookups of words, or parts of words, that the cache answered.
    misses: lookups that it couldn't answer, so that the word was tokenized.
    maxsize: the largest size of one thread's cache, in bytes.
    currsize: the current size of all caches together, in bytes.
"""


class _DefaultTrue(int):
    """A default of True, distinguishable from a True that the caller passes."""

    def __repr__(self) -> str:
        return "True"


DEFAULT_TRUE: bool = _DefaultTrue(1)  # type: ignore[assignment]


def load(
    source: str | os.PathLike[str] | types.Buffer | types.BinaryIO,
    *,
    pre: str | None = None,
    pre_patterns: Sequence[str] | None = None,
    overrides: Mapping[str, int | float | bool | str] | None = None,
) -> Tokenizer:
    """Load the vocabulary of a GGUF file.

    This reads only the file's metadata, never its tensors, so a file with weights loads as fast
    as one without. It equals ``llama_model_load_from_file`` with ``vocab_only``.

    Args:
        source: one of

            - a path. For a split model, the path of any of its files: the first file,
              which alone has the vocabulary, is read;
            - a bytes-like object with a GGUF file, or at least its metadata. A tokenizer
              loaded from ``bytes`` keeps the metadata, so it can be pickled. From other
              memory (a ``bytearray``, an ``mmap``, a NumPy array), which other code may change,
              the metadata is copied first, up to ``GGTOK_METADATA_LIMIT`` bytes, and
              nothing refers to that memory after the call;
            - a file opened in binary mode, read from its current position;
            - a ``str`` that isn't a file: the name of a model, such as
              ``user/repo[:quant]``, ``hf://user/repo[@revision]/file.gguf``,
              ``https://...``, ``ollama:name[:tag]`` or ``lmstudio:publisher/model``. See
              :mod:`ggtok.sources`.
        pre: a pre-tokenizer name that replaces the file's ``tokenizer.ggml.pre``.
            BPE vocabularies only.
        pre_patterns: regular expressions (syntax of the ``regex`` package) that split text
            into words in place of the pre-tokenizer. The first splits the text, the second
            splits each resulting piece, and so on. Text between matches is a piece, too.
            BPE vocabularies only.
        overrides: values that replace, or add, scalar keys of the file, such as
            ``{"tokenizer.ggml.add_bos_token": False}``: llama.cpp's ``kv_overrides``
            (``--override-kv``). Keys and string values have at most 127 bytes. A value
            whose type differs from the key's is ignored with a warning.
            :attr:`Tokenizer.metadata` still has the file's values.

    Raises:
        FileError: the file can't be read (also an ``OSError``, ``FileNotFoundError``...),
            or the named model can't be found or downloaded.
        MissingExtraError: the source needs a package that isn't installed (also an
            ``ImportError``).
        GGUFError: the source isn't a GGUF file, or is malformed.
        VocabError: the vocabulary is unusable; in particular
            UnknownPreTokenizerError: ggtok doesn't know the pre-tokenizer's name.
        InvalidTypeError, InvalidValueError: an argument has a wrong type or value.

    Warns:
        VocabWarning: the file has a problem that llama.cpp also only warns about; or an
            override is for a tokenizer key that nothing reads.
    """
    patterns = None if pre_patterns is None else patterns_tuple(pre_patterns)
    tok = Tokenizer(source, pre, patterns, overrides)
    for message in tok._loaded.warnings():
        warnings.warn(message, VocabWarning, stacklevel=2)
    return tok


def _special_id(name: str, meaning: str, in_llama: bool = True) -> _ReadOnly[int | None]:
    def get(self: Tokenizer) -> int | None:
        return self._loaded.special(name)

    equals = f": ``llama_vocab_{name}``" if in_llama else ""
    row: Any = property(get, doc=f"{meaning}, or None{equals}.")
    return row  # type: ignore[no-any-return]


def _flag(name: str, meaning: str, in_llama: bool = True) -> _ReadOnly[bool]:
    def get(self: Tokenizer) -> bool:
        return self._loaded.flags[name]

    equals = f": ``llama_vocab_get_{name}``" if in_llama else ""
    row: Any = property(get, doc=f"Whether {meaning}{equals}.")
    return row  # type: ignore[no-any-return]


@cache
def _chat_modules() -> tuple[types.Any, types.Any]:
    from ggtok.chat import api, options

    return api, options


# Names of other libraries, and what to use instead.
_OTHER_NAMES = {
    "vocab_size": "n_tokens",
    "n_vocab": "n_tokens",
    "get_vocab_size": "n_tokens",
    "bos_token_id": "bos_id",
    "eos_token_id": "eos_id",
    "eot_token": "eos_id",
    "pad_token_id": "pad_id",
    "unk_token_id": "unk_id",
    "tokenize": "encode, and token_to_piece for the text of an id",
    "detokenize": "decode",
    "encode_ordinary": "encode(text, add_special=False)",
    "encode_ordinary_batch": "encode_batch(texts, add_special=False)",
    "encode_single_token": "text_to_token",
    "decode_with_offsets": "encode_with_offsets",
    "decode_single_token_bytes": "token_to_piece",
    "encode_to_numpy": "encode_array",
    "encode_plus": "encode, or encode_with_offsets",
    "batch_decode": "decode_batch",
    "get_vocab": "token_text(id) for each id",
    "max_token_value": "n_tokens",
    "convert_tokens_to_ids": "text_to_token",
    "convert_ids_to_tokens": "token_to_piece",
    "token_to_id": "text_to_token",
    "id_to_token": "token_text, or token_to_piece for the bytes that it decodes to",
    "vocab": "token_text(id) for each id",
    "bos_token": "token_text(tok.bos_id)",
    "eos_token": "token_text(tok.eos_id)",
    "pad_token": "token_text(tok.pad_id)",
    "unk_token": "token_text(tok.unk_id)",
    "special_tokens": "special_ids",
    "special_tokens_set": "special_ids",
    "all_special_ids": "special_ids",
    "all_special_tokens": "token_text(id) for each of special_ids",
    "n_ctx_train": "context_length",
    "model_max_length": "context_length",
}


def _chat_call(
    tools: Sequence[Mapping[str, types.Any]] | None,
    like: types.Like,
    add_generation_prompt: bool | None,
    *others: types.Any,
) -> tuple[types.Any, types.Any]:
    """Returns the chat module, imported lazily, and the arguments common to all chat calls."""
    api, options = _chat_modules()
    generation = None if add_generation_prompt is DEFAULT_TRUE else add_generation_prompt
    return api, options.ChatOptions(tools, like, generation, *others)


class Tokenizer:
    """The tokenizer of a GGUF file, created by :func:`load`.

    A tokenizer is immutable, and any number of threads may use it at the same time. It
    releases the GIL for batches and for texts of at least 2048 bytes; for shorter texts,
    releasing it would take longer than encoding. Long calls on the main thread handle signals,
    so Ctrl-C stops them. A tokenizer works after ``os.fork``, unless a signal handler forks
    during a batch: the child would wait for threads that it doesn't have.

    Tokenizers can be pickled, including ``pre``, ``pre_patterns`` and ``overrides``. If the
    tokenizer was loaded from a path or a model name, the pickle holds the absolute path or the
    name, and unpickling loads the file again. If it was loaded from ``bytes``, the pickle holds
    the metadata. A tokenizer loaded from other memory can't be pickled.
    """

    def __init__(
        self,
        source: object = None,
        pre: str | None = None,
        patterns: tuple[str, ...] | None = _MISSING,
        overrides: Mapping[str, int | float | bool | str] | None = None,
    ) -> None:
        # Users call load() instead.
        if patterns is _MISSING:
            raise InvalidTypeError("Tokenizer can't be created directly: call ggtok.load(source)")
        self._loaded = Loaded(source, pre, patterns, overrides)
        self._encode = self._loaded.encode

    # ---- text to ids ----

    def encode(
        self,
        text: types.Text,
        *,
        add_special: bool = True,
        parse_special: types.ParseSpecial = False,
        continuation: bool = False,
    ) -> list[int]:
        """Encode a text to ids: ``llama_tokenize``.

        Args:
            text: a ``str``, or a bytes-like object with UTF-8. Malformed bytes are encoded as
                llama.cpp encodes them.
            add_special: add the tokens that the vocabulary's flags ask for (BOS, EOS; CLS and
                SEP).
            parse_special: if true, parse the texts of control tokens, such as
                ``<|im_start|>``, as those tokens. If false, such text is plain text, and only
                user-defined tokens are parsed. If a collection of texts or ids, parse only
                these control (or unknown) tokens, and user-defined tokens.
            continuation: the text continues a text that is already tokenized. No tokens are
                added (``add_special`` is ignored), and no space is added before the text. After
                a special token inside the text, a space is added as usual. If the text has no
                special token, this equals llama.cpp with ``tokenizer.ggml.add_space_prefix``
                false.

        Returns:
            The token ids.

        Raises:
            TextEncodeError: the ``str`` contains a lone surrogate.
            InvalidTypeError: ``text`` is neither ``str`` nor bytes-like.
            InvalidValueError: ``continuation`` is true, but the vocabulary can't continue a
                text (WPM; UGM that removes white space); or an entry of ``parse_special``
                isn't a special token (the message names it).
            VocabError: the vocabulary can't encode.
        """
        parse: object = parse_special
        if parse is not False and parse is not True:
            parse = self._loaded.parsed(parse)
        try:
            return self._encode(text, add_special, parse, continuation)
        except Exception as e:
            flags = add_special, parse, continuation
            return self._loaded.retry(self._encode, e, text, *flags)

    def encode_array(
        self,
        text: types.Text,
        *,
        add_special: bool = True,
        parse_special: types.ParseSpecial = False,
        continuation: bool = False,
        threads: int = 1,
    ) -> types.Int32Array:
        """Encode a text to a NumPy array, int32, of shape ``(n_tokens,)``.

        This has the arguments and errors of :meth:`encode`, and is much faster for large texts.

        Args:
            threads: the number of threads for a large text; 0 means one for each processor. The
                ids are the same. Texts are cut where no token can cross; one without such a place,
                and all texts of UGM vocabularies, take one thread.

        Raises:
            InvalidValueError: `threads` is negative.
        """
        if type(threads) is not int or threads != 1:
            given = add_special, parse_special, continuation
            return batch_encoding.encode_array_on_threads(self._loaded, text, given, threads)
        encode = self._loaded.encode_array
        parse: object = parse_special
        if parse is not False and parse is not True:
            parse = self._loaded.parsed(parse)
        try:
            return encode(text, add_special, parse, continuation)
        except Exception as e:
            return self._loaded.retry(encode, e, text, add_special, parse, continuation)

    def stream_encoder(
        self,
        *,
        add_special: bool = True,
        parse_special: types.ParseSpecial = False,
        continuation: bool = False,
    ) -> StreamEncoder:
        """Returns an encoder for a text that grows, such as a prompt with more and more messages.

        ``feed(text)`` appends text, and returns the ids that no further text can change;
        ``pending`` has the ids of the rest, ``count`` is the number of both, and ``finish()``
        returns the last ids. Joined, these are the ids of :meth:`encode` for the texts joined. A
        text may be cut anywhere, even inside a character (as bytes) or a special token.

        In most vocabularies, the rest is a few words. It is longer for text without a place to
        cut (a long run of letters), and in vocabularies whose ids depend on the whole text: type
        TEST, model hybriddna, your own ``pre_patterns`` or ``split``, and UGM whose tokens or
        normalization join spaces to their neighbours. Then ids become final only before special
        tokens, or by :meth:`StreamEncoder.finish`. (``ggtok_safe_cut`` in ``ggtok.h`` has the
        exact rule.)

        Args:
            add_special, parse_special, continuation: as for :meth:`encode`.

        Raises:
            InvalidValueError, VocabError: as for :meth:`encode`.
        """
        return StreamEncoder(self._loaded, (add_special, parse_special, continuation))

    def encode_batch(
        self,
        texts: types.Texts,
        *,
        add_special: bool = True,
        parse_special: types.ParseSpecial = False,
        continuation: bool = False,
        threads: int = 0,
    ) -> list[list[int]]:
        """Encode many texts on several threads, each as by :meth:`encode`.

        Args:
            texts: an iterable of texts, or a column of Arrow data without nulls (any object
                with ``__arrow_c_stream__`` or ``__arrow_c_array__``; see
                :meth:`encode_batch_arrow`). A single ``str`` is refused, because each of its
                characters would be a text.
            add_special, parse_special, continuation: as for :meth:`encode`.
            threads: the number of threads; 0 means one for each processor core that this process
                may use.

        Returns:
            One list of ids for each text, in order.

        Raises:
            InvalidTypeError, InvalidValueError, TextEncodeError, VocabError: as for
                :meth:`encode`; the message names the text (``texts[3]``).
        """
        flags = add_special, parse_special, continuation
        lists: list[list[int]] = batch_encoding.encode(self._loaded, texts, flags, threads)
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
        """Encode many texts, like :meth:`encode_batch`, to two arrays in the layout of an Arrow
        list.

        Returns:
            ``(ids, offsets)``: NumPy arrays, int32 of shape ``(n_ids,)`` and int64 of shape
            ``(n_texts + 1,)``. The ids of the i-th text are
            ``ids[offsets[i]:offsets[i + 1]]``.
        """
        flags = add_special, parse_special, continuation
        return batch_encoding.encode_arrays(self._loaded, texts, flags, threads)

    def sample(
        self,
        text: types.Text,
        *,
        dropout: float | None = None,
        alpha: float | None = None,
        nbest: int = -1,
        seed: int | None = None,
        add_special: bool = True,
        parse_special: types.ParseSpecial = False,
    ) -> list[int]:
        """Encode a text to the ids of a random segmentation, for training on many of them.

        A sample decodes to the same text as the ids of :meth:`encode`, except that UGM may draw
        unknown tokens. The settings, the text and the vocabulary decide the ids:
        they are the same on every platform. docs/sampling.md compares the rules.

        Args:
            text: as for :meth:`encode`.
            dropout: BPE and SPM: the probability of skipping the next merge, from 0 (the ids of
                :meth:`encode`) to 1 (no merges). Skipped merges return after the next one that
                isn't skipped: the rule of Hugging Face's tokenizers. Above 0, words that are
                tokens are merged, too.
            alpha: SPM: the probability of skipping a merge for good: SentencePiece's rule. UGM: a
                segmentation's probability is proportional to ``exp(alpha * score)``; 0 makes all
                segmentations equally likely.
            nbest: UGM: draw from this number of best segmentations (at most 1024); -1: from all.
                With 0 or 1, the ids are those of :meth:`encode`.
            seed: an integer from 0 to 2**64 - 1; None: a random one.
            add_special, parse_special: as for :meth:`encode`.

        Raises:
            InvalidValueError: neither or both of ``dropout`` and ``alpha`` are given; the
                vocabulary's type doesn't have the rule (only BPE, SPM and UGM have one); a value
                is out of range; or the text is too long for ``nbest``.
            TextEncodeError, InvalidTypeError, VocabError: as for :meth:`encode`.
        """
        rule = sampling.checked_settings(dropout, alpha, nbest, seed)
        return sampling.sample(self._loaded, text, (add_special, parse_special, False), rule)

    def sample_batch_arrays(
        self,
        texts: types.Texts,
        *,
        dropout: float | None = None,
        alpha: float | None = None,
        nbest: int = -1,
        seed: int | None = None,
        add_special: bool = True,
        parse_special: types.ParseSpecial = False,
        threads: int = 0,
    ) -> tuple[types.Int32Array, types.Int64Array]:
        """Sample a segmentation of each text, on several threads.

        The ids of a text depend on the settings, the seed, the text and its index, not on the
        other texts. The first text has the ids of :meth:`sample`.

        Args:
            texts, threads: as for :meth:`encode_batch`.
            dropout, alpha, nbest, seed, add_special, parse_special: as for :meth:`sample`.

        Returns:
            ``(ids, offsets)``, as from :meth:`encode_batch_arrays`.

        Raises:
            InvalidValueError, InvalidTypeError, TextEncodeError, VocabError: as for
                :meth:`sample`.
        """
        rule = sampling.checked_settings(dropout, alpha, nbest, seed)
        flags = add_special, parse_special, False
        return batch_encoding.encode_arrays(self._loaded, texts, flags, threads, rule)

    def nbest(
        self,
        text: types.Text,
        n: int,
        *,
        add_special: bool = True,
        parse_special: types.ParseSpecial = False,
    ) -> list[tuple[list[int], float]]:
        """Returns the ``n`` best segmentations of a text, or all if there are fewer, best first.

        Args:
            text, add_special, parse_special: as for :meth:`encode`.
            n: from 1 to 1024; at most 4194304 divided by the bytes of the normalized text.

        Returns:
            ``(ids, score)`` for each segmentation. The score is the sum of the tokens' scores;
            added and special tokens have none. The first ids are those of :meth:`encode`.

        Raises:
            InvalidValueError: the vocabulary isn't UGM, or ``n`` is out of range.
            TextEncodeError, InvalidTypeError, VocabError: as for :meth:`encode`.
        """
        flags = add_special, parse_special, False
        return sampling.best_segmentations(self._loaded, text, n, flags)

    def encode_batch_arrow(
        self,
        texts: types.Texts,
        *,
        add_special: bool = True,
        parse_special: types.ParseSpecial = False,
        continuation: bool = False,
        threads: int = 0,
    ) -> types.ArrowIds:
        """Encode Arrow data to Arrow data, without a Python object for each text.

        Args:
            texts: an object with ``__arrow_c_stream__`` or ``__arrow_c_array__``: an array, a
                chunked array, a Series, or a table or record batch with one column. The column
                holds strings or binaries (also large ones and views), or a dictionary of them.
                It may have nulls. A stream is first read to its end. An iterable of texts
                works, too.
            add_special, parse_special, continuation, threads: as for :meth:`encode_batch`.

        Returns:
            An object with ``__arrow_c_array__``: a ``large_list<int32>`` with one element for
            each text, and null for each null. Its consumers share the memory of the ids.

        The texts aren't copied as a whole: each thread copies the text that it is encoding,
        because other code may write to that memory. Arrow's interface has no buffer sizes, so
        a library that exports a buffer that is too short can crash the process. Other
        malformed data is detected.

        Raises:
            InvalidTypeError: the column has another type, or there is more than one column.
            InvalidValueError: the data is malformed, or the stream fails.
            TextEncodeError, VocabError: as for :meth:`encode_batch`.
        """
        from ggtok.arrow import ArrowIds

        flags = add_special, parse_special, continuation
        return ArrowIds(batch_encoding.encode_arrow(self._loaded, texts, flags, threads))

    def count(
        self,
        text: types.Text,
        *,
        add_special: bool = True,
        parse_special: types.ParseSpecial = False,
        continuation: bool = False,
        threads: int = 1,
    ) -> int:
        """Returns the number of ids: ``len(encode(...))`` without the list.

        Arguments and errors are those of :meth:`encode` and, for `threads`, of
        :meth:`encode_array`.
        """
        if type(threads) is not int or threads != 1:
            given = add_special, parse_special, continuation
            return batch_encoding.count_on_threads(self._loaded, text, given, threads)
        parse: object = parse_special
        if parse is not False and parse is not True:
            parse = self._loaded.parsed(parse)
        try:
            return self._loaded.count(text, add_special, parse, continuation)
        except Exception as e:
            flags = add_special, parse, continuation
            return self._loaded.retry(self._loaded.count, e, text, *flags)

    def count_batch(
        self,
        texts: types.Texts,
        *,
        add_special: bool = True,
        parse_special: types.ParseSpecial = False,
        continuation: bool = False,
        threads: int = 0,
    ) -> list[int]:
        """Count the tokens of many texts on several threads, each as by :meth:`count`.

        Arguments and errors are those of :meth:`encode_batch`.
        """
        flags = add_special, parse_special, continuation
        return batch_encoding.count(self._loaded, texts, flags, threads)

    def encode_with_offsets(
        self,
        text: types.Text,
        *,
        add_special: bool = True,
        parse_special: types.ParseSpecial = False,
        continuation: bool = False,
        unit: types.Unit = "byte",
    ) -> tuple[list[int], types.Int64Array]:
        """Encode a text, and find the span of the text from which each token comes.

        A token's span starts where the source of its first (normalized) byte starts, and ends
        where the source of its last byte ends:

        - Tokens that come from one source character share its span.
        - A run of white space that is normalized to one space belongs to that space's token.
        - A space that the vocabulary inserts before a word has an empty source there.
        - White space that a special token strips belongs to that token.
        - Tokens added by ``add_special`` have empty spans at the start or end of the text.

        If nothing is normalized, the spans tile the text, and their bytes are the tokens'
        pieces.

        Args:
            text, add_special, parse_special, continuation: as for :meth:`encode`.
            unit: the unit of the spans. ``"byte"``: bytes of the text as UTF-8. ``"char"``:
                code points of a ``str``. ``"utf16"``: UTF-16 code units of a ``str``, as in
                JavaScript and most editors. With ``"char"`` and ``"utf16"``, the span of a
                token that holds part of a character includes the whole character.

        Returns:
            ``(ids, spans)``: a list, and an int64 array of shape ``(n_tokens, 2)``. The i-th
            token comes from ``text[spans[i, 0]:spans[i, 1]]`` (for ``"byte"``, of the text as
            UTF-8).

        Raises:
            InvalidValueError: ``unit`` is unknown, or isn't ``"byte"`` for a bytes-like text.
            TextEncodeError, InvalidTypeError, InvalidValueError, VocabError: as for
                :meth:`encode`.
        """
        c_unit = (
            0 if isinstance(unit, str) and unit == "byte" else batch_encoding.unit_of(text, unit)
        )
        parse: object = parse_special
        if parse is not False and parse is not True:
            parse = self._loaded.parsed(parse)
        encode = self._loaded.encode_spans
        try:
            return encode(text, add_special, parse, continuation, c_unit)
        except Exception as e:
            flags = add_special, parse, continuation, c_unit
            return self._loaded.retry(encode, e, text, *flags)

    def encode_batch_with_offsets(
        self,
        texts: types.Texts,
        *,
        add_special: bool = True,
        parse_special: types.ParseSpecial = False,
        continuation: bool = False,
        unit: types.Unit = "byte",
        threads: int = 0,
    ) -> list[tuple[list[int], types.Int64Array]]:
        """Encode many texts on several threads, each as by :meth:`encode_with_offsets`.

        Arguments and errors are those of :meth:`encode_with_offsets` and :meth:`encode_batch`.
        The arrays are slices of a single array.
        """
        flags = add_special, parse_special, continuation
        return batch_encoding.encode_with_offsets(self._loaded, texts, flags, unit, threads)

    def encode_batch_arrays_with_offsets(
        self,
        texts: types.Texts,
        *,
        add_special: bool = True,
        parse_special: types.ParseSpecial = False,
        continuation: bool = False,
        unit: types.Unit = "byte",
        threads: int = 0,
    ) -> tuple[types.Int32Array, types.Int64Array, types.Int64Array]:
        """Encode many texts, like :meth:`encode_batch_with_offsets`, to arrays.

        Returns:
            ``(ids, spans, offsets)``: NumPy arrays, int32 of shape ``(n_ids,)``, int64 of shape
            ``(n_ids, 2)`` and int64 of shape ``(n_texts + 1,)``. The ids and spans of the i-th
            text are those from ``offsets[i]`` to ``offsets[i + 1]``.
        """
        flags = add_special, parse_special, continuation
        return batch_encoding.encode_arrays_with_offsets(self._loaded, texts, flags, unit, threads)

    def encode_batches(
        self,
        texts: Iterable[types.Text] | types.ArrowStream | os.PathLike[str],
        *,
        batch_bytes: int = 8 << 20,
        threads: int = 0,
        add_special: bool = True,
        parse_special: types.ParseSpecial = False,
        progress: Callable[[types.EncodeProgress], object] | None = None,
    ) -> Iterator[tuple[types.Int32Array, types.Int64Array]]:
        """Encode a stream of texts, batch by batch, each as by :meth:`encode_batch_arrays`.

        A background thread collects the next batch while the current one is encoded. At most
        three batches exist at a time, so memory is bounded unless a text is larger than
        ``batch_bytes``. The order of the texts is kept.

        Args:
            texts: an iterable of ``str`` or bytes-like texts, such as a generator (it runs on
                the background thread); or an open file or a ``pathlib.Path``, whose lines are
                the texts (lines keep their newlines, as in Python); or an object with
                ``__arrow_c_stream__``, of strings or of one column of strings, without nulls
                (this needs pyarrow).
            batch_bytes: the size of a batch, in bytes of UTF-8. A batch ends with the text
                that reaches it.
            threads: the number of threads that encode; 0 means one for each processor core.
            add_special, parse_special: as for :meth:`encode`.
            progress: called with an :class:`EncodeProgress` after each batch, on the caller's
                thread.

        Yields:
            ``(ids, offsets)`` for each batch, as :meth:`encode_batch_arrays` returns them.

        Raises:
            InvalidTypeError, TextEncodeError, VocabError: as for :meth:`encode`. The message
                names the text by its index in the whole stream (``texts[3]``). All texts before
                it have been yielded.
            MissingExtraError: ``texts`` is an Arrow stream, and pyarrow isn't installed.
            FileError: a file can't be read.

        The iterator passes on exceptions that the iterable raises. Several threads may use
        iterators of the same tokenizer, one each.
        """
        from ggtok.corpora import iterate

        return iterate.encode_batches(
            self._loaded,
            texts,
            batch_bytes=index(batch_bytes, "batch_bytes"),
            threads=threads,
            add_special=add_special,
            parse_special=parse_special,
            progress=progress,
        )

    def encode_files(
        self,
        sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        out: str | os.PathLike[str],
        *,
        format: types.IdFormat | None = None,
        dtype: types.IdType = "auto",
        include: str | Sequence[str] = (),
        exclude: str | Sequence[str] = (),
        kind: types.SourceKind | None = None,
        separator: str | bytes | None = None,
        field: str | Sequence[str] | None = None,
        chat: bool | Mapping[str, types.Any] = False,
        add_special: bool = True,
        eos: bool = True,
        errors: types.FaultRule = "raise",
        dropout: float | None = None,
        alpha: float | None = None,
        seed: int = 0,
        threads: int = 0,
        shards: int | None = None,
        resume: bool = True,
        force: bool = False,
        progress: Callable[[types.EncodeProgress], object] | None = None,
    ) -> types.Summary:
        """Encode files to a file of ids, for training; docs/files.md has examples.

        Reading, encoding and writing overlap. Memory is bounded, whatever the size of the
        files, because long documents of a text file are encoded in parts. These must fit in
        memory whole, at up to 1 GiB each: a JSON line, a table row, a document for
        ``format="arrow"``, and a document for a vocabulary that can't encode in parts.

        Each 64 MB of ids ends with a checkpoint: the output is flushed to disk, and
        ``OUT.journal`` records its length. A call with the same arguments resumes from the last
        checkpoint, and its output is identical to that of an uninterrupted run. If the output is
        complete, the call does nothing. The output is renamed to ``OUT`` when it is complete.

        Args:
            sources: one or more paths: files, folders (recursively, sorted, without hidden
                files) or globs (also ``**``). Each file is read once, by its real path.
            out: the file to write.
            format: the output format; all are little-endian. By default, the extension of `out`
                selects it (``.npy``, ``.arrow``; others mean ``"raw"``). ``"raw"``: the ids, and
                ``OUT.offsets`` (int64) with the start of each document and the end of the last.
                ``"npy"``: the same as NumPy files, ``NAME.npy`` and ``NAME.offsets.npy``.
                ``"megatron"``: Megatron's ``NAME.bin`` and ``NAME.idx``. ``"arrow"``: an Arrow
                IPC file with a column ``ids`` of lists (needs pyarrow). ``OUT.manifest.json``
                records the sources, counts, vocabulary and versions.
            dtype: the type of the ids. ``"auto"``: uint16 if the vocabulary fits, else uint32;
                for Megatron, uint16 or int32 as Megatron chooses, because it has no uint32.
            include, exclude: globs of files to read, and of files and folders to skip. They apply
                to files that no path names itself. A glob without ``/`` is matched against names,
                others against paths relative to the source folder.
            kind: the format of all sources: ``"text"``, ``"jsonl"``, ``"parquet"`` or
                ``"arrow"``. By default, the file extension, before ``.gz``, ``.bz2``, ``.xz`` or
                ``.zst``, selects it: JSON lines (``.jsonl``, ``.ndjson``, and ``.json`` if it
                begins like JSON lines), a table (``.parquet``, ``.arrow``, ``.feather``,
                ``.ipc``) or, for any other, text.
            separator: the text between two documents in a text file. By default, each file is one
                document. A separator at the end of the file doesn't start another document.
            field: the name of the JSON member or table column that holds the document;
                ``"text"`` by default. ``"meta.text"`` names a member of a nested object. The
                texts of several fields are joined with a blank line.
            chat: True if each line is a conversation, or a dict of keyword arguments of
                :meth:`encode_chat`, such as ``{"like": "transformers"}``; ``"mask": False``
                writes no masks. A line is an object with ``messages``, and perhaps ``tools`` and
                a ``system`` prompt; an object whose ``conversations`` have ``from`` and
                ``value``; or a list of messages. A document's ids are those of
                :meth:`encode_chat` with ``add_generation_prompt=False`` and
                ``continue_final_message=False``; `add_special` and `eos` have no effect.
                ``OUT.mask`` (``NAME.mask.npy``; Megatron ``NAME.mask``; Arrow a column
                ``assistant_masks``) has a byte for each id: 1 if it is the assistant's, see
                ``return_assistant_mask``.
            add_special: as for :meth:`encode`. ``parse_special`` is off.
            eos: end each document with one EOS, even if the vocabulary adds it, too.
            errors: what to do about documents that are empty or aren't valid UTF-8, and about
                records that lack the field or are malformed. ``"raise"``: raise a
                DocumentError. ``"replace"``: replace invalid bytes with U+FFFD, as
                ``bytes.decode`` does, and keep empty or missing documents as empty ones.
                ``"skip"``: drop the documents. The Summary has the counts.
            dropout, alpha, seed: encode each document as :meth:`sample` does; its ids depend on
                its number in the output (with `shards`, also on the shard's). Documents must fit
                in memory whole, at up to 1 GiB each.
            threads: the number of threads that encode; 0 means one for each processor core.
            shards: the number of outputs to write instead of one: ``NAME-00000-of-00004.bin`` and
                so on, each with its own manifest, from consecutive sources of about equal size.
            resume: continue an interrupted run. If false, start again, and replace what an
                earlier run for the same `out` wrote.
            force: also replace files that no earlier run wrote, but never a source.
            progress: called with an :class:`EncodeProgress` after each batch.

        Raises:
            DocumentError: a document is faulty, and ``errors="raise"``.
            FileError: a file can't be read or written, or has changed during the run, or another
                run is writing the same output.
            InvalidValueError: an argument has a wrong value; the vocabulary has no EOS; or the
                output exists, or was started with other sources, options or another model.
            MissingExtraError: a file format needs a package that isn't installed.

        Ctrl-C stops the run at once, and the next call resumes from the last checkpoint.
        Several threads may call this method at the same time, with different outputs.
        """
        from ggtok.corpora.shards import encode_files

        seed = sampling.checked_seed(seed)
        is_sampled = dropout is not None or alpha is not None
        return encode_files(
            self._loaded,
            sources,
            out,
            format=format,
            dtype=dtype,
            include=include,
            exclude=exclude,
            kind=kind,
            separator=separator,
            field=field,
            chat=chat,
            add_special=truth(add_special, "add_special"),
            eos=truth(eos, "eos"),
            errors=errors,
            sampling=sampling.checked_settings(dropout, alpha, seed=seed) if is_sampled else None,
            threads=batch_encoding.n_threads(self._loaded, threads),
            resume=truth(resume, "resume"),
            force=truth(force, "force"),
            progress=progress,
            shards=None if shards is None else index(shards, "shards"),
        )

    # ---- texts cut to a token limit ----

    if TYPE_CHECKING:

        @overload
        def truncate(
            self,
            text: str,
            n: types.SupportsIndex,
            *,
            side: types.Side = "right",
            add_special: bool = True,
        ) -> str: ...

        @overload
        def truncate(
            self,
            text: types.Buffer,
            n: types.SupportsIndex,
            *,
            side: types.Side = "right",
            add_special: bool = True,
        ) -> bytes: ...

    def truncate(
        self,
        text: types.Text,
        n: types.SupportsIndex,
        *,
        side: types.Side = "right",
        add_special: bool = True,
    ) -> str | bytes:
        """Cut a text to at most `n` tokens.

        The result is the longest prefix (or suffix) that consists of at most `n` of the text's
        tokens, added tokens included, splits no code point, and itself encodes to at most `n`
        tokens. (At a cut, the tokens may differ from those inside the longer text.) A text that
        fits is returned whole. The texts of control tokens are plain text.

        The time depends on the length of the result, not on that of the text, provided that the
        text has a position now and then that no token can cross. Nearly all texts do.

        Args:
            text: the text.
            n: the maximum number of tokens.
            side: the side to cut off. ``"right"`` keeps the beginning, ``"left"`` the end.
            add_special: count the tokens that :meth:`encode` adds.

        Returns:
            A ``str`` for a ``str``, else ``bytes``.

        Raises:
            InvalidValueError: ``n`` is less than the number of added tokens, or ``side`` is
                unknown.
        """
        from ggtok.text.truncate import truncate

        cut: str | bytes = truncate(self._loaded, text, n, side, add_special)
        return cut

    def chunks(
        self,
        text: types.Text,
        n: types.SupportsIndex,
        *,
        overlap: types.SupportsIndex = 0,
        prefix: types.Text = "",
        add_special: bool = True,
        at: Iterable[types.Text] | None = None,
    ) -> list[Chunk]:
        """Split a text into chunks of at most `n` tokens each, for example for embeddings.

        Each chunk is a ``Chunk(start, end, n_tokens)``, and
        ``n_tokens == len(tok.encode(prefix + text[start:end])) <= n``. The chunks cover the
        whole text. A chunk is as long as possible: only the last chunk, or a chunk that ends
        after a text of `at`, has room for another token. Chunks end at token boundaries of the
        text if at least one token fits, and never inside a code point. The time is proportional
        to the total length of the chunks.

        Args:
            text: the text. For ``""``, the result is ``[]``.
            n: the maximum number of tokens in a chunk, including added tokens.
            overlap: the number of tokens that consecutive chunks share: the last `overlap`
                tokens of a chunk (except added ones) are also in the next one.
            prefix: the text put before each chunk when it is encoded, such as ``"passage: "``.
            add_special: count the tokens that :meth:`encode` adds.
            at: texts after which a chunk should end, most preferred first, such as
                ``("\\n\\n", "\\n", ". ")``. A chunk ends after the last occurrence of the first
                of these that ends in the last quarter of the chunk. If there is none, the chunk
                ends where `n` is reached.

        Returns:
            The chunks in order. ``start`` and ``end`` are in code points for a ``str``, in bytes
            for a bytes-like text.

        Raises:
            InvalidValueError: a single character doesn't fit together with the prefix and the
                added tokens, or the overlap leaves no room for new text. The message names an
                `n` that is large enough.
            InvalidTypeError: ``at`` is a single ``str``.
        """
        from ggtok.text.chunks import chunks

        return chunks(self._loaded, text, n, overlap, prefix, add_special, at)

    def is_canonical(self, ids: types.Ids) -> bool:
        """Whether any text encodes to exactly these ids.

        A model may generate other ids for a text than :meth:`encode` produces; such ids change
        when their text is encoded again. Special tokens (CONTROL and UNKNOWN) come from their own
        texts. The text between them is encoded with ``parse_special`` off, as it would be encoded
        at that position. Tokens that ``add_special`` adds may be present or absent.

        The result is False if an id is outside the vocabulary.

        Raises:
            InvalidTypeError: ``ids`` aren't integers.
        """
        from ggtok.text.canonical import is_canonical

        return is_canonical(self._loaded, ids)

    # ---- ids to text ----

    def decode(
        self,
        ids: types.Ids,
        *,
        remove_special: bool = False,
        unparse_special: bool = True,
        clean_spaces: bool | None = None,
        errors: str = "replace",
    ) -> str:
        """Decode ids to text: ``llama_detokenize``, then UTF-8 decoding.

        Args:
            ids: an iterable of integers, or an integer array (int32 is fastest).
            remove_special: drop BOS at the start and EOS at the end, if the vocabulary adds
                them.
            unparse_special: write control and unknown tokens as their text. If false, they
                produce no text.
            clean_spaces: None, like ``llama_detokenize``, removes spaces before punctuation
                (``"ok !"`` becomes ``"ok!"``) if the vocabulary asks for it (WPM and many BPE
                vocabularies do), and removes one space at the start if the vocabulary adds one
                there. False keeps all spaces: the text is the tokens' pieces, joined, as in
                llama-server's ``/detokenize``. True is like None, but always removes spaces
                before punctuation.
            errors: how to handle bytes that aren't UTF-8 (a token may end inside a character),
                as in ``bytes.decode``.

        Raises:
            TokenIdError: an id is outside the vocabulary.
            TextDecodeError: the bytes aren't UTF-8, with ``errors="strict"``.
        """
        data = self.decode_bytes(
            ids,
            remove_special=remove_special,
            unparse_special=unparse_special,
            clean_spaces=clean_spaces,
        )
        return decoding.decode_bytes(data, errors)

    def decode_bytes(
        self,
        ids: types.Ids,
        *,
        remove_special: bool = False,
        unparse_special: bool = True,
        clean_spaces: bool | None = None,
    ) -> bytes:
        """Decode ids to bytes: ``llama_detokenize``. Arguments are those of :meth:`decode`."""
        flags = remove_special, unparse_special, clean_spaces
        loaded = self._loaded
        if not isinstance(ids, (list, tuple)):
            return loaded.decode_array(int32_array(ids), *flags)
        try:
            return loaded.decode(ids, *flags)
        except Exception as e:
            return loaded.retry_decode(e, ids, *flags)

    def decode_batch(
        self,
        lists: Iterable[types.Ids],
        *,
        remove_special: bool = False,
        unparse_special: bool = True,
        clean_spaces: bool | None = None,
        errors: str = "replace",
    ) -> list[str]:
        """Decode many lists of ids, each as by :meth:`decode`.

        Args:
            lists: an iterable of lists (or arrays) that :meth:`decode` accepts.
            remove_special, unparse_special, clean_spaces, errors: as for :meth:`decode`.

        Raises:
            TokenIdError, TextDecodeError: as for :meth:`decode`; the message or, from Python
                3.11 on, a note names the list (``lists[3]``).
        """
        flags = remove_special, unparse_special, clean_spaces
        return decoding.decode_batch(self.decode_bytes, lists, flags, errors)

    def stream_decoder(
        self,
        prompt_ids: types.Ids = (),
        *,
        remove_special: bool = False,
        unparse_special: bool = True,
        clean_spaces: bool | None = False,
        errors: str = "replace",
        stop: Iterable[str] = (),
        stop_ids: types.Ids = (),
        stop_at_eog: bool = False,
    ) -> StreamDecoder:
        """Returns a decoder for ids that arrive one by one, such as the ids that a model generates.

        ``feed(id or ids)`` and finally ``finish()`` return text. Joined, these texts are the text
        of ``decode(prompt_ids + ids)``, with the same options, after its longest common prefix
        with ``decode(prompt_ids)``. By default, that is the text that llama-server streams: the
        tokens' pieces, joined. (Unless configured otherwise, the server omits control tokens,
        as ``unparse_special=False`` does, and stops at a token that ends generation, as
        ``stop_at_eog=True`` does.)

        The decoder returns text as soon as no further id can change it. It holds back an
        incomplete character, a possible beginning of a stop string, an EOS that may be the last
        id (``remove_special``), and white space that may still be removed (``clean_spaces``).

        Args:
            prompt_ids: the ids before the first id that is fed. Their text isn't returned.
            remove_special, unparse_special, clean_spaces, errors: as for :meth:`decode`, but
                spaces are kept by default.
            stop: strings at which the text ends. The string that ends first counts; if several
                end at the same position, the longest. It isn't returned, ``stopped`` is set to
                it, and later calls to ``feed`` return ``""``. A stop string can't start in the
                prompt's text. With ``unparse_special=False``, control tokens produce no text,
                and a stop string that is the text of a control token stands for that token.
            stop_ids: ids at which the text ends. Their text isn't returned, and ``stopped`` is
                set to the id.
            stop_at_eog: also stop at each id of :attr:`eog_ids`.

        Raises:
            TokenIdError: an id of the prompt, or of ``stop_ids``, is outside the vocabulary.
            TextDecodeError: the prompt isn't UTF-8, with ``errors="strict"``. (It may end
                inside a character.)
            InvalidTypeError: ``stop`` is a single ``str``.
            InvalidValueError: ``stop`` contains an empty string.
        """
        flags = remove_special, unparse_special, clean_spaces
        ends = self.eog_ids if truth(stop_at_eog, "stop_at_eog") else ()
        return StreamDecoder(self._loaded, prompt_ids, flags, errors, stop, stop_ids, ends)

    # ---- chat ----

    def apply_chat_template(
        self,
        messages: types.Messages,
        *,
        tools: Sequence[Mapping[str, types.Any]] | None = None,
        like: types.Like = "llama.cpp",
        add_generation_prompt: bool | None = DEFAULT_TRUE,
        continue_final_message: bool | str | None = None,
        template: str | None = None,
        enable_thinking: bool | None = None,
        tool_choice: str | None = None,
        parallel_tool_calls: bool | None = None,
        response_format: Mapping[str, types.Any] | None = None,
        reasoning_format: str | None = None,
        reasoning_effort: str | None = None,
        chat_template_kwargs: Mapping[str, types.Any] | None = None,
        media_marker: str | None = None,
        clock: Callable[[], types.datetime] | None = None,
        **variables: types.Any,
    ) -> str:
        """Render chat messages to the prompt text of a model.

        By default, the text is what llama.cpp's ``llama-server`` (build b11549) renders for a
        request with these fields (its ``/apply-template``). With ``like="transformers"``, it is
        what the method of the same name in ``transformers`` returns. To get ids, call
        :meth:`encode_chat`, which doesn't parse control tokens inside messages.

        An argument that is None means that the request doesn't have the field.

        Args:
            messages: mappings with ``"role"``, ``"content"`` (str, None or a list of parts
                ``{"type": "text", "text": ...}``, or with the types ``image_url``,
                ``input_audio``, ``input_video`` and ``video_url``, which aren't read),
                ``"tool_calls"``, ``"reasoning_content"`` and so on. All values are plain data:
                str, numbers, bool, None, lists and mappings. An object with ``model_dump()``,
                such as a pydantic model, is replaced by the result of that method without the
                fields that are None (except the content). Or JSON text as ``bytes``: an array of
                messages, or an object, whose other fields are those of a request to
                llama-server; arguments that aren't None replace them.
            tools: JSON schemas of the functions that the model may call. Python functions are
                refused; ``transformers.utils.get_json_schema`` creates a schema for a function.
            like: the program whose prompt to reproduce: ``"llama.cpp"`` or ``"transformers"``.
            add_generation_prompt: end with the beginning of the assistant's next message. The
                default is that of the program: True for llama-server, False for
                ``like="transformers"``.
            continue_final_message: end inside the last message, so that the model continues
                it. True continues its content, a str that field (``"content"`` or
                ``"reasoning_content"``). This requires ``add_generation_prompt=False``. By
                default, llama-server continues a last message of the assistant; False closes
                that message, as the server does with ``--no-prefill-assistant``.
            template: the name of one of :attr:`chat_templates`, or the source of a template.
                The default is ``"tool_use"`` if there are tools and the file has such a
                template, else ``"default"``. For a file without templates, it is ChatML, with
                a warning.
            enable_thinking: a variable that many templates read. As in llama-server, it defaults
                to whether the template appears to support reasoning.
            tool_choice: ``"auto"``, ``"none"`` or ``"required"``. The value is checked, but
                doesn't change the prompt.
            parallel_tool_calls: whether the model may make several calls at once. The value is
                checked, but doesn't change the prompt.
            response_format: as in OpenAI's API. A few templates show the schema.
            reasoning_format: a setting of llama-server. The value is checked, but doesn't change
                the prompt.
            reasoning_effort: a variable that some templates read. ``"none"`` turns thinking off.
            chat_template_kwargs: more variables for the template. Any name is allowed.
            media_marker: the text that stands for an image, audio or video; ``<__media__>`` by
                default. llama-server chooses a random one (``media_marker`` in its ``/props``).
                With ``like="transformers"``, it is ignored: the template writes its own text.
            clock: a function that returns the local time, for templates that use it;
                ``datetime.now`` by default.
            **variables: more variables for the template (``documents``, ...). Only names that
                the template reads are allowed. ``bos_token`` and the like come from the
                vocabulary.

        Raises:
            TemplateError: the template can't be compiled, refuses the messages, fails, or
                exceeds its limit of time or memory; or llama-server doesn't start with it.
            InvalidValueError, InvalidTypeError: llama-server refuses the request; an argument
                has a wrong value or type; there is no such template; or a keyword is unknown
                here and to the template.

        Warns:
            VocabWarning: the file has no chat template, so ChatML is used, a format on which
                the model wasn't trained. This warning is issued once per tokenizer.

        Any number of threads may call this at the same time.
        """
        api, options = _chat_call(
            tools,
            like,
            add_generation_prompt,
            continue_final_message,
            template,
            clock,
            enable_thinking,
            tool_choice,
            parallel_tool_calls,
            response_format,
            reasoning_format,
            reasoning_effort,
            chat_template_kwargs,
            media_marker,
            variables,
        )
        text: str = api.render(self._loaded, messages, options, api.chat_calls.TEXT)
        return text

    if TYPE_CHECKING:

        @overload
        def encode_chat(
            self,
            messages: types.Messages,
            *,
            tools: Sequence[Mapping[str, types.Any]] | None = ...,
            like: types.Like = ...,
            add_generation_prompt: bool | None = ...,
            continue_final_message: bool | str | None = ...,
            template: str | None = ...,
            enable_thinking: bool | None = ...,
            tool_choice: str | None = ...,
            parallel_tool_calls: bool | None = ...,
            response_format: Mapping[str, types.Any] | None = ...,
            reasoning_format: str | None = ...,
            reasoning_effort: str | None = ...,
            chat_template_kwargs: Mapping[str, types.Any] | None = ...,
            media_marker: str | None = ...,
            clock: Callable[[], types.datetime] | None = ...,
            trusted: bool = ...,
            user_defined: types.UserDefined = ...,
            return_assistant_mask: Literal[False] = ...,
            known: types.Known | None = ...,
            **variables: types.Any,
        ) -> list[int]: ...
        @overload
        def encode_chat(
            self,
            messages: types.Messages,
            *,
            tools: Sequence[Mapping[str, types.Any]] | None = ...,
            like: types.Like = ...,
            add_generation_prompt: bool | None = ...,
            continue_final_message: bool | str | None = ...,
            template: str | None = ...,
            enable_thinking: bool | None = ...,
            tool_choice: str | None = ...,
            parallel_tool_calls: bool | None = ...,
            response_format: Mapping[str, types.Any] | None = ...,
            reasoning_format: str | None = ...,
            reasoning_effort: str | None = ...,
            chat_template_kwargs: Mapping[str, types.Any] | None = ...,
            media_marker: str | None = ...,
            clock: Callable[[], types.datetime] | None = ...,
            trusted: bool = ...,
            user_defined: types.UserDefined = ...,
            return_assistant_mask: Literal[True],
            **variables: types.Any,
        ) -> tuple[list[int], list[bool]]: ...
        @overload
        def encode_chat(
            self,
            messages: types.Messages,
            *,
            tools: Sequence[Mapping[str, types.Any]] | None = ...,
            like: types.Like = ...,
            add_generation_prompt: bool | None = ...,
            continue_final_message: bool | str | None = ...,
            template: str | None = ...,
            enable_thinking: bool | None = ...,
            tool_choice: str | None = ...,
            parallel_tool_calls: bool | None = ...,
            response_format: Mapping[str, types.Any] | None = ...,
            reasoning_format: str | None = ...,
            reasoning_effort: str | None = ...,
            chat_template_kwargs: Mapping[str, types.Any] | None = ...,
            media_marker: str | None = ...,
            clock: Callable[[], types.datetime] | None = ...,
            trusted: bool = ...,
            user_defined: types.UserDefined = ...,
            return_assistant_mask: bool,
            **variables: types.Any,
        ) -> list[int] | tuple[list[int], list[bool]]: ...

    def encode_chat(
        self,
        messages: types.Messages,
        *,
        tools: Sequence[Mapping[str, types.Any]] | None = None,
        like: types.Like = "llama.cpp",
        add_generation_prompt: bool | None = DEFAULT_TRUE,
        continue_final_message: bool | str | None = None,
        template: str | None = None,
        enable_thinking: bool | None = None,
        tool_choice: str | None = None,
        parallel_tool_calls: bool | None = None,
        response_format: Mapping[str, types.Any] | None = None,
        reasoning_format: str | None = None,
        reasoning_effort: str | None = None,
        chat_template_kwargs: Mapping[str, types.Any] | None = None,
        media_marker: str | None = None,
        clock: Callable[[], types.datetime] | None = None,
        trusted: bool = False,
        user_defined: types.UserDefined = "parse",
        return_assistant_mask: bool = False,
        known: types.Known | None = None,
        **variables: types.Any,
    ) -> list[int] | tuple[list[int], list[bool]]:
        """Encode chat messages to ids, as llama-server tokenizes their prompt.

        Control tokens are parsed only in the template's own text: ``<|im_end|>`` in a message,
        a tool or a variable is encoded as plain text. If the request contains no such text, the
        ids are the server's. BOS and EOS are added if the vocabulary's flags ask for them; a BOS
        or EOS that the template writes there is then dropped.

        Images, audio and video have no ids, and cause a warning. The texts before, between and
        after them are encoded separately, as in llama-server.

        Args:
            trusted: parse control tokens everywhere, even in messages. The ids are then always
                the server's.
            user_defined: ``"parse"``, like llama.cpp, parses user-defined tokens
                (``<tool_call>``) everywhere. ``"plain"`` parses them only in the template's own
                text.
            return_assistant_mask: return ``(ids, mask)``. The mask has a bool for each id:
                whether any of its bytes is the assistant's. This is the text inside
                ``{% generation %}`` blocks or, if the template has none, what the model
                generates: the text after the beginning that the generation prompt gives the
                answer, up to and including the token that ends it. If such a text begins inside
                raw text, the tokens' pieces must spell that text. Otherwise InvalidValueError is
                raised (WPM, UGM). A last message of the assistant is closed unless
                ``continue_final_message`` says otherwise.
            known: ``(n, ids)``: the ids of the first n messages, for example those of a prompt
                and a generated answer. The result starts with these ids, even if the text of
                the messages would encode to others. Next comes the control token that closes
                the n-th message, unless ``ids`` end with that token. Then follows the text that the
                template writes after the n-th message. Unless a control token or an image
                precedes this text, it is encoded as a continuation (see :meth:`encode`). The
                template must write the first n messages in the same way whether or not others
                follow.

        The other arguments are those of :meth:`apply_chat_template`, which also lists more
        errors.

        Raises:
            TemplateError: ``known`` is set, but the template writes the first messages
                differently if others follow. The message shows both texts. (Qwen3's template
                drops earlier reasoning.)
            InvalidValueError: a message contains the text of a control token, and the
                vocabulary (RWKV, PLaMo-2, PLaMo-3) parses that token in plain text. Or there
                are images, audio or video, and the prompt doesn't have one marker for each.
            TextEncodeError, VocabError: as for :meth:`encode`.

        Any number of threads may call this at the same time.
        """
        if truth(return_assistant_mask, "return_assistant_mask") and continue_final_message is None:
            continue_final_message = False
        api, options = _chat_call(
            tools,
            like,
            add_generation_prompt,
            continue_final_message,
            template,
            clock,
            enable_thinking,
            tool_choice,
            parallel_tool_calls,
            response_format,
            reasoning_format,
            reasoning_effort,
            chat_template_kwargs,
            media_marker,
            variables,
        )
        if return_assistant_mask:
            if known is not None:
                raise InvalidValueError("known= and return_assistant_mask= don't go together")
            return api.ids_and_mask(  # type: ignore[no-any-return]
                self._loaded, messages, options, trusted=trusted, user_defined=user_defined
            )
        return api.ids(  # type: ignore[no-any-return]
            self._loaded, messages, options, trusted, user_defined, known
        )

    def count_chat(
        self,
        messages: types.Messages,
        *,
        tools: Sequence[Mapping[str, types.Any]] | None = None,
        like: types.Like = "llama.cpp",
        add_generation_prompt: bool | None = DEFAULT_TRUE,
        continue_final_message: bool | str | None = None,
        template: str | None = None,
        enable_thinking: bool | None = None,
        tool_choice: str | None = None,
        parallel_tool_calls: bool | None = None,
        response_format: Mapping[str, types.Any] | None = None,
        reasoning_format: str | None = None,
        reasoning_effort: str | None = None,
        chat_template_kwargs: Mapping[str, types.Any] | None = None,
        media_marker: str | None = None,
        clock: Callable[[], types.datetime] | None = None,
        trusted: bool = False,
        user_defined: types.UserDefined = "parse",
        known: types.Known | None = None,
        image_tokens: types.ImageTokens | None = None,
        **variables: types.Any,
    ) -> int:
        """Count the tokens of a conversation: the ids that :meth:`encode_chat` returns, and the
        tokens of images.

        The result equals llama-server's ``/v1/chat/completions/input_tokens``.

        Args:
            image_tokens: how many tokens an image, audio or video has: a number, or a function
                that is called with the part (a mapping) and returns its number. Count all
                tokens that the model gets in place of the marker, or, with
                ``like="transformers"``, in addition to the template's placeholder. Parts of
                ``known`` messages aren't counted, because their ids are known.
                By default, no part is counted, and a warning says so.

        The other arguments and the errors are those of :meth:`encode_chat`.

        Warns:
            VocabWarning: there are images, audio or video, and ``image_tokens`` isn't set.
        """
        api, options = _chat_call(
            tools,
            like,
            add_generation_prompt,
            continue_final_message,
            template,
            clock,
            enable_thinking,
            tool_choice,
            parallel_tool_calls,
            response_format,
            reasoning_format,
            reasoning_effort,
            chat_template_kwargs,
            media_marker,
            variables,
        )
        return api.count(  # type: ignore[no-any-return]
            self._loaded, messages, options, trusted, user_defined, known, image_tokens
        )

    def trim_chat(
        self, messages: types.Messages, budget: types.SupportsIndex, **options: types.Any
    ) -> list[types.Any]:
        """Drop the oldest turns of a chat until the prompt has at most `budget` tokens.

        A turn is a user's message and everything up to the user's next message: answers, tool
        calls and their results. Whole turns are dropped, oldest first, and as few as possible.
        The messages before the first turn, such as a system message, and the last turn are always
        kept.

        The size of the prompt is what :meth:`count_chat` returns. It includes the text that the
        template writes around messages, and the beginning of the answer. Leave room for the
        answer itself.

        Args:
            messages: as for :meth:`count_chat`.
            budget: the maximum number of tokens in the prompt.
            **options: as for :meth:`count_chat`, except ``known``, because the known messages
                might be dropped.

        Returns:
            A new list with the messages that are kept.

        Raises:
            InvalidValueError: the messages that are always kept have more tokens than `budget`;
                the error message has their number.
            TemplateError, InvalidTypeError, InvalidValueError: as for :meth:`count_chat`.
        """
        from ggtok.chat.trim_turns import trim_chat

        return trim_chat(self.count_chat, messages, budget, options)

    def encode_chat_batch(
        self,
        conversations: Iterable[types.Messages] | bytes,
        *,
        tools: Sequence[Mapping[str, types.Any]] | None = None,
        like: types.Like = "llama.cpp",
        add_generation_prompt: bool | None = DEFAULT_TRUE,
        continue_final_message: bool | str | None = None,
        template: str | None = None,
        enable_thinking: bool | None = None,
        tool_choice: str | None = None,
        parallel_tool_calls: bool | None = None,
        response_format: Mapping[str, types.Any] | None = None,
        reasoning_format: str | None = None,
        reasoning_effort: str | None = None,
        chat_template_kwargs: Mapping[str, types.Any] | None = None,
        media_marker: str | None = None,
        clock: Callable[[], types.datetime] | None = None,
        trusted: bool = False,
        user_defined: types.UserDefined = "parse",
        threads: int = 0,
        **variables: types.Any,
    ) -> list[list[int]]:
        """Encode many conversations on several threads, each as by :meth:`encode_chat`.

        Args:
            conversations: an iterable; each item is the ``messages`` of one conversation. Or
                ``bytes``: JSON lines, each the ``messages`` of one conversation.
            threads: the number of threads; 0 means one for each processor core.

        The other arguments and the errors are those of :meth:`encode_chat`. If several
        conversations fail, the error of the first is raised, and a note names it.
        """
        from ggtok.chat import chat_batches

        _, options = _chat_call(
            tools,
            like,
            add_generation_prompt,
            continue_final_message,
            template,
            clock,
            enable_thinking,
            tool_choice,
            parallel_tool_calls,
            response_format,
            reasoning_format,
            reasoning_effort,
            chat_template_kwargs,
            media_marker,
            variables,
        )
        return chat_batches.encode_batch(
            self._loaded, conversations, options, trusted, user_defined, threads
        )

    # ---- showing and measuring tokens ----

    def show(
        self,
        value: types.Text | types.Ids | types.Messages,
        *,
        add_special: bool = True,
        parse_special: types.ParseSpecial = False,
        limit: int = 5000,
        **chat: types.Any,
    ) -> types.Shown:
        """Show the tokens of a text, of ids, or of a conversation.

        Notebooks display the result in colours, with the id, bytes and span of each token on
        hover; ``print`` shows it in colours on a terminal.

        Args:
            value: a text (``str`` or UTF-8), ids, or the messages of a conversation (a list of
                mappings), which is shown as :meth:`encode_chat` encodes it.
            add_special, parse_special: for a text, as for :meth:`encode`.
            limit: the maximum number of tokens to show; the others are only counted.
            chat: for a conversation, the keywords for :meth:`encode_chat` (``tools``, ``like``,
                ``trusted``...).

        Raises:
            InvalidTypeError: ``value`` is none of these, or ``chat`` has keywords, but
                ``value`` isn't a conversation.
            InvalidValueError: ``limit`` is negative.
            GGTokError: as for :meth:`encode`, :meth:`token_to_piece` or :meth:`encode_chat`.
        """
        from ggtok.chat import show

        def encode(text: types.Text) -> tuple[list[int], types.Int64Array]:
            return self.encode_with_offsets(
                text, add_special=add_special, parse_special=parse_special
            )

        return show.show(self._loaded, value, encode, index(limit, "limit"), chat)

    def stats(
        self,
        texts: Mapping[str, types.Text] | Iterable[types.Text] = (),
        *,
        parse_special: types.ParseSpecial = False,
        threads: int = 0,
    ) -> types.Stats:
        """Compute statistics about texts and the vocabulary: bytes per token by text and by script,
        the share of words that are one token, token lengths, unused tokens.

        Args:
            texts: texts, or a mapping of names to texts; for a mapping, the result also has the
                counts of each text. Texts are encoded without BOS and EOS, and texts over 4 MB in
                parts that end after a line.
            parse_special: as for :meth:`encode`.
            threads: the number of threads; 0 means one for each processor core.

        Raises:
            TextEncodeError, InvalidTypeError, VocabError: as for :meth:`encode`.
        """
        from ggtok.text import measure

        return measure.stats_of(self._loaded, texts, parse_special, threads)

    def _repr_html_(self) -> str:
        from ggtok.chat import show

        return show.summary(self._loaded)

    # ---- explanations ----

    def explain(
        self,
        text: types.Text,
        *,
        add_special: bool = True,
        parse_special: types.ParseSpecial = False,
    ) -> types.Explanation:
        """Explain step by step how a text is encoded.

        The steps are those of llama.cpp's algorithm, without ggtok's caches and shortcuts. The
        text may have at most 16 KiB.

        Args:
            text, add_special, parse_special: as for :meth:`encode`.

        Returns:
            An :class:`ggtok.explain.steps.Explanation`: added tokens, special tokens, words,
            merges and scores. ``dataclasses.asdict`` converts it for JSON.

        Raises:
            InvalidValueError: the text has more than 16 KiB, or the texts in the steps have more
                than 16 MiB, because a long token occurs in many steps.
            TextEncodeError, InvalidTypeError, InvalidValueError: as for :meth:`encode`.
        """
        from ggtok.explain.explanation import explain

        explanation: types.Explanation = explain(self._loaded, text, add_special, parse_special)
        return explanation

    def merge_tree(self, id: types.SupportsIndex) -> types.MergeTree:
        """Returns the merges that build a token from its bytes (BPE) or characters (SPM).

        Returns:
            An :class:`ggtok.explain.steps.MergeTree`. ``dataclasses.asdict`` converts it for
            JSON.

        Raises:
            TokenIdError: ``id`` is outside the vocabulary.
            VocabError: the vocabulary has another type, without merges.
            InvalidValueError: the token has more than 16 KiB, or the steps' texts more than 16 MiB.
        """
        from ggtok.explain.explanation import merge_tree

        return merge_tree(self._loaded, index(id, "id"))

    # ---- tokens ----

    def token_to_piece(
        self, id: types.SupportsIndex, *, lstrip: int = 0, special: bool = True
    ) -> bytes:
        """Returns a token's piece, the bytes to which it decodes: ``llama_token_to_piece``.

        Args:
            id: a token id.
            lstrip: the maximum number of leading spaces to drop.
            special: return the text of control and unknown tokens. If false, their piece is
                ``b""``.

        Raises:
            TokenIdError: ``id`` is outside the vocabulary.
        """
        lstrip = index(lstrip, "lstrip")
        if lstrip < 0:
            raise InvalidValueError(f"lstrip must not be negative, but is {lstrip}")
        return self._loaded.piece(
            index(id, "id"), min(lstrip, 2**31 - 1), truth(special, "special")
        )

    def text_to_token(self, text: types.Text) -> int | None:
        """Returns the id of the token whose text in the vocabulary is exactly `text`, or None."""
        return self._loaded.find(text)

    def token_text(self, id: types.SupportsIndex) -> bytes:
        """Returns a token's text as stored in the vocabulary: ``llama_vocab_get_text``.

        It may differ from the token's piece (:meth:`token_to_piece`).
        """
        return self._loaded.text(index(id, "id"))

    def token_score(self, id: types.SupportsIndex) -> float:
        """Returns a token's score, a float32: ``llama_vocab_get_score``."""
        return self._loaded.score(index(id, "id"))

    def token_attr(self, id: types.SupportsIndex) -> TokenAttr:
        """Returns a token's attributes after llama.cpp's corrections: ``llama_vocab_get_attr``."""
        return TokenAttr(self._loaded.attr(index(id, "id")))

    def is_eog(self, id: types.SupportsIndex) -> bool:
        """Whether a token ends generation: ``llama_vocab_is_eog``. False for other ids."""
        return index(id, "id") in self._loaded.eog_ids

    def is_control(self, id: types.SupportsIndex) -> bool:
        """Whether a token is a control token: ``llama_vocab_is_control``."""
        return TokenAttr.CONTROL in self.token_attr(id)

    @property
    def eog_ids(self) -> frozenset[int]:
        """The ids that end generation."""
        return self._loaded.eog_ids

    @property
    def special_ids(self) -> frozenset[int]:
        """The ids of tokens that structure text rather than represent text.

        These are the tokens that are CONTROL, UNKNOWN or UNUSED, that end generation, or that
        are CONTROL in the file but not in llama.cpp. (It turns gpt-oss's ``<|start|>``,
        ``<|end|>``, ``<|message|>`` and others into user-defined tokens, which are parsed
        everywhere.) :meth:`encode_chat` never produces them from a message. They don't include
        plain text, such as ``,``, that is EOS only by llama.cpp's default for files that don't
        name an EOS.
        """
        return self._loaded.special_ids

    @property
    def suppress_tokens(self) -> tuple[int, ...]:
        """The file's ``tokenizer.ggml.suppress_tokens``, in its order."""
        return self._loaded.suppress_tokens()

    def vocab_bytes(self, special: types.Special = "blank") -> list[bytes]:
        """Returns the pieces of all tokens (:meth:`token_to_piece`), by id.

        Args:
            special: ``"blank"`` returns ``b""`` as the piece for each of :attr:`special_ids`.
                Libraries for constrained decoding expect this, so that no text allows these
                tokens. ``"keep"`` returns their texts.

        Raises:
            InvalidValueError: ``special`` is neither of these.
        """
        return decoding.vocab_bytes(self._loaded, special)

    def tokens_with_prefix(self, prefix: types.Buffer) -> list[int]:
        """Returns the ids of the tokens whose pieces begin with `prefix`, ascending.

        The pieces are those that :meth:`vocab_bytes` returns, and empty pieces don't count, so the
        result has none of :attr:`special_ids`. ``b""`` selects every token with a piece. The first
        call sorts the vocabulary, and the tokenizer caches the result.

        Raises:
            InvalidTypeError: ``prefix`` isn't bytes-like.
        """
        return decoding.with_prefix(self._loaded, prefix)

    def heal(self, ids: types.Ids) -> tuple[list[int], bytes]:
        """Remove a prompt's last token if a longer token begins with its text (token healing).

        A model has seldom seen such a token followed by the rest of the longer one: after
        ``"http:"`` it expects anything but ``"//"``, because ``"://"`` is a token. Remove the
        last token, and make the model start with a token that begins with the returned bytes
        (:meth:`tokens_with_prefix`), or whose bytes are a prefix of the returned bytes.

        Returns:
            The ids without the last id, and the last id's piece, if a longer token's piece begins
            with that piece and the last id isn't one of :attr:`special_ids`. Otherwise
            ``(ids, b"")``.

        Raises:
            TokenIdError: an id is outside the vocabulary.
        """
        return decoding.heal(self._loaded, ids)

    # ---- special tokens ----

    bos_id = _special_id("bos", "Beginning of sequence")
    eos_id = _special_id("eos", "End of sequence")
    eot_id = _special_id("eot", "End of turn")
    eom_id = _special_id("eom", "End of message", in_llama=False)
    unk_id = _special_id("unk", "Unknown text", in_llama=False)
    sep_id = _special_id("sep", "Separator")
    nl_id = _special_id("nl", "Newline")
    pad_id = _special_id("pad", "Padding")
    mask_id = _special_id("mask", "Mask")
    fim_pre_id = _special_id("fim_pre", "Fill-in-the-middle prefix")
    fim_suf_id = _special_id("fim_suf", "Fill-in-the-middle suffix")
    fim_mid_id = _special_id("fim_mid", "Fill-in-the-middle middle")
    fim_pad_id = _special_id("fim_pad", "Fill-in-the-middle padding")
    fim_rep_id = _special_id("fim_rep", "Fill-in-the-middle repository name")
    fim_sep_id = _special_id("fim_sep", "Fill-in-the-middle file separator")

    # ---- flags for encoding ----

    add_bos = _flag("add_bos", "``add_special`` puts BOS first")
    add_eos = _flag("add_eos", "``add_special`` puts EOS last")
    add_sep = _flag("add_sep", "``add_special`` puts SEP last")
    add_space_prefix = _flag(
        "add_space_prefix", "a space is put before the text (SPM, UGM)", in_llama=False
    )

    # ---- the vocabulary ----

    @property
    def n_tokens(self) -> int:
        """The number of tokens, also ``len(tok)``: ``llama_vocab_n_tokens``.

        Ids are 0 to ``n_tokens - 1``.
        """
        return self._loaded.n_tokens

    @property
    def vocab_type(self) -> str:
        """The type of the vocabulary: ``llama_vocab_type``.

        ``"SPM"``, ``"BPE"``, ``"WPM"``, ``"UGM"``, ``"RWKV"``, ``"PLAMO2"``, ``"PLAMO3"``,
        ``"TEST"`` or ``"NONE"``.
        """
        return self._loaded.vocab_type

    @property
    def model(self) -> str:
        """The file's ``tokenizer.ggml.model``, such as ``"gpt2"`` or ``"llama"``."""
        return self._loaded.model

    @property
    def pre(self) -> str | None:
        """The name of the pre-tokenizer in effect, or None unless the vocabulary is BPE."""
        return self._loaded.pre

    @property
    def metadata(self) -> Mapping[str, str | int | float | bool]:
        """The file's scalar key/value pairs, in the file's order, without arrays.

        Bytes that aren't UTF-8 are lone surrogates (``surrogateescape``).
        """
        return self._loaded.metadata

    @property
    def context_length(self) -> int | None:
        """The number of tokens of the context with which the model was trained (the key
        ``ARCHITECTURE.context_length``), or None if the file doesn't say."""
        return self._loaded.number("context_length")

    @property
    def chat_template(self) -> str | None:
        """The file's ``tokenizer.chat_template``: Jinja source, or None."""
        return self._loaded.chat_template

    @property
    def chat_templates(self) -> dict[str, str]:
        """All chat templates by name; the unnamed one is ``"default"``."""
        return self._loaded.chat_templates

    @property
    def source(self) -> types.Source | None:
        """The vocabulary's source (:class:`ggtok.sources.Source`), or None if it was in memory."""
        return self._loaded.source

    # ---- the cache ----

    def cache_info(self) -> CacheInfo:
        """Return statistics about the word caches, which make similar texts faster to encode.

        Threads that encode at the same time have one cache each. The sizes include neither
        caches that are in use during the call, nor the memory that each thread keeps for results
        (at most 4 MB) and, for many vocabularies, for a copy of its largest text.
        """
        hits, misses, size = self._loaded.cache_info()
        return CacheInfo(hits, misses, _CACHE_MAX, size)

    def cache_clear(self) -> None:
        """Empty the word caches and free their memory. This never changes any ids."""
        self._loaded.clear()

    # ---- Python ----

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name not in _OTHER_NAMES]

    def __len__(self) -> int:
        return self._loaded.n_tokens

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        path = self._loaded.path
        source = f" {path!r}" if path is not None else ""
        pre = f" pre={self.pre!r}" if self.pre is not None else ""
        return f"<ggtok.Tokenizer{source} {self.vocab_type}{pre} n_tokens={self.n_tokens}>"

    def __eq__(self, other: object) -> bool:
        """Whether two tokenizers have the same vocabulary, chat templates and options (`pre`,
        `pre_patterns`, `overrides`), wherever they were loaded from."""
        if type(other) is not type(self) or not isinstance(other, Tokenizer):
            return NotImplemented
        return self is other or self._loaded.is_same(other._loaded)

    def __hash__(self) -> int:
        return hash(self._loaded.identity())

    def __copy__(self) -> Tokenizer:
        return self

    def __deepcopy__(self, memo: object) -> Tokenizer:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        args = self._loaded.arguments()
        if type(self) is Tokenizer:
            return Tokenizer, args
        state = {name: value for name, value in vars(self).items() if name not in _OWN}
        return _restore, (type(self), *args), state


def _restore(cls: type[Tokenizer], *args: types.Any) -> Tokenizer:
    """Unpickles an instance of a subclass without calling the subclass's __init__."""
    tok = cls.__new__(cls)
    Tokenizer.__init__(tok, *args)
    return tok


class _OtherName:
    """An attribute that raises an error with what to use instead of another library's name.

    With ``__getattr__`` in Tokenizer, each call of a method would take 0.1 us longer."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.__doc__ = f"Another library's name: use {_OTHER_NAMES[name]}."

    def __get__(self, tok: Tokenizer | None, owner: type[Tokenizer]) -> NoReturn:
        name = self._name
        what = f"type object '{owner.__name__}'" if tok is None else f"'{owner.__name__}' object"
        message = f"{what} has no attribute {name!r}: use {_OTHER_NAMES[name]}"
        raise AttributeError(message, name=name, obj=owner if tok is None else tok)


for _name in _OTHER_NAMES:
    setattr(Tokenizer, _name, _OtherName(_name))
