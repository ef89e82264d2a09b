"""All rows of the table, in order."""

from __future__ import annotations

import importlib.util

from tests.hostile.agree import Agreement
from tests.hostile.kinds import KINDS
from tests.hostile.rows import Row
from tests.hostile.surroundings import SURROUNDINGS
from tests.hostile.texts import BROKEN, TEXTS

REFERENCE: list[Row] = [Agreement(), BROKEN] if importlib.util.find_spec("xllamacpp") else []
ROWS: list[Row] = [*KINDS, *SURROUNDINGS, *TEXTS, *REFERENCE]


def row_of(name: str) -> Row:
    return next(row for row in ROWS if row.name == name)
