"""Where llama-server and transformers render a chat template differently (GGT208 to GGT212)."""

from __future__ import annotations

from typing import Any

import pytest

import ggtok
from ggtok.inspect.doctor import battery, engines, traces
from ggtok.inspect.doctor.battery import Chat
from ggtok.inspect.doctor.engines import EngineComparison, PromptDifference
from ggtok.inspect.doctor.file import File
from ggtok.native import jinja
from tests.chat.answers import templates
from tests.checks import table
from tests.checks.healthy import CHAT, base
from tests.support.full import full
from tests.support.samples import some
from tests.support.vocabularies import real

HI = [{"role": "user", "content": "A"}]


def compared(source: str) -> list[PromptDifference]:
    gguf = base()
    gguf.set("tokenizer.chat_template", source, "str")
    comparison = EngineComparison(File(gguf.dump()))
    found = comparison.differences()
    assert comparison.complete
    return found


def only(source: str) -> PromptDifference:
    [found] = compared(source)
    return found


def says(role: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


# Templates with a single difference, each with the difference's line, its tag, a part of its reason
# and its shortest conversation.
CAUSES: dict[str, tuple[str, int | None, str, str, Chat]] = {
    "a variable": (
        "{#- a comment {% of two\nlines -#}\n{% if enable_thinking is defined %}\nON\n{% endif %}\n"
        + CHAT,
        3,
        "{% if enable_thinking is defined %}",
        "llama-server sets enable_thinking to false",
        Chat((says("user", "A"),)),
    ),
    "a date": (
        "\n\n{{ date_string }}" + CHAT,
        3,
        "{{ date_string }}",
        'llama-server sets date_string to "26 Jul 2026"',
        Chat((says("user", "A"),)),
    ),
    "an engine": (
        CHAT.replace("<|im_start|>{{", "{% set x = 1 %}\n{{- [m.role, true] }}{{"),
        2,
        "{{- [m.role, true] }}",
        "llama.cpp's Jinja and jinja2 differ",
        Chat((says("user", "A"),)),
    ),
    "parts": (
        CHAT.replace("'\n' }}", "'+' }}"),
        2,
        "{{ p if p is string else p.text }}",
        "llama-server joins the parts of a message",
        Chat((says("user", [{"type": "text", "text": t} for t in ("Hi", "there")]),)),
    ),
    "a text in macros and blocks": (
        "{% macro f(x) %}{% if x %}\n{{ [x, true] }}{% endif %}{% endmacro %}\n"
        "{% set y %}{{ f(3) }}{% endset %}\n{{ y }}" + CHAT,
        2,
        "{{ [x, true] }}",
        "llama.cpp's Jinja and jinja2 differ",
        Chat((says("user", "A"),)),
    ),
    "a text that is measured": (
        "{% macro f(x) %}{{ [x, true] }}{% endmacro %}\n"
        "{% set y %}{{ f(3) }}{% endset %}\n{{ y | length + 0 }}" + CHAT,
        3,
        "{{ y | length + 0 }}",
        "llama.cpp's Jinja and jinja2 differ",
        Chat((says("user", "A"),)),
    ),
}


@pytest.mark.parametrize("name", CAUSES)
def test_causes_are_found(name: str) -> None:
    source, line, tag, reason, chat = CAUSES[name]
    found = only(source)
    assert (found.line, found.tag) == (line, tag)
    assert reason in found.reason
    assert found.chat == chat
    assert found.one.text != found.other.text


def test_errors_only_in_transformers_are_differences() -> None:
    fails = "{% if messages[1] and messages[1].content is undefined %}\n{{ {}.b.c }}{% endif %}"
    found = only(fails + CHAT)
    assert found.one.text is not None and found.other.text is None
    assert found.line == 2
    assert found.chat == Chat((*HI, says("assistant", None)))
    assert "'' for a content that is null" in found.reason
    gguf = base()
    gguf.set(
        "tokenizer.chat_template",
        "{% if not tools is defined %}{{ nope() }}{% endif %}" + CHAT,
        "str",
    )
    [refused] = ggtok.doctor(gguf.dump())
    assert refused.code == "GGT207" and "transformers renders it" in refused.detail


def test_errors_only_in_llama_server_are_differences() -> None:
    fails = "{% if messages[0].content is string and messages[1] and messages[1].content == '' %}"
    found = only(fails + "{{ raise_exception('empty') }}{% endif %}" + CHAT)
    assert found.one.text is None and found.other.text is not None
    assert "llama-server refuses it: empty" in engines._describe_difference(found)


def test_findings_name_the_line() -> None:
    gguf = base()
    gguf.set("tokenizer.chat_template", CAUSES["a variable"][0], "str")
    [found] = ggtok.doctor(gguf.dump())
    assert (found.code, found.lines, found.command) == ("GGT210", (3,), None)
    assert found.detail == (
        "line 3 ('{% if enable_thinking is defined %}'), for "
        '[{"role": "user", "content": "A"}], llama-server writes '
        "'ON\\n<|im_start|>user\\nA<|im_end|>\\n<|im_start|>assi...', transformers "
        "'<|im_start|>user\\nA<|im_end|>\\n<|im_start|>assista...' (llama-server sets "
        "enable_thinking to false, and transformers doesn't)"
    )
    assert found.as_dict()["lines"] == [3]


def test_slow_templates_stop_the_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison stops at its time limit, and reports that it is incomplete."""
    monkeypatch.setattr(engines, "_SECONDS", 0.0)
    gguf = base()
    gguf.set("tokenizer.chat_template", CAUSES["a variable"][0], "str")
    comparison = EngineComparison(File(gguf.dump()))
    assert comparison.differences() == [] and not comparison.complete
    seconds = iter([0.0, *[1.0] * 10])
    monkeypatch.setattr(engines, "_SECONDS", 5.0)
    monkeypatch.setattr(engines.time, "monotonic", lambda: next(seconds, 9.0))
    [found] = engines.check_engines(File(gguf.dump()))
    assert found.code == "GGT210"
    assert found.detail.endswith(
        "\nthe template is so slow that not every conversation was compared"
    )


def test_hostile_templates_have_no_differences() -> None:
    """Templates that contain a marker's character aren't marked. Templates that can't be rendered
    have no differences."""
    assert traces.insert_markers("\ue000{{ 1 }}", True) is None
    for source in ("{{" * 200_000, "{% '" * 100_000, "{#" * 200_000, "{% raw %}" * 1000, "{{ '\\"):
        marked = traces.insert_markers(source, True)
        assert marked is not None and traces.plain(marked.source).count("{{") >= source.count("{{")
        gguf = base()
        gguf.set("tokenizer.chat_template", source, "str")
        assert {f.code for f in ggtok.doctor(gguf.dump())} <= {"GGT207"} or "raw" in source


@pytest.mark.parametrize("dialect", ["llama.cpp", "transformers"])
def test_markers_do_not_change_renderings(dialect: Any) -> None:
    """llama.cpp's templates render the battery's conversations in the same way with and without
    markers, except that markers inside macros and values (`inner`) change a few."""
    same = changed = 0
    for name, source in templates().items():
        template = jinja.compile(source, dialect)
        for inner in (True, False):
            result = traces.insert_markers(source, inner)
            assert result is not None and len(result.lines) == len(result.tags), name
            for line, tag in zip(result.lines, result.tags, strict=True):
                assert tag[:12].split("\n")[0] in source.split("\n")[line - 1], (name, line)
            marked = jinja.compile(result.source, dialect)
            for each in battery.PLAIN.values():
                variables = {"messages": list(each.messages), "add_generation_prompt": True}
                try:
                    expected = template.render(variables).text
                except ggtok.TemplateError:
                    continue
                text = marked.render(variables).text
                assert isinstance(text, str) and isinstance(expected, str)
                same += traces.plain(text) == expected
                changed += traces.plain(text) != expected
                assert inner or traces.plain(text) == expected, name
    assert same > 500 and changed < same // 10


# ---- llama.cpp's templates ----


def test_the_table_of_templates_is_up_to_date() -> None:
    """The page's rows are up to date. Plain pytest checks only some of them."""
    rows = table.table_on_page("templates").splitlines()[2:]
    assert len(rows) == len(templates()) == 70
    for name, row in some(list(zip(templates(), rows, strict=True)), 5):
        assert table.template(name) == row


@pytest.mark.full
def test_the_table_of_engines_is_up_to_date() -> None:
    assert table.table_on_page("engines") == table.engines()
    jinja_rows = {n for n in templates() if "Jinja" in map(table.label, table.differences(n))}
    assert jinja_rows == set(table.ENGINES)
    serious = [n for n in templates() for d in table.differences(n) if engines._code(d) == "GGT209"]
    assert serious == []
    explained = table.PAGE.read_text("utf-8")
    assert all(f"| {label} | " in explained for label in table.LABELS.values())


@pytest.mark.parametrize(
    "name", ["phi-3", "qwen2", full("command-r"), full("qwen35"), full("gemma-4")]
)
def test_real_vocabularies_have_only_remarks(name: str) -> None:
    found = list(engines.check_engines(File(real(name))))
    assert found and {f.severity for f in found} == {"remark"}
