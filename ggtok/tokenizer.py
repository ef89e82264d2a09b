"""The Tokenizer and :func:`load`."""

from __future__ import annotations

import operator
import os
import warnings
from collections import namedtuple
from collections.abc import Iterable, Mapping, Sequence
from enum import IntFlag
from functools import cache
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
    from collections.abc import Callable
    from datetime import datetime
    from typing import Any, BinaryIO, Literal, SupportsIndex, TypeAlias, overload

    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import Buffer

    from ggtok.sources import Source

    Text: TypeAlias = str | Buffer
    Ids: TypeAlias = Iterable[SupportsIndex] | NDArray[np.integer[Any]]

_TEMPLATE_KEY = "tokenizer.chat_template"
_MAX_THREADS = 256  # more are not started
_CACHE_MAX = 29 << 20  # bytes, as ggtok.h says


@cache
def _numpy() -> tuple[Callable[..., Any], Any, Any]:
    """What makes arrays; imported with the first, since it takes longer than to load a file."""
    import numpy as np

    return np.frombuffer, np.dtype(np.int32), np.dtype(np.int64)


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


CacheInfo = namedtuple("CacheInfo", ("hits", "misses", "maxsize", "currsize"))  # noqa: PYI024
CacheInfo.__doc__ = """What :meth:`Tokenizer.cache_info` gives, like ``functools.lru_cache``'s.

hits: words, and parts of words, that were known; misses: those that had to be tokenized;
maxsize: bytes that a thread's cache grows to, at most; currsize: bytes that all take now.
"""


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
              goes) in any bytes-like object; ``bytes`` are kept with the tokenizer as
              far as the metadata goes, so that it can be pickled, nothing refers to other
              memory after the call;
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

    It never changes, and any number of threads may use it at the same time. The GIL is
    released for batches and for texts of 2048 bytes or more; shorter ones take less time
    than handing it over. It works after ``os.fork``, except in a signal handler that forks
    inside a batch: the child would wait for threads that it doesn't have.

    Tokenizers can be pickled, with ``pre``, ``pre_patterns`` and ``overrides``. Of one loaded
    from a path or by a model's name, the absolute path or the name is, and the copy loads
    that file again; of one loaded from ``bytes``, the metadata's bytes are. One loaded from
    other memory can't be.
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
        self._path: str | None = None  # or the name, from which `source` comes
        self._pickled: str | bytes | None = None  # what a pickle holds of it
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
            if type(source) is bytes:
                # The same object where it is mostly metadata; else weights are left behind.
                size = self._native.metadata_bytes()
                self._pickled = source if len(source) <= 2 * size else source[:size]
        if self._path is not None:
            self._pickled = self._path
        self._encode = self._native.encode
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
        try:
            return self._encode(text, add_special, parse_special)
        except Exception as e:
            return self._native.retry(self._encode, e, text, add_special, parse_special)

    def encode_array(
        self, text: Text, *, add_special: bool = True, parse_special: bool = False
    ) -> NDArray[np.int32]:
        """As :meth:`encode`; a NumPy array, int32, shape ``(n_tokens,)``.

        For large texts this is much the faster way.
        """
        encode = self._native.encode_bytes
        try:
            ids = encode(text, add_special, parse_special)
        except Exception as e:
            ids = self._native.retry(encode, e, text, add_special, parse_special)
        frombuffer, int32, _ = _numpy()
        array: NDArray[np.int32] = frombuffer(ids, int32)
        return array

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
        lists: list[list[int]] = self._batch(texts, add_special, parse_special, threads, True)
        return lists

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
        ids, offsets = self._batch(texts, add_special, parse_special, threads, False)
        frombuffer, int32, int64 = _numpy()
        return frombuffer(ids, int32), frombuffer(offsets, int64)

    def _batch(
        self,
        texts: Iterable[Text],
        add_special: bool,
        parse_special: bool,
        threads: int,
        lists: bool,
    ) -> Any:
        batch = tuple(_iterable(texts))
        args = add_special, parse_special, self._threads(threads), lists, _native.on_main_thread()
        try:
            return self._native.encode_batch(batch, *args)
        except Exception as e:
            return self._native.retry_batch(e, batch, *args)

    def _threads(self, threads: int) -> int:
        threads = _index(threads, "threads")
        if threads < 0:
            raise InvalidValueError(f"threads must not be negative, but is {threads}")
        # Words that Python cuts come one at a time, whatever the number of threads.
        return 1 if self._native.splits_in_python else min(threads or _cores(), _MAX_THREADS)

    def count(self, text: Text, *, add_special: bool = True, parse_special: bool = False) -> int:
        """``len(encode(...))``, without making the list."""
        try:
            return self._native.count(text, add_special, parse_special)
        except Exception as e:
            return self._native.retry(self._native.count, e, text, add_special, parse_special)

    # ---- what encoding remembers ----

    def cache_info(self) -> CacheInfo:
        """What is remembered of the texts encoded so far, to encode such texts faster.

        Threads that encode at the same time have a cache each; those at work right now
        are left out. So is the room for results that each keeps, 4 MB at most, and for a
        copy of its largest text, which many vocabularies need.
        """
        hits, misses, size = self._native.cache_info()
        return CacheInfo(hits, misses, _CACHE_MAX, size)

    def cache_clear(self) -> None:
        """Forget all texts, and free the memory that they took. Ids never depend on it."""
        self._native.clear()

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
        native = self._native
        if not isinstance(ids, (list, tuple)):
            return native.decode_array(_native.int32_array(ids), remove_special, unparse_special)
        try:
            return native.decode(ids, remove_special, unparse_special)
        except Exception as e:
            return native.retry_decode(e, ids, remove_special, unparse_special)

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

    # ---- chat ----

    def apply_chat_template(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        continue_final_message: bool | str = False,
        template: str | None = None,
        clock: Callable[[], datetime] | None = None,
        **kwargs: Any,
    ) -> str:
        """Chat messages as the text that the model's chat template makes of them.

        The text is that of ``transformers``' method of this name. Needs the extra ``chat``
        (jinja2). To get ids, use :meth:`encode_chat`: it keeps control tokens that a message
        holds from being parsed.

        Args:
            messages: mappings with ``"role"``, ``"content"`` and whatever else the template
                knows (``"tool_calls"``, ``"reasoning_content"``, ...), of plain data: str,
                numbers, bool, None, lists and mappings.
            tools: JSON schemas of the functions that the model may call. Python functions
                aren't taken; ``transformers.utils.get_json_schema`` makes a schema of one.
            add_generation_prompt: end with the beginning of the assistant's next message.
            continue_final_message: end inside the last message instead, for the model to go
                on with it; a str names the field to end in, True means ``"content"``. Goes
                with ``add_generation_prompt=False``.
            template: the name of one of :attr:`chat_templates`, or a template. Left out, it is
                ``"tool_use"`` if there are tools and such a template, else ``"default"``.
            clock: what tells the time to templates that ask for it; ``datetime.now`` if left
                out.
            **kwargs: more variables for the template (``documents``, ``enable_thinking``, ...).
                ``bos_token`` and its like come from the vocabulary.

        Raises:
            TemplateError: the template can't be compiled, refuses the messages, fails, takes
                more than 10 seconds or makes more than 8 million characters (or four times
                what it is given, if that is more).
            InvalidValueError, InvalidTypeError: an argument makes no sense; there is no such
                template.
            MissingExtraError: jinja2 isn't installed.
        """
        from ggtok import chat

        text = chat.render(
            self,
            messages,
            tools=tools,
            add_generation_prompt=add_generation_prompt,
            continue_final_message=continue_final_message,
            template=template,
            clock=clock,
            variables=kwargs,
        )
        return str.__str__(text)

    if TYPE_CHECKING:

        @overload
        def encode_chat(
            self,
            messages: Sequence[Mapping[str, Any]],
            *,
            tools: Sequence[Mapping[str, Any]] | None = ...,
            add_generation_prompt: bool = ...,
            continue_final_message: bool | str = ...,
            template: str | None = ...,
            clock: Callable[[], datetime] | None = ...,
            return_assistant_mask: Literal[False] = ...,
            **kwargs: Any,
        ) -> list[int]: ...
        @overload
        def encode_chat(
            self,
            messages: Sequence[Mapping[str, Any]],
            *,
            tools: Sequence[Mapping[str, Any]] | None = ...,
            add_generation_prompt: bool = ...,
            continue_final_message: bool | str = ...,
            template: str | None = ...,
            clock: Callable[[], datetime] | None = ...,
            return_assistant_mask: Literal[True],
            **kwargs: Any,
        ) -> tuple[list[int], list[bool]]: ...

    def encode_chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        continue_final_message: bool | str = False,
        template: str | None = None,
        clock: Callable[[], datetime] | None = None,
        return_assistant_mask: bool = False,
        **kwargs: Any,
    ) -> list[int] | tuple[list[int], list[bool]]:
        """The ids of chat messages, as llama.cpp's server would tokenize the template's text.

        Control tokens are parsed where the template wrote them, and nowhere else: a message,
        a tool or a variable that holds ``<|im_end|>`` gives that text's plain tokens. Without
        such texts the ids are those of :meth:`apply_chat_template`'s text, encoded with
        ``parse_special``. BOS and EOS are added as the vocabulary's flags ask for; the
        template's own is then dropped. How it is done, and what counts as the template's, is
        told in ``ggtok/chat.py``.

        Args:
            return_assistant_mask: give ``(ids, mask)``; the mask has a bool for each id: does
                a byte of it lie inside the template's ``{% generation %}`` blocks? Where such
                a block begins within raw text, the tokens there must spell that text: WPM and
                UGM tokens may not, an InvalidValueError.

        The other arguments and errors are those of :meth:`apply_chat_template`, and also

        Raises:
            InvalidValueError: a message holds a control token's text and the vocabulary (RWKV,
                PLaMo-2, PLaMo-3) makes that token of plain text.
            TextEncodeError, VocabError: as for :meth:`encode`.
        """
        from ggtok import chat

        if return_assistant_mask:
            chat.check_generation(chat.find_template(self.chat_templates, template, tools))
        text = chat.render(
            self,
            messages,
            tools=tools,
            add_generation_prompt=add_generation_prompt,
            continue_final_message=continue_final_message,
            template=template,
            clock=clock,
            variables=kwargs,
        )
        if return_assistant_mask:
            return chat.encode_with_mask(self, text)
        return chat.encode(self, text)

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
        if self._pickled is None:
            raise InvalidTypeError(
                "this tokenizer was loaded from memory that may change, so it can't be pickled; "
                "load it from a path or from bytes"
            )
        return Tokenizer, (self._pickled, self._pre, self._patterns, self._overrides)


def _has_buffer(source: object) -> bool:
    try:
        memoryview(source)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True


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


def _iterable(texts: Iterable[Text]) -> Iterable[Text]:
    if isinstance(texts, (str, bytes, bytearray, memoryview)) or not isinstance(texts, Iterable):
        raise InvalidTypeError(f"texts must be an iterable of texts, not {type(texts).__name__}")
    return texts


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
