"""Conversions, and what their reports say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ggtok
from ggtok.vocabularies.contents import ConversionReport
from ggtok.vocabularies.convert.formats import converted

N = 1500


def convert(path: Path, **options: Any) -> ggtok.Vocabulary:
    options = {"pre": None, "arch": None, "lines": N} | options
    return converted(str(path), **options)


def report_of(v: ggtok.Vocabulary) -> ConversionReport:
    assert isinstance(v.report, ConversionReport)
    return v.report


def named(v: ggtok.Vocabulary) -> set[str]:
    return {difference.name for difference in report_of(v).differences}


def exact(v: ggtok.Vocabulary) -> None:
    """No line differs for any but the reasons that the report names."""
    report = report_of(v)
    assert report.compared == N
    assert report.unexplained == ()
