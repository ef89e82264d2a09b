"""A vocabulary as Hugging Face's libraries see it: token texts, added tokens, decoding."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ggtok.adapters.common import check_tokenizer
from ggtok.base.concurrency import cached_property
from ggtok.tokenizer import TokenAttr, Tokenizer


class ParsedToken(NamedTuple):
    """A token that is parsed in a text before the rest is tokenized."""

    text: str
    control: bool  # whether those libraries call it "special", and skip_special_tokens skips it
    lstrip: bool
    rstrip: bool


class Core:
    """A tokenizer, with cached values that the adapters share."""

    def __init__(self, tok: Tokenizer) -> None:
        self.tok = check_tokenizer(tok)

    def __reduce__(self) -> tuple[object, ...]:
        return Core, (self.tok,)

    # ---- added tokens ----

    @cached_property
    def before(self) -> list[int]:
        """The ids that :meth:`ggtok.Tokenizer.encode` adds before a text."""
        return self._added[0]

    @cached_property
    def after(self) -> list[int]:
        """The ids that :meth:`ggtok.Tokenizer.encode` adds after a text."""
        return self._added[1]

    @cached_property
    def before_second(self) -> list[int]:
        """The ids added before the second text of a pair, as in the exported tokenizer.json."""
        return [] if self.tok.vocab_type == "WPM" else self.before

    def n_added(self, pair: bool) -> int:
        n = len(self.before) + len(self.after)
        return n + len(self.before_second) + len(self.after) if pair else n

    @cached_property
    def _added(self) -> tuple[list[int], list[int]]:
        tok = self.tok
        ids = tok.encode("")
        first = tok.bos_id is not None and (tok.add_bos or tok.vocab_type == "WPM")
        n = 1 if ids and first else 0
        return ids[:n], ids[n:]

    # ---- tokens ----

    @cached_property
    def vocab(self) -> dict[str, int]:
        """The id of each token by its text, as stored in the file."""
        return {text: id for id, text in enumerate(self._texts)}

    @cached_property
    def _texts(self) -> list[str]:
        texts = map(self.tok.token_text, range(self.tok.n_tokens))
        return [text.decode("utf-8", "surrogateescape") for text in texts]

    def known_text(self, id: int) -> str:
        return self._texts[id]

    def text(self, id: int) -> str | None:
        return self._texts[id] if 0 <= id < len(self._texts) else None

    @cached_property
    def specials(self) -> dict[int, ParsedToken]:
        """The special tokens by id."""
        kinds = TokenAttr.CONTROL | TokenAttr.USER_DEFINED | TokenAttr.UNKNOWN
        found = {}
        for id in range(self.tok.n_tokens):
            attr = self.tok.token_attr(id)
            if attr & kinds:
                control = not attr & TokenAttr.USER_DEFINED
                strips = bool(attr & TokenAttr.LSTRIP), bool(attr & TokenAttr.RSTRIP)
                found[id] = ParsedToken(self._texts[id], control, *strips)
        return found

    @cached_property
    def control(self) -> frozenset[int]:
        return frozenset(id for id, special in self.specials.items() if special.control)

    # ---- texts ----

    def decode(self, ids: Iterable[int], skip_special: bool) -> str:
        """Decodes ids to text, without the space that the vocabulary adds before a text.

        WPM's pieces don't show where spaces are, so for WPM this is llama_detokenize. Ids outside
        the vocabulary produce no text.
        """
        n = self.tok.n_tokens
        kept = [id for id in ids if 0 <= id < n]
        if skip_special:
            kept = [id for id in kept if id not in self.control]
        if self.tok.vocab_type == "WPM":
            return self.tok.decode(kept)
        text = self.tok.decode(kept, clean_spaces=False)
        return text.removeprefix(" ") if self.tok.add_space_prefix else text

    def words(self, text: str, parse_special: bool) -> list[int]:
        """Returns the index of each token's word. A special token counts as a word."""
        found = self.tok.explain(text, add_special=False, parse_special=parse_special)
        numbers: list[int] = []
        word = 0
        for fragment in found.fragments:
            sizes = [1] if fragment.special else [len(word.tokens) for word in fragment.words]
            for size in sizes:
                numbers += [word] * size
                word += bool(size)
        return numbers
