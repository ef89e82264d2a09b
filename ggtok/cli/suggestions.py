"""What a misspelt command, option or value may have been meant to be."""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``"; did you mean ...?"`` for the end of a message that `word` is unknown, or ""."""
    import difflib

    names = {each.lstrip("-"): each for each in known}
    bare = word.lstrip("-")
    begun = [name for name in names if bare and name.startswith(bare)]
    near = begun[:1] or difflib.get_close_matches(bare, names, n=1, cutoff=0.7)
    return f"; did you mean {names[near[0]]}?" if near else ""
