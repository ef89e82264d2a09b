"""Finds possible changes to C code, from the tokens in function bodies.

Some changes don't compile or produce the same object file; tests/mutants/trial.py drops those.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.mutants.mutant import Change

TOKEN = re.compile(
    rb"""
    (?P<skip> \s+ | //[^\n]* | /\*.*?\*/ | ^[ \t]*\#(?:\\\n|/\*.*?\*/|[^\n])* )
  | (?P<string> (?:L|u8?|U)?"(?:\\.|[^"\\])*" | (?:L|u8?|U)?'(?:\\.|[^'\\])*' )
  | (?P<number> \.?[0-9](?:[eEpP][+-]|[\w.])* )
  | (?P<word> [A-Za-z_]\w* )
  | (?P<operator> <<=|>>=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|. )
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)

COMPARISONS = {
    b"<": (b"<=", b">="),
    b"<=": (b"<", b">"),
    b">": (b">=", b"<="),
    b">=": (b">", b"<"),
    b"==": (b"!=",),
    b"!=": (b"==",),
}
ARITHMETIC = {
    b"+": b"-",
    b"-": b"+",
    b"*": b"+",
    b"/": b"*",
    b"%": b"*",
    b"<<": b">>",
    b">>": b"<<",
    b"&": b"|",
    b"|": b"&",
    b"^": b"|",
    b"+=": b"-=",
    b"-=": b"+=",
    b"|=": b"&=",
    b"&=": b"|=",
}
BOOLEAN = {b"&&": b"||", b"||": b"&&"}
INTEGER = re.compile(rb"(0[xX][0-9a-fA-F]+|[0-9]+)([uUlL]*)")
# Tokens that can follow the first word of an expression statement, but not of a declaration.
STATEMENT_TOKENS = {
    *(b"(", b"[", b".", b"->", b"=", b"++", b"--", b"<<=", b">>="),
    *(b"+=", b"-=", b"*=", b"/=", b"%=", b"&=", b"|=", b"^="),
}
KEYWORDS = set(
    b"if else while for do switch case default return goto break continue sizeof static const"
    b" struct enum union typedef _Static_assert static_assert unsigned signed int char".split()
)


@dataclass(frozen=True)
class Token:
    kind: str
    text: bytes
    start: int
    line: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def tokens(source: bytes) -> list[Token]:
    """Returns all tokens except white space, comments and preprocessor lines."""
    found, line = [], 1
    for match in TOKEN.finditer(source):
        if match.lastgroup != "skip":
            found.append(Token(match.lastgroup or "", match[0], match.start(), line))
        line += match[0].count(b"\n")
    return found


def _bodies(found: list[Token]) -> Iterator[list[Token]]:
    """Yields the tokens of each function's body. Of the opening braces at the top level, only a
    body's follows a parenthesis; others are in `= {`, `struct x {` and `enum {`."""
    depth, begin = 0, -1
    for i, token in enumerate(found):
        if token.text == b"{":
            if depth == 0 and i and found[i - 1].text == b")":
                begin = i
            depth += 1
        elif token.text == b"}":
            depth -= 1
            if depth == 0 and begin >= 0:
                yield found[begin + 1 : i]
                begin = -1


def _closing(body: list[Token], i: int) -> int:
    """Returns the index of the parenthesis that matches the opening parenthesis body[i]."""
    depth = 0
    for j in range(i, len(body)):
        depth += {b"(": 1, b")": -1}.get(body[j].text, 0)
        if depth == 0:
            return j
    return len(body) - 1


def _statements(body: list[Token]) -> Iterator[tuple[int, int]]:
    """Yields the first and last index of each simple statement, including its semicolon."""
    begin = depth = 0
    i = 0
    while i < len(body):
        text = body[i].text
        if i == begin and text in (b"if", b"while", b"for", b"switch"):
            i = _closing(body, i + 1)
            begin = i + 1
        elif text in (b"{", b"}", b"else", b"do") or (text == b":" and i - begin <= 2):
            begin = i + 1 if not depth else begin
        elif text in (b"(", b"["):
            depth += 1
        elif text in (b")", b"]"):
            depth -= 1
        elif text == b";" and depth == 0:
            if i > begin:
                yield begin, i
            begin = i + 1
        i += 1


def _is_deletable(statement: list[Token]) -> bool:
    """Whether the statement can be deleted: it isn't a declaration, and has an effect."""
    first, second = statement[0], statement[1]
    if first.text in (b"break", b"continue", b"goto", b"++", b"--"):
        return True
    if first.text == b"*":
        return any(token.text in STATEMENT_TOKENS for token in statement)
    return first.kind == "word" and first.text not in KEYWORDS and second.text in STATEMENT_TOKENS


def _whole(body: list[Token]) -> Iterator[tuple[str, int, int, bytes, int]]:
    """Yields changes that delete statements, replace return values, or negate conditions."""
    for begin, end in _statements(body):
        statement = body[begin : end + 1]
        here = statement[0].start, statement[-1].end, statement[0].line
        if _is_deletable(statement):
            yield "statement", here[0], here[1], b";", here[2]
        if statement[0].text == b"return" and len(statement) > 2:
            value = [token.text for token in statement[1:-1]]
            if value not in ([b"0"], [b"false"], [b"true"], [b"NULL"]):
                yield "return", here[0], here[1], b"return 0;", here[2]
    for i, token in enumerate(body[:-1]):
        if token.text in (b"if", b"while") and body[i + 1].text == b"(":
            last = body[_closing(body, i + 1)]
            yield "negation", body[i + 1].end, last.start, b"", token.line


def _single(body: list[Token], source: bytes) -> Iterator[tuple[str, Token, bytes]]:
    """Yields changes that replace one token."""
    for token in body:
        text = token.text
        binary = source[token.start - 1 : token.start].isspace()
        binary = binary and source[token.end : token.end + 1].isspace()
        if token.kind == "number" and (number := INTEGER.fullmatch(text)):
            value = int(number[1], 0) if not re.match(rb"0[0-9]", number[1]) else int(number[1], 8)
            for other in (value + 1, value - 1):
                if other >= 0:
                    yield "constant", token, str(other).encode() + number[2]
        elif text in (b"true", b"false"):
            yield "constant", token, b"false" if text == b"true" else b"true"
        elif text in COMPARISONS and binary:
            for new in COMPARISONS[text]:
                yield "comparison", token, new
        elif text in ARITHMETIC and binary:
            yield "arithmetic", token, ARITHMETIC[text]
        elif text in BOOLEAN:
            yield "boolean", token, BOOLEAN[text]


def changes(source: bytes) -> Iterator[Change]:
    for body in _bodies(tokens(source)):
        first_line: dict[int, int] = {}
        for begin, end in _statements(body):
            for token in body[begin : end + 1]:
                first_line[token.start] = body[begin].line
        for kind, start, end, new, line in _whole(body):
            if kind == "negation":
                new = b"!(" + source[start:end] + b")"
            yield Change(start, end, new, kind, line, line)
        for kind, token, new in _single(body, source):
            line = first_line.get(token.start, token.line)
            yield Change(token.start, token.end, new, kind, line, token.line)
