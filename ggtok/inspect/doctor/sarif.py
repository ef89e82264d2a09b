"""Findings as a SARIF 2.1.0 log, which code-scanning services and editors read."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ggtok._version import __version__
from ggtok.inspect.doctor.codes import KINDS, SERIOUS, Finding, Kind

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_TEMPLATE = "tokenizer.chat_template"


def log(found: Mapping[str, Sequence[Finding] | Exception]) -> dict[str, Any]:
    """Returns a log with each model's findings, or its error if it can't be read."""
    codes = list(KINDS)
    results = [
        _result(model, each, codes.index(each.code))
        for model, findings in found.items()
        if not isinstance(findings, Exception)
        for each in findings
    ]
    failures = [
        {"level": "error", "message": _message(str(error)), "locations": [_location(model)]}
        for model, error in found.items()
        if isinstance(error, Exception)
    ]
    run = {
        "tool": {
            "driver": {
                "name": "ggtok doctor",
                "semanticVersion": __version__,
                "rules": [_rule(code, kind) for code, kind in KINDS.items()],
            }
        },
        "invocations": [
            {"executionSuccessful": not failures, "toolExecutionNotifications": failures}
        ],
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _level(severity: str) -> str:
    return "error" if severity == SERIOUS else "note"


def _rule(code: str, kind: Kind) -> dict[str, Any]:
    return {
        "id": code,
        "shortDescription": _message(kind.title),
        "fullDescription": _message(kind.means),
        "help": _message(kind.advice),
        "defaultConfiguration": {"level": _level(kind.severity)},
    }


def _result(model: str, found: Finding, rule: int) -> dict[str, Any]:
    location = _location(model)
    # A GGUF file has no lines, but the template in it does.
    names = [f"{_TEMPLATE}:{line}" for line in found.lines]
    if names:
        location["logicalLocations"] = [{"fullyQualifiedName": name} for name in names]
    properties: dict[str, Any] = {"ids": list(found.ids)}
    if found.command is not None:
        properties["command"] = found.command
    return {
        "ruleId": found.code,
        "ruleIndex": rule,
        "level": _level(found.severity),
        "message": _message(f"{found.title}: {found.detail}\n{found.means}"),
        "locations": [location],
        "properties": properties,
    }


def _message(text: str) -> dict[str, str]:
    """Converts a text to a plain text message: doubles braces (section 3.11.5 of the standard), and
    prevents texts from a file from forming a link (3.11.6)."""
    return {"text": text.replace("{", "{{").replace("}", "}}").replace("](", "] (")}


def _location(model: str) -> dict[str, Any]:
    return {"physicalLocation": {"artifactLocation": {"uri": _uri(model)}}}


def _uri(model: str) -> str:
    """Returns the URI of a model's file, relative for a relative path, or its quoted name if it
    isn't a file."""
    if not os.path.exists(model):
        return quote(model, safe=":/@", errors="surrogateescape")
    path = Path(model)
    return path.as_uri() if path.is_absolute() else quote(os.fsencode(path.as_posix()))
