"""Every filter, test, method, operator and statement for templates: for each handwritten template
in templates.txt, both dialects give the same result as their references.

Claim jinja.1, Claim jinja.2.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.chat import jinja_references
from tests.chat.fuzz_jinja import differs
from tests.chat.jinja_grammar import VALUES
from tests.chat.jinja_references import ggtok_answer

TEMPLATES = Path(__file__).with_name("templates.txt").read_text(encoding="utf-8").splitlines()


def test_results_equal_transformers() -> None:
    for source in TEMPLATES:
        theirs = jinja_references.transformers(source, VALUES)
        mine = ggtok_answer(source, VALUES, "transformers")
        assert not differs(source, theirs, mine, "transformers"), (source, theirs, mine)


@pytest.mark.full
@pytest.mark.skipif(shutil.which("g++") is None, reason="the reference is compiled with g++")
def test_results_equal_llama_cpps_engine() -> None:
    reference = jinja_references.LlamaCpp()
    try:
        for source in TEMPLATES:
            theirs, mine = reference(source, VALUES), ggtok_answer(source, VALUES, "llama.cpp")
            assert not differs(source, theirs, mine, "llama.cpp"), (source, theirs, mine)
    finally:
        reference.close()
