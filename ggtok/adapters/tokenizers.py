"""A tokenizer with the interface of Hugging Face's tokenizers library, but without needing it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ggtok.adapters.encoding import EncodedText, Encoding, Padding, Truncation, encodings
from ggtok.adapters.huggingface import Core
from ggtok.errors import InvalidTypeError, InvalidValueError
from ggtok.native.arguments import index
from ggtok.tokenizer import Tokenizer

TYPE_CHECKING = False  # avoids importing typing: see native/library.py
if TYPE_CHECKING:
    from typing import Any, SupportsIndex

_STRATEGIES = "longest_first", "only_first", "only_second"
_DIRECTIONS = "left", "right"


class TokenizersTokenizer:
    """A tokenizer with the methods of ``tokenizers.Tokenizer``. See :func:`tokenizers_tokenizer`.

    Attributes:
        encode_special_tokens: whether the texts of control tokens are encoded as plain text.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._truncation: Truncation | None = None
        self._padding: Padding | None = None
        self.encode_special_tokens = False

    def __repr__(self) -> str:
        return f"<ggtok.adapters.TokenizersTokenizer of {self._core.tok!r}>"

    # ---- text to ids ----

    def encode(
        self,
        sequence: str | Sequence[str],
        pair: str | Sequence[str] | None = None,
        is_pretokenized: bool = False,
        add_special_tokens: bool = True,
    ) -> Encoding:
        """Encode a text, or a pair of texts.

        Args:
            sequence, pair: texts; lists of words if ``is_pretokenized``.
            is_pretokenized: whether the texts are lists of words, each encoded separately.
            add_special_tokens: add the tokens that the vocabulary's flags ask for.
        """
        item = sequence if pair is None else (sequence, pair)
        return self.encode_batch([item], is_pretokenized, add_special_tokens)[0]

    def encode_batch(
        self,
        input: Iterable[Any],
        is_pretokenized: bool = False,
        add_special_tokens: bool = True,
    ) -> list[Encoding]:
        """Encode texts, or pairs of texts as tuples, on several threads."""
        return encodings(
            self._core,
            sources(self._core, list(input), is_pretokenized, not self.encode_special_tokens),
            add_special=add_special_tokens,
            truncation=self._truncation,
            padding=self._padding,
        )

    encode_batch_fast = encode_batch

    # ---- ids to text ----

    def decode(self, ids: Iterable[SupportsIndex], skip_special_tokens: bool = True) -> str:
        """Decodes ids to text, by default without control tokens."""
        return self._core.decode([index(id, "an id") for id in ids], skip_special_tokens)

    def decode_batch(
        self, sequences: Iterable[Iterable[SupportsIndex]], skip_special_tokens: bool = True
    ) -> list[str]:
        return [self.decode(ids, skip_special_tokens) for ids in sequences]

    # ---- the vocabulary ----

    def get_vocab(self, with_added_tokens: bool = True) -> dict[str, int]:
        """Returns the ids of all tokens, added ones included, by text as stored in the file."""
        return dict(self._core.vocab)

    def get_vocab_size(self, with_added_tokens: bool = True) -> int:
        return self._core.tok.n_tokens

    def token_to_id(self, token: str) -> int | None:
        return self._core.vocab.get(token)

    def id_to_token(self, id: int) -> str | None:
        return self._core.text(id)

    def num_special_tokens_to_add(self, is_pair: bool) -> int:
        return self._core.n_added(is_pair)

    def to_str(self, pretty: bool = False) -> str:
        """Returns the tokenizer.json of this vocabulary.

        Raises:
            VocabError: the tokenizers library couldn't produce the same ids.
        """
        import json

        from ggtok.vocabularies.export.to_tokenizer_json import exact_tokenizer_json
        from ggtok.vocabularies.of_tokenizer import vocabulary_of

        data = exact_tokenizer_json(vocabulary_of(self._core.tok))
        if pretty:
            return json.dumps(json.loads(data), indent=2, ensure_ascii=False)
        return data.decode()

    # ---- truncation and padding ----

    @property
    def truncation(self) -> dict[str, object] | None:
        return None if self._truncation is None else self._truncation._asdict()

    @property
    def padding(self) -> dict[str, object] | None:
        if self._padding is None:
            return None
        named = self._padding._asdict()
        named["pad_to_multiple_of"] = named.pop("multiple_of")
        return named

    def enable_truncation(
        self,
        max_length: int,
        stride: int = 0,
        strategy: str = "longest_first",
        direction: str = "right",
    ) -> None:
        """Cut encodings to `max_length` tokens, added tokens included.

        Args:
            max_length: the largest number of tokens.
            stride: the number of tokens that an encoding shares with the next one in its
                ``overflowing``.
            strategy: ``"longest_first"``, ``"only_first"`` or ``"only_second"``.
            direction: the side on which to cut off tokens.
        """
        _check_choice("strategy", strategy, _STRATEGIES)
        _check_choice("direction", direction, _DIRECTIONS)
        if stride and stride >= max_length:
            raise InvalidValueError(f"stride is {stride}, but max_length only {max_length}")
        self._truncation = Truncation(max_length, stride, strategy, direction)

    def no_truncation(self) -> None:
        self._truncation = None

    def enable_padding(
        self,
        direction: str = "right",
        pad_id: int = 0,
        pad_type_id: int = 0,
        pad_token: str = "[PAD]",
        length: int | None = None,
        pad_to_multiple_of: int | None = None,
    ) -> None:
        """Pad encodings to `length` tokens, or to the longest of the batch.

        The defaults of `pad_id` and `pad_token` come from tokenizers, not from the vocabulary.
        """
        _check_choice("direction", direction, _DIRECTIONS)
        self._padding = Padding(
            length, direction, pad_id, pad_type_id, pad_token, pad_to_multiple_of
        )

    def no_padding(self) -> None:
        self._padding = None


def tokenizers_tokenizer(tok: Tokenizer) -> TokenizersTokenizer:
    """Returns a tokenizer with the methods of ``tokenizers.Tokenizer`` and ggtok's ids.

    Use it with libraries that call ``encode(text).ids``, such as litellm. It works for all
    vocabularies, and doesn't need the tokenizers package. Like tokenizers, it parses the texts
    of control tokens (``encode_special_tokens = True`` turns that off), adds BOS and the like
    by default, and removes control tokens when decoding. Offsets are in code points.

    It isn't an instance of ``tokenizers.Tokenizer``, which has no constructor for other
    implementations. If the vocabulary can be exported exactly,
    ``Tokenizer.from_str(tokenizers_tokenizer(tok).to_str())`` is one.
    """
    return TokenizersTokenizer(Core(tok))


def sources(
    core: Core,
    items: list[Any],
    pretokenized: bool,
    parse_special: bool,
    offsets: bool = False,
) -> list[tuple[EncodedText, EncodedText | None]]:
    """Returns a Source for each text, or two for each pair of texts, encoded in one batch.

    By default, offsets are computed when they are read. If `offsets`, they are computed together
    with the ids, which is faster than computing them later.
    """
    pairs = [_pair(item, pretokenized) for item in items]
    if pretokenized:
        return [
            _each(pair, lambda words: EncodedText(core, words, parse_special)) for pair in pairs
        ]
    texts = [text for pair in pairs for text in pair if text is not None]
    found: list[tuple[Any, ...]]
    if offsets:
        found = list(
            core.tok.encode_batch_with_offsets(
                texts, add_special=False, parse_special=parse_special, unit="char"
            )
        )
    else:
        lists = core.tok.encode_batch(texts, add_special=False, parse_special=parse_special)
        found = [(ids,) for ids in lists]
    rows = iter(found)
    return [
        _each(pair, lambda text: EncodedText(core, text, parse_special, *next(rows)))
        for pair in pairs
    ]


def _each(
    pair: tuple[Any, Any], make: Callable[[Any], EncodedText]
) -> tuple[EncodedText, EncodedText | None]:
    first = make(pair[0])
    return first, None if pair[1] is None else make(pair[1])


def _pair(item: Any, pretokenized: bool) -> tuple[Any, Any]:
    """Converts an item of a batch to a pair, whose second text may be None."""
    if isinstance(item, str) and not pretokenized:
        return item, None
    if isinstance(item, (list, tuple)):
        words = pretokenized and all(isinstance(word, str) for word in item)
        if words:
            return item, None
        if len(item) == 2:
            return item[0], item[1]
    wanted = "a list of words or a pair of them" if pretokenized else "a text or a pair of texts"
    raise InvalidTypeError(f"each item must be {wanted}, not {type(item).__name__}")


def _check_choice(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise InvalidValueError(f"{name} must be one of {', '.join(known)}, not {value!r}")
