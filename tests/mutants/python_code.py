"""Finds possible changes to Python code, from its syntax tree, except in annotations, docstrings
and f-strings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.mutants.mutant import Change

COMPARISONS: dict[type[ast.cmpop], tuple[str, tuple[str, ...]]] = {
    ast.Lt: (r"<", ("<=", ">=")),
    ast.LtE: (r"<=", ("<", ">")),
    ast.Gt: (r">", (">=", "<=")),
    ast.GtE: (r">=", (">", "<")),
    ast.Eq: (r"==", ("!=",)),
    ast.NotEq: (r"!=", ("==",)),
    ast.Is: (r"is", ("is not",)),
    ast.IsNot: (r"is\s+not", ("is",)),
    ast.In: (r"in", ("not in",)),
    ast.NotIn: (r"not\s+in", ("in",)),
}
ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: (r"\+", "-"),
    ast.Sub: (r"-", "+"),
    ast.Mult: (r"\*", "+"),
    ast.FloorDiv: (r"//", "*"),
    ast.Div: (r"/", "*"),
    ast.Mod: (r"%", "*"),
    ast.LShift: (r"<<", ">>"),
    ast.RShift: (r">>", "<<"),
    ast.BitAnd: (r"&", "|"),
    ast.BitOr: (r"\|", "&"),
}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
# A change: its kind, the range of bytes that it replaces (start, end), and the new text.
Found = tuple[str, int, int, str]


class _Finder:
    def __init__(self, source: bytes) -> None:
        self.source = source
        self.lines = [0]
        for line in source.splitlines(keepends=True):
            self.lines.append(self.lines[-1] + len(line))

    def start(self, node: ast.expr | ast.stmt) -> int:
        return self.lines[node.lineno - 1] + node.col_offset

    def end(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self.lines[node.end_lineno - 1] + node.end_col_offset

    def between(self, a: ast.expr, b: ast.expr, operator: str) -> tuple[int, int]:
        """Returns the start and end of the operator between two operands. Only parentheses, white
        space and comments can surround the operator there."""
        gap = self.source[self.end(a) : self.start(b)]
        gap = re.sub(rb"#[^\n]*", lambda match: b" " * len(match[0]), gap)
        found = re.search(operator.encode(), gap)
        assert found, gap
        return self.end(a) + found.start(), self.end(a) + found.end()

    def of(self, node: ast.AST) -> Iterator[Found]:
        """Yields the changes to a node, excluding changes to its children."""
        if isinstance(node, ast.Compare):
            values = [node.left, *node.comparators]
            for a, op, b in zip(values, node.ops, values[1:], strict=False):
                operator, others = COMPARISONS[type(op)]
                for new in others:
                    yield "comparison", *self.between(a, b, operator), new
        elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
            if not _is_text(node.left) and not _is_text(node.right):
                operator, new = ARITHMETIC[type(node.op)]
                yield "arithmetic", *self.between(node.left, node.right, operator), new
        elif isinstance(node, ast.BoolOp):
            old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            for a, b in zip(node.values, node.values[1:], strict=False):
                yield "boolean", *self.between(a, b, old), new
        elif isinstance(node, ast.Constant):
            yield from self._constant(node)
        elif isinstance(node, ast.stmt):
            yield from self._statement(node)
        if isinstance(node, ast.If | ast.While | ast.IfExp):
            start, end = self.start(node.test), self.end(node.test)
            yield "negation", start, end, f"(not ({self.source[start:end].decode()}))"

    def _constant(self, node: ast.Constant) -> Iterator[Found]:
        start, end = self.start(node), self.end(node)
        if isinstance(node.value, bool):
            yield "constant", start, end, str(not node.value)
        elif isinstance(node.value, int):
            yield "constant", start, end, str(node.value + 1)
            if node.value:
                yield "constant", start, end, str(node.value - 1)

    def _statement(self, node: ast.stmt) -> Iterator[Found]:
        start, end = self.start(node), self.end(node)
        stores = isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets
        )
        calls = isinstance(node, ast.Expr) and not isinstance(
            node.value, ast.Constant | ast.Yield | ast.YieldFrom
        )
        if isinstance(node, ast.Return):
            if node.value and not _is_constant(node.value, None):
                yield "return", start, end, "return None"
        elif (
            stores
            or calls
            or isinstance(node, ast.AugAssign | ast.Break | ast.Continue | ast.Raise)
        ):
            yield "statement", start, end, "pass"


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    )


def _is_constant(node: ast.expr, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """Yields the child nodes that are executed, in source order."""
    skipped: set[ast.AST] = set()
    if isinstance(node, ast.JoinedStr):  # before Python 3.12, the positions in f-strings are wrong
        return
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        skipped |= {node.test, *node.body}
    for name in ("annotation", "returns"):
        if child := getattr(node, name, None):
            skipped.add(child)
    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).startswith("__"):
        return
    for child in ast.iter_child_nodes(node):
        if child not in skipped:
            yield child


def changes(source: bytes) -> Iterator[Change]:
    finder = _Finder(source)

    def walk(node: ast.AST, first_line: int, at_import: bool) -> Iterator[Change]:
        if isinstance(node, ast.stmt):
            first_line = node.lineno
        for kind, start, end, new in finder.of(node):
            line = source.count(b"\n", 0, start) + 1
            yield Change(start, end, new.encode(), kind, first_line, line, at_import)
        for child in _children(node):
            within = isinstance(node, FUNCTIONS) and (
                child in node.body if isinstance(node.body, list) else child is node.body
            )
            yield from walk(child, first_line, at_import and not within)

    yield from walk(ast.parse(source), 1, True)
