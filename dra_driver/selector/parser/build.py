"""From cel-python's tree to ours: chains of rules collapse, macros and namespaces are resolved.

Source of the macros: github.com/google/cel-go v0.26.0, parser/macro.go and ext/bindings.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import lark

from dra_driver.selector.errors import RefusedError
from dra_driver.selector.interpreter.budget import NODE, CostBudget
from dra_driver.selector.library import LIBRARY
from dra_driver.selector.parser import syntax
from dra_driver.selector.parser.literals import number
from dra_driver.selector.parser.source import Parsed, Tree, syntax_error
from dra_driver.selector.parser.syntax import Node

DEEPEST: Final = 100
"""Levels of a tree, as checking and evaluating recurse. Upstream's parser stops at 250."""

_CHAIN: Final = frozenset(
    {
        "expr", "conditionalor", "conditionaland", "relation", "addition", "multiplication",
        "unary", "member", "primary", "paren_expr",
    }
)  # fmt: skip
_MEMBERS: Final = frozenset(
    {"unary", "member", "primary", "member_dot", "member_dot_arg", "member_index"}
)
_NUMBERS: Final = frozenset({"INT_LIT", "UINT_LIT", "FLOAT_LIT", "IDENT"})
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
_OPTIONAL_MAPS: Final = frozenset({"optMap", "optFlatMap"})
_KEYWORDS: Final = frozenset({"true", "false", "null", "in"})
_RESERVED: Final = _KEYWORDS | {
    "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop",
    "package", "namespace", "return", "var", "void", "while",
}  # fmt: skip


def build(parsed: Parsed, budget: CostBudget) -> Node:
    """Raises RefusedError for what has no meaning here, and where `budget` does not suffice."""
    builder = _Builder(parsed, budget)
    node = builder.node(parsed.tree, 0)
    if stray := builder.optionals | builder.fields.keys():
        raise syntax_error(parsed.text, min(stray))
    return node


class _Builder:
    def __init__(self, parsed: Parsed, budget: CostBudget) -> None:
        self._budget = budget
        self.optionals = set(parsed.optionals)  # those that no node has taken yet
        self.fields = dict(parsed.fields)  # likewise
        self._text = parsed.text
        self._literals = parsed.literals
        self._signed: dict[int, str] = {}  # number literals by offset that have another sign

    def node(self, tree: Tree, depth: int) -> Node:
        """The node of a tree that stands `depth` levels below the whole expression."""
        self._budget.spend(NODE)
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
        operator, operand, times = child(tree, 0).data, child(tree, 1), 1
        while operand.data == "unary" and operand.children[0] == child(tree, 0):
            operand, times = child(operand, 1), times + 1
        if operator == "unary_neg":
            times = self._sign(operand, times)
        node = self.node(operand, depth)  # a pair of the same operator means nothing
        name = "!_" if operator == "unary_not" else "-_"
        return syntax.Call(name, None, (node,)) if times % 2 else node

    def _sign(self, operand: Tree, times: int) -> int:
        """How often the operand is to be negated. Of a number that it begins with, as `7` in
        `-7.includes(7)`, a single sign is part, and of several signs none is."""
        token = _first_number(operand)
        if token is None or token.start_pos is None:
            return times
        digits = self._text[token.start_pos : token.end_pos]
        if digits[0] == "-":
            self._signed[token.start_pos] = digits[1:]
            return times + 1
        if times > 1 or digits[0] not in "0123456789." or token.type == "UINT_LIT":
            return times
        self._signed[token.start_pos] = f"-{digits}"
        return 0

    def _literal(self, tree: Tree, _depth: int) -> Node:
        token = tree.children[0]
        assert isinstance(token, lark.Token)
        match token.type:
            case "NULL_LIT":
                return syntax.Literal(None)
            case "INT_LIT" | "UINT_LIT" | "FLOAT_LIT":
                assert token.start_pos is not None
                return syntax.Literal(number(self._signed.get(token.start_pos, str(token))))
            case _:
                assert token.start_pos is not None
                return syntax.Literal(self._literals[token.start_pos])

    def _ident(self, tree: Tree, _depth: int) -> Node:
        offset = start(tree.children[0])
        if offset not in self._literals:
            return syntax.Name(_identifier(text(tree, 0)))
        value = self._literals[offset]
        digits = self._signed.get(offset, value)
        return syntax.Literal(number(digits) if isinstance(digits, str) else value)

    def _dot_ident(self, tree: Tree, _depth: int) -> Node:
        return syntax.Name(_identifier(self._field(tree, 0)))

    def _ident_arg(self, tree: Tree, depth: int) -> Node:
        name = text(tree, 0)
        arguments = self._arguments(tree, 1, depth)
        if name != "has":
            return syntax.Call(name, None, arguments)
        match arguments:
            case (syntax.Select(operand, field, optional=False),):
                return syntax.Select(operand, field, test=True)
        raise RefusedError("has() takes a field selection, as in has(a.b)")

    _dot_ident_arg = _ident_arg

    def _list_lit(self, tree: Tree, depth: int) -> Node:
        optional = self._optional(_listed(tree, 0))
        return syntax.ListOf(self._arguments(tree, 0, depth), optional)

    def _map_lit(self, tree: Tree, depth: int) -> Node:
        optional = self._optional(_listed(tree, 0)[::2])
        entries = self._arguments(tree, 0, depth)
        return syntax.MapOf(tuple(zip(entries[::2], entries[1::2], strict=True)), optional)

    def _member_dot(self, tree: Tree, depth: int) -> Node:
        optional = bool(self._optional(tree.children[1:]))
        field = self.fields.pop(start(tree.children[1]), None)
        if field is None:
            field = self._field(tree, 1)
            if field in _KEYWORDS:
                raise RefusedError(f"{field!r} cannot be selected, but ['{field}'] can")
        return syntax.Select(self.node(child(tree, 0), depth), field, optional=optional)

    def _member_index(self, tree: Tree, depth: int) -> Node:
        name = "_[?_]" if self._optional(tree.children[1:]) else "_[_]"
        operands = (self.node(child(tree, 0), depth), self.node(child(tree, 1), depth))
        return syntax.Call(name, None, operands)

    def _member_object(self, _tree: Tree, _depth: int) -> Node:
        raise RefusedError("the construction of a message is not supported")

    def _member_dot_arg(self, tree: Tree, depth: int) -> Node:
        name = self._field(tree, 1)
        receiver = self.node(child(tree, 0), depth)
        arguments = self._arguments(tree, 2, depth)
        if name in _COMPREHENSIONS or name in _TWO_VARIABLES:
            return _comprehension(name, receiver, arguments)
        if name in _OPTIONAL_MAPS and len(arguments) == 2:
            return _optional_map(name, receiver, arguments)
        qualified = f"{receiver.name}.{name}" if isinstance(receiver, syntax.Name) else name
        if qualified == "cel.bind":
            return _bind(arguments)
        if qualified in LIBRARY.functions and qualified != name:
            return syntax.Call(qualified, None, arguments)
        return syntax.Call(name, receiver, arguments)

    def _arguments(self, tree: Tree, position: int, depth: int) -> tuple[Node, ...]:
        return tuple(self.node(each, depth) for each in _listed(tree, position))

    def _optional(self, parts: Sequence[Tree | lark.Token]) -> frozenset[int]:
        """The places of the parts that a question mark stands before."""
        found = frozenset(n for n, part in enumerate(parts) if start(part) in self.optionals)
        self.optionals -= {start(parts[n]) for n in found}
        return found

    def _field(self, tree: Tree, position: int) -> str:
        offset = start(tree.children[position])
        if offset in self._literals:
            raise syntax_error(self._text, offset)  # a number behind a dot
        return text(tree, position)


def _first_number(tree: Tree) -> lark.Token | None:
    """The literal, or its mask, that the text of an operand begins with."""
    while tree.data in _MEMBERS:
        tree = child(tree, 0)
    token = tree.children[0] if tree.data in {"literal", "ident"} else None
    return token if isinstance(token, lark.Token) and token.type in _NUMBERS else None


def _optional_map(name: str, target: Node, arguments: tuple[Node, ...]) -> Node:
    match arguments:
        case (syntax.Name(variable), body):
            return syntax.OptionalMap(target, variable, body, flat=name == "optFlatMap")
    raise RefusedError(f"{name}() takes a variable and an expression")


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


def start(part: Tree | lark.Token) -> int:
    """The offset of its first character, a bracket's too."""
    offset = part.meta.start_pos if isinstance(part, lark.Tree) else part.start_pos
    assert offset is not None
    return offset


def _listed(tree: Tree, position: int) -> list[Tree]:
    """The expressions of a list of arguments, elements or entries, which may be left out."""
    return trees(child(tree, position)) if len(tree.children) > position else []


def trees(tree: Tree) -> list[Tree]:
    return [each for each in tree.children if isinstance(each, lark.Tree)]


def text(tree: Tree, position: int) -> str:
    return str(tree.children[position])
