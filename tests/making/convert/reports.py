"""Checks for conversions and their reports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ggtok
from ggtok.vocabularies.contents import ConversionReport
from ggtok.vocabularies.convert.source_formats import convert_source

N = 1500


def convert(path: Path, **options: Any) -> ggtok.Vocabulary:
    options = {"pre": None, "arch": None, "lines": N} | options
    return convert_source(str(path), **options)


def report_of(v: ggtok.Vocabulary) -> ConversionReport:
    assert isinstance(v.report, ConversionReport)
    return v.report


def named(v: ggtok.Vocabulary) -> set[str]:
    return {difference.name for difference in report_of(v).differences}


def exact(v: ggtok.Vocabulary) -> None:
    """Asserts that the report explains every line that differs."""
    report = report_of(v)
    assert report.compared == N
    assert report.unexplained == ()
