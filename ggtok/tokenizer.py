"""The Tokenizer and :func:`load`."""

from __future__ import annotations

import os
import warnings
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from ggtok import _types as types
from ggtok.errors import InvalidTypeError, InvalidValueError, VocabWarning
from ggtok.loading.loaded import Loaded, patterns_tuple
from ggtok.loading.token_attr import TokenAttr as TokenAttr
from ggtok.native.arguments import index, truth
from ggtok.text import batches, decoding, pieces
from ggtok.text.chunk import Chunk
from ggtok.text.stream_decoder import StreamDecoder

TYPE_CHECKING = False  # as in native/library.py
if TYPE_CHECKING:
    from typing import Any, Generic, Literal, NamedTuple, NoReturn, TypeVar, overload

    T_co = TypeVar("T_co", covariant=True)

    class _ReadOnly(Generic[T_co]):
        """A property, as type checkers see it."""

        def __get__(self, instance: object, owner: object) -> T_co: ...
        def __set__(self, instance: object, value: NoReturn) -> None: ...


# The attributes of a Tokenizer; any others are a subclass's.
_OWN = frozenset(("_encode", "_loaded", "_native"))
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


class _DefaultTrue(int):
    """True as a default that can be told from a True that the caller passed."""

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


def _chat_call(
    tools: Sequence[Mapping[str, types.Any]] | None,
    like: types.Like,
    add_generation_prompt: bool | None,
    *others: types.Any,
) -> tuple[types.Any, types.Any]:
    """The module that answers chat calls, and their common arguments in the order of Options."""
    from ggtok.chat import api, options

    generation = None if add_generation_prompt is DEFAULT_TRUE else add_generation_prompt
    return api, options.Options(tools, like, generation, *others)


class Tokenizer:
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
        self._loaded = Loaded(source, pre, patterns, overrides)
        self._native = self._loaded.native
        self._encode = self._native.encode

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
        parse: object = parse_special
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
        flags = add_special, parse_special, continuation
        lists: list[list[int]] = batches.encode(self._native, texts, flags, threads)
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
        flags = add_special, parse_special, continuation
        return batches.encode_arrays(self._native, texts, flags, threads)

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

        flags = add_special, parse_special, continuation
        return ArrowIds(batches.encode_arrow(self._native, texts, flags, threads))

    def count(
        self,
        text: types.Text,
        *,
        add_special: bool = True,
        parse_special: types.ParseSpecial = False,
        continuation: bool = False,
    ) -> int:
        """``len(encode(...))``, without making the list."""
        parse: object = parse_special
        if parse is not False and parse is not True:
            parse = self._native.parsed(parse)
        try:
            return self._native.count(text, add_special, parse, continuation)
        except Exception as e:
            flags = add_special, parse, continuation
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
        flags = add_special, parse_special, continuation
        return batches.count(self._native, texts, flags, threads)

    def encode_with_offsets(
        self,
        text: types.Text,
        *,
        add_special: bool = True,
        parse_special: types.ParseSpecial = False,
        continuation: bool = False,
        unit: types.Unit = "byte",
    ) -> tuple[list[int], types.Int64Array]:
        """:meth:`encode`, and where in the text each token comes from.

        A token's span goes from the beginning of the source of its first byte, after
        normalizing, to the end of that of its last. Tokens made of one source character share
        its span. A run of white space that becomes one space belongs whole to that space's
        token; a space that the vocabulary puts before a word has an empty source there; white
        space that a special token strips belongs to that token; tokens that ``add_special`` adds
        have empty spans at their end of the text. Where nothing is normalized, the spans tile
        the text and their bytes are the tokens' pieces.

        Args:
            text, add_special, parse_special, continuation: as for :meth:`encode`.
            unit: what spans count: ``"byte"``, bytes of the text as UTF-8; ``"char"``, code
                points of a ``str``; ``"utf16"``, UTF-16 code units of a ``str``, as JavaScript
                and most editors count. A token that holds part of a character has all of it,
                unless bytes are counted.

        Returns:
            ``(ids, spans)``: a list, and an int64 array of shape ``(n_tokens, 2)``; the i-th
            token comes from ``text[spans[i, 0]:spans[i, 1]]`` (of a ``str``'s UTF-8, if the
            unit is bytes).

        Raises:
            InvalidValueError: a unit other than ``"byte"`` for a bytes-like text; another unit;
                and as for :meth:`encode`, whose other errors this raises, too.
        """
        flags = add_special, parse_special, continuation
        return batches.encode_with_offsets(self._native, text, flags, unit)

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
        """:meth:`encode_with_offsets` for each text, on several threads.

        Args and errors are those of :meth:`encode_with_offsets` and :meth:`encode_batch`. The
        arrays are parts of one.
        """
        flags = add_special, parse_special, continuation
        return batches.encode_all_with_offsets(self._native, texts, flags, unit, threads)

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
        """The ids of texts without end, batch by batch.

        A thread collects the next batch while one is encoded; at most three exist at a time, so
        memory is bounded, but for single texts that are larger. Order is kept. Other than that it
        is :meth:`encode_batch_arrays` of consecutive texts.

        Args:
            texts: any iterable of ``str`` or bytes-like texts, a generator too, which is asked
                from a thread of its own; an open file, whose lines are the texts, or a
                ``pathlib.Path`` of one (lines keep their newlines, as in Python); an object with
                ``__arrow_c_stream__``, of strings or of one column of strings, without nulls
                (by pyarrow).
            batch_bytes: a batch ends with the text that reaches so many bytes of UTF-8.
            threads: how many threads encode; 0: one for each processor core.
            add_special, parse_special: as for :meth:`encode`.
            progress: called with an :class:`EncodeProgress` after each batch, on the caller's
                thread.

        Yields:
            ``(ids, offsets)`` as :meth:`encode_batch_arrays` returns them, for each batch.

        Raises:
            InvalidTypeError, TextEncodeError, VocabError: as for :meth:`encode`; the message says
                which text, counted from the first of all (``texts[3]``), and the texts before it
                have been yielded.
            MissingExtraError: an Arrow stream, without pyarrow.
            FileError: a file can't be read.

        What the iterable raises, the iterator raises. Threads may use a tokenizer's iterators at
        the same time, each its own.
        """
        from ggtok.corpora import iterate

        return iterate.encode_batches(
            self._native,
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
        add_special: bool = True,
        eos: bool = True,
        errors: types.FaultRule = "raise",
        threads: int = 0,
        shards: int | None = None,
        resume: bool = True,
        force: bool = False,
        progress: Callable[[types.EncodeProgress], object] | None = None,
    ) -> types.Summary:
        """Encode files to a file of ids, for training: docs/files.md has examples.

        Reading, encoding and writing overlap. Memory is bounded, whatever the files' size: a
        document in a text file comes in parts if it is long. In memory in one piece must lie a
        JSON line, a table's row, a document for ``format="arrow"``, and one of a vocabulary that
        can't cut; they may have 1 GiB.

        Each 64 MB of ids is a checkpoint: what was written is on the disk, and ``OUT.journal``
        says how far it goes. A call with the same arguments goes on from the last checkpoint, and
        the output is the same to the bit as that of a run without interruption; if the output is
        finished already, nothing is done. ``OUT`` gets its name when it is complete.

        Args:
            sources: a path or several: files, folders (with what is below, sorted, without hidden
                files), globs (``**`` too). Each file is read once, by its real path.
            out: the file to write.
            format: None: by the extension of `out` (``.npy``, ``.arrow``), else ``"raw"``, which is
                ids, and ``OUT.offsets`` (int64), where documents begin and the
                last ends; ``"npy"``: the same as NumPy files, ``NAME.npy`` and
                ``NAME.offsets.npy``; ``"megatron"``: Megatron's ``NAME.bin`` and ``NAME.idx``;
                ``"arrow"``: an Arrow IPC file with a column ``ids`` of lists (needs pyarrow). All
                are little-endian. ``OUT.manifest.json`` names sources, counts, vocabulary and
                versions.
            dtype: of the ids. ``"auto"``: uint16 if the vocabulary fits, else uint32; as Megatron
                chooses (uint16, int32) for its format, which has no uint32.
            include, exclude: globs of files that are meant, and of files and folders that aren't,
                among those that no path names itself. A glob without ``/`` is matched with names,
                else with paths from the folder that is a source.
            kind: of all sources: ``"text"``, ``"jsonl"``, ``"parquet"`` or ``"arrow"``. None: by
                the extension, before ``.gz``, ``.bz2``, ``.xz`` or ``.zst``: JSON lines
                (``.jsonl``, ``.ndjson``, and ``.json`` if its beginning is), a table
                (``.parquet``, ``.arrow``, ``.feather``, ``.ipc``) or, with any other, text.
            separator: what stands between two documents of a text file; None: each file is one.
                After the last separator there is no document if nothing follows.
            field: what holds the document in a JSON object or a table; ``"text"`` by default.
                ``"meta.text"`` is a field of an object in a field; the texts of several fields are
                joined by a blank line.
            add_special: as for :meth:`encode`; ``parse_special`` is off.
            eos: end each document with EOS, once, also if the vocabulary adds it.
            errors: what to do about documents that aren't valid UTF-8 or are empty, and records
                that lack the field or are malformed. ``"raise"``; ``"replace"``: put U+FFFD in
                place of what is invalid, as ``bytes.decode`` does, and keep what is empty or
                lacking as empty documents; ``"skip"``: drop them. The Summary has their counts.
            threads: how many encode; 0: one for each processor core.
            shards: so many outputs instead of one, ``NAME-00000-of-00004.bin`` and so on, each with
                its own manifest, of consecutive sources of about the same size.
            resume: go on with an interrupted run. False: begin again, and replace what a run for
                the same `out` has written.
            force: also replace files that no such run has written, but never a source.
            progress: called with an :class:`EncodeProgress` after each batch.

        Raises:
            DocumentError: a document is faulty, with ``errors="raise"``.
            FileError: a file can't be read or written, or changed meanwhile; another run writes
                the same output.
            InvalidValueError: an argument has a wrong value; the vocabulary has no EOS; the
                output exists or was begun with other sources, options or another model.
            MissingExtraError: a kind of file needs a package that isn't installed.

        Ctrl-C stops at once; the next call goes on from the last checkpoint. Threads may call it
        at the same time, with different outputs.
        """
        from ggtok.corpora.shards import encode_files

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
            add_special=truth(add_special, "add_special"),
            eos=truth(eos, "eos"),
            errors=errors,
            threads=batches.n_threads(self._native, threads),
            resume=truth(resume, "resume"),
            force=truth(force, "force"),
            progress=progress,
            shards=None if shards is None else index(shards, "shards"),
        )

    # ---- texts cut to a number of tokens ----

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
        """The beginning, or the end, of a text that has at most `n` tokens.

        That is the text up to the end of the greatest number of its first tokens, at most `n`
        with those that are added, that cuts no code point and whose text, encoded, has at most
        `n` tokens. (Text that is cut may have other tokens at its end than inside a longer one;
        this makes sure.) The whole text, if it fits. Control tokens' texts are plain text.

        Costs as much as what is returned, not as the whole text, where the text has places that
        no token can cross every now and then, as nearly all texts have.

        Args:
            text: the text.
            n: how many tokens it may have.
            side: where to cut: ``"right"`` keeps the beginning, ``"left"`` the end (from the
                start of its last tokens).
            add_special: count the tokens that :meth:`encode` adds.

        Returns:
            A ``str`` for a ``str``, else ``bytes``.

        Raises:
            InvalidValueError: ``n`` is less than the number of tokens that are added; ``side``
                is something else.
        """
        from ggtok.text.truncate import truncate

        cut: str | bytes = truncate(self._native, text, n, side, add_special)
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
        """A text cut into chunks of at most `n` tokens each, for an embedder, say.

        Each is a ``Chunk(start, end, n_tokens)``, with
        ``n_tokens == len(tok.encode(prefix + text[start:end])) <= n``. No chunk but the last
        could take one more token of the text (unless `at` ends it). Together they are the whole
        text. They end where one of the text's tokens does, if a token fits, and never inside a
        code point. Takes time in proportion to the sum of the chunks.

        Args:
            text: the text. ``""`` gives ``[]``.
            n: how many tokens a chunk may have, with those that are added.
            overlap: how many tokens a chunk shares with the one before: its last `overlap`
                tokens (added ones aside) lie in the next chunk, too.
            prefix: what is put before each chunk when it is encoded, such as ``"passage: "``.
            add_special: count the tokens that :meth:`encode` adds.
            at: where a chunk may rather end, such as ``("\\n\\n", "\\n", ". ")``: behind the
                last occurrence of the first of these texts that ends in the chunk's last
                quarter. If none does, where `n` ends it.

        Returns:
            The chunks in order. ``start`` and ``end`` are in code points for a ``str``, in
            bytes for others.

        Raises:
            InvalidValueError: one character doesn't fit beside the prefix and the added tokens,
                or the chunks don't get on because of the overlap; the message says which `n`
                would do.
            InvalidTypeError: ``at`` is a single ``str``.
        """
        from ggtok.text.chunks import chunks

        return chunks(self._native, text, n, overlap, prefix, add_special, at)

    def is_canonical(self, ids: types.Ids) -> bool:
        """Whether some text encodes to exactly these ids.

        Ids that a model generates may spell a text in another way than :meth:`encode` does;
        encoded again, they become others. Special tokens (CONTROL and UNKNOWN) stand for
        themselves; the text between them is encoded with ``parse_special`` off, as it is at
        that place. Ids that `add_special` adds may be there or not.

        False for ids outside the vocabulary.

        Raises:
            InvalidTypeError: ``ids`` aren't integers.
        """
        from ggtok.text.canonical import is_canonical

        return is_canonical(self._native, ids)

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
        """The text of some ids: ``llama_detokenize``, decoded from UTF-8.

        Args:
            ids: an iterable of integers, or an integer array (int32 is fastest).
            remove_special: drop a BOS at the start and an EOS at the end, if the
                vocabulary adds them.
            unparse_special: give control and unknown tokens as their text; if false,
                they give nothing.
            clean_spaces: None: as ``llama_detokenize``, which removes spaces before punctuation
                (``"ok !"`` becomes ``"ok!"``) if the vocabulary asks for it, as WPM and many
                BPE vocabularies do, and one space at the start if the vocabulary puts one
                there. False: keep all spaces; the text is the tokens' pieces, joined, as
                llama-server's ``/detokenize`` gives it. True: as None, but remove spaces before
                punctuation whatever the vocabulary asks for.
            errors: what to do about bytes that aren't UTF-8 (a token may end inside
                a character), as in ``bytes.decode``.

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
        return decoding.decoded(data, errors)

    def decode_bytes(
        self,
        ids: types.Ids,
        *,
        remove_special: bool = False,
        unparse_special: bool = True,
        clean_spaces: bool | None = None,
    ) -> bytes:
        """The bytes of some ids: ``llama_detokenize``. Arguments as for :meth:`decode`."""
        flags = remove_special, unparse_special, clean_spaces
        return decoding.decode(self._native, ids, flags)

    def decode_batch(
        self,
        lists: Iterable[types.Ids],
        *,
        remove_special: bool = False,
        unparse_special: bool = True,
        clean_spaces: bool | None = None,
        errors: str = "replace",
    ) -> list[str]:
        """:meth:`decode` for each of many lists of ids.

        Args:
            lists: an iterable of what :meth:`decode` takes.
            remove_special, unparse_special, clean_spaces, errors: as for :meth:`decode`.

        Raises:
            TokenIdError, TextDecodeError: as for :meth:`decode`; the message, or a note (from
                Python 3.11 on), says which list (``lists[3]``).
        """
        flags = remove_special, unparse_special, clean_spaces
        return decoding.decode_batch(self._native, lists, flags, errors)

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
        """A decoder for ids that come one by one, such as those that a model generates.

        ``feed(id or ids)`` and at last ``finish()`` return text. Joined, it is what
        ``decode(prompt_ids + ids)`` with the same options has after its longest common prefix
        with ``decode(prompt_ids)``. By default that is the text which llama-server streams: the
        tokens' pieces, joined. (The server leaves out control tokens, unless it is told to show
        them: ``unparse_special=False``, and stops at a token that ends generation:
        ``stop_at_eog=True``.)

        Text is returned as soon as no further id can change it. The decoder holds back a
        character that isn't complete, what may become a stop string, an EOS that may be the last
        id (``remove_special``), and white space that may still be removed (``clean_spaces``).

        Args:
            prompt_ids: the ids before, whose text isn't returned.
            remove_special, unparse_special, clean_spaces, errors: as for :meth:`decode`, but
                spaces are kept by default.
            stop: strings at which the text ends. The first to be complete counts, and of several
                that end at the same place the longest. It isn't returned; ``stopped`` names it,
                and later feeds return ``""``. The prompt's text is no part of it. With
                ``unparse_special=False`` a control token prints nothing, so a string that is the
                text of one stands for that token.
            stop_ids: ids at which the text ends, like ``stop``: their text isn't returned, and
                ``stopped`` is the id.
            stop_at_eog: stop at each id of :attr:`eog_ids`, too.

        Raises:
            TokenIdError: an id of the prompt, or of ``stop_ids``, is outside the vocabulary.
            TextDecodeError: the prompt isn't UTF-8, with ``errors="strict"``. (It may end
                inside a character.)
            InvalidTypeError, InvalidValueError: ``stop`` is a single str, or holds an empty one.
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
        clock: Callable[[], types.datetime] | None = None,
        **variables: types.Any,
    ) -> str:
        """Chat messages as the text that a model is prompted with.

        By default that is the text which llama.cpp's ``llama-server`` (build b11549) makes of
        a request with these fields, its ``/apply-template``; with ``like="transformers"`` that
        of ``transformers``' method of this name. To get ids, use :meth:`encode_chat`: it keeps
        control tokens that a message holds from being parsed.

        None stands for a field that the request doesn't have.

        Args:
            messages: mappings with ``"role"``, ``"content"`` (str, None or a list of parts
                ``{"type": "text", "text": ...}``), ``"tool_calls"``, ``"reasoning_content"``
                and so on, of plain data: str, numbers, bool, None, lists and mappings. An
                object with ``model_dump()``, as pydantic's models have, is what that gives,
                without the fields that are None (but for the content).
            tools: JSON schemas of the functions that the model may call. Python functions
                aren't taken; ``transformers.utils.get_json_schema`` makes a schema of one.
            like: whose text.
            add_generation_prompt: end with the beginning of the assistant's next message. True
                by default, as in llama-server, but under ``like="transformers"`` False, as there.
            continue_final_message: end inside the last message instead, for the model to go
                on with it: in its content, or where a str says (``"content"``,
                ``"reasoning_content"``). Requires ``add_generation_prompt=False``. By default
                llama-server goes on with a last message that is the assistant's; False closes
                it, as the server does with ``--no-prefill-assistant``.
            template: the name of one of :attr:`chat_templates`, or a template. By default it is
                ``"tool_use"`` if there are tools and such a template, else ``"default"``;
                a file without any is served with ChatML, with a warning.
            enable_thinking: a variable of many templates; llama-server's default is whether it
                finds that the template has reasoning.
            tool_choice: ``"auto"``, ``"none"`` or ``"required"``. This one and the next change no
                prompt; they are checked.
            parallel_tool_calls: whether several calls at once are allowed.
            response_format: as in OpenAI's API; a few templates show the schema.
            reasoning_format: checked, and without influence on the prompt.
            reasoning_effort: for templates that know efforts; ``"none"`` turns thinking off.
            chat_template_kwargs: more variables for the template, by any name.
            clock: what tells the local time to templates that ask for it; ``datetime.now`` by
                default.
            **variables: more variables for the template (``documents``, ...), by names that it
                reads. ``bos_token`` and its like come from the vocabulary.

        Raises:
            TemplateError: the template can't be compiled, refuses the messages, fails, or
                exceeds its budget of time or memory; or llama-server doesn't start with it.
            InvalidValueError, InvalidTypeError: the request is one that llama-server refuses;
                an argument makes no sense; there is no such template; a keyword is none of
                these, and the template doesn't read it.

        Warns:
            VocabWarning: the file has no chat template, so ChatML takes its place, on which the
                model was not trained. Once for each tokenizer.

        Any number of threads may call this at a time.
        """
        api, given = _chat_call(
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
            variables,
        )
        text: str = api.text(self._loaded, messages, given)
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
        clock: Callable[[], types.datetime] | None = None,
        trusted: bool = False,
        user_defined: types.UserDefined = "parse",
        return_assistant_mask: bool = False,
        known: types.Known | None = None,
        **variables: types.Any,
    ) -> list[int] | tuple[list[int], list[bool]]:
        """The ids of chat messages, as llama.cpp's server would tokenize their prompt.

        Control tokens are parsed where the template wrote them, and nowhere else: a message,
        a tool or a variable that holds ``<|im_end|>`` gives that text's plain tokens. Without
        such texts the ids are the server's. BOS and EOS are added as the vocabulary's flags
        ask for; the template's own is then dropped.

        Args:
            trusted: parse control tokens everywhere, in messages, too: always the server's ids.
            user_defined: ``"plain"``: user-defined tokens (``<tool_call>``) aren't parsed
                outside the template's text either, which llama.cpp does.
            return_assistant_mask: give ``(ids, mask)``; the mask has a bool for each id: does
                a byte of it lie inside the template's ``{% generation %}`` blocks? Where such
                a block begins within raw text, the tokens there must spell that text: WPM and
                UGM tokens may not, an InvalidValueError. A last message of the assistant's is
                closed unless ``continue_final_message`` says otherwise.

            known: ``(n, ids)``: the first n messages have these ids already, such as a prompt's
                and those that a model generated: they stay, whatever their text would encode
                to. After them comes the control token that closes the n-th message, if they
                don't end with it, and what the template writes behind it, encoded as a
                continuation (see :meth:`encode`). The template must write the first n messages
                alike with and without those after them.

        The other arguments and errors are those of :meth:`apply_chat_template`, and also

        Raises:
            TemplateError: ``known``, but the template writes the first messages otherwise once
                others follow: the message shows both. (Qwen3's drops earlier reasoning.)
            InvalidValueError: a message holds a control token's text and the vocabulary (RWKV,
                PLaMo-2, PLaMo-3) makes that token of plain text.
            TextEncodeError, VocabError: as for :meth:`encode`.

        Any number of threads may call this at a time.
        """
        if truth(return_assistant_mask, "return_assistant_mask") and continue_final_message is None:
            continue_final_message = False
        api, given = _chat_call(
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
            variables,
        )
        if return_assistant_mask:
            if known is not None:
                raise InvalidValueError("known= and return_assistant_mask= don't go together")
            return api.ids_and_mask(  # type: ignore[no-any-return]
                self._loaded, messages, given, trusted=trusted, user_defined=user_defined
            )
        if known is not None:
            return api.ids_after(  # type: ignore[no-any-return]
                self._loaded, messages, given, trusted, user_defined, known
            )
        return api.ids(self._loaded, messages, given, trusted, user_defined)  # type: ignore[no-any-return]

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
        clock: Callable[[], types.datetime] | None = None,
        trusted: bool = False,
        user_defined: types.UserDefined = "parse",
        known: types.Known | None = None,
        **variables: types.Any,
    ) -> int:
        """How many ids :meth:`encode_chat` gives; llama-server's
        ``/v1/chat/completions/input_tokens``."""
        api, given = _chat_call(
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
            variables,
        )
        if known is not None:
            return len(api.ids_after(self._loaded, messages, given, trusted, user_defined, known))
        return api.count(  # type: ignore[no-any-return]
            self._loaded, messages, given, trusted, user_defined
        )

    def encode_chat_batch(
        self,
        conversations: Iterable[types.Messages],
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
        clock: Callable[[], types.datetime] | None = None,
        trusted: bool = False,
        user_defined: types.UserDefined = "parse",
        threads: int = 0,
        **variables: types.Any,
    ) -> list[list[int]]:
        """:meth:`encode_chat` for each of many conversations.

        Args:
            threads: how many to use; 0 for one a processor.

        An error is that of the first conversation that has one, and its note says which.
        """
        api, given = _chat_call(
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
            variables,
        )
        return api.encode_batch(  # type: ignore[no-any-return]
            self._loaded, conversations, given, trusted, user_defined, threads
        )

    # ---- how ids come about ----

    def explain(
        self,
        text: types.Text,
        *,
        add_special: bool = True,
        parse_special: types.ParseSpecial = False,
    ) -> types.Explanation:
        """How the ids of a text come about, step by step.

        The steps are done once more, by a plain implementation in Python, and end in
        :meth:`encode`'s ids. For texts to look at: at most 16 KiB.

        Args:
            text, add_special, parse_special: as for :meth:`encode`.

        Returns:
            An :class:`ggtok.explain.steps.Explanation`: the tokens that were added, special
            tokens, words, merges, scores. ``dataclasses.asdict`` makes it ready for JSON.

        Raises:
            InvalidValueError: the text is longer.
            InvalidTypeError: the tokenizer was loaded from memory other than bytes, and is of
                a type (BPE, UGM) for which the file has to be read again.
            VocabError: the file was changed since it was loaded; a PLaMo vocabulary with a score
                of -1000 or a token that isn't UTF-8.
            TextEncodeError, InvalidTypeError, InvalidValueError: as for :meth:`encode`.
        """
        from ggtok.explain.explain import explain

        explanation: types.Explanation = explain(self._loaded, text, add_special, parse_special)
        return explanation

    def merge_tree(self, id: types.SupportsIndex) -> types.MergeTree:
        """Which merges make a token of its own bytes (BPE), or characters (SPM), if they do.

        Returns:
            An :class:`ggtok.explain.steps.MergeTree`. ``dataclasses.asdict`` makes it ready
            for JSON.

        Raises:
            TokenIdError: ``id`` is outside the vocabulary.
            VocabError: a vocabulary of another type, which has no merges; the file was changed
                since it was loaded.
            InvalidValueError: the token has more than 16 KiB.
            InvalidTypeError: as for :meth:`explain`.
        """
        from ggtok.explain.tree import merge_tree

        return merge_tree(self._loaded, index(id, "id"))

    # ---- tokens ----

    def token_to_piece(
        self, id: types.SupportsIndex, *, lstrip: int = 0, special: bool = True
    ) -> bytes:
        """What one token prints: ``llama_token_to_piece``.

        Args:
            id: a token id.
            lstrip: how many leading spaces to drop at most.
            special: give control and unknown tokens as their text; if false, they give
                ``b""``.

        Raises:
            TokenIdError: ``id`` is outside the vocabulary.
        """
        lstrip = index(lstrip, "lstrip")
        if lstrip < 0:
            raise InvalidValueError(f"lstrip must not be negative, but is {lstrip}")
        return self._native.piece(
            index(id, "id"), min(lstrip, 2**31 - 1), truth(special, "special")
        )

    def text_to_token(self, text: types.Text) -> int | None:
        """The id of the token with exactly this text, as stored in the vocabulary, or None."""
        return self._native.find(text)

    def token_text(self, id: types.SupportsIndex) -> bytes:
        """A token's text as stored (not what it prints): ``llama_vocab_get_text``."""
        return self._native.text(index(id, "id"))

    def token_score(self, id: types.SupportsIndex) -> float:
        """A token's score, a float32: ``llama_vocab_get_score``."""
        return self._native.score(index(id, "id"))

    def token_attr(self, id: types.SupportsIndex) -> TokenAttr:
        """A token's attributes after llama.cpp's corrections: ``llama_vocab_get_attr``."""
        return TokenAttr(self._native.attr(index(id, "id")))

    def is_eog(self, id: types.SupportsIndex) -> bool:
        """Whether a token ends generation: ``llama_vocab_is_eog``. False outside the vocabulary."""
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
        """Ids of tokens that structure text rather than stand for some.

        Those that are CONTROL, UNKNOWN, UNUSED or end generation, and those that are CONTROL in
        the file but not to llama.cpp: it makes gpt-oss's ``<|start|>``, ``<|end|>``,
        ``<|message|>`` and others user-defined tokens, which are parsed everywhere. From chat
        messages come none of them, but for plain text, such as ``,``, that is EOS only by
        llama.cpp's default for files that name none.
        """
        return self._loaded.special_ids

    @property
    def suppress_tokens(self) -> tuple[int, ...]:
        """The file's ``tokenizer.ggml.suppress_tokens``, in its order."""
        return self._native.suppress_tokens()

    def vocab_bytes(self, special: types.Special = "blank") -> list[bytes]:
        """Every token's bytes, by id: its :meth:`token_to_piece`.

        Args:
            special: ``"blank"``: the tokens of :attr:`special_ids` have none, as libraries for
                constrained decoding want it, so that no text allows them. ``"keep"``: they have
                their text.

        Raises:
            InvalidValueError: ``special`` is something else.
        """
        return pieces.vocab_bytes(self._loaded, special)

    def tokens_with_prefix(self, prefix: types.Buffer) -> list[int]:
        """The ids of the tokens whose bytes begin with `prefix`, ascending.

        The bytes are those of :meth:`vocab_bytes`, so that none of :attr:`special_ids` is among
        them, nor another token without bytes. ``b""`` gives all that have some. The first call
        sorts the vocabulary, and the tokenizer keeps that.

        Raises:
            InvalidTypeError: ``prefix`` isn't bytes-like.
        """
        return pieces.with_prefix(self._loaded, prefix)

    def heal(self, ids: types.Ids) -> tuple[list[int], bytes]:
        """Ids without the last one, where a prompt that ends there would cut a token in two.

        The model has seldom seen the last token where its text goes on: after ``"http:"`` it
        expects anything but ``"//"``, since ``"://"`` is a token. Take it off, and let the model
        begin with a token whose bytes begin with the prefix (:meth:`tokens_with_prefix`) or are
        a beginning of it.

        Returns:
            The ids without the last one, and its bytes, if it isn't one of
            :attr:`special_ids` and a longer token begins with its bytes. Else ``(ids, b"")``.

        Raises:
            TokenIdError: an id is outside the vocabulary.
        """
        return pieces.heal(self._loaded, ids)

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

    # ---- what add_special and encoding do ----

    add_bos = _flag("add_bos", "``add_special`` puts BOS first")
    add_eos = _flag("add_eos", "``add_special`` puts EOS last")
    add_sep = _flag("add_sep", "``add_special`` puts SEP last")
    add_space_prefix = _flag(
        "add_space_prefix", "a space is put before the text (SPM, UGM)", in_llama=False
    )

    # ---- the vocabulary ----

    @property
    def n_tokens(self) -> int:
        """The number of tokens: ids are 0 to ``n_tokens - 1``. Also ``len(tok)``."""
        return self._loaded.n_tokens

    @property
    def vocab_type(self) -> str:
        """``"SPM"``, ``"BPE"``, ``"WPM"``, ``"UGM"``, ``"RWKV"``, ``"PLAMO2"``, ``"PLAMO3"``,
        ``"TEST"`` or ``"NONE"``: ``llama_vocab_type``."""
        return self._loaded.vocab_type

    @property
    def model(self) -> str:
        """The file's ``tokenizer.ggml.model``, such as ``"gpt2"`` or ``"llama"``."""
        return self._native.model()

    @property
    def pre(self) -> str | None:
        """The name of the pre-tokenizer in effect; None outside BPE."""
        return self._native.pre()

    @property
    def metadata(self) -> Mapping[str, str | int | float | bool]:
        """The file's scalar key/values, in its order, without arrays.

        Bytes that aren't UTF-8 are kept as lone surrogates (``surrogateescape``).
        """
        return self._loaded.metadata

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
        """Where the vocabulary came from (:class:`ggtok.sources.Source`); None: from memory."""
        return self._loaded.source

    # ---- the cache ----

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
        return self._loaded.n_tokens

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        path = self._loaded.path
        source = f" {path!r}" if path is not None else ""
        pre = f" pre={self.pre!r}" if self.pre is not None else ""
        return f"<ggtok.Tokenizer{source} {self.vocab_type}{pre} n_tokens={self.n_tokens}>"

    def __eq__(self, other: object) -> bool:
        """Whether two have the same vocabulary, chat templates and options (`pre`,
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
    """A subclass's instance from its pickle, whatever its own __init__ takes."""
    tok = cls.__new__(cls)
    Tokenizer.__init__(tok, *args)
    return tok
