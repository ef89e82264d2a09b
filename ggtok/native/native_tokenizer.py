"""A loaded tokenizer. Encoding and decoding use entry.c's functions; the rest uses cffi."""

from __future__ import annotations

import operator
import os
import struct
import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import chain, pairwise

from ggtok import errors
from ggtok.base.escape import printable
from ggtok.native.arguments import (
    chosen,
    int32_array,
    overrides_array,
    text_bytes,
    truth,
    truth_or_none,
)
from ggtok.native.library import (
    FLAGS,
    FLOAT,
    SIGNED,
    SPECIALS,
    TYPE_NAMES,
    VOCAB_TYPES,
    Failure,
    bytes_of,
    error,
    ffi,
    ints_of,
    lib,
    string,
)

TYPE_CHECKING = False  # avoids importing typing: see native/library.py
if TYPE_CHECKING:
    from typing import Any, NoReturn, TypeVar

    import numpy as np
    from numpy.typing import NDArray

    T = TypeVar("T")
    # The fields of C's ggtok_part.
    Part = tuple[int, int, int, int, bool]
    # The caches that all streams (text/stream_decoder.py) share.
    Streamed = tuple[dict[int, bytes], dict[int, bytes], dict[int, str]]


# ---- pre_patterns: the callback from C ----

# A function that splits a text into words, and returns their end offsets in bytes.
Split = Callable[[bytes], list[int]]

_SIZE_MAX: int = 2 ** (8 * ffi.sizeof("size_t")) - 1


class Splitter:
    """A `Split` for ggtok_python_split to call, and the exception that it raised on each thread."""

    def __init__(self, split: Split) -> None:
        self.split = split
        self.failed: dict[int, BaseException] = {}
        self.unread: dict[int, tuple[bytes, list[int]]] = {}

    def __call__(self, text: Any, n: int, ends: Any, room: int) -> int:
        thread = threading.get_ident()
        try:
            data: bytes = ffi.buffer(text, n)[:]
            # If `ends` was too small, C calls again with a larger one: use the stored result.
            known, offsets = self.unread.pop(thread, (None, []))
            if known != data:
                offsets = self.split(data)
            if len(offsets) <= room:
                ends[0 : len(offsets)] = offsets
            else:
                self.unread[thread] = data, offsets
            return len(offsets)
        except BaseException as e:  # raised again after encode returns
            self.failed[thread] = e
            return _SIZE_MAX

    def take_failure(self) -> BaseException | None:
        return self.failed.pop(threading.get_ident(), None)

    def clearing(self, function: Callable[..., T]) -> Callable[..., T]:
        """Wraps an encoding function so that it first clears the state of an earlier call.

        A call that ended with an exception from a signal handler leaves its failure behind.
        """

        def call(*args: object) -> T:
            self.unread.pop(threading.get_ident(), None)
            self.take_failure()
            return function(*args)

        return call


def _outside(kind: type, raised: BaseException, traceback: Any) -> None:
    """Handles an exception raised before the first line of ggtok_python_split or
    Splitter.__call__. Only a signal handler can raise one there."""
    splitter: Splitter = ffi.from_handle(traceback.tb_frame.f_locals["user"])
    splitter.failed[threading.get_ident()] = raised


@ffi.def_extern(error=_SIZE_MAX, onerror=_outside)  # type: ignore[untyped-decorator]
def ggtok_python_split(user: Any, text: Any, n: int, ends: Any, room: int) -> int:
    splitter: Splitter = ffi.from_handle(user)
    return splitter(text, n, ends, room)


# ---- the tokenizer ----


class _Failed(Exception):
    """Raised by entry.c with the bytes of a ggtok_error and the text's index in a batch or None."""


# Exceptions that entry.c raises for an argument that it can't read. A signal handler may raise
# them, too: if all arguments are readable, the exception comes from the handler.
_UNREADABLE = TypeError, UnicodeEncodeError


class Native:
    """A loaded ggtok_tokenizer. Any number of threads may use one."""

    # Functions from entry.c, where their arguments are documented. They own the C tokenizer.
    encode: Callable[[object, object, object, object], list[int]]
    encode_spans: Callable[[object, object, object, object, object], tuple[list[int], Any]]
    encode_trusted: Callable[[str | bytes, int, bytes, bool], Any]
    encode_array: Callable[[object, object, object, object], NDArray[np.int32]]
    count: Callable[[object, object, object, object], int]
    encode_batch: Callable[..., Any]
    decode: Callable[[object, object, object, object], bytes]
    decode_at: Callable[[int, int, object, object, object], bytes]
    chat: Callable[..., tuple[list[Any], int, int]]
    chat_compile: Callable[..., Any]
    track: Callable[[list[list[int]]], None]
    clear: Callable[[], None]
    cache_info: Callable[[], tuple[int, int, int]]
    take: Callable[[], object]
    encode_part: Callable[[object, int, int, int], bytes]
    safe_cut: Callable[[object, int, int, int], int]
    encode_block: Callable[..., Any]
    sample: Callable[..., list[int]]
    nbest: Callable[..., list[tuple[list[int], float]]]
    encode_parallel: Callable[..., Any]
    choose: Callable[[list[int]], object]
    trace: Callable[[bytes, object, object, object], bytes]
    trace_token: Callable[[int], bytes]

    def __init__(
        self,
        *,
        path: str | bytes | None = None,
        data: bytes | None = None,
        name: str | None = None,
        pre: str | None = None,
        split: Split | None = None,
        overrides: dict[str, object] | None = None,
    ) -> None:
        # `name` is what error messages call `data`.
        self._splitter: Splitter | None = None
        self._choices: dict[Hashable, object] = {}
        keep: list[object] = []
        options = self._options(pre, split, overrides, keep)
        out = ffi.new("ggtok_tokenizer **")
        err = ffi.new("ggtok_error *")
        view = None
        if path is not None:
            status = lib.ggtok_load_file(os.fsencode(path), options, out, err)
        else:
            view = ffi.from_buffer("char[]", data)
            status = lib.ggtok_load_buffer(view, len(view), options, out, err)
        if status:
            cause = self._splitter.take_failure() if self._splitter else None
            raise cause or error(err, filename=path or name, pre=pre, data=view)
        self._tok = out[0]
        # Computed lazily by text/canonical.py.
        self.silent: list[bytes] | None = None
        self.sources: dict[str, str] | None = None
        self._streamed: dict[tuple[bool, bool], Streamed] = {}
        self._special: dict[str, int | None] = {}
        self._special_ids: frozenset[int] | None = None
        self._bind()
        self.n_tokens: int = lib.ggtok_n_tokens(self._tok)
        self.vocab_type = VOCAB_TYPES[lib.ggtok_type(self._tok)]
        self.flags = {name: bool(lib.ggtok_flag(self._tok, flag)) for name, flag in FLAGS.items()}
        self.eog_ids = frozenset(ints_of(lib.ggtok_eog_ids(self._tok)))

    def _options(
        self,
        pre: str | None,
        split: Split | None,
        overrides: dict[str, object] | None,
        keep: list[object],
    ) -> Any:
        """Returns a ggtok_load_options, whose memory `keep` keeps alive."""
        options = ffi.new("ggtok_load_options *")
        if pre is not None:
            keep.append(ffi.new("char[]", pre.encode("utf-8", "surrogatepass")))
            options.pre = keep[0]
        if split:
            self._splitter = Splitter(split)
            # The handle must live as long as the tokenizer, which passes it to the callback.
            self._handle = ffi.new_handle(self._splitter)
            options.split = lib.ggtok_python_split
            options.split_user = self._handle
        if overrides:
            options.overrides = overrides_array(overrides, keep)
            options.n_overrides = len(overrides)
        return options

    def _bind(self) -> None:
        """Sets entry.c's functions as attributes. From then on they own the C tokenizer."""
        functions: dict[str, Callable[..., object]] = {}
        if not lib.ggtok_python_bind_tokenizer(self._tok, id(functions), id(_Failed)):
            functions.clear()
            lib.ggtok_free(self._tok)
            raise errors.OutOfMemoryError("out of memory")
        for name, function in functions.items():
            setattr(self, name, self._splitter.clearing(function) if self._splitter else function)

    def parsed(self, parse_special: object) -> object:
        """Converts a parse_special that isn't True or False to what entry.c's encode accepts."""
        try:
            return chosen(self, self._choices, parse_special)
        except (_Failed, MemoryError) as e:
            self.reraise(e)

    def streamed(self, unparse_special: bool, clean_spaces: bool) -> Streamed:
        """Returns the caches that all streams with these options share."""
        return self._streamed.setdefault((unparse_special, clean_spaces), ({}, {}, {}))

    @property
    def splits_in_python(self) -> bool:
        return self._splitter is not None

    # ---- handling an exception `e` from one of entry.c's functions ----

    def reraise(self, e: Exception) -> NoReturn:
        """Raises the public exception for `e`, which isn't about an unreadable argument."""
        if isinstance(e, _Failed):
            data, i = e.args
            where = None if i is None else f"texts[{i}]"
            cause = self._splitter.take_failure() if self._splitter else None
            if cause and where and hasattr(cause, "add_note"):  # from Python 3.11 on
                cause.add_note(f"in {where}")
            raise cause or error(ffi.from_buffer("ggtok_error *", data), where=where) from None
        if isinstance(e, MemoryError):
            raise errors.OutOfMemoryError("out of memory") from None
        raise e

    def retry(
        self,
        function: Callable[..., T],
        e: Exception,
        text: object,
        add_special: object,
        parse_special: object,
        continuation: object,
        *more: object,
    ) -> T:
        """Repeats function(text, ...), which raised `e`, with converted arguments.

        Raises the public exception for `e` if there was nothing to convert.
        """
        if not isinstance(e, _UNREADABLE):
            self.reraise(e)
        unconverted = add_special, continuation
        flags = truth(add_special, "add_special"), truth(continuation, "continuation")
        data = text_bytes(text)
        if isinstance(text, (str, bytes)) and all(map(operator.is_, unconverted, flags)):
            self.reraise(e)
        try:
            return function(data, flags[0], parse_special, flags[1], *more)
        except Exception as second:
            self.reraise(second)

    def retry_batch(self, e: Exception, texts: tuple[object, ...], *args: object) -> Any:
        """Repeats encode_batch(texts, *args), which raised `e`, like :meth:`retry`."""
        if not isinstance(e, _UNREADABLE):
            self.reraise(e)
        readable = tuple(text_bytes(text, f"texts[{i}]") for i, text in enumerate(texts))
        if all(isinstance(text, (str, bytes)) for text in texts):
            self.reraise(e)
        try:
            return self.encode_batch(readable, *args)
        except Exception as second:
            self.reraise(second)

    def encode_arrow(self, texts: object, *args: object) -> Any:
        """Calls encode_batch with texts that native/arrays.py's `read` returned."""
        try:
            return self.encode_batch(texts, *args)
        except Exception as e:
            self.reraise(e)

    def retry_decode(self, e: Exception, ids: object, *flags: object) -> bytes:
        """Repeats decode(ids, *flags), which raised `e`, with converted ids."""
        if not isinstance(e, (TypeError, OverflowError)):
            self._raise_decode(e)
        return self.decode_array(int32_array(ids), *flags)

    def decode_array(
        self, numbers: Any, remove_special: object, unparse_special: object, clean_spaces: object
    ) -> bytes:
        """Decodes ids that int32_array returned."""
        view = ffi.from_buffer("int32_t[]", numbers)
        flags = (
            truth(remove_special, "remove_special"),
            truth(unparse_special, "unparse_special"),
            truth_or_none(clean_spaces, "clean_spaces"),
        )
        try:
            return self.decode_at(int(ffi.cast("uintptr_t", view)), len(view), *flags)
        except Exception as e:
            self._raise_decode(e)

    def _raise_decode(self, e: Exception) -> NoReturn:
        if isinstance(e, _Failed):
            err = ffi.from_buffer("ggtok_error *", e.args[0])
            if err.status == lib.GGTOK_ERR_ARGUMENT:  # only the ids can be wrong
                raise errors.TokenIdError(Failure(err).message) from None
        self.reraise(e)

    def encode_ranges(
        self, text: str | bytes, flags: int, trusted: Sequence[tuple[int, int]]
    ) -> list[int]:
        """Returns the ids from ggtok_encode_trusted."""
        ids: list[int] = self._encode_ranges(text, flags, trusted, False)
        return ids

    def encode_parts(
        self, text: str, flags: int, trusted: Sequence[tuple[int, int]]
    ) -> tuple[list[int], list[Part]]:
        """Returns the ids from ggtok_encode_trusted, and the fields of each ggtok_part."""
        ids_and_parts: tuple[list[int], list[Part]]
        ids_and_parts = self._encode_ranges(text, flags, trusted, True)
        return ids_and_parts

    def _encode_ranges(
        self, text: str | bytes, flags: int, trusted: Sequence[tuple[int, int]], parts: bool
    ) -> Any:
        packed = struct.pack(f"{2 * len(trusted)}N", *chain.from_iterable(trusted))
        try:
            return self.encode_trusted(text, flags, packed, parts)
        except Exception as e:
            self.reraise(e)

    # ---- tokens; `id` may be any int ----

    def _call(self, function: Any, id: int, *args: Any) -> None:
        """Calls function(tok, id, *args, err), which can fail only for an invalid id."""
        err = ffi.new("ggtok_error *")
        if not 0 <= id < self.n_tokens:
            raise errors.TokenIdError(
                f"{id} is not a token id of this vocabulary (0 to {self.n_tokens - 1})"
            )
        if function(self._tok, id, *args, err):
            raise error(err)

    def piece(self, id: int, lstrip: int, special: bool) -> bytes:
        out = ffi.new("ggtok_bytes *")
        self._call(lib.ggtok_token_to_piece, id, lstrip, special, out)
        return bytes_of(out)

    def text(self, id: int) -> bytes:
        out = ffi.new("ggtok_bytes *")
        self._call(lib.ggtok_token_text, id, out)
        return bytes_of(out)

    def score(self, id: int) -> float:
        out = ffi.new("float *")
        self._call(lib.ggtok_token_score, id, out)
        return float(out[0])

    def attr(self, id: int) -> int:
        out = ffi.new("uint32_t *")
        self._call(lib.ggtok_token_attr, id, out)
        return int(out[0])

    def find(self, text: object) -> int | None:
        data = text_bytes(text)
        id: int = lib.ggtok_text_to_token(self._tok, data, len(data))
        return id if id >= 0 else None

    # ---- the vocabulary ----

    @property
    def model(self) -> str:
        return string(ffi.string(lib.ggtok_model(self._tok)))

    @property
    def pre(self) -> str | None:
        """The name of the pre-tokenizer in effect."""
        name = lib.ggtok_pre(self._tok)
        return None if name == ffi.NULL else string(ffi.string(name))

    def special(self, name: str) -> int | None:
        """Returns the id of the special token with this name in llama.cpp, such as ``"bos"``."""
        # Computed lazily: it takes milliseconds to find which of two EOT texts llama.cpp chooses.
        if name not in self._special:
            id: int = lib.ggtok_special_id(self._tok, SPECIALS[name])
            self._special[name] = id if id >= 0 else None
        return self._special[name]

    @property
    def special_ids(self) -> frozenset[int]:
        """See :attr:`ggtok.Tokenizer.special_ids`."""
        if self._special_ids is None:
            out = ffi.new("int32_t[]", lib.ggtok_special_ids(self._tok, ffi.NULL, 0))
            lib.ggtok_special_ids(self._tok, out, len(out))
            self._special_ids = frozenset(out)
        return self._special_ids

    def pieces(self) -> list[bytes]:
        """Returns the pieces of all tokens, by id."""
        return self._strings(lib.ggtok_pieces)

    def texts(self) -> list[bytes]:
        """Returns the stored texts of all tokens, by id."""
        return self._strings(lib.ggtok_texts)

    def _strings(self, function: Any) -> list[bytes]:
        offsets = ffi.new("uint32_t **")
        data = bytes_of(function(self._tok, offsets))
        ends = ffi.unpack(offsets[0], self._n_stored() + 1)
        return [data[begin:end] for begin, end in pairwise(ends)]

    def _n_stored(self) -> int:
        """Returns the number of stored tokens. A model without a vocabulary has only a size."""
        return int(lib.ggtok_attrs(self._tok, ffi.NULL, 0))

    def scores(self) -> list[float]:
        """Returns the scores of all tokens, by id."""
        n = self._n_stored()
        scores: list[float] = ffi.unpack(lib.ggtok_scores(self._tok), n) if n else []
        return scores

    def attrs(self) -> list[int]:
        """Returns the attributes of all tokens, by id."""
        n = self._n_stored()
        out = ffi.new("uint32_t[]", n)
        lib.ggtok_attrs(self._tok, out, n)
        attrs: list[int] = ffi.unpack(out, n) if n else []
        return attrs

    def has_same_tokens(self, other: Native) -> bool:
        return bool(lib.ggtok_same_vocabulary(self._tok, other._tok))

    def suppress_tokens(self) -> tuple[int, ...]:
        return ints_of(lib.ggtok_suppress_tokens(self._tok))

    def warnings(self) -> Iterator[str]:
        i = 0
        while (message := lib.ggtok_warning(self._tok, i)) != ffi.NULL:
            yield printable(ffi.string(message))
            i += 1

    def metadata_bytes(self) -> int:
        size: int = lib.ggtok_metadata_bytes(self._tok)
        return size

    # ---- the file's key/value pairs ----

    def _kvs(self) -> Iterator[Any]:
        kv = ffi.new("ggtok_kv *")
        for i in range(lib.ggtok_n_kv(self._tok)):
            lib.ggtok_get_kv(self._tok, i, kv, ffi.NULL)  # fails only if i is out of range
            yield kv

    def scalars(self) -> dict[str, str | int | float | bool]:
        return {
            string(bytes_of(kv.key)): _value(kv) for kv in self._kvs() if kv.type != lib.GGTOK_ARRAY
        }

    def arrays(self) -> dict[str, tuple[str, int]]:
        """Returns the element type and length of each array in the file, by key."""
        return {
            string(bytes_of(kv.key)): (TYPE_NAMES.get(kv.elem_type, str(kv.elem_type)), kv.n)
            for kv in self._kvs()
            if kv.type == lib.GGTOK_ARRAY
        }


def _value(kv: Any) -> str | int | float | bool:
    if kv.type == lib.GGTOK_STRING:
        return string(bytes_of(kv.str))
    if kv.type == lib.GGTOK_BOOL:
        return bool(kv.u64)
    if kv.type in FLOAT:
        number: float = kv.f64
        return number
    integer: int = kv.i64 if kv.type in SIGNED else kv.u64
    return integer
