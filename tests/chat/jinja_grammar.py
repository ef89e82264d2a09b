# ruff: noqa: E501
"""Random templates over the whole grammar of both dialects, for comparisons with references.

Expressions are made for a type that they should have, so that most of them mean something;
now and then one of another type stands in its place, for errors belong to a dialect, too.
"""

from __future__ import annotations

import random

from tests.chat import jinja_tables

VALUES = {
    "s": "Hello World",
    "pad": "  two  words\n",
    "uni": "Grüße 日本 🎉",
    "csv": "a,b,,c",
    "empty": "",
    "quote": 'it\'s "so"\\ <&>',
    "lines": "\none\n\n  two\nthree\n",
    "num": "42",
    "n": 7,
    "zero": 0,
    "neg": -3,
    "big": 9007199254740993,
    "f": 2.5,
    "g": 1e20,
    "yes": True,
    "no": False,
    "nil": None,
    "ints": [3, 1, 2, 3],
    "strs": ["b", "A", "c", "a"],
    "mixed": [1, "a", None, 2.5, True, [1, 2], {"k": 1}],
    "nothing": [],
    "d": {"b": 1, "a": "x", "items": [1], "C": None},
    "empty_d": {},
    "rows": [
        {"name": "x", "v": 3, "on": True, "sub": {"k": 1}},
        {"name": "Y", "v": 1, "on": False, "sub": {"k": 0}},
        {"name": "z", "v": 2},
    ],
    "pairs": [["k", 1], ["l", 2]],
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi <|im_end|>"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "1", "function": {"name": "f", "arguments": {"a": [1, 2.0, "ü"], "b": {}}}}
            ],
        },
        {"role": "user", "content": [{"type": "text", "text": "part"}]},
    ],
    "long": list(range(40, 0, -1)),
    "ties": [{"k": i % 3, "i": i} for i in range(40)],
}

_NAMES = {
    "str": "s pad uni csv empty quote lines num".split(),
    "int": "n zero neg big".split(),
    "float": "f g".split(),
    "bool": "yes no".split(),
    "list": "ints strs mixed nothing rows pairs messages long ties".split(),
    "dict": "d empty_d".split(),
    "any": "nil undef loop x y".split(),
}
_STRINGS = (
    "'' 'a' 'b' 'o' ',' ' ' 'l' 'Hello' 'x y' '12' '-5' '0x1f' ' 7 ' '3.5' '1e3' 'ü' 'ß' '{}' '{}-{}' 'name' 'v' 'k' "
    "'items' 'wo' '\\n' '\\t|' \"it's\" 'a\\'b' '0' '1' 'role' '%s' '%d %s' 'on' 'abcabc' 'Ab cD-eF gh' '日' "
    "'value' 'key' '<b>' 'nan' 'inf'"
).split(" ")
_STRINGS = [x for x in _STRINGS if x.count("'") != 1] + ["'x y'", "' '", "' 7 '", "'%d %s'"]
_TESTS = (
    "boolean callable defined divisibleby eq equalto even false float ge greaterthan gt in integer "
    "iterable lessthan lower lt mapping ne none number odd sameas sequence string test true "
    "undefined upper escaped filter le nosuch"
).split()
_TESTS_WITH = set("divisibleby eq equalto ge greaterthan gt in lessthan lt ne sameas le".split())
_FILTERS = {
    "str": "upper lower trim title capitalize string safe replace default indent e join tojson "
    "format first last truncate center wordwrap striptags urlize escape list length".split(),
    "list": "list sort reverse map select selectattr reject rejectattr unique slice items batch "
    "split dictsort default groupby".split(),
    "int": "length count int abs sum default round wordcount float min max d".split(),
    "any": "first last min max default random tojson string nosuch safe pprint filesizeformat "
    "attr xmlattr forceescape list items".split(),
}
# What llama.cpp's dialect has of each.
_LLAMA_FILTERS = {
    "str": "upper lower trim title capitalize string safe replace default indent join tojson "
    "format first last length d count strip".split(),
    "list": "list sort reverse map select selectattr reject rejectattr slice items "
    "dictsort default string tojson".split(),
    "int": "length count int abs default float min max d".split(),
    "any": "first last min max default tojson string list items".split(),
}
_LLAMA_METHODS = {
    "str": (
        "upper() lower() strip() strip('HW ') lstrip() rstrip() rstrip('\\n') title() capitalize() "
        "replace('o','0') replace('','-') replace('l','L',0) split(',') split() split(' ',1) "
        "rsplit(' ',1) rsplit(',') startswith('H') endswith('d') format('x') length lstrip('H') "
        "indent(2) int() float() default('x')"
    ).split(" "),
    "list": "append(1) pop() pop(0) length first reverse() sort() list() last() string()".split(
        " "
    ),
    "dict": "items() keys() values() get('a') get('q') get('q',1) length nosuch items b a".split(
        " "
    ),
}
_METHODS = {
    "str": (
        "upper() lower() strip() strip('HW ') lstrip() rstrip() rstrip('\\n') title() capitalize() "
        "replace('o','0') replace('','-') replace('l','L',1) split(',') split() split(' ',1) "
        "rsplit(' ',1) rsplit(',') startswith('H') endswith('d') find('o') index('o') count('o') "
        "join(['a','b']) format(1,'x') length items() zfill(5) center(9,'*') isdigit() isalpha() "
        "partition(' ') splitlines() removeprefix('He') encode() swapcase() casefold() "
        "lstrip('H') ljust(12) rfind('o') isupper() istitle() expandtabs() removesuffix('d')"
    ).split(" "),
    "list": "append(1) pop() pop(0) length first index(1) count(1) sort() reverse() insert(0,1) "
    "extend([1]) copy()".split(" "),
    "dict": "items() keys() values() get('a') get('q') get('q',1) get(1) length pop('a') "
    "update({}) copy() nosuch items b a".split(" "),
}


class Grammar:
    """Templates from one seed. `python`: constructs that llama.cpp's dialect lacks, too."""

    def __init__(self, seed: int, python: bool = False) -> None:
        self.r = random.Random(seed)
        self.python = python
        own = not python and self.r.random() < 0.9
        self.filters = _LLAMA_FILTERS if own else _FILTERS
        self.methods = _LLAMA_METHODS if own else _METHODS
        self.wrong = self.r.choice([0.0, 0.0, 0.02, 0.06])
        self.macros = 0

    # ---- expressions ----

    def expression(self, want: str = "any", depth: int = 3) -> str:
        r = self.r
        if r.random() < self.wrong:
            want = r.choice(["str", "int", "float", "bool", "list", "dict", "any"])
        if want == "any" and r.random() < 0.8:
            want = r.choice(["str", "str", "int", "bool", "list", "dict", "float", "any"])
        if depth <= 0 or r.random() < 0.25:
            return self._atom(want)
        if self.python and r.random() < 0.08:
            return f"({jinja_tables.expression(r)})"
        return getattr(self, f"_{want}")(depth - 1)

    def _atom(self, want: str) -> str:
        r = self.r
        if r.random() < 0.55:
            return r.choice(_NAMES[want])
        if want == "str":
            return r.choice(_STRINGS)
        if want == "int":
            return r.choice("0 1 2 3 -1 10 7 -7 255 2147483648 9223372036854775807".split())
        if want == "float":
            return r.choice("0.5 1.0 -2.25 3.14159265 100000.0 1234567.891 0.1".split())
        if want == "bool":
            return r.choice("true false True False".split())
        if want == "list":
            items = [self._atom(r.choice(["int", "str", "any"])) for _ in range(r.randrange(4))]
            if r.random() < 0.2 and len(items) > 1:
                return "(" + ", ".join(items) + ")"
            return "[" + ", ".join(items) + "]"
        if want == "dict":
            keys = [
                r.choice(["'a'", "'b'", "1", "'q'", "true", "none"]) for _ in range(r.randrange(3))
            ]
            return "{" + ", ".join(f"{k}: {self._atom('any')}" for k in keys) + "}"
        return r.choice(["none", "undef", "loop.index", "None", "range", "namespace"])

    def _operand(self, want: str, depth: int) -> str:
        text = self.expression(want, depth)
        return f"({text})" if self.r.random() < 0.6 else text

    def _str(self, depth: int) -> str:
        r = self.r
        pick = r.randrange(12)
        if pick < 2:
            op = r.choice(["~", "+", "~"])
            return f"{self._operand('str', depth)} {op} {self._operand(r.choice(['str', 'any']), depth)}"
        if pick < 5:
            return self._filter(r.choice(["str", "str", "any"]), "str", depth)
        if pick < 7:
            return f"{self._operand('str', depth)}.{r.choice(self.methods['str'])}"
        if pick == 7:
            return f"{self._operand('str', depth)}[{self._index(depth)}]"
        if pick == 8:
            return (
                f"{self._operand('str', depth)} * {r.randrange(-1, 4)}"
                if r.random() < 0.5
                else (f"{self._operand('list', depth)} | join({r.choice(_STRINGS)})")
            )
        if pick == 9:
            return self._condition("str", depth)
        if pick == 10:
            args = r.choice(
                ["", "", "indent=2", "ensure_ascii=true", "separators=(',', ':')", "indent=0", "2"]
            )
            args = f"({args})" if args else ""
            return f"{self._operand('any', depth)} | tojson{args}"
        if self.python:
            return r.choice(
                [
                    f"'%s|%r' % ({self.expression('any', depth)}, {self.expression('any', depth)})",
                    f"'{{}} {{!r}}'.format({self.expression('any', depth)}, {self.expression('any', depth)})",
                    f"'%05d' % {self._operand('int', depth)}",
                    f"'%.2f' % {self._operand('float', depth)}",
                    f"'{{:>8}}'.format({self.expression('str', depth)})",
                ]
            )
        return (
            f"'{{}}|{{}}'.format({self.expression('any', depth)}, {self.expression('any', depth)})"
        )

    def _index(self, depth: int) -> str:
        r = self.r
        if r.random() < 0.5:
            return self.expression("int", 0)
        parts = [self._atom("int") if r.random() < 0.6 else "" for _ in range(r.choice([2, 2, 3]))]
        return ":".join(p if len(p) < 4 else "2" for p in parts)

    def _int(self, depth: int) -> str:
        r = self.r
        pick = r.randrange(8)
        if pick < 4:
            ops = ["+", "-", "*", "%", "/"] + (["//", "**"] if self.python else [])
            op = r.choice(ops)
            right = r.choice(["2", "3", "-1"]) if op == "**" else self._operand("int", depth)
            return f"{self._operand('int', depth)} {op} {right}"
        if pick == 4:
            return f"-{self._operand('int', depth)}"
        if pick == 5:
            return self._filter(r.choice(["str", "list", "int", "float"]), "int", depth)
        if pick == 6:
            return f"{self._operand(r.choice(['list', 'str', 'dict']), depth)} | length"
        return f"{self._operand('list', depth)}[{self._index(depth)}]"

    def _float(self, depth: int) -> str:
        op = self.r.choice("+-*/%")
        return f"{self._operand('float', depth)} {op} {self._operand(self.r.choice(['float', 'int']), depth)}"

    def _bool(self, depth: int) -> str:
        r = self.r
        pick = r.randrange(9)
        if pick == 0:
            return f"not {self._operand('any', depth)}"
        if pick == 1:
            return f"{self._operand('any', depth)} {r.choice(['and', 'or'])} {self._operand('any', depth)}"
        if pick < 4:
            kind = r.choice(["int", "str", "any", "list", "float", "bool", "dict"])
            op = r.choice(["==", "!=", "<", ">", "<=", ">=", "=="])
            return f"{self._operand(kind, depth)} {op} {self._operand(kind, depth)}"
        if pick == 4:
            op = r.choice(["in", "not in"])
            return f"{self._operand('any', depth)} {op} {self._operand(r.choice(['list', 'str', 'dict']), depth)}"
        if pick == 5:
            return f"'a' {r.choice(['in', 'not in'])} {self._operand(r.choice(['dict', 'str']), depth)}"
        test = r.choice(_TESTS)
        text = f"{self._operand('any', depth)} is {r.choice(['', '', 'not '])}{test}"
        if test in _TESTS_WITH:
            argument = self.expression("any", depth)
            text += (
                f"({argument})" if r.random() < 0.7 else f" {self._atom(r.choice(['int', 'str']))}"
            )
        return text

    def _list(self, depth: int) -> str:
        r = self.r
        pick = r.randrange(9)
        if pick == 0:
            return f"{self._operand('list', depth)} + {self._operand('list', depth)}"
        if pick < 4:
            return self._filter("list", "list", depth)
        if pick == 4:
            return f"range({self._atom('int')[:2]}, {r.choice(['5', '9', '-3'])}{r.choice(['', ', 2', ', -1'])})"
        if pick == 5:
            return f"{self._operand('list', depth)}[{self._index(depth)}]"
        if pick == 6:
            return f"{self._operand('dict', depth)}.{r.choice(['items()', 'keys()', 'values()'])}"
        if pick == 7:
            return f"{self._operand('str', depth)}.split({r.choice(_STRINGS)})"
        return f"{self._operand('list', depth)}.{r.choice(self.methods['list'])}"

    def _dict(self, depth: int) -> str:
        r = self.r
        pick = r.randrange(5)
        if pick == 0:
            return f"dict(a={self.expression('any', depth)}, b=1)"
        if pick == 1:
            return f"{self._operand('dict', depth)}.{r.choice(self.methods['dict'])}"
        if pick == 2:
            return f"rows[{r.choice('0 1 2 -1'.split())}]"
        if pick == 3:
            return f"{{'k': {self.expression('any', depth)}, {self._atom('str')}: {self.expression('any', depth)}}}"
        return f"{self._operand('dict', depth)} | dictsort{r.choice(['', '(by=' + chr(39) + 'value' + chr(39) + ')', '(reverse=true)'])}"

    def _any(self, depth: int) -> str:
        r = self.r
        pick = r.randrange(7)
        if pick == 0:
            return self._condition("any", depth)
        if pick == 1:
            return (
                f"{self._operand('dict', depth)}.{r.choice('a b items get nosuch k name'.split())}"
            )
        if pick == 2:
            return f"{self._operand('any', depth)}[{self.expression(r.choice(['str', 'int', 'any']), depth)}]"
        if pick == 3:
            return f"messages[{r.choice('0 1 2 3 -1'.split())}].{r.choice('role content tool_calls x'.split())}"
        if pick == 4 and self.macros:
            return f"m{r.randrange(self.macros)}({self._arguments(depth)})"
        return self._filter(r.choice(["str", "list", "dict", "int", "any"]), "any", depth)

    def _condition(self, want: str, depth: int) -> str:
        other = f" else {self.expression(want, depth)}" if self.r.random() < 0.8 else ""
        return f"({self.expression(want, depth)} if {self.expression('bool', depth)}{other})"

    def _arguments(self, depth: int) -> str:
        r = self.r
        parts = [self.expression("any", depth) for _ in range(r.randrange(3))]
        if r.random() < 0.4:
            parts.append(f"{r.choice('a b c'.split())}={self.expression('any', depth)}")
        return ", ".join(parts)

    def _filter(self, of: str, kind: str, depth: int) -> str:
        r = self.r
        name = r.choice(self.filters[kind])
        operand = self._operand(of, depth)
        args = {
            "replace": lambda: (
                f"({r.choice(_STRINGS)}, {r.choice(_STRINGS)}{r.choice(['', '', ', 1', ', 0'])})"
            ),
            "default": lambda: f"({self._atom('any')}{r.choice(['', ', true', ', boolean=true'])})",
            "d": lambda: f"({self._atom('any')})",
            "indent": lambda: r.choice(
                ["", "(2)", "(2, true)", "('> ', first=true, blank=true)", "(width=3)"]
            ),
            "join": lambda: r.choice(
                ["", "(',')", "(', ', attribute='name')", "(attribute='v')", "(d='-')"]
            ),
            "format": lambda: f"({self.expression('any', depth)})",
            "sort": lambda: r.choice(
                [
                    "",
                    "(reverse=true)",
                    "(attribute='k')",
                    "(attribute='v', reverse=true)",
                    "(case_sensitive=true)",
                    "(attribute='name')",
                    "(attribute='0')",
                ]
            ),
            "map": lambda: r.choice(
                [
                    "(attribute='name')",
                    "(attribute='v', default=0)",
                    "('upper')",
                    "(attribute=0)",
                    "(attribute='sub.k')",
                    "('default', 1)",
                ]
            ),
            "select": lambda: r.choice(
                ["('string')", "('gt', 1)", "", "('eq', 'a')", "('defined')"]
            ),
            "reject": lambda: r.choice(["('string')", "('gt', 1)", "", "('equalto', 3)"]),
            "selectattr": lambda: r.choice(
                [
                    "('on')",
                    "('v', 'gt', 1)",
                    "('name', 'equalto', 'x')",
                    "('v')",
                    "('sub', 'defined')",
                    "('v', 'in', [1, 2])",
                ]
            ),
            "rejectattr": lambda: r.choice(
                ["('on')", "('v', 'gt', 1)", "('name', 'equalto', 'x')"]
            ),
            "slice": lambda: r.choice(["(2)", "(3, 'x')"]),
            "batch": lambda: r.choice(["(2)", "(3, 'x')"]),
            "split": lambda: "(',')",
            "groupby": lambda: "('k')",
            "int": lambda: r.choice(
                ["", "", "(5)", "(base=16)", "(default=none)", "(0, 16)", "(0, 2)"]
            ),
            "float": lambda: r.choice(["", "(1.5)"]),
            "round": lambda: r.choice(["", "(1)", "(0, 'floor')", "(1, 'ceil')"]),
            "sum": lambda: r.choice(["", "(attribute='v')", "(start=1)"]),
            "min": lambda: r.choice(["", "(attribute='k')"]),
            "max": lambda: r.choice(["", "(attribute='k')"]),
            "truncate": lambda: r.choice(["", "(5)", "(8, true)", "(5, false, '..', 0)"]),
            "center": lambda: "(20)",
            "attr": lambda: "('a')",
            "unique": lambda: r.choice(["", "(attribute='k')", "(case_sensitive=true)"]),
            "trim": lambda: r.choice(["", "", "('H ')"]),
            "tojson": lambda: r.choice(["", "", "(indent=2)"]),
        }
        return f"{operand} | {name}{args.get(name, str)()}"

    # ---- statements ----

    def statement(self, depth: int) -> str:
        r = self.r
        a, b = r.choice(["", "", "-", "-"]), r.choice(["", "", "-", "-"])
        if self.python and r.random() < 0.05:
            a, b = r.choice([a, "+"]), r.choice([b, "+"])

        def tag(text: str) -> str:
            return f"{{%{a} {text} {b}%}}"

        pick = r.randrange(17) if depth > 0 else r.randrange(5)
        if pick < 3:
            return f"{{{{{a} {self.expression('any', 3)} {b}}}}}"
        if pick == 3:
            return r.choice(
                ["text ", "\n", "  ", "a\n  b\n", "x", "<|im_start|>", "\t", "{", "é\n\n"]
            )
        if pick == 4:
            return f"{{#{a} c {b}#}}"
        body = self.block
        if pick < 7:
            other = r.choice(
                [
                    "",
                    f"{tag('else')}{body(depth - 1)}",
                    f"{tag('elif ' + self.expression('bool', 2))}{body(depth - 1)}",
                ]
            )
            return (
                f"{tag('if ' + self.expression('bool', 2))}{body(depth - 1)}{other}{tag('endif')}"
            )
        if pick < 10:
            target, kind = r.choice(
                [("x", "list"), ("x", "list"), ("k, v", "pairs"), ("x", "dict"), ("a, b", "any")]
            )
            source = {"pairs": r.choice(["d.items()", "pairs", "d|dictsort", "d", "rows"])}.get(
                kind
            ) or self.expression(kind, 2)
            if r.random() < 0.2:
                source = f"{source} if {self.expression('bool', 2)}"
            jump = r.choice(
                [
                    "",
                    "",
                    "",
                    f"{tag('if loop.index > 1')}q{tag(r.choice(['break', 'continue']))}{tag('endif')}",
                ]
            )
            fields = r.choice(
                [
                    "index",
                    "index0",
                    "first",
                    "last",
                    "length",
                    "revindex",
                    "revindex0",
                    "previtem",
                    "nextitem",
                    "nosuch",
                ]
            )
            shown = r.choice(["", f"{{{{ loop.{fields} }}}}"])
            other = r.choice(["", "", f"{tag('else')}{body(depth - 1)}"])
            return f"{tag(f'for {target} in {source}')}{shown}{body(depth - 1)}{jump}{body(depth - 1)}{other}{tag('endfor')}"
        if pick == 10:
            return tag(f"set {r.choice(['x', 'y', 's', 'n'])} = {self.expression('any', 3)}")
        if pick == 11:
            return f"{tag('set x')}{body(depth - 1)}{tag('endset')}{{{{ x {r.choice(['', '|title', '|capitalize', '|length'])} }}}}"
        if pick == 12:
            return (
                f"{tag('set ns = namespace(a=1, b=[])')}{tag('set ns.a = ' + self.expression('any', 2))}"
                f"{{{{ ns.a }}}}{tag('set ns.c = ns.a')}"
            )
        if pick == 13:
            params = r.choice(["a, b=2", "a", "", "a, b, c='z'", "a=n, b=a"])
            name = f"m{self.macros}"
            text = f"{tag(f'macro {name}({params})')}{{{{ a }}}}|{body(depth - 1)}{{{{ caller() if caller is defined }}}}{tag('endmacro')}"
            self.macros += 1
            return f"{text}{{{{ {name}({self._arguments(2)}) }}}}"
        if pick == 14 and self.macros:
            params = r.choice(["", "(q)", "(a=1)"])
            return f"{tag(f'call{params} m{r.randrange(self.macros)}({self._arguments(1)})')}{body(depth - 1)}{tag('endcall')}"
        if pick == 15:
            return f"{tag('filter ' + r.choice(['upper', 'trim', 'title', 'length', 'replace(' + chr(39) + 'a' + chr(39) + ', ' + chr(39) + 'b' + chr(39) + ')']))}{body(depth - 1)}{tag('endfilter')}"
        if self.python:
            return r.choice(
                [
                    f"{tag('with x = ' + self.expression('any', 2) + ', z = 1')}{body(depth - 1)}{tag('endwith')}",
                    f"{tag('generation')}{body(depth - 1)}{tag('endgeneration')}",
                    f"{tag('raw')}{{{{ x }}}}{tag('endraw')}",
                ]
            )
        return f"{tag('generation')}{body(depth - 1)}{tag('endgeneration')}"

    def block(self, depth: int) -> str:
        return "".join(self.statement(depth) for _ in range(self.r.randrange(4)))

    def template(self) -> str:
        if self.r.random() < 0.3:
            return f"{{{{ {self.expression('any', 3)} }}}}"
        return "".join(self.statement(3) for _ in range(1 + self.r.randrange(4)))


def mutated(template: str, r: random.Random) -> str:
    """With characters lost, doubled or swapped."""
    text = list(template)
    for _ in range(r.randrange(1, 4)):
        if not text:
            break
        i = r.randrange(len(text))
        how = r.randrange(4)
        if how == 0:
            del text[i]
        elif how == 1:
            text.insert(
                i,
                r.choice([*"{}%#-()[]|.,:'\"~+* \nx1=<\\", "{{", "}}", "{%", "%}", " if ", " is "]),
            )
        elif how == 2:
            j = r.randrange(len(text))
            text[i], text[j] = text[j], text[i]
        else:
            text.insert(i, text[i])
    return "".join(text)
