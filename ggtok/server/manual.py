"""``/docs``: the OpenAPI document as a page. It has no scripts and fetches nothing."""

from __future__ import annotations

import json
import shlex
from functools import cache
from html import escape
from typing import Any

from starlette.responses import Response

from ggtok.server.endpoints import Call, Endpoint
from ggtok.server.openapi import JSON_TYPE, document

Json = dict[str, Any]

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem; }
code, pre { font: 14px/1.5 ui-monospace, monospace; }
pre { overflow-x: auto; padding: .5rem; background: #8882; }
h2 code { font-size: 18px; }
h3 { font-size: 16px; margin: .5rem 0; }
nav { columns: 18rem; }
section { border-top: 1px solid #8888; }
td { padding-right: 1rem; vertical-align: top; }
"""


def manual(call: Call) -> Response:
    return Response(_html(), media_type="text/html", headers=_HEADERS)


@cache
def _html() -> str:
    made = document()
    paths: dict[str, Json] = made["paths"]
    info = made["info"]
    tags: dict[str, list[str]] = {}
    for path, operations in paths.items():
        [operation] = operations.values()
        for tag in operation["tags"]:
            tags.setdefault(tag, []).append(path)
    links = "".join(
        f"<h3>{escape(tag)}</h3>" + "<br>".join(_link(path, paths[path]) for path in listed)
        for tag, listed in tags.items()
    )
    sections = "".join(_section(path, operations) for path, operations in paths.items())
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>ggtok: endpoints</title>'
        f"<style>{_STYLE}</style><h1>ggtok {escape(info['version'])}</h1>"
        f"<p>{escape(info['description'])} Programs can read the same as "
        '<a href="openapi.json">openapi.json</a>.</p><p>In the examples, <code>$URL</code> is this '
        "server's address, such as <code>http://127.0.0.1:8484</code>. If the server has keys, add "
        '<code>-H "Authorization: Bearer KEY"</code>.</p>'
        f"<nav>{links}</nav>{sections}</html>"
    )


def _link(path: str, operations: Json) -> str:
    [operation] = operations.values()
    return f'<a href="#{operation["operationId"]}"><code>{escape(path)}</code></a>'


def _section(path: str, operations: Json) -> str:
    [(method, operation)] = operations.items()
    parts = [
        f'<section id="{operation["operationId"]}">',
        f"<h2><code>{method.upper()} {escape(path)}</code></h2>",
        f"<p>{escape(operation['summary'])} ({escape(', '.join(operation['tags']))})</p>",
    ]
    for parameter in operation.get("parameters", ()):
        parts.append(_table("In the URL", _object({parameter["name"]: parameter["schema"]})))
    command = f'curl "$URL{path}"'
    if "requestBody" in operation:
        body = operation["requestBody"]["content"][JSON_TYPE]
        parts.append(_table("Request", body["schema"]))
        command += f" -d {shlex.quote(json.dumps(body['example']))}"
    [(media_type, answer)] = operation["responses"]["200"]["content"].items()
    if media_type == JSON_TYPE:
        parts.append(_table("Answer", answer["schema"], marks=False))
    else:
        parts.append(f"<p>The answer is <code>{escape(media_type)}</code>.</p>")
    parts.append(f"<pre>{escape(command)}</pre></section>")
    return "".join(parts)


def _object(properties: Json) -> Json:
    return {"type": "object", "properties": properties}


def _table(title: str, schema: Json, marks: bool = True) -> str:
    """Returns a table of an object's fields for each kind of object that the schema allows. With
    `marks`, it says which fields are required."""
    kinds = [kind for kind in schema.get("anyOf", [schema]) if kind.get("properties")]
    tables = []
    for kind in kinds:
        required = kind.get("required", ()) if marks else ()
        rows = "".join(
            f"<tr><td><code>{escape(name)}</code><td>{escape(_kind(field))}"
            f"<td>{'required' if name in required else ''}"
            f"<td>{escape(field.get('description', ''))}"
            for name, field in kind["properties"].items()
        )
        tables.append(f"<table>{rows}</table>")
    return f"<h3>{title}</h3>" + "<p>or</p>".join(tables) if tables else ""


def _kind(schema: Json) -> str:
    """Returns a schema in words, such as "array of (integer or string)"."""
    if "anyOf" in schema:
        return " or ".join(map(_kind, schema["anyOf"]))
    if "enum" in schema:
        return " or ".join(map(repr, schema["enum"]))
    kind: str = schema.get("type", "anything")
    if "items" in schema:
        items = _kind(schema["items"])
        return f"{kind} of ({items})" if " " in items else f"{kind} of {items}"
    if "properties" in schema:
        return f"{kind} with {', '.join(schema['properties'])}"
    return kind


ENDPOINTS = (Endpoint("GET", ("/docs",), manual, light=True, public=True),)
