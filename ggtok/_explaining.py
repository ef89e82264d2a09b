"""How ids come about."""

from __future__ import annotations

from collections.abc import Iterator

from ggtok import _types as types
from ggtok._fitting import Fitting
from ggtok.native.arguments import index

TYPE_CHECKING = False  # as in _native/library.py


class Explaining(Fitting):
    """The part of :class:`ggtok.Tokenizer` that explains ids."""

    if TYPE_CHECKING:

        def encode(
            self,
            text: types.Text,
            *,
            add_special: bool = True,
            parse_special: types.ParseSpecial = False,
        ) -> list[int]: ...

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
        from ggtok.explain.explain import checked, explain

        data = checked(text)
        if isinstance(parse_special, Iterator):  # which can be read once
            parse_special = tuple(parse_special)
        want = self.encode(data, add_special=add_special, parse_special=parse_special)
        return explain(self, data, want, bool(add_special), parse_special)

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

        return merge_tree(self, index(id, "id"))
