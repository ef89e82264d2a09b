"""What a tokenizer tells about its vocabulary: tokens, special ids, flags, metadata."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntFlag
from types import MappingProxyType

from ggtok import _types as types
from ggtok.errors import InvalidValueError
from ggtok.native import Native
from ggtok.native.arguments import index, truth

TYPE_CHECKING = False  # as in _native/library.py
if TYPE_CHECKING:
    from typing import Any, Generic, NoReturn, TypeVar

    T_co = TypeVar("T_co", covariant=True)

    class _ReadOnly(Generic[T_co]):
        """A property, as type checkers see it."""

        def __get__(self, instance: object, owner: object) -> T_co: ...
        def __set__(self, instance: object, value: NoReturn) -> None: ...


_TEMPLATE_KEY = "tokenizer.chat_template"


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


def _special_id(name: str, meaning: str, in_llama: bool = True) -> _ReadOnly[int | None]:
    def get(self: Attributes) -> int | None:
        # Asked for when needed: telling which of two EOT texts llama.cpp finds first
        # takes milliseconds (ggtok_special_id).
        if name not in self._specials:
            self._specials[name] = self._native.special(name)
        return self._specials[name]

    equals = f": ``llama_vocab_{name}``" if in_llama else ""
    row: Any = property(get, doc=f"{meaning}, or None{equals}.")
    return row  # type: ignore[no-any-return]


def _flag(name: str, meaning: str, in_llama: bool = True) -> _ReadOnly[bool]:
    def get(self: Attributes) -> bool:
        return self._flags[name]

    equals = f": ``llama_vocab_get_{name}``" if in_llama else ""
    row: Any = property(get, doc=f"Whether {meaning}{equals}.")
    return row  # type: ignore[no-any-return]


class Attributes:
    """The part of :class:`ggtok.Tokenizer` that tells about the vocabulary."""

    _patterns: tuple[str, ...] | None  # load's pre_patterns
    _pickled: str | bytes | None  # what a pickle holds of the source

    def __init__(self, native: Native, path: str | None, source: types.Source | None) -> None:
        self._native = native
        self._path = path  # or the name, from which the vocabulary comes
        self._source = source
        self._n_tokens = native.n_tokens()
        self._vocab_type = native.vocab_type()
        self._specials: dict[str, int | None] = {}
        self._flags = native.flags()
        self._eog_ids = frozenset(native.eog_ids())
        self._metadata: Mapping[str, str | int | float | bool] | None = None
        self._plans: dict[object, Any] = {}  # what chat calls find out and keep (chat/api.py)
        self._last_plan: Any = None  # and that of the last one, with its options
        self._warned_of_no_template = False
        self._special_ids: frozenset[int] | None = None
        self._by_bytes: tuple[list[bytes], list[int]] | None = None  # see _pieces.py
        self._explained: Any = None  # what explaining/ keeps of the vocabulary

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
        return index(id, "id") in self._eog_ids

    def is_control(self, id: types.SupportsIndex) -> bool:
        """Whether a token is a control token: ``llama_vocab_is_control``."""
        return TokenAttr.CONTROL in self.token_attr(id)

    @property
    def eog_ids(self) -> frozenset[int]:
        """The ids that end generation."""
        return self._eog_ids

    @property
    def special_ids(self) -> frozenset[int]:
        """Ids of tokens that structure text rather than stand for some.

        Those that are CONTROL, UNKNOWN, UNUSED or end generation, and those that are CONTROL in
        the file but not to llama.cpp: it makes gpt-oss's ``<|start|>``, ``<|end|>``,
        ``<|message|>`` and others user-defined tokens, which are parsed everywhere. From chat
        messages come none of them, but for plain text, such as ``,``, that is EOS only by
        llama.cpp's default for files that name none.
        """
        if self._special_ids is None:
            self._special_ids = frozenset(self._native.special_ids())
        return self._special_ids

    @property
    def suppress_tokens(self) -> tuple[int, ...]:
        """The file's ``tokenizer.ggml.suppress_tokens``, in its order."""
        return self._native.suppress_tokens()

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
    def metadata(self) -> Mapping[str, str | int | float | bool]:
        """The file's scalar key/values, in its order, without arrays.

        Bytes that aren't UTF-8 are kept as lone surrogates (``surrogateescape``).
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
    def source(self) -> types.Source | None:
        """Where the vocabulary came from (:class:`ggtok.sources.Source`); None: from memory."""
        if self._source is None and self._path is not None:
            from ggtok.sources import Source

            self._source = Source(name=self._path, kind="file", path=self._path)
        return self._source
