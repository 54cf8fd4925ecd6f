"""Static checks, after which an expression is known to mean something.

The API server runs the same checks before it stores a selector. They are repeated because what it
accepted may still be unknown here, and a short circuit must not hide that; and because a server of
another version, or a test, may hand over what this version would have refused.

Source: github.com/google/cel-go v0.26.0, checker/checker.go; k8s.io/dynamic-resource-allocation,
cel/compile.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Final

from dra_driver.selector.checker.literals import LITERAL_TYPES, check_literals
from dra_driver.selector.errors import RefusedError
from dra_driver.selector.interpreter.budget import NODE, CostBudget
from dra_driver.selector.library import LIBRARY
from dra_driver.selector.library.overload import Overload
from dra_driver.selector.parser import syntax
from dra_driver.selector.parser.syntax import Node
from dra_driver.selector.types import (
    BOOL,
    DEVICE,
    DYN,
    QUANTITY,
    STRING,
    Type,
    Unifier,
    list_of,
    map_of,
    optional_of,
    unwrapped,
)

_FIELDS: Final = {
    "driver": STRING,
    "allowMultipleAllocations": BOOL,
    "attributes": map_of(STRING, map_of(STRING, DYN)),
    "capacity": map_of(STRING, map_of(STRING, QUANTITY)),
}
_TYPE_NAMES: Final = frozenset(
    {"int", "uint", "double", "bool", "string", "bytes", "list", "map", "null_type", "type"}
)

Scope = Mapping[str, Type]
Overloads = Mapping[int, Overload]
"""By the id() of a call's node, which lives as long as the tree."""


def check(node: Node, budget: CostBudget) -> Overloads:
    """The overloads of the calls that can only mean one. Raises RefusedError unless the expression
    is a bool, or may be one, of the device, and where `budget` does not suffice."""
    checker = _Checker(budget)
    result = checker.result(node, {"device": DEVICE})
    checker.check_mixtures()
    if result not in (BOOL, DYN):
        raise RefusedError(f"its result is not a bool but a {result}")
    return checker.overloads


class _Checker:
    def __init__(self, budget: CostBudget) -> None:
        self._budget = budget
        self.overloads: dict[int, Overload] = {}
        self._types = Unifier()
        self._kinds: dict[int, Type] = {}
        self._literals: list[list[Type]] = []  # the types that stand in one list, or map, each
        self._formats = 0

    def check_mixtures(self) -> None:
        """Refuse list and map literals of several types; the values of a format() are free."""
        for kinds in self._literals:
            first, *others = map(self._final, kinds)
            odd = next((each for each in others if each != first), None)
            if odd is not None:
                raise RefusedError(f"a list or map literal has both a {first} and a {odd}")

    def _final(self, kind: Type) -> Type:
        self._budget.spend(NODE)
        return self._types.final(kind)

    def result(self, node: Node, scope: Scope) -> Type:
        """The type of the whole expression."""
        return self._types.final(self.check(node, scope))

    def check(self, node: Node, scope: Scope) -> Type:
        self._budget.spend(NODE)
        kind: Type = getattr(self, f"_{type(node).__name__.lower()}")(node, scope)
        self._kinds[id(node)] = kind
        return self._types.resolve(kind)

    def kind(self, node: Node) -> Type:
        """What is known by now of the type of a node that was checked."""
        return self._types.resolve(self._kinds[id(node)])

    def _literal(self, node: syntax.Literal, _scope: Scope) -> Type:
        return LITERAL_TYPES[type(node.value)]

    def _name(self, node: syntax.Name, scope: Scope) -> Type:
        if node.name in scope:
            return scope[node.name]
        if node.name in _TYPE_NAMES:
            raise RefusedError(f"the type {node.name} as a value is not supported")
        raise RefusedError(f"undeclared reference to {node.name!r}")

    def _select(self, node: syntax.Select, scope: Scope) -> Type:
        operand, optional = unwrapped(self.check(node.operand, scope))
        if operand == DEVICE:
            if node.field not in _FIELDS:
                raise RefusedError(f"a device has no field {node.field!r}")
            found = _FIELDS[node.field]
        elif operand.name == "map":
            found = operand.parameters[1]
        elif operand == DYN or operand.variable:
            self._types.assignable([DYN], [operand])
            found = DYN
        else:
            raise RefusedError(f"a {operand} has no field {node.field!r}")
        if node.test:
            return BOOL
        return optional_of(found) if optional or node.optional else found

    def _listof(self, node: syntax.ListOf, scope: Scope) -> Type:
        return list_of(self._joined(node.elements, node.optional, scope))

    def _mapof(self, node: syntax.MapOf, scope: Scope) -> Type:
        keys = self._joined(tuple(key for key, _ in node.entries), frozenset(), scope)
        values = tuple(value for _, value in node.entries)
        return map_of(keys, self._joined(values, node.optional, scope))

    def _logical(self, node: syntax.Logical, scope: Scope) -> Type:
        for operand in node.operands:
            self._expect(BOOL, self.check(operand, scope), "||" if node.absorbing else "&&")
        return BOOL

    def _conditional(self, node: syntax.Conditional, scope: Scope) -> Type:
        self._expect(BOOL, self.check(node.condition, scope), "?:")
        branches = [self.check(each, scope) for each in (node.then, node.otherwise)]
        result = self._types.fresh()
        if not self._types.assignable(branches, [result, result]):
            raise RefusedError(f"the branches of ?: are a {branches[0]} and a {branches[1]}")
        return result

    def _bind(self, node: syntax.Bind, scope: Scope) -> Type:
        value = self.check(node.value, scope)
        return self.check(node.body, {**scope, node.variable: value})

    def _optionalmap(self, node: syntax.OptionalMap, scope: Scope) -> Type:
        wanted = optional_of(self._types.fresh())
        target = self.check(node.target, scope)
        if not self._types.assignable([target], [wanted]):
            raise RefusedError(f"optMap() needs an optional value, not a {target}")
        value, _ = unwrapped(self._types.resolve(wanted))
        body = self.check(node.body, {**scope, node.variable: value})
        if not node.flat:
            return optional_of(body)
        if not self._types.assignable([body], [wanted := optional_of(self._types.fresh())]):
            raise RefusedError(f"optFlatMap() needs an optional value, not a {body}")
        return self._types.resolve(wanted)

    def _comprehension(self, node: syntax.Comprehension, scope: Scope) -> Type:
        item, whole = self._range(node, scope)
        inner = {**scope, node.variable: item}
        if node.condition is not None:
            self._expect(BOOL, self.check(node.condition, inner), node.macro)
        body = self.check(node.body, inner)
        match node.macro:
            case "map":
                return list_of(body)
            case "sortBy":
                self._fitting("sortBy", LIBRARY.methods["sort"], [list_of(body)])
                return whole
            case "filter":
                self._expect(BOOL, body, node.macro)
                return list_of(item)
        self._expect(BOOL, body, node.macro)
        return BOOL

    def _call(self, node: syntax.Call, scope: Scope) -> Type:
        target = node.target
        if isinstance(target, syntax.Name) and target.name not in scope:
            raise RefusedError(f"the function {target.name}.{node.function}() is not supported")
        operands = node.arguments if target is None else (target, *node.arguments)
        self._formats += node.function == "format"
        kinds = [self.check(each, scope) for each in operands]
        self._formats -= node.function == "format"
        table = LIBRARY.functions if target is None else LIBRARY.methods
        if node.function not in table:
            raise RefusedError(f"the function {node.function}() is not supported")
        fitting = self._fitting(node.function, table[node.function], kinds)
        if len(fitting) == 1:
            self.overloads[id(node)] = fitting[0][0]
        check_literals(node, operands, self.kind, self._budget)
        results = [result for _, result in fitting]
        return results[0] if all(each == results[0] for each in results) else DYN

    def _fitting(
        self, name: str, overloads: tuple[Overload, ...], kinds: list[Type]
    ) -> list[tuple[Overload, Type]]:
        """The overloads that the types fit, with the types of their results."""
        fitting: list[tuple[Overload, Type]] = []
        for overload in overloads:
            result, *wanted = self._types.renamed([overload.result, *overload.arguments])
            if self._types.assignable(kinds, wanted):
                fitting.append((overload, self._types.resolve(result)))
        if not fitting:
            given = ", ".join(str(self._types.resolve(kind)) for kind in kinds)
            raise RefusedError(f"found no matching overload for {_shown(name)} of ({given})")
        return fitting

    def _range(self, node: syntax.Comprehension, scope: Scope) -> tuple[Type, Type]:
        """The types of the variable and of the whole."""
        whole = self.check(node.range, scope)
        if whole.name == "list" or (whole.name == "map" and node.macro != "sortBy"):
            return whole.parameters[0], whole
        if whole == DYN or whole.variable:
            self._types.assignable([DYN], [whole])
            return DYN, list_of(self._types.fresh()) if node.macro == "sortBy" else whole
        raise RefusedError(f"{node.macro}() cannot loop over a {whole}")

    def _joined(self, nodes: tuple[Node, ...], optional: frozenset[int], scope: Scope) -> Type:
        """The one type of all elements, of optional ones of what they hold."""
        if not nodes:
            return self._types.fresh()
        kinds = [self._element(node, n in optional, scope) for n, node in enumerate(nodes)]
        if not self._formats:
            self._literals.append(kinds)
        return reduce(self._join, kinds)

    def _join(self, previous: Type, current: Type) -> Type:
        self._budget.spend(NODE)
        return self._types.join(previous, current)

    def _element(self, node: Node, optional: bool, scope: Scope) -> Type:
        kind = self.check(node, scope)
        if not optional:
            return kind
        held, is_optional = unwrapped(kind)
        if not is_optional and kind != DYN:
            raise RefusedError(f"an element with a question mark is optional, and not a {kind}")
        return held

    def _expect(self, wanted: Type, given: Type, where: str) -> None:
        if not self._types.assignable([given], [wanted]):
            raise RefusedError(f"{where} needs a {wanted}, not a {given}")


def _shown(name: str) -> str:
    """A function's or an operator's name as people write it."""
    return name.strip("_@") if name[0] in "_@!-" else f"{name}()"
