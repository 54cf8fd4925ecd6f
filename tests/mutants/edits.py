"""All small faults that can be written into a source file, as edits of its text.

The syntax tree says where, and the text is changed there and nowhere else. Left out are
annotations and decorators, which say nothing at run time or the same of every instance; f-strings,
inside which Python 3.11 gives wrong positions; docstrings; log lines, whose words nobody relies on;
and, outside of functions, whole statements, without which the module could not be imported.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Final


class Kind(StrEnum):
    """What is changed."""

    COMPARISON = "comparison"
    OPERATOR = "operator"
    BOOLEAN = "boolean"
    NUMBER = "number"
    TEXT = "text"
    STATEMENT = "statement"


@dataclass(frozen=True, slots=True)
class Edit:
    """Characters `start` to `end` of a text become `new`."""

    kind: Kind
    start: int
    end: int
    new: str

    def applied(self, text: str) -> str:
        """The text with the fault."""
        return text[: self.start] + self.new + text[self.end :]


_COMPARISONS: Final[Mapping[type[ast.cmpop], tuple[str, str]]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
_OPERATORS: Final[Mapping[type[ast.operator], tuple[str, str]]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "//"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"),
    ast.Pow: ("**", "*"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitOr: ("|", "&"),
    ast.BitAnd: ("&", "|"),
    ast.BitXor: ("^", "&"),
}
_UNARY: Final[Mapping[type[ast.unaryop], tuple[str, Kind]]] = {
    ast.Not: (r"not\s*", Kind.BOOLEAN),
    ast.USub: (r"-\s*", Kind.OPERATOR),
}
_REMOVABLE: Final = (
    *(ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return, ast.Raise, ast.Delete),
    *(ast.Break, ast.Continue, ast.If),
)
_SKIPPED_FIELDS: Final = frozenset({"annotation", "returns", "decorator_list"})
_COMMENT: Final = re.compile(r"#[^\n]*")


class Positions:
    """Where the nodes of a syntax tree are in the text that it was parsed from."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._lines = text.split("\n")
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line) + 1)

    def start(self, node: ast.expr | ast.stmt) -> int:
        """The offset of the node's first character."""
        return self._at(node.lineno, node.col_offset)

    def end(self, node: ast.expr | ast.stmt) -> int:
        """The offset behind its last character."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._at(node.end_lineno, node.end_col_offset)

    def _at(self, line: int, column: int) -> int:
        """`column` counts bytes."""
        before = self._lines[line - 1].encode()[:column]
        return self._starts[line - 1] + len(before.decode())


def edits(text: str) -> Iterator[Edit]:
    """All faults for this source text, in its order. Some of them may not compile."""
    where = Positions(text)
    return _below(ast.parse(text), where, in_function=False)


def is_fault(text: str, edit: Edit) -> bool:
    """Whether the text compiles with the edit, to something else than without."""
    try:
        found = ast.dump(ast.parse(edit.applied(text)))
        compile(edit.applied(text), "<mutant>", "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return found != ast.dump(ast.parse(text))


def _below(node: ast.AST, where: Positions, *, in_function: bool) -> Iterator[Edit]:
    if isinstance(node, ast.JoinedStr) or _is_text_alone(node) or _is_log_line(node):
        return
    yield from _of(node, where, in_function=in_function)
    inside = in_function or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    for name, value in ast.iter_fields(node):
        if name not in _SKIPPED_FIELDS:
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _below(child, where, in_function=inside)


def _is_text_alone(node: ast.AST) -> bool:
    """A docstring, also of a constant; or the `...` of a body that says nothing."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_log_line(node: ast.AST) -> bool:
    match node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="logger")))):
            return True
        case _:
            return False


def _of(node: ast.AST, where: Positions, *, in_function: bool) -> Iterator[Edit]:
    """The faults of this node itself."""
    match node:
        case ast.Compare():
            yield from _of_compare(node, where)
        case ast.BoolOp():
            yield from _of_bool(node, where)
        case ast.BinOp():
            yield from _of_binary(node, where)
        case ast.UnaryOp():
            yield from _of_unary(node, where)
        case ast.Constant():
            yield from _of_constant(node, where)
        case ast.stmt():
            yield from _of_statement(node, where, in_function=in_function)


def _of_compare(node: ast.Compare, where: Positions) -> Iterator[Edit]:
    for operands, op in zip(pairwise([node.left, *node.comparators]), node.ops, strict=True):
        yield from _between(Kind.COMPARISON, where, operands, _COMPARISONS[type(op)])


def _of_bool(node: ast.BoolOp, where: Positions) -> Iterator[Edit]:
    change = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
    for operands in pairwise(node.values):
        yield from _between(Kind.BOOLEAN, where, operands, change)


def _of_binary(node: ast.BinOp, where: Positions) -> Iterator[Edit]:
    change = _OPERATORS.get(type(node.op))
    if change is not None and not _is_type(node.right):
        yield from _between(Kind.OPERATOR, where, (node.left, node.right), change)


def _of_unary(node: ast.UnaryOp, where: Positions) -> Iterator[Edit]:
    if type(node.op) in _UNARY:
        pattern, kind = _UNARY[type(node.op)]
        start = where.start(node)
        if found := re.compile(pattern).match(where.text, start):
            yield Edit(kind, start, found.end(), "")


def _of_constant(node: ast.Constant, where: Positions) -> Iterator[Edit]:
    new: object
    match node.value:
        case bool(value):
            kind, new = Kind.BOOLEAN, not value
        case int(value):
            kind, new = Kind.NUMBER, value + 1
        case float(value):  # a second more or less would hardly matter
            kind, new = Kind.NUMBER, value * 2 or 1.0
        case str(text):
            kind, new = Kind.TEXT, "" if text else "mutant"
        case _:
            return
    yield Edit(kind, where.start(node), where.end(node), repr(new))


def _of_statement(node: ast.stmt, where: Positions, *, in_function: bool) -> Iterator[Edit]:
    start, end = where.start(node), where.end(node)
    if isinstance(node, ast.AugAssign) and type(node.op) in _OPERATORS:
        old, new = _OPERATORS[type(node.op)]
        yield from _between(Kind.OPERATOR, where, (node.target, node.value), (f"{old}=", f"{new}="))
    if not in_function or not isinstance(node, _REMOVABLE):
        return
    if isinstance(node, ast.If) and (node.orelse or not where.text.startswith("if", start)):
        return  # a branch, which is not removed without the others
    if not (isinstance(node, ast.AnnAssign) and node.value is None):
        yield Edit(Kind.STATEMENT, start, end, "pass")


def _between(
    kind: Kind, where: Positions, operands: Sequence[ast.expr], change: tuple[str, str]
) -> Iterator[Edit]:
    """The change of the operator between two operands; there are only parentheses, space and
    comments beside it."""
    start, end = where.end(operands[0]), where.start(operands[1])
    gap = _COMMENT.sub(lambda found: " " * len(found[0]), where.text[start:end])
    old, new = change
    pattern = r"\s+".join(map(re.escape, old.split()))
    if found := re.search(pattern, gap):
        yield Edit(kind, start + found.start(), start + found.end(), new)


def _is_type(node: ast.expr) -> bool:
    """Whether this is the right side of a union of types, as far as its form says so."""
    match node:
        case ast.Constant(value=None):
            return True
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name[:1].isupper() and not name.isupper()
        case _:
            return False
