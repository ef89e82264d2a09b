"""The one module that touches the C library.

Everything here is a thin, typed view of ggtok.h: return codes become exceptions
(:func:`_error`), C strings become ``bytes`` or ``str``. Encoding and decoding don't
go through cffi but through the functions of cext/python/entry.c. Nothing else
imports ``ggtok._ffi``.
"""

from __future__ import annotations

import operator
import threading
from array import array
from collections.abc import Callable, Iterator, Mapping

from ggtok import errors

try:
    from ggtok._ffi import ffi, lib
except ModuleNotFoundError as e:
    if e.name != "ggtok._ffi":
        raise
    raise ImportError(
        "ggtok's compiled module is missing: this looks like the source tree, not an installed "
        "package (run 'pip install -e .' in it, or leave its folder)"
    ) from e

TYPE_CHECKING = False  # known to type checkers; importing typing takes longer than all the rest
if TYPE_CHECKING:
    from typing import Any, NoReturn, TypeVar

    T = TypeVar("T")
    # The fields of a ggtok_part.
    Part = tuple[int, int, int, int, bool]

ADD_SPECIAL: int = lib.GGTOK_ADD_SPECIAL
PARSE_SPECIAL: int = lib.GGTOK_PARSE_SPECIAL

# A function that cuts a text: the end offsets of its words in bytes.
Split = Callable[[bytes], list[int]]

VOCAB_TYPES: dict[int, str] = {
    getattr(lib, f"GGTOK_VOCAB_{name}"): name
    for name in ("NONE", "SPM", "BPE", "WPM", "UGM", "RWKV", "PLAMO2", "TEST", "PLAMO3")
}
SPECIALS: dict[str, int] = {
    name.lower(): getattr(lib, f"GGTOK_{name}")
    for name in (
        *("BOS", "EOS", "EOT", "EOM", "UNK", "SEP", "NL", "PAD", "MASK"),
        *("FIM_PRE", "FIM_SUF", "FIM_MID", "FIM_PAD", "FIM_REP", "FIM_SEP"),
    )
}
FLAGS: dict[str, int] = {
    name.lower(): getattr(lib, f"GGTOK_FLAG_{name}")
    for name in (
        *("ADD_BOS", "ADD_EOS", "ADD_SEP", "ADD_SPACE_PREFIX", "IGNORE_MERGES", "CLEAN_SPACES"),
        *("REMOVE_EXTRA_WHITESPACES", "ESCAPE_WHITESPACES", "LOWERCASE", "STRIP_ACCENTS"),
    )
}
_TYPE_NAMES: dict[int, str] = {
    getattr(lib, f"GGTOK_{name.upper()}"): name
    for name in (
        *("u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64"),
        *("f32", "f64", "bool", "string", "array"),
    )
}
_SIGNED = {lib.GGTOK_I8, lib.GGTOK_I16, lib.GGTOK_I32, lib.GGTOK_I64}
_FLOAT = {lib.GGTOK_F32, lib.GGTOK_F64}

# ---- return codes to exceptions ----


class _Failure:
    """The fields of a ggtok_error, as Python values."""

    def __init__(self, err: Any, filename: str | bytes | None, pre: str | None) -> None:
        self.status: int = err.status
        self.message: str = _shown(ffi.string(err.message)) or "unknown error"
        self.key: str | None = _str(ffi.string(err.key)) or None
        if self.key is not None and self.key not in self.message:
            self.message += f" (key '{self.key}')"
        self.offset: int | None = None if err.offset == lib.GGTOK_NO_OFFSET else err.offset
        self.errno: int = err.os_error
        self.filename = filename
        self.pre = pre

    @property
    def text(self) -> str:
        """The message, with the file it is about in front."""
        if self.filename is None:
            return self.message
        import os

        return f"{_shown(os.fsencode(self.filename))}: {self.message}"


def _io_error(f: _Failure) -> errors.GGTokError:
    import errno
    import os

    reason = "not a regular file" if f.errno == errno.ESPIPE else os.strerror(f.errno)
    return errors.file_error(f.errno, reason, f.filename or "")


def _pre_error(f: _Failure) -> errors.GGTokError:
    import difflib
    import re

    name = f.pre
    if name is None:
        quoted = re.search("'(.*?)'", f.message)
        name = quoted[1] if quoted else None
    near = tuple(difflib.get_close_matches(name or "", pre_names(), n=3, cutoff=0.5))
    message = f.text
    if near:
        message += " (most like it: " + ", ".join(map(repr, near)) + ")"
    message += (
        "; ways out: ggtok.load(..., pre=NAME) to use a known one, or "
        "ggtok.load(..., pre_patterns=[REGEX, ...]) to give its regular expressions"
    )
    return errors.UnknownPreTokenizerError(
        message, name=name, suggestions=near, key=f.key, offset=f.offset
    )


_ERRORS: dict[int, Callable[[_Failure], errors.GGTokError]] = {
    lib.GGTOK_ERR_MEMORY: lambda f: errors.OutOfMemoryError(f.message),
    lib.GGTOK_ERR_IO: _io_error,
    lib.GGTOK_ERR_GGUF: lambda f: errors.GGUFError(f.text, key=f.key, offset=f.offset),
    lib.GGTOK_ERR_VOCAB: lambda f: errors.VocabError(f.text, key=f.key, offset=f.offset),
    lib.GGTOK_ERR_PRETOKENIZER: _pre_error,
    lib.GGTOK_ERR_ARGUMENT: lambda f: errors.InvalidValueError(f.message),
    lib.GGTOK_ERR_UNSUPPORTED: lambda f: errors.VocabError(f.message, key=f.key, offset=f.offset),
}


def _error(
    err: Any, *, filename: str | bytes | None = None, pre: str | None = None
) -> errors.GGTokError:
    failure = _Failure(err, filename, pre)
    make = _ERRORS.get(failure.status)
    return make(failure) if make else errors.GGTokError(failure.message)


# ---- small conversions ----


def _str(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _shown(data: bytes) -> str:
    """For people to read: a file may be quoted in it, so what is no text or no print is escaped."""
    text = data.decode("utf-8", "backslashreplace")
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _bytes(view: Any) -> bytes:
    """The bytes of a ggtok_bytes."""
    return ffi.buffer(view.data, view.n)[:] if view.n else b""


def _ints(view: Any) -> tuple[int, ...]:
    """The elements of a ggtok_ids."""
    return tuple(ffi.unpack(view.data, view.n)) if view.n else ()


def pre_names() -> list[str]:
    """The pre-tokenizer names that the library knows."""
    names: list[str] = []
    while (name := lib.ggtok_pre_name(len(names))) != ffi.NULL:
        names.append(_str(ffi.string(name)))
    return names


def text_bytes(text: object) -> bytes:
    """A text argument as UTF-8, of any quality if it is bytes-like."""
    if isinstance(text, str):
        try:
            return text.encode()
        except UnicodeEncodeError as e:
            raise errors.TextEncodeError(*e.args) from None
    if isinstance(text, bytes):
        return text
    return ffi.buffer(buffer(text, "text must be str or bytes-like (UTF-8)"))[:]  # type: ignore[no-any-return]


def _unshared(data: object) -> object:
    """Bytes-like memory that no one changes while C reads it: a copy, if it can be written."""
    try:
        view = memoryview(data)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return data  # ffi says what is wrong with it
    return data if view.readonly or not view.c_contiguous else view.tobytes()


def buffer(data: object, what: str) -> Any:
    """A C view of a bytes-like object's memory, which lives as long as the view."""
    try:
        return ffi.from_buffer("char[]", _unshared(data))
    except TypeError:
        raise errors.InvalidTypeError(f"{what}, not {type(data).__name__}") from None
    except (BufferError, ValueError) as e:
        raise errors.InvalidTypeError(f"{what} in one piece (C-contiguous): {e}") from None


def int32_array(ids: object) -> Any:
    """Token ids as something to take a buffer of: itself, or a new array."""
    if isinstance(ids, (list, tuple)):
        pass
    elif isinstance(ids, (str, bytes, bytearray)):
        raise errors.InvalidTypeError(f"ids must be integers, not {type(ids).__name__}")
    else:
        try:
            view = memoryview(ids)  # type: ignore[arg-type]
        except ValueError as e:  # a released one
            raise errors.InvalidValueError(f"ids: {e}") from None
        except TypeError:
            try:
                ids = list(ids)  # type: ignore[call-overload]
            except TypeError:
                raise errors.InvalidTypeError(
                    f"ids must be an iterable of integers, not {type(ids).__name__}"
                ) from None
        else:
            if view.ndim != 1:
                raise errors.InvalidValueError(f"ids must have one dimension, not {view.ndim}")
            if view.format == "i" and view.c_contiguous:
                return view
            # No view.tolist(): memoryview knows fewer formats than numpy and ctypes.
            ids = ids.tolist() if hasattr(ids, "tolist") else list(ids)  # type: ignore[call-overload]
    try:
        return array("i", ids)  # type: ignore[call-overload]
    except (OverflowError, TypeError):
        return array("i", _int32s(ids))


def _int32s(ids: Any) -> Iterator[int]:
    """The ids one by one, to find which is none."""
    for i, id in enumerate(ids):
        try:
            number = operator.index(id)
        except TypeError:
            raise errors.InvalidTypeError(
                f"ids[{i}] must be an integer, not {type(id).__name__}"
            ) from None
        if not 0 <= number < 2**31:
            raise errors.TokenIdError(f"ids[{i}] is {number}: not a token id of any vocabulary")
        yield number


def on_main_thread() -> bool:
    """Whether this is the thread on which Python's signal handlers run."""
    return threading.get_ident() == threading.main_thread().ident


def _about_text(e: Exception, i: int | None) -> Exception:
    """`e`, which says that it is about texts[i]."""
    if i is not None and hasattr(e, "add_note"):  # Python 3.11
        e.add_note(f"in texts[{i}]")
    return e


# ---- prefixes of files ----


_UNKNOWN_SIZE: int = 2**64 - 1


def metadata_size(prefix: bytearray, file_size: int | None, name: str) -> int:
    """ggtok_metadata_size, of a prefix that nobody else writes to."""
    size, err = ffi.new("uint64_t *"), ffi.new("ggtok_error *")
    n = _UNKNOWN_SIZE if file_size is None else file_size
    with ffi.from_buffer("char[]", prefix) as view:
        if lib.ggtok_metadata_size(view, len(view), n, size, err):
            raise _error(err, filename=name)
    needed: int = size[0]
    return needed


def peek(prefix: bytearray, file_size: int, name: str) -> tuple[str, str, str | None, int] | int:
    """ggtok_peek: type, model, pre (None outside BPE) and number of tokens, or else how
    far the file must be read to tell."""
    out, err = ffi.new("ggtok_summary *"), ffi.new("ggtok_error *")
    with ffi.from_buffer("char[]", prefix) as view:
        if lib.ggtok_peek(view, len(view), file_size, out, err):
            raise _error(err, filename=name)
    if not out.known:
        size: int = out.size
        return size
    pre = _str(ffi.string(out.pre)) or None
    return VOCAB_TYPES[out.type], _str(ffi.string(out.model)), pre, out.n_tokens


# ---- overrides ----


def _overrides(values: Mapping[str, object], keep: list[Any]) -> Any:
    """An array of ggtok_override, whose strings `keep` keeps alive."""

    def string(text: str, what: str) -> Any:
        data = text.encode("utf-8", "surrogateescape")
        if b"\0" in data:
            raise errors.InvalidValueError(f"overrides: {what} holds a NUL character")
        keep.append(ffi.new("char[]", data))
        return keep[-1]

    array = ffi.new("ggtok_override[]", len(values))
    keep.append(array)
    for override, (key, value) in zip(array, values.items(), strict=True):
        if not isinstance(key, str):
            raise errors.InvalidTypeError(f"overrides: a key must be str, not {key!r}")
        override.key = string(key, "a key")
        if isinstance(value, bool):
            override.type, override.boolean = lib.GGTOK_OVERRIDE_BOOL, value
        elif isinstance(value, int):
            if not -(2**63) <= value < 2**63:
                raise errors.InvalidValueError(f"overrides[{key!r}]: {value} exceeds 64 bits")
            override.type, override.i64 = lib.GGTOK_OVERRIDE_INT, value
        elif isinstance(value, float):
            override.type, override.f64 = lib.GGTOK_OVERRIDE_FLOAT, value
        elif isinstance(value, str):
            override.type = lib.GGTOK_OVERRIDE_STR
            override.str = string(value, f"the value of {key!r}")
        else:
            raise errors.InvalidTypeError(
                f"overrides[{key!r}] must be int, float, bool or str, not {type(value).__name__}"
            )
    return array


# ---- word splitting in Python ----


class _Splitter:
    """What ggtok_py_split calls: a `Split`, and what went wrong in it on each thread."""

    def __init__(self, split: Split) -> None:
        self.split = split
        self.failed: dict[int, BaseException] = {}
        self.unread: dict[int, tuple[bytes, list[int]]] = {}

    def __call__(self, text: Any, n: int, ends: Any, room: int) -> int:
        thread = threading.get_ident()
        try:
            data: bytes = ffi.buffer(text, n)[:]
            # Too little room a moment ago: the same call again, with enough.
            known, offsets = self.unread.pop(thread, (None, []))
            if known != data:
                offsets = self.split(data)
            if len(offsets) <= room:
                ends[0 : len(offsets)] = offsets
            else:
                self.unread[thread] = data, offsets
            return len(offsets)
        except BaseException as e:  # re-raised by whoever called encode
            self.failed[thread] = e
            return _SIZE_MAX

    def take_failure(self) -> BaseException | None:
        return self.failed.pop(threading.get_ident(), None)

    def afresh(self, function: Callable[..., T]) -> Callable[..., T]:
        """`function`, which encodes, without what a call before may have left behind: one that a
        signal handler's exception ended does not get to take its failure."""

        def call(*args: object) -> T:
            self.unread.pop(threading.get_ident(), None)
            self.take_failure()
            return function(*args)

        return call


_SIZE_MAX: int = 2 ** (8 * ffi.sizeof("size_t")) - 1


@ffi.def_extern(error=_SIZE_MAX)  # type: ignore[untyped-decorator]
def ggtok_py_split(user: Any, text: Any, n: int, ends: Any, room: int) -> int:
    splitter: _Splitter = ffi.from_handle(user)
    return splitter(text, n, ends, room)


# ---- the tokenizer ----


class _Failed(Exception):
    """What entry.c raises: a ggtok_error's bytes, and which text of a batch or None."""


# What entry.c raises for a text that it can't read. Signal handlers raise these too, whatever
# the texts: all that it can read, and it is no text's error.
_UNREADABLE = TypeError, UnicodeEncodeError


class Native:
    """A loaded ggtok_tokenizer. Any number of threads may use one."""

    # From entry.c, which says what each takes. They own the C tokenizer.
    encode: Callable[[object, object, object], list[int]]
    encode_bytes: Callable[[object, object, object], bytearray]
    count: Callable[[object, object, object], int]
    encode_batch: Callable[..., Any]
    decode: Callable[[object, object, object], bytes]
    decode_at: Callable[[int, int, object, object], bytes]
    clear: Callable[[], None]
    cache_info: Callable[[], tuple[int, int, int]]
    take: Callable[[], tuple[int, object]]

    def __init__(
        self,
        *,
        path: str | bytes | None = None,
        data: object = None,
        name: str | None = None,
        pre: str | None = None,
        split: Split | None = None,
        overrides: Mapping[str, object] | None = None,
    ) -> None:
        # `name` is what errors call the source of `data`.
        keep: list[Any] = []
        options = ffi.new("ggtok_load_options *")
        if pre is not None:
            keep.append(ffi.new("char[]", pre.encode("utf-8", "surrogatepass")))
            options.pre = keep[0]
        self._splitter = _Splitter(split) if split else None
        if self._splitter:
            # The handle must live as long as the tokenizer, which calls back with it.
            self._handle = ffi.new_handle(self._splitter)
            options.split = lib.ggtok_py_split
            options.split_user = self._handle
        if overrides:
            options.overrides = _overrides(overrides, keep)
            options.n_overrides = len(overrides)
        out = ffi.new("ggtok_tokenizer **")
        err = ffi.new("ggtok_error *")
        if path is not None:
            import os

            status = lib.ggtok_load_file(os.fsencode(path), options, out, err)
        else:
            view = buffer(data, "source must be a path or a bytes-like object")
            status = lib.ggtok_load_buffer(view, len(view), options, out, err)
        if status:
            cause = self._splitter.take_failure() if self._splitter else None
            raise cause or _error(err, filename=path or name, pre=pre)
        self._tok = out[0]
        functions: list[Any] = []
        if not lib.entry_bind(self._tok, id(functions), id(_Failed)):
            functions.clear()
            lib.ggtok_free(self._tok)
            raise errors.OutOfMemoryError("out of memory")
        if self._splitter:
            functions = [self._splitter.afresh(function) for function in functions]
        self.encode, self.encode_bytes, self.count, self.encode_batch, *rest = functions
        self.decode, self.decode_at, self.clear, self.cache_info, self.take = rest

    @property
    def splits_in_python(self) -> bool:
        return self._splitter is not None

    # When one of entry.c's functions has raised `e`.

    def _raise(self, e: Exception) -> NoReturn:
        """What `e`, which is about no argument, means to the user."""
        if isinstance(e, _Failed):
            cause = self._splitter.take_failure() if self._splitter else None
            raise cause or _error(ffi.from_buffer("ggtok_error *", e.args[0])) from None
        if isinstance(e, MemoryError):
            raise errors.OutOfMemoryError("out of memory") from None
        raise e

    def retry(self, function: Callable[..., T], e: Exception, text: object, *flags: object) -> T:
        """function(text, *flags), which raised `e`, with a text that it can read."""
        if not isinstance(e, _UNREADABLE):
            self._raise(e)
        data = text_bytes(text)
        if isinstance(text, (str, bytes)):
            self._raise(e)
        try:
            return function(data, *flags)
        except Exception as again:
            self._raise(again)

    def retry_batch(self, e: Exception, texts: tuple[object, ...], *args: object) -> Any:
        """encode_batch(texts, *args), which raised `e`, likewise."""
        if isinstance(e, _UNREADABLE):
            readable = []
            for i, text in enumerate(texts):
                try:
                    readable.append(text_bytes(text))
                except errors.GGTokError as unreadable:
                    raise _about_text(unreadable, i) from None
            if not all(isinstance(text, (str, bytes)) for text in texts):
                try:
                    return self.encode_batch(tuple(readable), *args)
                except Exception as again:
                    e = again
        if not isinstance(e, _Failed):
            self._raise(e)
        try:
            self._raise(e)
        except Exception as cause:
            raise _about_text(cause, e.args[1]) from None

    def retry_decode(self, e: Exception, ids: object, *flags: object) -> bytes:
        """decode(ids, *flags), which raised `e`, likewise, or what is wrong with the ids."""
        if not isinstance(e, (TypeError, OverflowError)):
            self._raise_decode(e)
        return self.decode_array(int32_array(ids), *flags)

    def decode_array(self, numbers: Any, *flags: object) -> bytes:
        """decode() of int32_array's result."""
        view = ffi.from_buffer("int32_t[]", numbers)
        try:
            return self.decode_at(int(ffi.cast("uintptr_t", view)), len(view), *flags)
        except Exception as e:
            self._raise_decode(e)

    def _raise_decode(self, e: Exception) -> NoReturn:
        if isinstance(e, _Failed):
            err = ffi.from_buffer("ggtok_error *", e.args[0])
            if err.status == lib.GGTOK_ERR_ARGUMENT:  # the only one is an id
                raise errors.TokenIdError(_Failure(err, None, None).message) from None
        self._raise(e)

    def encode_trusted(
        self, text: str, flags: int, trusted: list[tuple[int, int]]
    ) -> tuple[list[int], list[Part]]:
        """ggtok_encode_trusted: the ids, and a ggtok_part's fields for each part."""
        data = text_bytes(text)
        ranges = ffi.new("ggtok_range[]", trusted)
        out = ffi.new("ggtok_ids *")
        parts = ffi.new("ggtok_parts *")
        err = ffi.new("ggtok_error *")
        try:
            address, loan = self.take()
        except Exception as e:
            self._raise(e)
        context = ffi.cast("ggtok_context *", address)
        try:
            if lib.ggtok_encode_trusted(
                context, data, len(data), flags, ranges, len(trusted), out, parts, err
            ):
                raise (self._splitter and self._splitter.take_failure()) or _error(err)
            fields = [
                (p.pos, p.n, p.first, p.n_ids, p.special)
                for p in (parts.data[i] for i in range(parts.n))
            ]
            return list(_ints(out)), fields
        finally:
            del loan  # now, not when the last traceback is gone

    # One token. `id` is any int.

    def _call(self, function: Any, id: int, *args: Any) -> None:
        """function(tok, id, *args, err), which fails only for an id that is no token."""
        err = ffi.new("ggtok_error *")
        if not 0 <= id < self.n_tokens():
            raise errors.TokenIdError(
                f"{id} is not a token id of this vocabulary (0 to {self.n_tokens() - 1})"
            )
        if function(self._tok, id, *args, err):
            raise _error(err)

    def piece(self, id: int, lstrip: int, special: bool) -> bytes:
        out = ffi.new("ggtok_bytes *")
        self._call(lib.ggtok_token_to_piece, id, lstrip, special, out)
        return _bytes(out)

    def text(self, id: int) -> bytes:
        out = ffi.new("ggtok_bytes *")
        self._call(lib.ggtok_token_text, id, out)
        return _bytes(out)

    def score(self, id: int) -> float:
        out = ffi.new("float *")
        self._call(lib.ggtok_token_score, id, out)
        score: float = out[0]
        return score

    def attr(self, id: int) -> int:
        out = ffi.new("uint32_t *")
        self._call(lib.ggtok_token_attr, id, out)
        attr: int = out[0]
        return attr

    def find(self, text: object) -> int | None:
        data = text_bytes(text)
        id: int = lib.ggtok_text_to_token(self._tok, data, len(data))
        return id if id >= 0 else None

    # The vocabulary.

    def n_tokens(self) -> int:
        n: int = lib.ggtok_n_tokens(self._tok)
        return n

    def vocab_type(self) -> str:
        return VOCAB_TYPES[lib.ggtok_type(self._tok)]

    def model(self) -> str:
        return _str(ffi.string(lib.ggtok_model(self._tok)))

    def pre(self) -> str | None:
        name = lib.ggtok_pre(self._tok)
        return None if name == ffi.NULL else _str(ffi.string(name))

    def flags(self) -> dict[str, bool]:
        return {name: bool(lib.ggtok_flag(self._tok, flag)) for name, flag in FLAGS.items()}

    def special(self, name: str) -> int | None:
        id: int = lib.ggtok_special_id(self._tok, SPECIALS[name])
        return id if id >= 0 else None

    def eog_ids(self) -> tuple[int, ...]:
        return _ints(lib.ggtok_eog_ids(self._tok))

    def suppress_tokens(self) -> tuple[int, ...]:
        return _ints(lib.ggtok_suppress_tokens(self._tok))

    def warnings(self) -> Iterator[str]:
        i = 0
        while (sentence := lib.ggtok_warning(self._tok, i)) != ffi.NULL:
            yield _shown(ffi.string(sentence))
            i += 1

    def metadata_bytes(self) -> int:
        size: int = lib.ggtok_metadata_bytes(self._tok)
        return size

    # Key/values of the file.

    def _kvs(self) -> Iterator[Any]:
        kv = ffi.new("ggtok_kv *")
        for i in range(lib.ggtok_n_kv(self._tok)):
            lib.ggtok_get_kv(self._tok, i, kv, ffi.NULL)  # fails only for a number out of range
            yield kv

    def scalars(self) -> dict[str, str | int | float | bool]:
        return {
            _str(_bytes(kv.key)): _value(kv) for kv in self._kvs() if kv.type != lib.GGTOK_ARRAY
        }

    def arrays(self) -> dict[str, tuple[str, int]]:
        """The arrays' element types and lengths, by key."""
        return {
            _str(_bytes(kv.key)): (_TYPE_NAMES.get(kv.elem_type, str(kv.elem_type)), kv.n)
            for kv in self._kvs()
            if kv.type == lib.GGTOK_ARRAY
        }


def _value(kv: Any) -> str | int | float | bool:
    if kv.type == lib.GGTOK_STRING:
        return _str(_bytes(kv.str))
    if kv.type == lib.GGTOK_BOOL:
        return bool(kv.u64)
    if kv.type in _FLOAT:
        number: float = kv.f64
        return number
    integer: int = kv.i64 if kv.type in _SIGNED else kv.u64
    return integer
