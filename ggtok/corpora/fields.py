"""The fields of a record that are its document."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from ggtok.errors import InvalidTypeError, InvalidValueError

BETWEEN = "\n\n"  # the texts of two fields


class Fields:
    """One field or several, whose texts are joined by a blank line. A name with dots that no field
    has is a path: ``meta.text`` is the field ``text`` of the object ``meta``.

    Attributes:
        names: at least one.
        text: a record's document, or an exception of any kind.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self.text: Callable[[Any], str] = self._joined
        if len(names) == 1:
            plain = "." not in names[0]
            self.text = itemgetter(names[0]) if plain else lambda record: value(record, names[0])

    @classmethod
    def checked(cls, named: object) -> Fields:
        """Of a caller's argument; None is the field ``text``."""
        if named is None:
            return cls(["text"])
        names = [named] if isinstance(named, str) else named
        if not isinstance(names, (list, tuple)) or not all(isinstance(n, str) for n in names):
            what = type(named).__name__
            raise InvalidTypeError(f"field must be str or a list of str, not {what}")
        if not names:
            raise InvalidValueError("field names no field")
        return cls(names)

    @property
    def plan(self) -> str | list[str]:
        """For journals and manifests."""
        return self.names[0] if len(self.names) == 1 else list(self.names)

    def __str__(self) -> str:
        return " and ".join(map(repr, self.names))

    def _joined(self, record: Any) -> str:
        return BETWEEN.join([value(record, name) for name in self.names])

    def fault(self, record: Any) -> str | None:
        """What is wrong with a record's fields, if anything is."""
        for name in self.names:
            try:
                found = value(record, name)
            except (LookupError, TypeError):
                return f"the field {name!r} is missing"
            if type(found) is not str:
                return f"the field {name!r} is not a string"
        return None


def value(record: Any, name: str) -> Any:
    """What a field holds; LookupError or TypeError: there is none."""
    if name in record:
        return record[name]
    for part in name.split("."):
        if not isinstance(record, Mapping):
            raise TypeError
        record = record[part]
    return record
