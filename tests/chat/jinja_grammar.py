# ruff: noqa: E501
"""Random templates from the whole grammar of both dialects, for comparisons with references.

Most expressions have operands of the right types, so that four of five templates render. A few
operands have another type, because the dialects also differ in which operands are errors. The rows
of `_EXPRESSIONS` say how to build each type; `<type>` is an operand.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from tests.chat import jinja_tables

Tag = Callable[[str], str]

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

# Each row has the dialect (* both, p transformers', l llama.cpp's), a type, and ways to build it,
# separated by "|| ".
_EXPRESSIONS = """
* str: s || pad || uni || csv || empty || quote || lines || num || 'a' || 'b' || 'x y' || "it's" || 'a\\'b'
* str: '' || '<&>' || 'ß' || 'Ab cD-eF gh' || '日' || '12' || ' 7 ' || '0x1f' || 'abcabc' || '\\t|' || '%' || '{'
* str: <str> ~ <str> || <str> + <str> || <str> ~ <shown> || <str>[<index>:] || <str>[<slice>] || <str> * <small>
p str: <str>[0:1] || 'abc'[<index>] || "'" || '\\u00e9' || 'x' 'y' || 'nan' || 'inf'
* str: <str> | upper || <str> | lower || <str> | trim || <str> | title || <str> | capitalize || <str> | string
* str: <str> | replace(<str>, <str>) || <str> | indent || <str> | indent(<small>, <bool>) || <str> | indent('> ', first=true, blank=<bool>)
* str: <strs> | join || <strs> | join(<str>) || <ints> | join(',') || <rows> | join('-', attribute='name') || <json> | tojson
* str: <json> | tojson(indent=<small>) || <json> | tojson(ensure_ascii=true) || <json> | tojson(separators=(',', ':')) || <str> | safe
* str: <str>.upper() || <str>.lower() || <str>.strip() || <str>.strip('HW ') || <str>.rstrip('\\n') || <str>.lstrip() || <str>.title()
* str: <str>.capitalize() || <str>.replace('o', '0') || <str>.replace('l', <str>) || <str> | default('x') || <undef> | default(<str>)
* str: '{}|{}'.format(<str>, <int>) || <rows>[0].name || messages[1].content || <num> | string || <bool> | string || m(<any>)
p str: <any> | string || <any> | e || <any> | forceescape || <str> | e | upper || <str> | safe ~ <str> || <str> | truncate(<width>)
p str: <str> | truncate(<width>, <bool>, '..', 0) || <str> | center(<width>) || <num> | filesizeformat || <int> | filesizeformat(<bool>)
p str: <str> | urlencode || <str> | replace(<str>, <str>, <small>) || <json> | tojson(sort_keys=true, indent='-') || {('nan' | float): <json>} | tojson
p str: '%s|%r|%a' % (<any>, <any>, <any>) || '{} {!r} {!a}'.format(<any>, <any>, <any>) || '%05d' % <int> || '%.2f|%e|%g' % (<num>, <num>, <num>)
p str: '{:>8}|{:*^9}'.format(<str>, <str>) || '{:,}|{:x}|{:+d}'.format(<int>, <int>, <int>) || '{:.3}'.format(<float>) || '{0[a]}'.format({'a': <any>})
p str: '{a.b}{c}'.format(a={'b': <any>}, c=<any>) || '%(a)s%%' % {'a': <any>} || '%s-%s' | format(<any>, <any>) || '{:{}}'.format(<str>, 12) || '%c%c' % (65, 'b')
p str: <str>.swapcase() || <str>.casefold() || <str>.zfill(<width>) || <str>.ljust(<width>) || <str>.rjust(<width>, '*') || <str>.center(<width>, '日')
p str: <str>.removeprefix(<str>) || <str>.removesuffix(<str>) || <str>.partition(' ')[0] || <str>.rpartition('o')[2] || <str>.join(<strs>) || <str>[::-1]
p str: <strs> | first || <strs> | last || <strs> | min || <strs> | max || <str> | first || <rows> | map(attribute='name') | join || <gen> | join('|')
l str: <strs> | first || <strs> | last || <str> | float | string || <list> | string || <dict> | string || <none> | string
* int: n || zero || neg || 0 || 1 || 2 || 3 || 10 || 255 || <ints>[0] || <int> + <int> || <int> - <int> || <int> * 3 || -<int> || <int> % <pos>
* int: <str> | length || <list> | length || <strs> | length || <ints> | length || <dict> | length || <int> | abs || <num> | int || <str> | int
* int: <str> | int(5) || '0x1f' | int(base=16) || <str> | int(0, 8) || <ints> | first || <ints> | last || <ints> | min || <ints> | max || <rows>[1].v
* int: loopindex || <undef> | length || <int> | default(1)
p int: <int> // <pos> || <pos> ** <small> || <str> | wordcount || <ints> | sum || <rows> | sum(attribute='v') || <rows> | map(attribute='v') | sum
p int: <str>.find(<str>) || <str>.rfind(<str>) || <str>.count(<str>) || <ints>.count(<int>) || (<int>, 7).index(7) || <gen> | list | length
p int: <ints> | sort | first || <int> | round || <int> | round(-1) || <range> | length || <rows> | min(attribute='v') | length || big || 9007199254740992
l int: big - big || <ints>.length || <str>.length()
* float: f || g || 0.5 || 1.0 || 3.14159265 || 100000.0 || <float> + <num> || <float> * <num> || <float> - <num> || <int> / <pos> || <num> | float || -<float>
p float: <float> | round(<small>) || <float> | round(1, 'ceil') || <float> | round(0, 'floor') || <float> % <pos> || <float> // <pos> || <float> ** 2 || '3.5' | float
p float: 1e24 || -0.0 || 'nan' | float || 'inf' | float || 5e-324 || <str> | float(1.5)
l float: <float> | abs || '3.5' | float || <str> | float(1.5) || <float> % 3
* num: <int> || <int> || <float>
* bool: yes || no || true || false || <int> < <int> || <num> >= <num> || <str> in <str> || <str> not in <strs> || <int> in <ints> || <str> in <dict>
* bool: not <any> || <bool> and <bool> || <bool> or <bool> || <any> is defined || <any> is undefined || <any> is none || <any> is string || <any> is number
* bool: <any> is mapping || <any> is iterable || <any> is sequence || <any> is boolean || <any> is integer || <any> is float || <any> is callable || <any> is true
* bool: <any> is false || <int> is odd || <int> is even || <int> is divisibleby(<pos>) || <int> is divisibleby <pos> || <int> is gt(<int>) || <num> is lessthan(<num>)
* bool: <str> == <str> || <json> == <json> || <json> != <json> || <int> == <float> || <str> is lower || <str> is upper || <json> is eq(<json>) || <int> is ne <int>
* bool: <any> is not none || <int> is in(<ints>) || <str> is in <strs> || <any> is sameas(none) || 'odd' is test || <int> is ge <int> || <str> is not in(<str>)
p bool: <str> < <str> || <ints> < <ints> || <str> is le(<str>) || 'upper' is filter || <str> is escaped || <str>.startswith(<str>) || <str>.endswith(('a', <str>))
p bool: <str>.isdigit() || <str>.isalpha() || <str>.isalnum() || <str>.isspace() || <str>.isupper() || <str>.islower() || <str>.istitle() || <str>.isascii()
p bool: 1 < <int> < 9 || <float>.is_integer() || <any> in <list> || <key> in <anydict> || <any> in <gen> || <list> == <list> || <range> == <range> || <int> in <range>
l bool: <str>.startswith(<str>) || <str>.endswith(<str>) || <str> is lt(<str>)
* ints: ints || long || [] || [<int>] || [<int>, <int>, 2] || (<int>, 3) || <ints> + <ints> || <ints>[<slice>] || <ints>[1:] || <ints> | sort
* ints: <ints> | sort(reverse=<bool>) || <rows> | map(attribute='v') | list || range(<small>) | list || range(5, <small>, -1) | list || <ints> | list
p ints: <ints> | reverse | list || <ints> | unique | list || <ints> | map('abs') | list || <ints> | select('gt', <int>) | list || <ints> | reject('odd') | list
p ints: <ints> * <small> || <ints> | list + <ints> | list || <strs> | map('length') | list || <gen> | map('string') | map('length') | list || ((<ints> + [1]) | batch(<pos>) | list)[0]
l ints: <ints> | reverse || <ints> | select('gt', 1) || <ints> | reject('odd', 1) || (<ints> | list).append(1)
* strs: strs || ['a', <str>] || (<str>, 'z') || <str>.split(<sep>) || <str>.split(' ', <small>) || <str>.rsplit(' ', 1) || <strs> | sort || <strs>[<slice>]
* strs: <rows> | map(attribute='name') | list || <strs> + <strs> || <strs> | list || <dict>.keys() | list
p strs: <str>.split() || <str>.splitlines() || <str>.splitlines(true) || <str> | list || <strs> | map('upper') | list || <strs> | unique(true) | list || <list> | map('string') | list
p strs: <strs> | sort(case_sensitive=true, reverse=<bool>) || <strs> | select('in', <str>) | list || <dict> | list || <strs> | map('replace', 'a', <str>) | list || <str>.partition(<sep>) | list
l strs: <strs> | reverse || <strs> | select('eq', 'a') || <dict>.keys() || <str>.split()
* rows: rows || [{'name': <str>, 'v': <int>}] || <rows>[<slice>] || <rows> | selectattr('v', 'gt', 1) | list || <rows> | sort(attribute='v') || <rows> + rows
p rows: <rows> | rejectattr('on') | list || <rows> | selectattr('name', 'in', <strs>) | list || <rows> | sort(attribute='v,name', reverse=true) || <rows> | unique(attribute='v') | list
l rows: <rows> | rejectattr('v', 'eq', 1) || <rows> | sort(attribute='name', reverse=true) || <rows> | list
* list: mixed || nothing || pairs || messages || ties || [<any>, <any>] || (<any>, <any>, <any>) || <list> + <list> || <list>[<slice>] || <list> | list || <dict>.items() | list
* list: <ints> || <strs> || <rows> || <dict>.values() | list || [<list>] || [[1, <any>], [2, <any>]]
p list: <dict> | dictsort || <dict> | dictsort(by='key', reverse=<bool>) || <ints> | batch(<pos>) | list || <strs> | batch(<pos>, <any>) | list || <ints> | slice(<pos>) | list
p list: <ints> | slice(<pos>, <any>) | list || <rows> | groupby('v') || <rows> | groupby('name', case_sensitive=true) || <dict> | items | list || <list> | select | list || <gen> | list
p list: <list> | reject('none') | list || <list> | map('default', 1, true) | list || <rows> | map(attribute='sub.k', default=<any>) | list || <rows> | map(attribute='nosuch') | list || <list> | reverse | list
p list: <list> * 2 || [<gen>] || <list>.copy() || <pairs> | map('first') | list || <pairs> | map(attribute=1) | list || (1, <gen>) || <ints> | map('round', 1) | list
l list: <list> | reverse || <list> | select('on') || <list> | reject('a') || <dict>.items() || <dict>.values() || <list> | map(attribute='k') || <rows> | selectattr('on')
* pairs: pairs || [['a', <any>], [<str>, 1]] || <dict>.items() | list || [('b', <any>)]
p pairs: <dict> | dictsort || <dict> | items | list || [<strs>[:2] + ['p', 'q']] | map('batch', 2) | map('first') | list
p gen: <list> | map('string') || <ints> | select('odd') || <list> | reject || <strs> | unique || <ints> | batch(2) || <ints> | slice(2) || <dict> | items || <list> | reverse
p gen: <gen> | map('string') || <gen> | select || <rows> | map(attribute='name') || <rows> | selectattr('on') || <dict>.keys() || <dict>.values() || <dict>.items()
p range: range(<small>) || range(2, 9, <pos>) || range(9, -3, -2) || <range>[1:] || <range>[::-1] || range(10)[<slice>]
* dict: d || empty_d || {'k': <any>, <str>: <any>} || {} || <rows>[0] || dict(a=<any>, b=1) || {'items': <any>, 'keys': 1}
p dict: <dict>.copy() || dict(<pairs>) || dict(<dict>, z=<any>) || dict(<strs> | map('list') | select('false') | list)
l dict: <dict> | dictsort || <dict> | dictsort(by='value') || <dict> | dictsort(reverse=true) || dict(<pairs>)
p anydict: <dict> || {<key>: <any>} || {<key>: <any>, <key>: 1} || {('nan' | float): <any>} || {1: <any>, true: 2, 1.0: 3}
p key: <str> || <int> || <float> || <bool> || none || (1, <str>) || <range> || n
* json: <str> || <num> || <bool> || none || <ints> || <strs> || <list> || <dict> || <rows>
* shown: <str> || <int> || <float> || <bool> || <strs> || <dict>
* none: nil || none || None
* undef: undef || undef || d.nosuch
p undef: [] | first || [] | max || d['q'] || rows[0]['x'] || loop_nosuch
* any: <str> || <int> || <float> || <bool> || <list> || <dict> || <none> || <undef> || <json> || <rows>[0] || d.get('a') || <dict>.get('k', 1) || messages[2].tool_calls
* any: (<any> if <bool> else <any>) || <mixed> || <str> if <bool> || <str> | default(<any>, true) || <list> | default(<any>) || <undef> | default(<any>)
p any: <gen> || <range> || <anydict> || <list> | first || <list> | last || d[<key>] || rows[0][<str>] || (<str> | attr('nosuch')) is defined
p any: <anydict>.get(<key>) || <anydict>[<key>] || <any> | d(<any>) || <list> | map('string') | first || cycler(<any>, 1).next() || namespace(a=<any>).a || joiner() || <rows> | groupby('v') | first
p any: (<rows> | groupby('v') | first).list || (<rows> | groupby('v') | first).grouper || <range>[1] || m is callable || dict is callable
p any: self || self.x || (<dict> | attr('items'))() | list
l any: <list> | first || <list> | last || d['b'] || <rows>[0]['name'] || <list> | min || <rows>[0].nosuch
* mixed: mixed[0] || mixed[1] || mixed[3] || mixed[-1]
* small: 0 || 1 || 2 || 3 || 4
* pos: 1 || 2 || 3 || 7
* index: 0 || 1 || -1 || 2
* width: 3 || 5 || 9 || 20
* sep: ' ' || ',' || 'l' || 'o'
* slice: 1: || :2 || :-1 || 1:3 || ::2 || ::-1 || -2: || 5:1:-2
"""


def _read(python: bool) -> dict[str, list[tuple[str, ...]]]:
    """Returns for each type the ways to build it, each as a list of text, type, text, ..."""
    by_type: dict[str, list[tuple[str, ...]]] = {}
    for line in _EXPRESSIONS.strip().splitlines():
        head, _, ways = line.partition(": ")
        dialect, kind = head.split()
        if dialect == ("l" if python else "p"):
            continue
        for way in ways.split(" || "):
            parts = tuple(re.split(r"<(\w+)>", way.strip().replace("\\\\", "\\")))
            by_type.setdefault(kind, []).append(parts)
    if not python:  # drop ways that need a type of transformers' dialect
        by_type = {
            k: [w for w in ways if all(t in by_type for t in w[1::2])]
            for k, ways in by_type.items()
        }
    return by_type


_WAYS = {python: _read(python) for python in (False, True)}
_ATOMS = {p: {k: [w for w in ws if len(w) == 1] for k, ws in _WAYS[p].items()} for p in _WAYS}
_SIMPLE = re.compile(r"\w+|'[^']*'|\"[^\"]*\"|\[.*\]|-?[\d.]+")
_OTHER = ["str", "int", "float", "bool", "list", "dict", "none", "undef"]
_ITEM = {"ints": "int", "strs": "str", "rows": "dict", "list": "any", "gen": "any", "range": "int"}


class Grammar:
    """Generates templates from a seed. `python` selects transformers' dialect instead of
    llama.cpp's."""

    def __init__(self, seed: int, python: bool = False) -> None:
        self.r = random.Random(seed)
        self.python = python
        self.ways, self.atoms = _WAYS[python], _ATOMS[python]
        self.wrong = self.r.choice([0.0, 0.0, 0.02, 0.06])
        self.scope: list[tuple[str, str]] = []  # names that are set, and their types
        self.macros: list[tuple[str, bool]] = []  # names of macros, and whether they use caller()
        self.loops = 0

    # ---- expressions ----

    def expression(self, want: str = "any", depth: int = 3) -> str:
        r = self.r
        if r.random() < self.wrong:
            want = r.choice(_OTHER)
        names = [name for name, kind in self.scope if kind == want]
        if names and r.random() < 0.25:
            return r.choice(names)
        if self.python and depth > 0 and want in ("any", "str") and r.random() < self.wrong:
            return f"({jinja_tables.expression(r)})"
        atoms = self.atoms.get(want)
        way = r.choice(atoms if atoms and (depth <= 0 or r.random() < 0.2) else self.ways[want])
        if way == ("loopindex",):
            return "loop.index" if self.loops else "7"
        if way[0] in ("m", "m("):
            return self._called(way, depth)
        text = way[0]
        for kind, after in zip(way[1::2], way[2::2], strict=True):
            operand = self.expression(kind, depth - 1)
            bare = way == ("", kind, "") or _SIMPLE.fullmatch(operand) or kind in ("slice", "index")
            text += (operand if bare else f"({operand})") + after
        return text

    def _called(self, way: tuple[str, ...], depth: int) -> str:
        plain = [name for name, calls in self.macros if not calls]
        if not plain:
            return "'m'"
        name = self.r.choice(plain)
        return name if len(way) == 1 else f"{name}({self._arguments(depth)})"

    def _arguments(self, depth: int) -> str:
        r = self.r
        parts = [self.expression("json", depth - 1)]
        if r.random() < 0.4:
            parts.append(f"{'b=' if r.random() < 0.5 else ''}{self.expression('json', depth - 1)}")
        if self.python and r.random() < 0.1:
            return r.choice(["*ints[:2]", "**{'a': 1}", "*[1], **{'b': 2}"])
        return ", ".join(parts)

    # ---- statements ----

    def statement(self, depth: int) -> str:
        r = self.r
        a, b = r.choice(["", "", "-", "-"]), r.choice(["", "", "-", "-"])
        plus = self.python and r.random() < 0.05

        def tag(text: str) -> str:
            return f"{{%{'+' if plus else a} {text} {b}%}}"

        simple = [self._output, self._output, self._output, self._text, self._set]
        nesting = [self._if, self._for, self._for, self._set_block, self._macro, self._call]
        nesting += [self._filter_block, self._generation, self._namespace]
        if self.python:
            nesting += [self._with, self._generator, self._targets, self._recursive]
        return r.choice(simple + (nesting if depth > 0 else []))(tag, a, b, depth)

    def _output(self, tag: Tag, a: str, b: str, depth: int) -> str:
        return f"{{{{{a} {self.expression('any', 3)} {b}}}}}"

    def _text(self, tag: Tag, a: str, b: str, depth: int) -> str:
        texts = ["text ", "\n", "  ", "a\n  b\n", "x", "<|im_start|>", "\t", "{ ", "é\n\n"]
        raw = [tag("raw") + "{{ x }}" + tag("endraw")] if self.python else []
        return self.r.choice([*texts, f"{{#{a} c {b}#}}", *raw])

    def _set(self, tag: Tag, a: str, b: str, depth: int) -> str:
        name = self.r.choice("xyzw")
        kind = self.r.choice("str int list dict any strs ints rows".split())
        text = tag(f"set {name} = {self.expression(kind, 3)}")
        self._define(name, kind)
        return text

    def _define(self, name: str, kind: str) -> None:
        self.scope = [(n, k) for n, k in self.scope if n != name] + [(name, kind)]

    def _inner(self, depth: int, *names: tuple[str, str]) -> str:
        """Returns a block in a separate scope."""
        scope, macros = self.scope, list(self.macros)
        for name, kind in names:
            self._define(name, kind)
        text = self.block(depth - 1)
        self.scope, self.macros = scope, macros
        return text

    def _if(self, tag: Tag, a: str, b: str, depth: int) -> str:
        scope, macros = self.scope, list(self.macros)
        text = tag("if " + self.expression("bool", 2)) + self.block(depth - 1)
        self.scope, self.macros = scope, list(macros)
        other = self.r.randrange(3)
        if other == 1:
            text += tag("else") + self.block(depth - 1)
        elif other == 2:
            text += tag("elif " + self.expression("bool", 2)) + self.block(depth - 1)
        self.scope, self.macros = scope, macros
        return text + tag("endif")

    def _for(self, tag: Tag, a: str, b: str, depth: int) -> str:
        r = self.r
        kinds = ["ints", "strs", "rows", "list", "pairs", "items", "str", "gen", "range", "dict"]
        kind = r.choice(kinds if self.python else [*kinds[:6], "dict"])
        name = r.choice("xyab")
        names = [(name, _ITEM.get(kind, "str"))]
        source = self.expression("dict" if kind == "items" else kind, 2)
        target = name
        if kind in ("pairs", "items"):
            target, names = "k, v", [("k", "str"), ("v", "any")]
            source = f"({source}).items()" if kind == "items" else source
        condition = ""
        if r.random() < 0.2:
            scope = self.scope
            for one in names:
                self._define(*one)
            condition = f" if {self.expression('bool', 2)}"
            self.scope = scope
        self.loops += 1
        fields = "index index0 first last length revindex revindex0 previtem nextitem depth"
        shown = r.choice(["", "", f"{{{{ loop.{r.choice(fields.split())} }}}}"])
        if self.python:
            more = ["loop.cycle('a', 'b')", f"loop.changed({names[0][0]})", "loop"]
            shown = r.choice([shown, shown, f"{{{{ {r.choice(more)} }}}}"])
        inner = self._inner(depth, *names)
        jump = tag(r.choice(["break", "continue"]))
        jump = r.choice(["", "", "", f"{tag('if loop.index > 1')}q{jump}{tag('endif')}"])
        last = self._inner(depth, *names)
        self.loops -= 1
        other = r.choice(["", "", f"{tag('else')}{self._inner(depth)}"])
        loop = tag(f"for {target} in {source}{condition}")
        return f"{loop}{shown}{inner}{jump}{last}{other}{tag('endfor')}"

    def _set_block(self, tag: Tag, a: str, b: str, depth: int) -> str:
        text = self._inner(depth)
        self._define("x", "str")
        shown = self.r.choice(["", "|title", "|capitalize", "|trim", "|upper"])
        return f"{tag('set x')}{text}{tag('endset')}{{{{ x {shown} }}}}"

    def _namespace(self, tag: Tag, a: str, b: str, depth: int) -> str:
        value = self.expression("any", 2)
        pair = self.python and self.r.random() < 0.3
        assignment = f"ns.a, ns.b = ns.b, {value}" if pair else f"ns.a = {value}"
        return (
            f"{tag('set ns = namespace(a=1, b=[])')}{tag(f'set {assignment}')}"
            f"{{{{ ns.a }}}}{tag('set ns.c = ns.a')}"
        )

    def _macro(self, tag: Tag, a: str, b: str, depth: int) -> str:
        params, names = self.r.choice(
            [("a, b=2", "ab"), ("a=1, b=a", "ab"), ("a, b='z', c=n", "abc"), ("b, a=2", "ab")]
        )
        name, calls = f"m{len(self.macros)}", self.r.random() < 0.3
        loops, self.loops = self.loops, 0
        body = self._inner(depth, *((one, "any") for one in names))
        self.loops = loops
        self.macros.append((name, calls))
        caller = "{{ caller() }}" if calls else ""
        text = f"{tag(f'macro {name}({params})')}{{{{ a }}}}|{body}{caller}{tag('endmacro')}"
        return text if calls else f"{text}{{{{ {name}({self._arguments(2)}) }}}}"

    def _call(self, tag: Tag, a: str, b: str, depth: int) -> str:
        callers = [name for name, calls in self.macros if calls]
        if not callers:
            return self._macro(tag, a, b, depth)
        params = self.r.choice(["", "(q=1)", "(a=1)"])
        loops, self.loops = self.loops, 0
        body = self._inner(depth)
        self.loops = loops
        call = f"{self.r.choice(callers)}({self._arguments(1)})"
        return f"{tag(f'call{params} {call}')}{body}{tag('endcall')}"

    def _filter_block(self, tag: Tag, a: str, b: str, depth: int) -> str:
        name = self.r.choice(["upper", "trim", "title", "replace('q', 'b')", "indent(2)"])
        return f"{tag(f'filter {name}')}{self._inner(depth)}{tag('endfilter')}"

    def _generation(self, tag: Tag, a: str, b: str, depth: int) -> str:
        return f"{tag('generation')}{self._inner(depth)}{tag('endgeneration')}"

    def _with(self, tag: Tag, a: str, b: str, depth: int) -> str:
        value = self.expression("any", 2)
        inner = self._inner(depth, ("x", "any"), ("z", "int"))
        return f"{tag(f'with x = {value}, z = 1')}{inner}{tag('endwith')}"

    def _generator(self, tag: Tag, a: str, b: str, depth: int) -> str:
        """Returns an assignment of a generator, and constructs that consume the generator."""
        uses = [
            *(
                "{{ g | first }}",
                "{{ g | list }}",
                "{{ 'a' in g }}",
                "{{ g | join('+') }}",
                "{{ g }}",
            ),
            *("{{ g | map('string') | list }}", "{% for x in g %}{{ x }}{% break %}{% endfor %}"),
            *(
                "{{ [g, g] | map('list') | list }}",
                "{% for x in g if loop.index %}{{ x }}{% endfor %}",
            ),
        ]
        value = self.expression("gen", 2)
        some = "".join(self.r.choice(uses[:-1]) for _ in range(self.r.randrange(1, 4)))
        return tag(f"set g = {value}") + some

    def _targets(self, tag: Tag, a: str, b: str, depth: int) -> str:
        """Returns assignments from lists and generators to nested targets."""
        pair = self.r.choice(
            ["[1, 'b']", "(2, 3)", "[1, 2] | map('string')", "'xy'", "{1: 2, 3: 4}"]
        )
        target, item = self.r.choice([("a, (b, c)", f"(1, {pair})"), ("(b, a), c", f"({pair}, 1)")])
        condition = self.r.choice(["", " if true", " if a", " if loop_nosuch is undefined"])
        inner = self._inner(depth, ("a", "any"), ("c", "any"))
        loop = f"for {target} in [{item}]{condition}"
        if self.r.random() < 0.3:
            return f"{tag(f'set {target} = {item}')}{{{{ a }}}}{{{{ c }}}}"
        return f"{tag(loop)}{{{{ a }}}}{{{{ b }}}}{{{{ c }}}}{inner}{tag('endfor')}"

    def _recursive(self, tag: Tag, a: str, b: str, depth: int) -> str:
        return (
            f"{tag('for x in [[1, [2]], [[], [3, 4]]] recursive')}{{{{ loop.depth }}}}"
            f"{tag('if x is sequence')}{{{{ loop(x) }}}}{tag('else')}{{{{ x }}}}{tag('endif')}{tag('endfor')}"
        )

    def block(self, depth: int) -> str:
        return "".join(self.statement(depth) for _ in range(self.r.randrange(4)))

    def template(self) -> str:
        if self.r.random() < 0.3:
            return f"{{{{ {self.expression('any', 3)} }}}}"
        return "".join(self.statement(3) for _ in range(1 + self.r.randrange(3)))


def mutated(template: str, r: random.Random) -> str:
    """Returns the template with some characters removed, repeated or swapped."""
    text = list(template)
    for _ in range(r.randrange(1, 4)):
        if not text:
            break
        i = r.randrange(len(text))
        change = r.randrange(4)
        if change == 0:
            del text[i]
        elif change == 1:
            text.insert(
                i,
                r.choice([*"{}%#-()[]|.,:'\"~+* \nx1=<\\", "{{", "}}", "{%", "%}", " if ", " is "]),
            )
        elif change == 2:
            j = r.randrange(len(text))
            text[i], text[j] = text[j], text[i]
        else:
            text.insert(i, text[i])
    return "".join(text)
