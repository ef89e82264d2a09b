"""A function that counts tokens, for libraries that accept one."""

from __future__ import annotations

from ggtok import _types as types
from ggtok.adapters.common import check_tokenizer
from ggtok.native.arguments import truth
from ggtok.tokenizer import Tokenizer


class Counter:
    """Counts the tokens of a text: ``count(text) -> int``. See :func:`counter`.

    A counter can be pickled if its tokenizer can, and any number of threads may use it.
    """

    def __init__(self, tok: Tokenizer, add_special: bool) -> None:
        self._tok = tok
        self._add_special = add_special
        self.__name__ = "count_tokens"  # libraries print a function's name

    def __call__(self, text: str) -> int:
        """Returns the number of tokens of `text`."""
        return self._tok.count(text, add_special=self._add_special)

    def encode(self, text: str) -> list[int]:
        """Returns the ids that :meth:`__call__` counts. No text becomes a control token."""
        return self._tok.encode(text, add_special=self._add_special)

    def decode(self, ids: types.Ids) -> str:
        """Decodes ids to text, without BOS and EOS if the counter adds them."""
        return self._tok.decode(ids, remove_special=self._add_special)

    def __repr__(self) -> str:
        return f"<ggtok counter of {self._tok!r}, add_special={self._add_special}>"

    def __reduce__(self) -> tuple[object, ...]:
        return Counter, (self._tok, self._add_special)


def counter(tok: Tokenizer, *, add_special: bool = False) -> Counter:
    """Returns a function of one parameter that counts the tokens of a text.

    LangChain's ``length_function``, semchunk's ``token_counter``, chonkie's ``tokenizer``,
    semantic-text-splitter's callback and duckdb's ``create_function`` accept it directly;
    llama-index accepts ``tokenizer=counter.encode``.

    Args:
        tok: the tokenizer. The result keeps a reference to it.
        add_special: count the tokens that :meth:`ggtok.Tokenizer.encode` adds, such as BOS. It
            is off by default, because these libraries add up the counts of parts of a text.

    Returns:
        A :class:`Counter`, which also has ``encode(text) -> list[int]`` and
        ``decode(ids) -> str``.
    """
    return Counter(check_tokenizer(tok), truth(add_special, "add_special"))
