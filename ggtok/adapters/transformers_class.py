"""The class of :func:`ggtok.adapters.transformers_tokenizer`. Importing it imports transformers.

The class inherits transformers' methods for special tokens, chats and padding of encoded inputs,
and overrides the methods that tokenize. Arguments have the same meaning as in
PreTrainedTokenizerFast.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from transformers import AddedToken, BatchEncoding, PreTrainedTokenizer
from transformers.tokenization_utils_base import TruncationStrategy
from transformers.utils import PaddingStrategy
from transformers.utils.chat_template_utils import encode_marked_chat

from ggtok.adapters.batch import BatchCall
from ggtok.adapters.encoding import Padding, Truncation
from ggtok.adapters.huggingface import Core
from ggtok.adapters.tokenizers import TokenizersTokenizer
from ggtok.adapters.transformers_fast import fast_tokenizer
from ggtok.errors import InvalidTypeError, InvalidValueError, VocabError
from ggtok.native import PLAIN_USER_DEFINED
from ggtok.vocabularies.export.to_pretrained import context_length, input_names, special_names


class GGUFTokenizer(PreTrainedTokenizer):  # type: ignore[misc]
    """A transformers tokenizer with the ids of a :class:`ggtok.Tokenizer`."""

    vocab_files_names: dict[str, str] = {}  # noqa: RUF012  # as in transformers

    def __init__(self, core: Core, **kwargs: Any) -> None:
        self._core = core
        self._added_tokens_decoder = {
            id: AddedToken(
                special.text,
                lstrip=special.lstrip,
                rstrip=special.rstrip,
                normalized=False,
                special=special.control,
            )
            for id, special in core.specials.items()
        }
        super().__init__(**kwargs)
        self.total_vocab_size = core.tok.n_tokens

    @classmethod
    def of(cls, core: Core) -> GGUFTokenizer:
        """Creates the tokenizer with the file's special tokens, templates and context length."""
        tok = core.tok
        texts = {name: core.known_text(id) for name, id in special_names(tok).items()}
        templates = tok.chat_templates
        return cls(
            core,
            chat_template=templates if set(templates) - {"default"} else tok.chat_template,
            model_max_length=context_length(tok.metadata),
            model_input_names=input_names(tok),
            **texts,
        )

    # ---- the vocabulary ----

    @property
    def is_fast(self) -> bool:
        """True, because encodings have offsets and words, although no Rust object computes them."""
        return True

    @property
    def backend_tokenizer(self) -> TokenizersTokenizer:
        return TokenizersTokenizer(self._core)

    @property
    def vocab_size(self) -> int:
        n: int = self._core.tok.n_tokens
        return n

    def __len__(self) -> int:
        return self.vocab_size

    def __bool__(self) -> bool:
        return True

    def get_vocab(self) -> dict[str, int]:
        return dict(self._core.vocab)

    @property
    def vocab(self) -> dict[str, int]:
        return self.get_vocab()

    def _add_tokens(self, new_tokens: Iterable[Any], special_tokens: bool = False) -> int:
        """Adds no tokens: those of a GGUF file are fixed. If `special_tokens`, registers the given
        tokens as special.

        Raises:
            VocabError: a token isn't already one of the added tokens.
        """
        for token in map(str, new_tokens):
            if token not in self._core.vocab:
                raise VocabError(
                    f"{token!r} is not in the vocabulary, and a GGUF file's tokens are fixed: use "
                    "one of its tokens (tokenizer.pad_token = tokenizer.eos_token), or train or "
                    "convert a vocabulary that has it"
                )
            if self._core.vocab[token] not in self._added_tokens_decoder:
                raise VocabError(
                    f"{token!r} is a normal token, and can't become one that is found before "
                    "the rest of a text"
                )
            if special_tokens and token not in self.all_special_tokens:
                self._extra_special_tokens.append(token)
        return 0

    def _convert_token_to_id_with_added_voc(self, token: str | None) -> int | None:
        found = None if token is None else self._core.vocab.get(token)
        return self._core.vocab.get(self.unk_token) if found is None else found

    def convert_ids_to_tokens(self, ids: Any, skip_special_tokens: bool = False) -> Any:
        if isinstance(ids, int):
            return self._core.text(ids)
        skipped = set(self.all_special_ids) if skip_special_tokens else set()
        return [self._core.text(int(id)) for id in ids if int(id) not in skipped]

    def convert_tokens_to_string(self, tokens: Iterable[str]) -> str:
        found = [(self._core.vocab.get(token), token) for token in tokens]
        if all(id is not None for id, _ in found):
            return self._core.decode([id for id, _ in found if id is not None], False)
        return "".join(t if id is None else self._core.decode([id], False) for id, t in found)

    # ---- added tokens ----

    def num_special_tokens_to_add(self, pair: bool = False) -> int:
        return self._core.n_added(pair)

    def build_inputs_with_special_tokens(
        self, token_ids_0: list[int], token_ids_1: list[int] | None = None
    ) -> list[int]:
        core = self._core
        ids = [*core.before, *token_ids_0, *core.after]
        return (
            ids if token_ids_1 is None else [*ids, *core.before_second, *token_ids_1, *core.after]
        )

    def create_token_type_ids_from_sequences(
        self, token_ids_0: list[int], token_ids_1: list[int] | None = None
    ) -> list[int]:
        first = len(self.build_inputs_with_special_tokens(token_ids_0))
        whole = len(self.build_inputs_with_special_tokens(token_ids_0, token_ids_1))
        return [0] * first + [1] * (whole - first)

    def get_special_tokens_mask(
        self,
        token_ids_0: list[int],
        token_ids_1: list[int] | None = None,
        already_has_special_tokens: bool = False,
    ) -> list[int]:
        if already_has_special_tokens:
            special = set(self.all_special_ids)
            return [int(id in special) for id in token_ids_0]
        second = None if token_ids_1 is None else [0] * len(token_ids_1)
        core = self._core
        ones = [[1] * len(ids) for ids in (core.before, core.after, core.before_second)]
        mask = [*ones[0], *([0] * len(token_ids_0)), *ones[1]]
        return mask if second is None else [*mask, *ones[2], *second, *ones[1]]

    # ---- text to ids ----

    def tokenize(
        self, text: Any, pair: Any = None, add_special_tokens: bool = False, **kwargs: Any
    ) -> list[str]:
        found = self._encode_plus(text, pair, add_special_tokens=add_special_tokens, **kwargs)
        tokens: list[str] = found.tokens()
        return tokens

    def _encode_without_added_tokens(self, text: str) -> list[int]:
        """Encodes plain text, in which even user-defined tokens aren't parsed."""
        native, data = self._core.tok._loaded, text.encode()
        if self._core.tok.vocab_type in ("WPM", "UGM"):
            return native.encode(data, False, False, False)
        return native.encode_ranges(data, PLAIN_USER_DEFINED, ())

    def _encode_plus(
        self,
        text: Any,
        text_pair: Any = None,
        add_special_tokens: bool = True,
        padding_strategy: Any = PaddingStrategy.DO_NOT_PAD,
        truncation_strategy: Any = TruncationStrategy.DO_NOT_TRUNCATE,
        max_length: int | None = None,
        stride: int = 0,
        is_split_into_words: bool = False,
        pad_to_multiple_of: int | None = None,
        padding_side: str | None = None,
        return_tensors: Any = None,
        return_token_type_ids: bool | None = None,
        return_attention_mask: bool | None = None,
        return_overflowing_tokens: bool = False,
        return_special_tokens_mask: bool = False,
        return_offsets_mapping: bool = False,
        return_length: bool = False,
        verbose: bool = True,
        split_special_tokens: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        batched, items = _items(text, text_pair, is_split_into_words)
        if split_special_tokens is None:
            split_special_tokens = self.split_special_tokens
        wanted = {
            "token_type_ids": self._wanted("token_type_ids", return_token_type_ids),
            "attention_mask": self._wanted("attention_mask", return_attention_mask),
            "special_tokens_mask": return_special_tokens_mask,
            "offset_mapping": return_offsets_mapping,
            "length": return_length,
        }
        batch = BatchCall(
            self._core,
            items,
            is_split_into_words,
            add_special_tokens,
            not split_special_tokens,
            self._truncation(truncation_strategy, max_length, stride),
            self._padding_of(padding_strategy, max_length, padding_side, pad_to_multiple_of),
            return_overflowing_tokens,
            return_tensors is not None,
            {name for name, is_wanted in wanted.items() if is_wanted},
        )
        if kwargs.get("sanitize_control_tokens"):
            if add_special_tokens and self.num_special_tokens_to_add():
                raise NotImplementedError(
                    "`sanitize_control_tokens=True` needs a template that writes special tokens"
                )
            data, found = batch.of_ids([encode_marked_chat(self, chat) for chat in items]), None
        else:
            data, found = batch.encoded()
        if len(data["input_ids"]):
            longest = max(data["input_ids"], key=len)
            self._eventual_warn_about_too_long_sequence(longest, max_length, verbose)
        if not batched and return_tensors is None and not return_overflowing_tokens:
            data = {k: v[0] if isinstance(v[0], list) else v for k, v in data.items()}
        n_sequences = 2 if items and isinstance(items[0], tuple) else 1
        return BatchEncoding(data, found, tensor_type=return_tensors, n_sequences=n_sequences)

    def _wanted(self, name: str, asked: bool | None) -> bool:
        return name in self.model_input_names if asked is None else asked

    def _truncation(self, strategy: Any, max_length: int | None, stride: int) -> Truncation | None:
        if strategy == TruncationStrategy.DO_NOT_TRUNCATE or max_length is None:
            return None
        return Truncation(max_length, stride, strategy.value, self.truncation_side)

    def _padding_of(
        self, strategy: Any, max_length: int | None, side: str | None, multiple_of: int | None
    ) -> Padding | None:
        if strategy == PaddingStrategy.DO_NOT_PAD:
            return None
        side = self.padding_side if side is None else side
        if side not in ("left", "right"):
            raise InvalidValueError(f"padding_side must be left or right, not {side!r}")
        return Padding(
            max_length if strategy == PaddingStrategy.MAX_LENGTH else None,
            side,
            self.pad_token_id,
            self.pad_token_type_id,
            self.pad_token,
            multiple_of,
        )

    # ---- ids to text ----

    def _decode(
        self,
        token_ids: Any,
        skip_special_tokens: bool = False,
        clean_up_tokenization_spaces: bool | None = None,
        **kwargs: Any,
    ) -> str:
        if isinstance(token_ids, int):
            token_ids = [token_ids]
        elif isinstance(token_ids, Mapping):
            token_ids = token_ids["input_ids"]
        text = self._core.decode(map(int, token_ids), skip_special_tokens)
        if clean_up_tokenization_spaces is None:
            clean_up_tokenization_spaces = self.clean_up_tokenization_spaces
        if clean_up_tokenization_spaces and self._core.tok.vocab_type != "BPE":
            text = self.clean_up_tokenization(text)
        return text

    # ---- files ----

    def save_pretrained(self, save_directory: Any, *args: Any, **kwargs: Any) -> Any:
        """Write a folder for ``AutoTokenizer``, with this object's settings.

        Raises:
            VocabError: tokenizers couldn't produce the same ids; the message says for which
                texts.
        """
        fast = fast_tokenizer(self._core.tok)
        for name in _SAVED:
            setattr(fast, name, getattr(self, name))
            fast.init_kwargs[name] = getattr(self, name)
        fast._special_tokens_map = dict(self._special_tokens_map)
        fast._extra_special_tokens = list(self._extra_special_tokens)
        return fast.save_pretrained(save_directory, *args, **kwargs)

    def save_vocabulary(
        self, save_directory: str, filename_prefix: str | None = None
    ) -> tuple[str, ...]:
        raise VocabError("a vocabulary alone isn't written: call save_pretrained")


_SAVED = (
    "chat_template",
    "model_max_length",
    "model_input_names",
    "padding_side",
    "truncation_side",
    "clean_up_tokenization_spaces",
    "split_special_tokens",
)


def _items(text: Any, pair: Any, pretokenized: bool) -> tuple[bool, list[Any]]:
    """Returns whether the arguments are a batch, and its items: texts, or pairs as tuples."""
    if not isinstance(text, (str, list, tuple)):
        raise InvalidTypeError(f"text must be a str or a list of str, not {type(text).__name__}")
    several = isinstance(text, (list, tuple))
    batched = several and (not pretokenized or (bool(text) and not isinstance(text[0], str)))
    if not batched:
        return False, [(text, pair)] if pair else [text]
    if pair is None:
        return True, list(text)
    if isinstance(pair, str):
        raise InvalidTypeError("text is a batch, so text_pair must be a list, not str")
    if len(pair) != len(text):
        raise InvalidValueError(f"text has {len(text)} texts, but text_pair {len(pair)}")
    return True, list(zip(text, pair, strict=True))
