# ruff: noqa: E501
"""Loops of the template engine that nobody pays for.

    python -m tests.chat.loops

A function that loops, or looks through memory, must charge for it: JINJA_EACH, jinja_charge,
jinja_charge_bytes, or a call of a function that charges what it is given. `unpaid` finds the
others; BOUNDED says why those that are left take little.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

JINJA = Path(__file__).resolve().parents[2] / "cext" / "jinja"
# While a template is compiled or a file read, work goes by the size of the source, once.
READERS = {"lexer_llama", "lexer_python", "parser", "parse_llama", "parse_python", "json_read"}
_FUNCTION = re.compile(
    r"^(?:static |JINJA_NOINLINE |_Noreturn )*[\w *]+?\b(\w+)\([^;{}]*\) \{\n(.*?)^\}", re.M | re.S
)
_LOOPS = re.compile(r"\b(for|while|memchr|memcmp|strlen|memmove|memset) ?\(")
# What charges, each time that it is called.
_CHARGES = (
    "JINJA_EACH jinja_charge jinja_charge_bytes ggtok_jinja_eval ggtok_jinja_exec ggtok_jinja_set "
    "ggtok_jinja_python_set ggtok_jinja_builder_add ggtok_jinja_builder_text ggtok_jinja_text_find "
    "ggtok_jinja_text_concat ggtok_jinja_python_equal ggtok_jinja_equal next_item next_of_source "
    "ggtok_jinja_next fetch show repr print less_items find_own visit bind"
)
_PAID = re.compile(rf"\b(?:{_CHARGES.replace(' ', '|')})\(")
# Of a literal's length, or of what a constant says.
_CONSTANT = re.compile(
    r"for \([^;]*; \w+ < (?:\d+|[A-Z_]+|sizeof [^;]*|ggtok_jinja_\w*_n_\w+);|strlen\(\"|memcmp\([^,]+, \"[^\"]*\", \d+\)"
)
# Functions, by the reason why what they do is little.
_REASONS = {
    "a name of a builtin or of the engine": (
        "builtins_llama:first_row builtins_llama:alias builtins_llama:ggtok_jinja_llama_global "
        "builtins_llama:row_for builtins_llama:ggtok_jinja_args_keyword template:compile "
        "builtins_llama:ggtok_jinja_args_named eval_python:ggtok_jinja_python_row_of "
        "eval_python:next_parameter text:ggtok_jinja_text_is value_ops:ggtok_jinja_dict_put"
    ),
    "a number's digits or bits": (
        "format_python:int_digits format_python:take_number llama_values:show_float "
        "number:with_dot number:shortest number_python:ggtok_jinja_pn_round "
        "number_python:show_size values_python:quotient values_python:power list_python:step_of"
    ),
    "a character or two": "case_python:ggtok_jinja_case_of llama_json:decode builtins_python:is_sameas",
    "an error's text, once": (
        "builtins_python:global_raise heap:show_line heap:ggtok_jinja_fail "
        "llama_globals:raise_exception"
    ),
    "memory and renderings, not what happens in them": (
        "cache:take_lock cache:find cache:keep cache:ggtok_jinja_compile_cached heap:give_chunk "
        "heap:ggtok_jinja_heap_init heap:ggtok_jinja_heap_free template:ggtok_jinja_compile "
        "render:set_json render:ggtok_jinja_env_get render:is_own render:within "
        "template:ggtok_jinja_template_reads text:ggtok_jinja_text_order"
    ),
    "operands and targets that the template writes, each of which is evaluated": (
        "eval:is_sum eval:exec_if exec_llama:set_names exec_python:value_of"
    ),
    "frames and scopes that nest, at most as deep as the parser lets them": (
        "exec_python:place_of exec_llama:run_round_guarded"
    ),
    "undone what was charged when it was done": "exec_llama:ggtok_jinja_scope_close",
    "charged by the caller, or in what is called first": (
        "llama_text:read_int llama_text:ggtok_jinja_text_float text:append text:part_at "
        "list_python:ggtok_jinja_pf_reverse llama_list:ggtok_jinja_list_reverse "
        "llama_text:ggtok_jinja_text_rsplit text_python:reverse lazy_python:generate "
        "repr_python:ggtok_jinja_python_json eval_python:ggtok_jinja_own_attribute format_python:keyed "
        "strftime:ggtok_jinja_strftime"
    ),
    "when compiling, for each name a lookup that charges": (
        "scope_python:merge scope_python:finish scope_python:bind_name template:list_variables"
    ),
}
BOUNDED = {name: reason for reason, names in _REASONS.items() for name in names.split()}


def unpaid() -> Iterator[tuple[str, str]]:
    """(file:function, the loop)"""
    for path in sorted(JINJA.glob("*.c")):
        if path.stem in READERS:
            continue
        for name, body in _FUNCTION.findall(path.read_text()):
            if _PAID.search(body):
                continue
            for line in body.splitlines():
                if _LOOPS.search(line) and not _CONSTANT.search(line):
                    yield f"{path.stem}:{name}", line.strip()


def main() -> None:
    for where, line in unpaid():
        print(f"{where:50} {BOUNDED.get(where, '???'):60} {line}")


if __name__ == "__main__":
    main()
