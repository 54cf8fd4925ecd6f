"""From cel-python's tree to ours: chains of rules collapse, macros and namespaces are resolved.

Source of the macros: github.com/google/cel-go v0.26.0, parser/macro.go and ext/bindings.go.
"""

from __future__ import annotations

from typing import Final

import lark

from dra_driver.selector.errors import RefusedError
from dra_driver.selector.library import LIBRARY
from dra_driver.selector.parser import syntax
from dra_driver.selector.parser.literals import number
from dra_driver.selector.parser.source import Parsed, Tree
from dra_driver.selector.parser.syntax import Node

DEEPEST: Final = 100
"""Levels of a tree, as checking and evaluating recurse. Upstream's parser stops at 250."""

_CHAIN: Final = frozenset(
    {
        "expr", "conditionalor", "conditionaland", "relation", "addition", "multiplication",
        "unary", "member", "primary", "paren_expr",
    }
)  # fmt: skip
_OPERATORS: Final = {
    "relation_lt": "_<_",
    "relation_le": "_<=_",
    "relation_gt": "_>_",
    "relation_ge": "_>=_",
    "relation_eq": "_==_",
    "relation_ne": "_!=_",
    "relation_in": "@in",
    "addition_add": "_+_",
    "addition_sub": "_-_",
    "multiplication_mul": "_*_",
    "multiplication_div": "_/_",
    "multiplication_mod": "_%_",
}
_COMPREHENSIONS: Final = frozenset({"all", "exists", "exists_one", "filter", "map", "sortBy"})
_TWO_VARIABLES: Final = frozenset({"transformList", "transformMap", "transformMapEntry"})
_KEYWORDS: Final = frozenset({"true", "false", "null", "in"})
_RESERVED: Final = _KEYWORDS | {
    "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop",
    "package", "namespace", "return", "var", "void", "while",
}  # fmt: skip


def build(parsed: Parsed) -> Node:
    """Raises RefusedError for what has no meaning here."""
    return _Builder(parsed).node(parsed.tree, 0)


class _Builder:
    def __init__(self, parsed: Parsed) -> None:
        self._quoted = parsed.quoted

    def node(self, tree: Tree, depth: int) -> Node:
        """The node of a tree that stands `depth` levels below the whole expression."""
        if depth > DEEPEST:
            raise RefusedError(f"it is nested more than {DEEPEST} levels deep")
        while tree.data in _CHAIN and len(tree.children) == 1:
            tree = child(tree, 0)
        build = getattr(self, f"_{tree.data}", None)
        if build is None:
            raise RefusedError(f"{tree.data} is not supported")
        node: Node = build(tree, depth + 1)
        return node

    def _expr(self, tree: Tree, depth: int) -> Node:
        condition, then, otherwise = (self.node(each, depth) for each in trees(tree))
        return syntax.Conditional(condition, then, otherwise)

    def _conditionalor(self, tree: Tree, depth: int) -> Node:
        return self._logical(tree, depth, absorbing=True)

    def _conditionaland(self, tree: Tree, depth: int) -> Node:
        return self._logical(tree, depth, absorbing=False)

    def _logical(self, tree: Tree, depth: int, *, absorbing: bool) -> Node:
        operands = []
        rule = tree.data
        while tree.data == rule and len(tree.children) == 2:
            operands.append(self.node(child(tree, 1), depth))
            tree = child(tree, 0)
        operands.append(self.node(tree, depth))
        return syntax.Logical(absorbing, tuple(reversed(operands)))

    def _relation(self, tree: Tree, depth: int) -> Node:
        left = child(tree, 0)
        operands = (self.node(child(left, 0), depth), self.node(child(tree, 1), depth))
        return syntax.Call(_OPERATORS[left.data], None, operands)

    _addition = _relation
    _multiplication = _relation

    def _unary(self, tree: Tree, depth: int) -> Node:
        operator, operand, odd = child(tree, 0).data, child(tree, 1), True
        while operand.data == "unary" and operand.children[0] == child(tree, 0):
            operand, odd = child(operand, 1), not odd
        node = self.node(operand, depth)  # a pair of the same operator means nothing
        name = "!_" if operator == "unary_not" else "-_"
        return syntax.Call(name, None, (node,)) if odd else node

    def _literal(self, tree: Tree, _depth: int) -> Node:
        token = tree.children[0]
        assert isinstance(token, lark.Token)
        kind = token.type
        match kind:
            case "BOOL_LIT":
                return syntax.Literal(str(token) == "true")
            case "NULL_LIT":
                return syntax.Literal(None)
            case "INT_LIT" | "UINT_LIT" | "FLOAT_LIT":
                return syntax.Literal(number(str(token)))
            case _:
                assert token.start_pos is not None
                return syntax.Literal(self._quoted[token.start_pos])

    def _ident(self, tree: Tree, _depth: int) -> Node:
        return syntax.Name(_identifier(text(tree, 0)))

    _dot_ident = _ident

    def _ident_arg(self, tree: Tree, depth: int) -> Node:
        name = text(tree, 0)
        arguments = self._arguments(tree, 1, depth)
        if name != "has":
            return syntax.Call(name, None, arguments)
        if len(arguments) == 1 and isinstance(arguments[0], syntax.Select):
            return syntax.Select(arguments[0].operand, arguments[0].field, test=True)
        raise RefusedError("has() takes a field selection, as in has(a.b)")

    _dot_ident_arg = _ident_arg

    def _list_lit(self, tree: Tree, depth: int) -> Node:
        return syntax.ListOf(self._arguments(tree, 0, depth))

    def _map_lit(self, tree: Tree, depth: int) -> Node:
        entries = self._arguments(tree, 0, depth)
        return syntax.MapOf(tuple(zip(entries[::2], entries[1::2], strict=True)))

    def _member_dot(self, tree: Tree, depth: int) -> Node:
        field = text(tree, 1)
        if field in _KEYWORDS:
            raise RefusedError(f"{field!r} cannot be selected, but ['{field}'] can")
        return syntax.Select(self.node(child(tree, 0), depth), field)

    def _member_index(self, tree: Tree, depth: int) -> Node:
        operands = (self.node(child(tree, 0), depth), self.node(child(tree, 1), depth))
        return syntax.Call("_[_]", None, operands)

    def _member_object(self, _tree: Tree, _depth: int) -> Node:
        raise RefusedError("the construction of a message is not supported")

    def _member_dot_arg(self, tree: Tree, depth: int) -> Node:
        name = text(tree, 1)
        receiver = self.node(child(tree, 0), depth)
        arguments = self._arguments(tree, 2, depth)
        if name in _COMPREHENSIONS or name in _TWO_VARIABLES:
            return _comprehension(name, receiver, arguments)
        qualified = f"{receiver.name}.{name}" if isinstance(receiver, syntax.Name) else name
        if qualified == "cel.bind":
            return _bind(arguments)
        if qualified in LIBRARY.functions and qualified != name:
            return syntax.Call(qualified, None, arguments)
        return syntax.Call(name, receiver, arguments)

    def _arguments(self, tree: Tree, position: int, depth: int) -> tuple[Node, ...]:
        if len(tree.children) <= position:
            return ()
        return tuple(self.node(each, depth) for each in trees(child(tree, position)))


def _bind(arguments: tuple[Node, ...]) -> Node:
    match arguments:
        case (syntax.Name(variable), value, body):
            return syntax.Bind(variable, value, body)
    raise RefusedError("cel.bind() takes a name, its value and an expression")


def _comprehension(macro: str, receiver: Node, arguments: tuple[Node, ...]) -> Node:
    match arguments:
        case (syntax.Name(variable), body) if macro not in _TWO_VARIABLES:
            return syntax.Comprehension(macro, receiver, variable, body)
        case (syntax.Name(variable), condition, body) if macro == "map":
            return syntax.Comprehension(macro, receiver, variable, body, condition)
        case (syntax.Name(), syntax.Name(), *_):
            raise RefusedError(f"the macro {macro}() with two variables is not supported")
    raise RefusedError(f"{macro}() takes a variable and an expression")


def _identifier(name: str) -> str:
    if name in _RESERVED:
        raise RefusedError(f"{name!r} is a reserved word")
    return name


def child(tree: Tree, position: int) -> Tree:
    found = tree.children[position]
    assert isinstance(found, lark.Tree)
    return found


def trees(tree: Tree) -> list[Tree]:
    return [each for each in tree.children if isinstance(each, lark.Tree)]


def text(tree: Tree, position: int) -> str:
    return str(tree.children[position])
