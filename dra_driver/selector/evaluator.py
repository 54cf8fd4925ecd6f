"""CEL's evaluation over cel-python's syntax tree and value types.

cel-python parses; its evaluator is extended where it departs from the specification: both sides
of ``&&`` and ``||`` are always evaluated there, ``has`` takes every error for "no", and Python's
operators leak through. Here an error is an exception, absorbed exactly where CEL absorbs it.
"""

from __future__ import annotations

import lark
from celpy import celtypes
from celpy.evaluation import Activation, CELEvalError, Evaluator

from dra_driver.selector import operators
from dra_driver.selector.device import DomainMap
from dra_driver.selector.errors import EvaluationError, UnsupportedError
from dra_driver.selector.functions import FUNCTIONS, METHODS
from dra_driver.selector.macros import MACROS, fold, truth
from dra_driver.selector.operators import Value, no_overload

_MOST_STEPS = 100_000  # visited nodes; nested macros over long lists grow without bound

_RELATIONS = {
    "relation_lt": "<",
    "relation_le": "<=",
    "relation_gt": ">",
    "relation_ge": ">=",
}
_ARITHMETIC = {
    "addition_add": "+",
    "addition_sub": "-",
    "multiplication_mul": "*",
    "multiplication_div": "/",
    "multiplication_mod": "%",
}


class SelectorEvaluator(Evaluator):
    """Evaluates one checked tree (see `dra_driver.selector.check`) for the given variables."""

    def __init__(self, tree: lark.Tree[lark.Token], variables: dict[str, Value]) -> None:
        super().__init__(tree, Activation())
        self._scopes = [variables]
        self._steps = 0

    def visit(self, tree: lark.Tree[lark.Token]) -> Value:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise UnsupportedError("the expression takes too many steps")
        return super().visit(tree)

    def expr(self, tree: lark.Tree[lark.Token]) -> Value:
        if len(tree.children) == 1:
            return self.visit(_tree(tree, 0))
        chosen = 1 if truth("_?_:_", self.visit(_tree(tree, 0))) else 2
        return self.visit(_tree(tree, chosen))

    def conditionalor(self, tree: lark.Tree[lark.Token]) -> Value:
        return self._logical(tree, "||", absorbing=True)

    def conditionaland(self, tree: lark.Tree[lark.Token]) -> Value:
        return self._logical(tree, "&&", absorbing=False)

    def relation(self, tree: lark.Tree[lark.Token]) -> Value:
        if len(tree.children) == 1:
            return self.visit(_tree(tree, 0))
        name, left, right = self._operands(tree)
        if name == "relation_in":
            return celtypes.BoolType(operators.contained(left, right))
        if name in {"relation_eq", "relation_ne"}:
            same = operators.equal(left, right)
            return celtypes.BoolType(same == (name == "relation_eq"))
        return celtypes.BoolType(operators.compare(_RELATIONS[name], left, right))

    def addition(self, tree: lark.Tree[lark.Token]) -> Value:
        if len(tree.children) == 1:
            return self.visit(_tree(tree, 0))
        name, left, right = self._operands(tree)
        return operators.arithmetic(_ARITHMETIC[name], left, right)

    def multiplication(self, tree: lark.Tree[lark.Token]) -> Value:
        return self.addition(tree)

    def unary(self, tree: lark.Tree[lark.Token]) -> Value:
        if len(tree.children) == 1:
            return self.visit(_tree(tree, 0))
        value = self.visit(_tree(tree, 1))
        if _tree(tree, 0).data == "unary_not":
            return celtypes.BoolType(not truth("!", value))
        return operators.negate(value)

    def member(self, tree: lark.Tree[lark.Token]) -> Value:
        return self.visit(_tree(tree, 0))

    def member_dot(self, tree: lark.Tree[lark.Token]) -> Value:
        return self._select(self.visit(_tree(tree, 0)), _token(tree, 1))

    def member_index(self, tree: lark.Tree[lark.Token]) -> Value:
        return self._index(self.visit(_tree(tree, 0)), self.visit(_tree(tree, 1)))

    def member_dot_arg(self, tree: lark.Tree[lark.Token]) -> Value:
        name = _token(tree, 1)
        receiver = self.visit(_tree(tree, 0))
        if name in MACROS:
            variable, body = macro_arguments(tree)
            return MACROS[name](receiver, lambda item: self._bound(body, variable, item))
        function, _ = METHODS[name]
        return function(receiver, *self._arguments(tree, 2))

    def primary(self, tree: lark.Tree[lark.Token]) -> Value:
        child = _tree(tree, 0)
        match child.data:
            case "ident":
                return self._lookup(_token(child, 0))
            case "ident_arg" if _token(child, 0) == "has":
                return self._has(child)
            case "ident_arg":
                function, _ = FUNCTIONS[_token(child, 0)]
                return function(*self._arguments(child, 1))
            case "list_lit":
                return celtypes.ListType(self._arguments(child, 0))
            case "paren_expr":
                return self.visit(_tree(child, 0))
            case _:
                return self.visit(child)

    def literal(self, tree: lark.Tree[lark.Token]) -> Value:
        value = super().literal(tree)
        if isinstance(value, CELEvalError):
            raise EvaluationError(f"not a literal: {tree.children[0]}") from value
        return value

    def _logical(self, tree: lark.Tree[lark.Token], name: str, *, absorbing: bool) -> Value:
        """One side with the absorbing value decides, even where the other one is an error."""
        if len(tree.children) == 1:
            return self.visit(_tree(tree, 0))
        sides = (lambda: self.visit(_tree(tree, 0)), lambda: self.visit(_tree(tree, 1)))
        return fold(name, iter(sides), absorbing=absorbing)

    def _operands(self, tree: lark.Tree[lark.Token]) -> tuple[str, Value, Value]:
        left = _tree(tree, 0)
        return str(left.data), self.visit(_tree(left, 0)), self.visit(_tree(tree, 1))

    def _arguments(self, tree: lark.Tree[lark.Token], position: int) -> list[Value]:
        if len(tree.children) <= position:
            return []
        return [self.visit(each) for each in _trees(_tree(tree, position))]

    def _lookup(self, name: str) -> Value:
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        raise UnsupportedError(f"undeclared reference to {name!r}")

    def _select(self, value: Value, name: str) -> Value:
        if not isinstance(value, celtypes.MapType):
            raise no_overload(f".{name}", value)
        return self._index(value, celtypes.StringType(name))

    def _index(self, container: Value, key: Value) -> Value:
        if isinstance(container, DomainMap) and isinstance(key, celtypes.StringType):
            return container.domain(key)
        found = operators.index(container, key)
        if isinstance(found, UnsupportedError):  # an attribute of a kind that is not known
            raise found
        return found

    def _has(self, tree: lark.Tree[lark.Token]) -> Value:
        field = field_selection(tree)
        value = self.visit(_tree(field, 0))
        if not isinstance(value, celtypes.MapType):
            raise no_overload("has", value)
        present = operators.contained(celtypes.StringType(_token(field, 1)), value)
        # Looking up any domain finds at least the empty map, and has() looks up.
        return celtypes.BoolType(present or isinstance(value, DomainMap))

    def _bound(self, body: lark.Tree[lark.Token], variable: str, item: Value) -> Value:
        self._scopes.append({variable: item})
        try:
            return self.visit(body)
        finally:
            self._scopes.pop()


def macro_arguments(tree: lark.Tree[lark.Token]) -> tuple[str, lark.Tree[lark.Token]]:
    """Variable and body of a macro call such as ``list.all(x, x > 1)``; raises UnsupportedError
    where the first argument is no name, or there are more than two arguments."""
    arguments = _trees(_tree(tree, 2)) if len(tree.children) > 2 else []
    if len(arguments) == 2:
        variable = descend(arguments[0], "ident")
        if variable is not None:
            return _token(variable, 0), arguments[1]
    raise UnsupportedError(f"{_token(tree, 1)} takes a variable and an expression")


def field_selection(tree: lark.Tree[lark.Token]) -> lark.Tree[lark.Token]:
    """The ``e.f`` of ``has(e.f)``; raises UnsupportedError for any other argument."""
    arguments = _trees(_tree(tree, 1)) if len(tree.children) > 1 else []
    if len(arguments) == 1:
        found = descend(arguments[0], "member_dot")
        if found is not None:
            return found
    raise UnsupportedError("has() takes a field selection, as in has(a.b)")


def descend(tree: lark.Tree[lark.Token], data: str) -> lark.Tree[lark.Token] | None:
    """The node of that kind, where nothing but single-child nodes stands above it."""
    while tree.data != data:
        if len(tree.children) != 1 or not isinstance(tree.children[0], lark.Tree):
            return None
        tree = tree.children[0]
    return tree


def _tree(tree: lark.Tree[lark.Token], position: int) -> lark.Tree[lark.Token]:
    child = tree.children[position]
    assert isinstance(child, lark.Tree)
    return child


def _trees(tree: lark.Tree[lark.Token]) -> list[lark.Tree[lark.Token]]:
    return [child for child in tree.children if isinstance(child, lark.Tree)]


def _token(tree: lark.Tree[lark.Token], position: int) -> str:
    return str(tree.children[position])
