"""A checked tree as something to run: each node becomes a Python function of a frame.

An error is an exception, absorbed exactly where CEL absorbs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dra_driver.selector.checker.checker import Overloads
from dra_driver.selector.errors import EvaluationError, RefusedError
from dra_driver.selector.interpreter.budget import Budget
from dra_driver.selector.interpreter.comprehensions import comprehension
from dra_driver.selector.interpreter.dispatch import caller
from dra_driver.selector.interpreter.frame import Frame, Run
from dra_driver.selector.library import LIBRARY
from dra_driver.selector.library.operators import index
from dra_driver.selector.library.semver import Semver
from dra_driver.selector.parser import syntax
from dra_driver.selector.parser.syntax import Node
from dra_driver.selector.values import DomainMap, Value, map_key, no_overload

Scope = Mapping[str, Run]

_EMPTY: Final = syntax.ListOf(())


@dataclass(frozen=True, slots=True)
class Program:
    """A selector that can be evaluated again and again."""

    run: Run
    variables: int

    def evaluate(self, device: Value, budget: Budget) -> Value:
        """Raises EvaluationError for CEL's runtime errors, RefusedError where the budget is used
        up or something is read that is not known here."""
        return self.run(Frame(budget, [device, *[None] * (self.variables - 1)]))


def compile_program(node: Node, overloads: Overloads) -> Program:
    """`overloads` are what the checker has found for the node."""
    compiler = _Compiler(overloads)
    run = compiler.run(node, {"device": lambda frame: frame.variables[0]})
    return Program(run, compiler.variables)


class _Compiler:
    def __init__(self, overloads: Overloads) -> None:
        self.variables = 1
        self._overloads = overloads

    def run(self, node: Node, scope: Scope) -> Run:
        compiled: Run = getattr(self, f"_{type(node).__name__.lower()}")(node, scope)
        return compiled

    def _literal(self, node: syntax.Literal, _scope: Scope) -> Run:
        value = node.value
        return lambda _frame: value

    def _name(self, node: syntax.Name, scope: Scope) -> Run:
        return scope[node.name]

    def _select(self, node: syntax.Select, scope: Scope) -> Run:
        operand, field = self.run(node.operand, scope), node.field

        def select(frame: Frame) -> Value:
            frame.budget.spend(1)
            container = operand(frame)
            if isinstance(container, dict):
                return index(container, field)
            raise no_overload(f".{field}", container)

        def test(frame: Frame) -> Value:
            frame.budget.spend(1)
            container = operand(frame)
            if type(container) is list:
                raise no_overload("has", container)
            # A domain is looked up, and so it is always there; other values have no fields.
            return isinstance(container, DomainMap) or (
                isinstance(container, dict) and field in container
            )

        return test if node.test else select

    def _listof(self, node: syntax.ListOf, scope: Scope) -> Run:
        elements = [self.run(each, scope) for each in node.elements]

        def create(frame: Frame) -> Value:
            created = []
            for each in elements:
                created.append(each(frame))  # noqa: PERF401 - a comprehension deepens the stack
            frame.budget.spend(1 + len(created))
            return created

        return create

    def _mapof(self, node: syntax.MapOf, scope: Scope) -> Run:
        entries = [(self.run(key, scope), self.run(value, scope)) for key, value in node.entries]

        def create(frame: Frame) -> Value:
            created: dict[Value, Value] = {}
            for key, value in entries:
                found = _literal_key(key(frame))
                if found in created and not any(_same(found, each) for each in created):
                    raise RefusedError(f"a map with an int and a uint {found} is not supported")
                created[found] = value(frame)
            frame.budget.spend(1 + len(created))
            return created

        return create

    def _logical(self, node: syntax.Logical, scope: Scope) -> Run:
        operands = [self.run(each, scope) for each in node.operands]
        absorbing, name = node.absorbing, "||" if node.absorbing else "&&"

        def logical(frame: Frame) -> Value:
            pending: EvaluationError | None = None
            for operand in operands:
                try:
                    value = operand(frame)
                except EvaluationError as error:
                    pending = pending or error
                    continue
                if value is absorbing:
                    return absorbing
                if type(value) is not bool:
                    pending = pending or no_overload(name, value)
            if pending is not None:
                raise pending
            return not absorbing

        return logical

    def _conditional(self, node: syntax.Conditional, scope: Scope) -> Run:
        condition = self.run(node.condition, scope)
        then, otherwise = self.run(node.then, scope), self.run(node.otherwise, scope)

        def conditional(frame: Frame) -> Value:
            value = condition(frame)
            if type(value) is not bool:
                raise no_overload("?:", value)
            return then(frame) if value else otherwise(frame)

        return conditional

    def _bind(self, node: syntax.Bind, scope: Scope) -> Run:
        """The value is computed when it is first read, once, and so is its error."""
        value = self.run(node.value, scope)
        slot = self._slot()

        def read(frame: Frame) -> Value:
            known = frame.variables[slot]
            if known is None:
                try:
                    known = (value(frame), None)
                except EvaluationError as error:
                    known = (None, error)
                frame.variables[slot] = known
            found, failure = known
            if failure is not None:
                raise failure.with_traceback(None)  # or it would grow with each read
            return found

        body = self.run(node.body, {**scope, node.variable: read})

        def bind(frame: Frame) -> Value:
            frame.variables[slot] = None  # a loop around it binds anew in each round
            return body(frame)

        return bind

    def _comprehension(self, node: syntax.Comprehension, scope: Scope) -> Run:
        slot = self._slot()
        inner = {**scope, node.variable: lambda frame: frame.variables[slot]}
        body = self.run(node.body, inner)
        condition = None if node.condition is None else self.run(node.condition, inner)
        loop = comprehension(node.macro, slot, body, condition)
        over = self.run(node.range, scope)
        return lambda frame: loop(frame, over(frame))

    def _call(self, node: syntax.Call, scope: Scope) -> Run:
        operands = node.arguments if node.target is None else (node.target, *node.arguments)
        arguments = [self.run(each, scope) for each in operands]
        if node.function == "_[_]":
            return _index(*arguments)
        if node.function == "@in" and _constants(node.arguments[1]):
            return _in_constants(*arguments) if operands[1] != _EMPTY else _never
        table = LIBRARY.functions if node.target is None else LIBRARY.methods
        only = self._overloads.get(id(node))
        return caller(node.function, table[node.function], arguments, only)

    def _slot(self) -> int:
        self.variables += 1
        return self.variables - 1


def _same(one: Value, other: Value) -> bool:
    return type(one) is type(other) and bool(one == other)


def _literal_key(key: Value) -> Value:
    try:
        return map_key(key)
    except EvaluationError as error:
        raise RefusedError(f"a map literal: {error}") from error


def _index(container: Run, key: Run) -> Run:
    # Not by dispatch, which would charge the whole container for one look into it.
    def look(frame: Frame) -> Value:
        frame.budget.spend(1)
        return index(container(frame), key(frame))

    return look


def _never(_frame: Frame) -> Value:
    return False  # upstream does not even look at what is not in []


def _constants(node: Node) -> bool:
    return isinstance(node, syntax.ListOf) and all(
        isinstance(each, syntax.Literal) for each in node.elements
    )


def _in_constants(item: Run, constants: Run) -> Run:
    """``item in [1, 2]``: upstream looks into a set, which fails for what has no hash."""
    contained = LIBRARY.functions["@in"][0].compute

    def check(frame: Frame) -> Value:
        value, values = item(frame), constants(frame)
        if isinstance(value, Semver):
            raise no_overload("in", value, values)
        return contained(value, values)

    return check
