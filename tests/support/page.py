"""The page of ``ggtok view`` as a document."""

from __future__ import annotations

import json
import re
from typing import Any

_DATA = re.compile(r'<script type="application/json" id="ggtok-models">(.*?)</script>')


def data(page: str) -> Any:
    """The models that it lists, and its server."""
    (found,) = _DATA.findall(page)
    return json.loads(found)
