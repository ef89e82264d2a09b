"""Computes the result of one call to a transformers tokenizer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain

import numpy as np

from ggtok.adapters.encoding import Encoding, Padding, Truncation, encodings
from ggtok.adapters.huggingface import Core
from ggtok.adapters.tokenizers import sources

TYPE_CHECKING = False  # avoids importing typing: see native/library.py
if TYPE_CHECKING:
    from typing import Any

# The names of values in a result, and the attributes of Encoding that hold them.
_ATTRIBUTES = {
    "token_type_ids": "type_ids",
    "attention_mask": "attention_mask",
    "special_tokens_mask": "special_tokens_mask",
    "offset_mapping": "offsets",
}


class BatchCall:
    """The texts and options of one call. Its results are lists with one value per encoding."""

    def __init__(
        self,
        core: Core,
        items: list[Any],
        pretokenized: bool,
        add_special: bool,
        parse_special: bool,
        truncation: Truncation | None,
        padding: Padding | None,
        overflowing: bool,
        tensors: bool,
        wanted: set[str],
    ) -> None:
        self._core, self._items, self._pretokenized = core, items, pretokenized
        self._add, self._parse = add_special, parse_special
        self._truncation, self._padding = truncation, padding
        self._overflowing, self._tensors, self._wanted = overflowing, tensors, wanted

    def encoded(self) -> tuple[dict[str, Any], Sequence[Encoding]]:
        """Returns the values and the encodings. If ids suffice for the values, the encodings are
        computed lazily."""
        if not self._are_simple():
            groups = self._encodings()
            return self._of_encodings(groups), [e for group in groups for e in group]
        ids = self._core.tok.encode_batch(
            self._items, add_special=self._add, parse_special=self._parse
        )
        n = len(self._items)
        return self.of_ids(ids), _Lazy(n, lambda: [e for group in self._encodings() for e in group])

    def _are_simple(self) -> bool:
        """Whether ids suffice for the values, and truncation only shortens lists of ids."""
        cut = self._truncation
        if cut is not None:
            added = self._core.n_added(False) if self._add else 0
            if cut.strategy != "longest_first" or cut.max_length - added <= max(cut.stride, 0):
                return False
        return (
            not self._pretokenized
            and not self._overflowing
            and not self._wanted & {"special_tokens_mask", "offset_mapping"}
            and all(isinstance(item, str) for item in self._items)
        )

    def _encodings(self) -> list[list[Encoding]]:
        """Returns a list of encodings for each item, with the overflowing ones if requested."""
        first_encodings = encodings(
            self._core,
            sources(
                self._core,
                self._items,
                self._pretokenized,
                self._parse,
                "offset_mapping" in self._wanted,
            ),
            add_special=self._add,
            truncation=self._truncation,
            padding=self._padding,
        )
        return [[e, *(e.overflowing if self._overflowing else ())] for e in first_encodings]

    def _of_encodings(self, groups: list[list[Encoding]]) -> dict[str, list[Any]]:
        flat = [encoding for group in groups for encoding in group]
        data: dict[str, list[Any]] = {"input_ids": [e.ids for e in flat]}
        for name, attribute in _ATTRIBUTES.items():
            if name in self._wanted:
                data[name] = [getattr(e, attribute) for e in flat]
        if "length" in self._wanted:
            data["length"] = [len(e) for e in flat]
        if self._overflowing:
            data["overflow_to_sample_mapping"] = [
                i for i, group in enumerate(groups) for _ in group
            ]
        return data

    def of_ids(self, lists: list[list[int]]) -> dict[str, Any]:
        """Returns the values for texts (not pairs) with these ids, truncated and padded."""
        if self._truncation is not None:
            lists = [self._cut(ids, self._truncation) for ids in lists]
        if self._tensors and self._padding is not None:
            ids, types, masks = _padded_arrays(lists, self._padding)
        else:
            ids, types, masks = _padded_lists(lists, self._padding)
        rows = {"token_type_ids": types, "attention_mask": masks}
        data: dict[str, Any] = {"input_ids": ids}
        data |= {name: values for name, values in rows.items() if name in self._wanted}
        if "length" in self._wanted:
            data["length"] = [len(row) for row in ids]
        return data

    def _cut(self, ids: list[int], to: Truncation) -> list[int]:
        if len(ids) <= to.max_length:
            return ids
        before = len(self._core.before) if self._add else 0
        after = len(ids) - (len(self._core.after) if self._add else 0)
        room = to.max_length - before - (len(ids) - after)
        if to.direction == "right":
            return [*ids[: before + room], *ids[after:]]
        return [*ids[:before], *ids[after - room :]]


class _Lazy(Sequence[Encoding]):
    """The encodings of a batch, computed when one of them is first read."""

    def __init__(self, n: int, make: Callable[[], list[Encoding]]) -> None:
        self._n = n
        self._make: Callable[[], list[Encoding]] | None = make
        self._computed: list[Encoding] = []

    def _all(self) -> list[Encoding]:
        if self._make is not None:
            self._computed, self._make = self._make(), None
        return self._computed

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, i: Any) -> Any:
        return self._all()[i]

    def __iter__(self) -> Iterator[Encoding]:
        return iter(self._all())

    def __reduce__(self) -> tuple[object, ...]:
        return list, (self._all(),)


def _padded_lists(lists: list[list[int]], padding: Padding | None) -> tuple[Any, Any, Any]:
    """Returns padded ids, token types (all 0) and attention masks, as a list for each text."""
    if padding is None:
        return lists, [[0] * len(ids) for ids in lists], [[1] * len(ids) for ids in lists]
    length = padding.target(lists)
    missing = [max(length - len(ids), 0) for ids in lists]

    def filled(of: Callable[[list[int]], list[int]], value: int) -> list[list[int]]:
        rows = zip(map(of, lists), missing, strict=True)
        if padding.direction == "left":
            return [[value] * n + row for row, n in rows]
        return [row + [value] * n for row, n in rows]

    return (
        filled(lambda ids: ids, padding.pad_id),
        filled(lambda ids: [0] * len(ids), padding.pad_type_id),
        filled(lambda ids: [1] * len(ids), 0),
    )


def _padded_arrays(lists: list[list[int]], padding: Padding) -> tuple[Any, Any, Any]:
    """Returns the same as _padded_lists, but as arrays, which are faster to convert to tensors."""
    lengths = np.array([len(ids) for ids in lists], np.int64)
    length = padding.target(lists)
    if lengths.max(initial=0) > length:
        return _padded_lists(lists, padding)  # rows differ in length
    column = np.arange(length)
    here = column < lengths[:, None]
    if padding.direction == "left":
        here = column >= length - lengths[:, None]
    ids = np.full(here.shape, padding.pad_id, np.int64)
    ids[here] = np.fromiter(chain.from_iterable(lists), np.int64, lengths.sum())
    return ids, np.where(here, 0, padding.pad_type_id), here.astype(np.int64)
