"""The tables in docs/doctor.md: all findings, the findings for real
vocabularies, and how llama-server and transformers render llama.cpp's templates.

python -m tests.checks.table  # writes the tables into the pages
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import ggtok
from ggtok.inspect.doctor.codes import KINDS, SERIOUS
from ggtok.inspect.doctor.engines import EngineComparison, PromptDifference
from ggtok.inspect.doctor.file import File
from tests.chat.answers import templates
from tests.support.patch import GGUF
from tests.support.vocabularies import OTHERS, REAL, fixture, real

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = DOCS / "doctor.md"
# The page's label for each reason, by words that occur only in that reason.
LABELS = {
    "sets enable_thinking": "thinking",
    "sets date_string": "date",
    "joins the parts": "parts",
    "makes a part": "one part",
    "content that is null": "null",
    "arguments as JSON": "arguments",
    "joins messages": "joined",
    "beginning of an answer": "beginning",
    "defines tools as none": "no tools",
    "this family": "family",
    "trims contents": "family",
    "Jinja": "Jinja",
}
# How the template engines differ, for templates whose reason is "Jinja".
ENGINES = {
    "CohereForAI-c4ai-command-r-plus-tool_use": "a parameter has no `description`: jinja2 fails to "
    "add it to a text, llama.cpp adds nothing",
    "GLM-4.6": "prints a mapping: jinja2 as Python, llama.cpp as nothing",
    "GLM-4.7-Flash": "prints a mapping: jinja2 as Python, llama.cpp as nothing",
    "Kimi-K2-Instruct": "calls `append`, which transformers' sandbox forbids",
    "Kimi-K2-Thinking": "calls `append`, which transformers' sandbox forbids",
    "fireworks-ai-llama-3-firefunction-v2": "adds the undefined variable `functions` to a text: "
    "jinja2 fails, llama.cpp adds nothing",
    "google-gemma-4-31B-it": "prints none: jinja2 as `None`, llama.cpp as nothing",
    "google-gemma-4-31B-it-interleaved": "prints none: jinja2 as `None`, llama.cpp as nothing",
    "llama-cpp-deepseek-r1": "applies `tojson` to the result of `map`: jinja2 fails, since it is a "
    "generator",
    "meetkai-functionary-medium-v3.1": "adds text to a text that is `safe`: jinja2 escapes the "
    "other text, llama.cpp doesn't",
    "moonshotai-Kimi-K2": "prints a list of mappings: jinja2 as Python, llama.cpp as nothing",
    "openbmb-MiniCPM5-1B": "prints a list: jinja2 as Python, llama.cpp its items without anything "
    "between",
}
_TABLE = r"(<!-- {}: written by python -m tests\.checks\.table -->\n\n)(.*?)(\n\n|\n*\Z)"


def kinds() -> str:
    """Returns the table of all kinds of findings."""
    rows = [
        "| code | severity | what it is | what it means | what to do |",
        "|---|---|---|---|---|",
    ]
    for code, kind in KINDS.items():
        means, advice = (re.sub("[<>]", r"\\\g<0>", t) for t in (kind.means, kind.advice))
        rows.append(f"| {code} | {kind.severity} | {kind.title} | {means} | {advice} |")
    return "\n".join(rows)


@cache
def findings(name: str) -> list[ggtok.Finding]:
    """Returns the findings for a real vocabulary."""
    return ggtok.doctor(real(name))


def row(name: str) -> str:
    """Returns the table row with a real vocabulary's findings."""
    cells = []
    for f in findings(name):
        code = f"**{f.code}**" if f.severity == SERIOUS else f.code
        cells.append(f"{code} ({len(f.ids)})" if len(f.ids) > 1 else code)
    return f"| {name} | {', '.join(cells) or 'nothing'} |"


def rows() -> str:
    head = ["| vocabulary | findings (tokens) |", "|---|---|"]
    return "\n".join([*head, *map(row, (*REAL, *OTHERS))])


def label(difference: PromptDifference) -> str:
    """Returns the page's label for a difference's reason."""
    [found] = [name for words, name in LABELS.items() if words in difference.reason]
    return found


@cache
def differences(name: str) -> list[PromptDifference]:
    """Returns the differences for one of llama.cpp's templates, with a small vocabulary."""
    gguf = GGUF.read(fixture("bpe-llama3"))
    gguf.set("tokenizer.chat_template", templates()[name], "str")
    comparison = EngineComparison(File(gguf.dump()))
    found = comparison.differences()
    assert comparison.complete
    return found


def template(name: str) -> str:
    """Returns the table row for one of llama.cpp's templates."""
    reasons: dict[str, list[tuple[int, str]]] = {}
    for each in differences(name):
        lines = reasons.setdefault(label(each), [])
        if each.line is not None:
            lines.append((each.line, "!" if each.other.text is None else ""))
    cells = []
    for reason in [name for name in dict.fromkeys(LABELS.values()) if name in reasons]:
        lines = sorted(set(reasons[reason]))
        cells.append(f"{reason} {', '.join(f'{line}{mark}' for line, mark in lines)}".strip())
    return f"| {name} | {'; '.join(cells) or 'none'} |"


def engines() -> str:
    """Returns the table of differences between the engines."""
    rows = ["| template | line | what the engines do |", "|---|---|---|"]
    for name in templates():
        found = [each for each in differences(name) if label(each) == "Jinja"]
        lines = ", ".join(str(each.line) for each in found if each.line is not None)
        if found:
            rows.append(f"| {name} | {lines} | {ENGINES[name]} |")
    return "\n".join(rows)


def in_programs() -> str:
    return "\n".join(["| template | reasons |", "|---|---|", *map(template, templates())])


def table_on_page(which: str) -> str:
    """Returns a table as it is on the page."""
    found = re.search(_TABLE.format(which), PAGE.read_text("utf-8"), re.DOTALL)
    assert found, which
    return found[2]


def main() -> None:
    page = PAGE.read_text("utf-8")
    for which, table in (
        ("findings", kinds()),
        ("vocabularies", rows()),
        ("templates", in_programs()),
        ("engines", engines()),
    ):
        pattern = _TABLE.format(which)
        page = re.sub(pattern, lambda m, t=table: m[1] + t + m[3], page, flags=re.DOTALL)  # type: ignore[misc]
    PAGE.write_text(page, "utf-8")


if __name__ == "__main__":
    main()
