"""A check for tests.server.schemas, which schemathesis imports."""

from __future__ import annotations

from typing import Any

import schemathesis


@schemathesis.check
def no_internal_error(ctx: Any, response: Any, case: Any) -> None:
    """Many wrong requests get llama-server's status 500, but each answer gives the reason."""
    assert "Internal Server Error" not in response.text
