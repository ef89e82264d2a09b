"""The one module that touches the C library.

Everything here is a thin, typed view of ggtok.h: return codes become exceptions
(:func:`_error`), C strings become ``bytes`` or ``str``, and contexts (one
thread's scratch memory) are pooled. Nothing else imports ``ggtok._ffi``.
"""

from __future__ import annotations

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
    from typing import Any

    import numpy as np
    from numpy.typing import NDArray

    # A pooled context: the C context, a small buffer of ids and a view of that, a
    # ggtok_ids, a ggtok_bytes and a ggtok_error.
    _Context = tuple[Any, Any, memoryview, Any, Any, Any]

ADD_SPECIAL: int = lib.GGTOK_ADD_SPECIAL
PARSE_SPECIAL: int = lib.GGTOK_PARSE_SPECIAL
REMOVE_SPECIAL: int = lib.GGTOK_REMOVE_SPECIAL
UNPARSE_SPECIAL: int = lib.GGTOK_UNPARSE_SPECIAL

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
        self.message: str = _str(ffi.string(err.message)) or "unknown error"
        self.key: str | None = _str(ffi.string(err.key)) or None
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

        return f"{os.fsdecode(self.filename)}: {self.message}"


def _io_error(f: _Failure) -> errors.GGTokError:
    import errno

    if f.errno and f.errno != errno.ESPIPE and f.filename is not None:
        import os

        return errors.file_error(f.errno, os.strerror(f.errno), f.filename)
    return errors.FileError(f.message)


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


# Characters from which on it pays to ask for a str's own UTF-8 instead of a copy.
_LARGE = 2048


def utf8(text: object) -> tuple[Any, int]:
    """A text argument as something to pass for `const char *`, and its length in bytes."""
    if isinstance(text, str):
        if len(text) >= _LARGE and type(text) is str:
            n = ffi.new("size_t *")
            shared = lib.utf8_of(id(text), n)  # the caller's frame holds the str
            if shared != ffi.NULL:
                return shared, n[0]
        try:
            data = text.encode()
        except UnicodeEncodeError as e:
            raise errors.TextEncodeError(*e.args) from None
        return data, len(data)
    if isinstance(text, bytes):
        return text, len(text)
    view = buffer(text, "text must be str or bytes-like (UTF-8)")
    return view, len(view)


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
    except OverflowError:
        raise _id_error(ids, 2**31) from None
    except TypeError:
        for i, id in enumerate(ids):  # type: ignore[arg-type, var-annotated]
            if not hasattr(id, "__index__"):
                raise errors.InvalidTypeError(
                    f"ids[{i}] must be an integer, not {type(id).__name__}"
                ) from None
        raise


def _id_error(ids: Any, n_tokens: int) -> errors.GGTokError:
    """Which of `ids` is no token."""
    for i, id in enumerate(ids):
        if not 0 <= id.__index__() < n_tokens:
            return errors.TokenIdError(f"ids[{i}] is {id}: not a token id of this vocabulary")
    return errors.TokenIdError("a token id is outside the vocabulary")


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


_SIZE_MAX: int = 2 ** (8 * ffi.sizeof("size_t")) - 1


@ffi.def_extern(error=_SIZE_MAX)  # type: ignore[untyped-decorator]
def ggtok_py_split(user: Any, text: Any, n: int, ends: Any, room: int) -> int:
    splitter: _Splitter = ffi.from_handle(user)
    return splitter(text, n, ends, room)


# ---- the tokenizer ----

# Ids that a pooled context has room for in its ready-made buffer.
_SMALL = 512
_encode_small = lib.encode_small


def _free(tok: Any, pool: list[_Context]) -> None:
    for context in pool:
        lib.ggtok_context_free(context[0])
    pool.clear()
    lib.ggtok_free(tok)


class Native:
    """A loaded ggtok_tokenizer with its pool of contexts.

    Any number of threads may use one: list.pop and list.append are atomic, so a
    context is in one thread's hands at a time.
    """

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
        pool: list[_Context] = []
        self._pool = pool
        # Runs when the last reference goes; nothing can be in use then, because
        # calls hold `self`.
        self._tok = ffi.gc(out[0], lambda tok: _free(tok, pool))

    def _new_context(self) -> _Context:
        out = ffi.new("ggtok_context **")
        err = ffi.new("ggtok_error *")
        if lib.ggtok_context_new(self._tok, out, err):
            raise _error(err)
        small = ffi.new(f"int32_t[{_SMALL}]")
        view = memoryview(ffi.buffer(small)).cast("i")
        return out[0], small, view, ffi.new("ggtok_ids *"), ffi.new("ggtok_bytes *"), err

    def _encode_error(self, err: Any) -> BaseException:
        cause = self._splitter.take_failure() if self._splitter else None
        return cause or _error(err)

    # encode, encode_array, ... count: one body, four ways to read the result. `text`
    # is anything that utf8() takes; flags are ADD_SPECIAL | PARSE_SPECIAL.

    def encode(self, text: object, flags: int) -> list[int]:
        # Short texts spend most of their time here: str is utf8() written out, and
        # the ids are read through a ready-made view.
        if type(text) is str and len(text) < _LARGE:
            try:
                data: Any = text.encode()
            except UnicodeEncodeError:
                data, size = utf8(text)
            size = len(data)
        else:
            data, size = utf8(text)
        pool = self._pool
        try:
            context = pool.pop()
        except IndexError:
            context = self._new_context()
        ctx, small, view, out, _, err = context
        try:
            n = _encode_small(ctx, data, size, flags, small, _SMALL, out, err)
            if 0 <= n <= _SMALL:
                return view[:n].tolist()
            if n < 0:
                raise self._encode_error(err)
            ids: list[int] = memoryview(ffi.buffer(out.data, 4 * n)).cast("i").tolist()
            return ids
        finally:
            pool.append(context)

    def encode_array(self, text: object, flags: int) -> NDArray[np.int32]:
        import numpy as np

        data, size = utf8(text)
        pool = self._pool
        try:
            context = pool.pop()
        except IndexError:
            context = self._new_context()
        ctx, _, _, out, _, err = context
        try:
            if lib.ggtok_encode(ctx, data, size, flags, out, err):
                raise self._encode_error(err)
            n = out.n
            if not n:
                return np.empty(0, np.int32)
            ids: NDArray[np.int32] = np.frombuffer(ffi.buffer(out.data, 4 * n), np.int32).copy()
            return ids
        finally:
            pool.append(context)

    def encode_append(self, text: object, flags: int, ids: array[int]) -> int:
        """encode() that appends to `ids` (C ints); gives the number appended."""
        data, size = utf8(text)
        pool = self._pool
        try:
            context = pool.pop()
        except IndexError:
            context = self._new_context()
        ctx, _, _, out, _, err = context
        try:
            if lib.ggtok_encode(ctx, data, size, flags, out, err):
                raise self._encode_error(err)
            n: int = out.n
            if n:
                ids.frombytes(ffi.buffer(out.data, 4 * n))
            return n
        finally:
            pool.append(context)

    def count(self, text: object, flags: int) -> int:
        data, size = utf8(text)
        pool = self._pool
        try:
            context = pool.pop()
        except IndexError:
            context = self._new_context()
        ctx, _, _, out, _, err = context
        try:
            n: int = _encode_small(ctx, data, size, flags, ffi.NULL, 0, out, err)
            if n < 0:
                raise self._encode_error(err)
            return n
        finally:
            pool.append(context)

    def decode(self, ids: object, flags: int) -> bytes:
        numbers = int32_array(ids)
        pool = self._pool
        try:
            context = pool.pop()
        except IndexError:
            context = self._new_context()
        ctx, _, _, _, out, err = context
        try:
            view = ffi.from_buffer("int32_t[]", numbers)
            if lib.ggtok_decode(ctx, view, len(view), flags, out, err):
                if err.status == lib.GGTOK_ERR_ARGUMENT:
                    raise _id_error(numbers, self.n_tokens())
                raise _error(err)
            return _bytes(out)
        finally:
            pool.append(context)

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
        data, size = utf8(text)
        id: int = lib.ggtok_text_to_token(self._tok, data, size)
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
            yield _str(ffi.string(sentence))
            i += 1

    # Key/values of the file.

    def _kvs(self) -> Iterator[Any]:
        kv = ffi.new("ggtok_kv *")
        err = ffi.new("ggtok_error *")
        for i in range(lib.ggtok_n_kv(self._tok)):
            if lib.ggtok_get_kv(self._tok, i, kv, err):
                raise _error(err)
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
