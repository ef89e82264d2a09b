# ruff: noqa: E501
"""Finds loops in the template engine that don't charge steps.

    python -m tests.chat.loops

A function that loops or scans memory must charge steps for it: with JINJA_EACH, jinja_charge or
jinja_charge_bytes, or by calling a function that charges for its arguments. `unpaid` finds loops
that don't. _REASONS lists the functions that may have such loops, and why these are short.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

JINJA = Path(__file__).resolve().parents[2] / "cext" / "jinja"
# Files whose work is linear in the size of the source, and is done only once per source.
READERS = {"lexer", "parser", "json_reader"}
_FUNCTION = re.compile(
    r"^(?:static |JINJA_NOINLINE |_Noreturn )*[\w *]+?\b(\w+)\([^;{}]*\) \{\n(.*?)^\}", re.M | re.S
)
_LOOPS = re.compile(r"\b(for|while|memchr|memcmp|strlen|memmove|memset) ?\(")
# Functions and macros that charge steps.
_CHARGES = (
    "JINJA_EACH jinja_charge jinja_charge_bytes ggtok_jinja_eval ggtok_jinja_exec ggtok_jinja_set "
    "ggtok_jinja_python_set ggtok_jinja_builder_add ggtok_jinja_builder_text ggtok_jinja_text_find "
    "ggtok_jinja_text_concat ggtok_jinja_python_equal ggtok_jinja_equal next_item next_of_source "
    "ggtok_jinja_next ggtok_jinja_copy put_bytes fetch show repr print less_items find_own visit bind"
)
_PAID = re.compile(rf"\b(?:{_CHARGES.replace(' ', '|')})\(")
# Loops bounded by a literal's length or a constant.
_CONSTANT = re.compile(
    r"for \([^;]*; \w+ < (?:\d+|[A-Z_]+|sizeof [^;]*|ggtok_jinja_\w*_n_\w+);|strlen\(\"|memcmp\([^,]+, \"[^\"]*\", \d+\)"
)
# Functions whose loops are short, by reason.
_REASONS = {
    "a name of a builtin or of the engine": (
        "llama/builtins:first_row llama/builtins:alias llama/builtins:ggtok_jinja_llama_global "
        "llama/builtins:row_for core/template:compile core/template:ggtok_jinja_template_reads "
        "llama/builtins:ggtok_jinja_args_named python/eval:ggtok_jinja_python_row_of "
        "python/eval:next_parameter core/text:ggtok_jinja_text_is core/value_ops:ggtok_jinja_dict_put"
    ),
    "a number's digits or bits": (
        "python/format:int_digits python/format:take_number llama/values:show_float "
        "core/number:with_dot core/number:shortest core/number:power_of_ten core/number:generate python/number:ggtok_jinja_pn_round "
        "python/number:show_size python/values:quotient python/values:power python/list:step_of"
    ),
    "a character or two": "python/case:ggtok_jinja_case_of llama/json:decode python/builtins:is_sameas",
    "an error's text, once": (
        "python/builtins:global_raise core/arena:show_line core/arena:ggtok_jinja_fail "
        "llama/globals:raise_exception"
    ),
    "once for each arena, template or rendering": (
        "core/arena:release_chunk "
        "core/arena:ggtok_jinja_arena_init core/arena:ggtok_jinja_arena_free core/template:ggtok_jinja_compile_by core/template:ggtok_jinja_template_memory "
        "core/render:set_json core/render:ggtok_jinja_env_get core/render:render_output "
        "core/text:ggtok_jinja_text_order"
    ),
    "operands and targets that the template writes, each of which is evaluated": (
        "core/eval:is_sum core/eval:exec_if llama/exec:set_names python/exec:value_of"
    ),
    "frames and scopes that nest, at most as deep as the parser lets them": (
        "python/exec:place_of llama/exec:run_round_guarded"
    ),
    "undoing work that was charged": "llama/exec:ggtok_jinja_scope_close",
    "charged by the caller, or in what is called first": (
        "llama/text:read_int llama/text:ggtok_jinja_text_float core/text:append core/text:part_at "
        "python/list:ggtok_jinja_pf_reverse llama/list:ggtok_jinja_list_reverse "
        "llama/text:ggtok_jinja_text_rsplit python/text:reverse python/lazy:generate "
        "python/repr:ggtok_jinja_python_json python/eval:ggtok_jinja_own_attribute python/format:keyed "
        "core/strftime:ggtok_jinja_strftime"
    ),
    "at compile time, with a lookup that charges for each name": (
        "python/scope:merge python/scope:make_frame_plan python/scope:bind_name core/template:list_variables"
    ),
}
BOUNDED = {name: reason for reason, names in _REASONS.items() for name in names.split()}


def unpaid() -> Iterator[tuple[str, str]]:
    """Yields the functions with loops that don't charge, as "file:function", and the loops."""
    for path in sorted(JINJA.rglob("*.c")):
        if path.stem in READERS:
            continue
        for name, body in _FUNCTION.findall(path.read_text()):
            if _PAID.search(body):
                continue
            for line in body.splitlines():
                if _LOOPS.search(line) and not _CONSTANT.search(line):
                    yield (
                        f"{path.relative_to(JINJA).with_suffix('').as_posix()}:{name}",
                        line.strip(),
                    )


def main() -> None:
    for where, line in unpaid():
        print(f"{where:50} {BOUNDED.get(where, '???'):60} {line}")


if __name__ == "__main__":
    main()
