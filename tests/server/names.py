"""The paths of POST endpoints, and names of fields in their bodies."""

from __future__ import annotations

from ggtok.server.openapi import ROWS

POSTS = [path for path, row in ROWS.items() if row.request is not None]
NAMES = sorted(
    {
        *(name for path in POSTS for name in ROWS[path].example or ()),
        *("role", "type", "text", "tools", "tool_calls", "function", "name", "arguments", "id"),
        *("system", "source", "input_schema", "output", "call_id", "summary", "model", "query"),
        *("thinking", "at", "overlap", "prefix", "unit", "side", "with_pieces", "media_type"),
        *("chat_template", "chat_template_kwargs", "continue_final_message", "special"),
    }
)
