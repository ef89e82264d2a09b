"""The filters, tests and methods of jinja2 with their parameters, and calls to them with all kinds
of arguments: by position and by name, too few and too many, of right and wrong types.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

FILTERS = {
    "abs": "",
    "attr": "name",
    "batch": "linecount fill_with",
    "capitalize": "",
    "center": "width",
    "count": "",
    "d": "default_value boolean",
    "default": "default_value boolean",
    "dictsort": "case_sensitive by reverse",
    "e": "",
    "escape": "",
    "filesizeformat": "binary",
    "first": "",
    "float": "default",
    "forceescape": "",
    "format": "a b",
    "groupby": "attribute default case_sensitive",
    "indent": "width first blank",
    "int": "default base",
    "items": "",
    "join": "d attribute",
    "last": "",
    "length": "",
    "list": "",
    "lower": "",
    "map": "attribute default",
    "max": "case_sensitive attribute",
    "min": "case_sensitive attribute",
    "reject": "name other",
    "rejectattr": "attribute name other",
    "replace": "old new count",
    "reverse": "",
    "round": "precision method",
    "safe": "",
    "select": "name other",
    "selectattr": "attribute name other",
    "slice": "slices fill_with",
    "sort": "reverse case_sensitive attribute",
    "string": "",
    "sum": "attribute start",
    "title": "",
    "tojson": "ensure_ascii indent separators sort_keys",
    "trim": "chars",
    "truncate": "length killwords end leeway",
    "unique": "case_sensitive attribute",
    "upper": "",
    "urlencode": "",
    "wordcount": "",
}
TESTS = {
    **dict.fromkeys(
        "boolean callable defined escaped even false filter float integer iterable lower mapping "
        "none number odd sequence string test true undefined upper".split(),
        "",
    ),
    **dict.fromkeys("eq equalto ge greaterthan gt le lessthan lt ne".split(), "b"),
    "divisibleby": "num",
    "in": "seq",
    "sameas": "other",
}
METHODS = {
    "str": {
        **dict.fromkeys(
            "capitalize casefold isalnum isalpha isascii islower isspace istitle isupper lower "
            "swapcase title upper".split(),
            "",
        ),
        **dict.fromkeys("center ljust rjust".split(), "width fillchar"),
        **dict.fromkeys("count find index rfind rindex".split(), "sub start end"),
        **dict.fromkeys("startswith endswith".split(), "prefix start end"),
        **dict.fromkeys("strip lstrip rstrip".split(), "chars"),
        **dict.fromkeys("partition rpartition removeprefix removesuffix".split(), "sep"),
        **dict.fromkeys("split rsplit".split(), "sep maxsplit"),
        "join": "iterable",
        "replace": "old new",
        "splitlines": "keepends",
        "zfill": "width",
    },
    "list": {"copy": "", "count": "value", "index": "value start stop"},
    "dict": {"copy": "", "get": "key default", "items": "", "keys": "", "values": ""},
}

# Suitable arguments by the parameter's name.
_SUITABLE = {
    "attribute": "'name' 'v' 'k' 'sub.k' 'v,name' 0".split(),
    "name": "'name' 'v' 'gt' 'odd' 'string'".split(),
    **dict.fromkeys("width length".split(), "5 8 20 '>'".split()),
    **dict.fromkeys("linecount slices num".split(), "2 3".split()),
    **dict.fromkeys("start end stop maxsplit count leeway".split(), "0 1 2 -1 -9 9".split()),
    **dict.fromkeys("sep old sub prefix chars".split(), "' ' 'l' ',' 'H' 'lo' ('a','H')".split()),
    "new": ["'L'"],
    "fillchar": ["'*'"],
    "base": "0 2 8 16 36 1 37".split(),
    "by": ["'key'", "'value'"],
    "method": "'ceil' 'floor' 'common'".split(),
    "precision": "0 1 2 -1".split(),
    "seq": "ints strs d s".split(),
    "iterable": "strs s d ints".split(),
    "key": "'a' 'b' 'q'".split(),
    "indent": "2 0 '-'".split(),
    "separators": ["(',', ':')"],
}
# Parameters that get only suitable values, because ggtok reports wrong types earlier than Python.
_ONLY_SUITABLE = {"indent", "separators"}
_ANY = (
    "none true false 0 1 2 7 -1 1.5 '' 'a' 'gt' 'b' [] ['a'] {} undef (1,2) range(2) ints s".split()
)
_OPERANDS = (
    "s pad uni csv empty quote lines num n zero neg big f g yes no nil ints strs mixed nothing d "
    "empty_d rows pairs undef range(3) d.items() d.keys() d.values() (1,2) 'aXbXc' '0x1f' ' 7\\n' "
    "'3.5' 1e24 -0.0 'inf' (1,'b',[2]) -2.5 ' a b ' 'b' 'd' 'Title Case' 'ab12'"
).split(" ")
_OPERANDS = [x for x in _OPERANDS if x.count("'") % 2 == 0] + ["' a b '", "'Title Case'", "' 7\\n'"]


def arguments(r: random.Random, parameters: str) -> str:
    """Returns an argument list, or ""; in a few cases with an extra argument, or one with a wrong
    name."""
    names = parameters.split()
    if not names and r.random() < 0.7:
        return r.choice(["", "()"])
    values, by_name = [], False
    for name in names[: r.randrange(len(names) + 1)] if r.random() < 0.5 else names:
        suitable = name in _SUITABLE and (r.random() < 0.7 or name in _ONLY_SUITABLE)
        value = r.choice(_SUITABLE[name] if suitable else _ANY)
        by_name = by_name or r.random() < 0.2
        values.append(f"{name}={value}" if by_name else value)
    if r.random() < 0.05:
        values.append(r.choice(["nosuch=1", "**{'q': 1}"] + ([] if by_name else _ANY)))
    return f"({', '.join(values)})" if values or r.random() < 0.5 else ""


def filtered(r: random.Random) -> str:
    name = r.choice(list(FILTERS))
    after = r.choice(["", "", " | list", " | first", " | length"])
    return f"{r.choice(_OPERANDS)} | {name}{arguments(r, FILTERS[name])}{after}"


def tested(r: random.Random) -> str:
    name = r.choice(list(TESTS))
    no = r.choice(["", "", "not "])
    return f"{r.choice(_OPERANDS)} is {no}{name}{arguments(r, TESTS[name])}"


def called(r: random.Random) -> str:
    kind = r.choice(["str", "str", "str", "list", "dict"])
    name = r.choice(list(METHODS[kind]))
    operand = {
        "str": ["s", "pad", "uni", "csv", "empty", "lines", "num", "'aXbXc'", "' a  b '", "'ª'"],
        "list": ["ints", "strs", "mixed", "nothing", "(1, 2, 1)"],
        "dict": ["d", "empty_d", "{1: 2}"],
    }[kind]
    call = arguments(r, METHODS[kind][name]) or "()"
    return f"{r.choice(operand)}.{name}{call}"


def formatted(r: random.Random) -> str:
    """Returns an expression that formats a value with `%` or str.format."""

    def some(*ways: str) -> str:
        return r.choice(ways)

    value = r.choice(
        "n zero neg f g s uni yes nil ints 65 -0.0 1234567.891 -1234567 255 0.04 1e-7".split()
    )
    width, precision = some("", "", "1", "6", "12"), some("", "", ".0", ".2", ".10")
    if r.random() < 0.4:
        flags = "".join(r.choice("#0- +") for _ in range(r.randrange(3)))
        wide = some(width, width, width, "*")
        values = f"({r.choice(['9', '-9', 's'])}, {value})" if wide == "*" else f"({value},)"
        return f"'%{flags}{wide}{precision}{r.choice('diouxXeEfFgGcrsaq')}|' % {values}"
    align = some("", "", "<", ">", "^", "=")
    fill = some("", "", "*", "0", "日", " ") if align else ""
    sign = some("", "", "+", "-", " ")
    options = some("", "", "", "z") + some("", "", "#") + some("", "", "0")
    group, kind = some("", "", ",", "_"), some("", *"sdxXobceEfFgGn%rq")
    spec = f"{fill}{align}{sign}{options}{width}{group}{precision}{kind}"
    if r.random() < 0.1:
        return f"'{{:{{}}{kind}}}'.format({value}, {r.choice(['5', '12', '0'])})"
    return f"'{{{some('', '0')}{some('', '', '!s', '!r', '!a')}:{spec}}}|'.format({value})"


def expression(r: random.Random) -> str:
    return r.choice([filtered, filtered, tested, called, formatted])(r)


def suitable_argument(name: str) -> str:
    """Returns a suitable argument for a parameter with this name."""
    return _SUITABLE.get(name, ["1"])[0]


# An expression for a value of each kind.
KINDS = {
    "str": "s",
    "safe str": "(s | safe)",
    "parts": "(s ~ n)",
    "not ASCII": "uni",
    "''": "''",
    "int": "n",
    "big int": "99999999999999999999",
    "float": "f",
    "NaN": "('nan' | float)",
    "inf": "('inf' | float)",
    "bool": "yes",
    "none": "nil",
    "undefined": "undef",
    "ints": "ints",
    "strs": "strs",
    "mixed list": "mixed",
    "[]": "[]",
    "tuple": "(1, 'b')",
    "list of dicts": "rows",
    "pairs": "pairs",
    "dict": "d",
    "{}": "{}",
    "range": "range(5)",
    "NaN key": "{('nan' | float): 1}",
    "generator": "(ints | map('string'))",
    "used generator": "used",
    "view": "d.items()",
    "namespace": "namespace(a=1)",
    "function": "range",
    "macro": "m",
    "method": "s.upper",
    "cycler": "cycler(1, 2)",
    "joiner": "joiner()",
    "loop": "loop",
}
_SETUP = (
    "{% macro m(a=1) %}m{% endmacro %}{% set used = ints | map('abs') %}{{ used | list | length }}"
    "{% for x in [1] %}"
)
_LLAMA_KINDS = [
    *("str", "parts", "not ASCII", "''", "int", "float", "bool", "none", "undefined", "ints"),
    *("strs", "mixed list", "[]", "tuple", "list of dicts", "pairs", "dict", "{}", "namespace"),
    *("function", "macro", "method", "loop"),
]
LLAMA = (
    "abs append capitalize count d default dictsort e endswith first float format get indent int "
    "items join keys last length list lower lstrip map max min pop reject rejectattr replace "
    "reverse rsplit rstrip safe select selectattr slice sort split startswith string strip sum "
    "title tojson trim truncate unique upper values wordcount"
).split()
LLAMA_GLOBALS = "dict namespace range strftime_now tojson raise_exception".split()
_LLAMA_ARGUMENTS = ["", "1", "'a'", "'a', 'b'", "attribute='k'", "'k', 'eq', 1", "1, 2, 1"]


def builtins(dialect: str) -> list[tuple[str, str, list[str]]]:
    """Returns for each builtin its use on the placeholder OPERAND, its name, and argument lists."""
    if dialect == "llama.cpp":
        rows = [(f"OPERAND | {name}", name, _LLAMA_ARGUMENTS) for name in LLAMA]
        rows += [(f"OPERAND.{name}", f".{name}", _LLAMA_ARGUMENTS) for name in LLAMA]
        tests = sorted({*TESTS} - {"le"})
        rows += [(f"OPERAND is {name}", f"is {name}", ["", "1", "'a'", "ints"]) for name in tests]
        return rows + [(f"{name}(OPERAND)", f"{name}()", [""]) for name in LLAMA_GLOBALS]

    def argument_lists(parameters: str) -> list[str]:
        names = parameters.split()
        values = [
            [suitable_argument(name) for name in names],
            ["none"] * len(names),
            ["d"] * len(names),
        ]
        return [", ".join(one) for one in [[], *(values if names else [])]]

    rows = [
        (f"OPERAND | {name}", name, argument_lists(parameters))
        for name, parameters in FILTERS.items()
    ]
    rows += [
        (f"OPERAND is {name}", f"is {name}", argument_lists(parameters))
        for name, parameters in TESTS.items()
    ]
    methods = {name: parameters for kind in METHODS.values() for name, parameters in kind.items()}
    methods |= {"format": "old", "cycle": "key", "changed": "key", "next": "", "reset": ""}
    methods |= {"is_integer": "", "isdigit": "", "isdecimal": "", "isnumeric": ""}
    rows += [
        (f"OPERAND.{name}", f".{name}", argument_lists(parameters))
        for name, parameters in methods.items()
    ]
    names = "range dict namespace cycler joiner strftime_now raise_exception".split()
    return rows + [(f"{name}(OPERAND)", f"{name}()", [""]) for name in names]


def tried(dialect: str, call: str, name: str, arguments: list[str], kind: str) -> Iterator[str]:
    """Yields templates that apply a builtin to a kind of value, or pass the value as an argument,
    and then print and iterate over the result."""
    llama = dialect == "llama.cpp"
    setup = _SETUP.replace("map('abs')", "list") if llama else _SETUP
    applied = call.replace("OPERAND", KINDS[kind])
    expressions = [f"{applied}({one})" if one or name[0] == "." else applied for one in arguments]
    if "(" not in name:
        expressions += [f"{call.replace('OPERAND', x)}({KINDS[kind]})" for x in ("s", "ints", "d")]
    for one in expressions:
        shown = f"{{{{ {one} }}}}" if llama else f"{{{{ ({one}) | list }}}}"
        yield f"{setup}{{{{ {one} }}}}{{% endfor %}}"
        yield f"{setup}{shown}{{% for y in ({one}) %}}{{{{ y }}}}{{% endfor %}}{{% endfor %}}"


def kinds_of(dialect: str) -> list[str]:
    return _LLAMA_KINDS if dialect == "llama.cpp" else list(KINDS)


def every(dialect: str) -> Iterator[str]:
    for row in builtins(dialect):
        for kind in kinds_of(dialect):
            yield from tried(dialect, *row, kind)


# The rows of the table in docs/design/jinja.md.
_GROUPS = {
    "texts": ("str", "safe str", "parts", "not ASCII", "''"),
    "numbers, NaN and beyond 64 bits among them": ("int", "big int", "float", "NaN", "inf"),
    "true, none, undefined": ("bool", "none", "undefined"),
    "lists, tuples, ranges": (
        *("ints", "strs", "mixed list", "[]", "tuple", "list of dicts", "pairs", "range"),
    ),
    "dicts, NaN as a key among them": ("dict", "{}", "NaN key", "namespace"),
    "generators, used ones, views": ("generator", "used generator", "view"),
    "functions, macros, objects": (*("function", "macro", "method", "cycler", "joiner", "loop"),),
}


def table() -> list[str]:
    """Returns a row for each group and, in it, a cell for each dialect: how many pairs of a builtin
    and a kind of value render with some arguments, and the number of all pairs."""
    from tests.chat.jinja_grammar import VALUES
    from tests.chat.jinja_references import ggtok_answer

    lines: list[str] = []
    for group, kinds in _GROUPS.items():
        cells = []
        for dialect in ("llama.cpp", "transformers"):
            supported = [kind for kind in kinds if kind in kinds_of(dialect)]
            pairs = rendered = 0
            for row in builtins(dialect):
                for kind in supported:
                    ways = tried(dialect, *row, kind)
                    pairs += 1
                    rendered += any(ggtok_answer(way, VALUES, dialect)[0] == "O" for way in ways)
            cells.append(f"{rendered} of {pairs}" if pairs else "")
        lines.append(f"| {group} | {' | '.join(cells)} |")
    return lines


if __name__ == "__main__":
    print("\n".join(table()))
