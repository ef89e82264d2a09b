"""Parses the page that ``ggtok view`` writes."""

from __future__ import annotations

import json
import re
from typing import Any

_DATA = re.compile(r'<script type="application/json" id="ggtok-models">(.*?)</script>')


def data(page: str) -> Any:
    """Returns the JSON data in the page: its models and, if there is one, its server's URL."""
    (found,) = _DATA.findall(page)
    return json.loads(found)
