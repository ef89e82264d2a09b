"""What journals and manifests hold, checked: anyone may have written them.

Each function raises ValueError, KeyError or TypeError for what :mod:`ggtok.corpora.run` can't have
written.
"""

from __future__ import annotations

from typing import Any

from ggtok.corpora.documents import DROPPING, Place
from ggtok.corpora.summary import Counts

_GROWING = ("data", "index", "sources")


def number(value: object) -> int:
    """An integer from 0 to 2**63 - 1."""
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise ValueError("not a number of bytes or of anything else")
    return value


def check_plan(plan: Any) -> None:
    if not isinstance(plan["ggtok"], str):
        raise ValueError("not a version")
    for name in ("model", "options"):
        if not isinstance(plan[name], dict):
            raise ValueError(f"{name} is not an object")
    if not isinstance(plan["options"]["errors"], str):
        raise ValueError("not a rule")


def check_sources(sources: Any) -> None:
    for path, size, mtime, sample in sources:
        if not isinstance(path, str) or type(mtime) is not int:
            raise ValueError("not the state of a source")
        number(size)
        number(sample)


def counts(value: Any) -> Counts:
    made = Counts(**value)
    for each in made.as_dict().values():
        number(each)
    return made


def check_checkpoint(state: Any) -> None:
    source, offset, skip, stage, faulty = state["place"]
    place = Place(number(source), number(offset), number(skip), number(stage), faulty)
    if place.state > DROPPING or type(faulty) is not bool:
        raise ValueError("not a place in the sources")
    counts(state["counts"])
    for name in _GROWING:
        size, crc, before, crc_before = map(number, state[name])
        if before > size or max(crc, crc_before) >= 1 << 32:
            raise ValueError("not the state of a file")
    if state["sources"][0] != 8 * place.source:
        raise ValueError("not as many sources as were read")
    if state["opened"] is not None:
        ids, size, crc = map(number, state["opened"])
        if ids > state["counts"]["ids"] or size > state["data"][0] or crc >= 1 << 32:
            raise ValueError("not the beginning of a document")
