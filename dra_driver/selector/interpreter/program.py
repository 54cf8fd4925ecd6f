"""A checked tree as something to run: each node becomes a Python function of a frame.

An error is an exception, absorbed exactly where CEL absorbs it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dra_driver.selector.checker.checker import Overloads
from dra_driver.selector.errors import EvaluationError
from dra_driver.selector.interpreter.budget import NODE, CostBudget
from dra_driver.selector.interpreter.collections import list_literal, map_literal
from dra_driver.selector.interpreter.comprehensions import comprehension
from dra_driver.selector.interpreter.dispatch import caller
from dra_driver.selector.interpreter.frame import Frame, Run
from dra_driver.selector.interpreter.selections import (
    SelectionStep,
    content,
    either,
    optional_map,
    or_value,
    presence,
    selection,
    variable,
)
from dra_driver.selector.library import LIBRARY
from dra_driver.selector.library.optionals import reread
from dra_driver.selector.library.semver import Semver
from dra_driver.selector.parser import syntax
from dra_driver.selector.parser.syntax import Node
from dra_driver.selector.values import Value, no_overload

Scope = Mapping[str, Run]
Finish = Callable[[Run, Sequence[SelectionStep]], Run]

_EMPTY: Final = syntax.ListOf(())
_INDEXES: Final = frozenset({"_[_]", "_[?_]"})
_OR: Final = {"or": either, "orValue": or_value}


@dataclass(frozen=True, slots=True)
class Program:
    """A selector that can be evaluated again and again."""

    run: Run
    variables: int

    def evaluate(self, device: Value, budget: CostBudget) -> Value:
        """Raises EvaluationError for CEL's runtime errors, RefusedError where the budget is used
        up or something is read that is not known here."""
        return self.run(Frame(budget, [device, *[None] * (self.variables - 1)]))


def compile_program(node: Node, overloads: Overloads, budget: CostBudget) -> Program:
    """`overloads` are what the checker has found for the node. Raises RefusedError where `budget`
    does not suffice."""
    compiler = _Compiler(overloads, budget)
    run = compiler.run(node, {"device": lambda frame: frame.variables[0]})
    return Program(run, compiler.variables)


class _Compiler:
    def __init__(self, overloads: Overloads, budget: CostBudget) -> None:
        self._budget = budget
        self.variables = 1
        self._overloads = overloads

    def run(self, node: Node, scope: Scope) -> Run:
        self._budget.spend(NODE)
        compiled: Run = getattr(self, f"_{type(node).__name__.lower()}")(node, scope)
        return compiled

    def _literal(self, node: syntax.Literal, _scope: Scope) -> Run:
        value = node.value
        return lambda _frame: value

    def _name(self, node: syntax.Name, scope: Scope) -> Run:
        return scope[node.name]

    def _select(self, node: syntax.Select, scope: Scope) -> Run:
        if node.test:
            return self._selection(node.operand, scope, presence, [SelectionStep(node.field)])
        return self._selection(node, scope)

    def _selection(
        self,
        node: Node,
        scope: Scope,
        finish: Finish = selection,
        after: Sequence[SelectionStep] = (),
    ) -> Run:
        """The node with the steps `after` it; each branch of a ``?:`` gets them all, as upstream
        plans it."""
        steps = [*after]
        while True:
            match node:
                case syntax.Select(operand, field, test=False):
                    steps.insert(0, SelectionStep(field, optional=node.optional))
                case syntax.Call(name, None, (operand, key)) if name in _INDEXES:
                    steps.insert(0, SelectionStep("", self.run(key, scope), name == "_[?_]"))
                case syntax.Conditional(condition, then, otherwise):
                    return _conditional(
                        self.run(condition, scope),
                        self._selection(then, scope, finish, steps),
                        self._selection(otherwise, scope, finish, steps),
                    )
                case _:
                    return finish(self.run(node, scope), steps)
            node = operand

    def _listof(self, node: syntax.ListOf, scope: Scope) -> Run:
        return list_literal([self.run(each, scope) for each in node.elements], node.optional)

    def _mapof(self, node: syntax.MapOf, scope: Scope) -> Run:
        entries = [(self.run(key, scope), self.run(value, scope)) for key, value in node.entries]
        return map_literal(entries, node.optional)

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
        return self._selection(node, scope)

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
            return reread(found)

        body = self.run(node.body, {**scope, node.variable: read})

        def bind(frame: Frame) -> Value:
            frame.variables[slot] = None  # a loop around it binds anew in each round
            return body(frame)

        return bind

    def _optionalmap(self, node: syntax.OptionalMap, scope: Scope) -> Run:
        target, slot = self.run(node.target, scope), self._slot()
        inner = {**scope, node.variable: content(slot)}
        return optional_map(target, slot, self.run(node.body, inner), flat=node.flat)

    def _comprehension(self, node: syntax.Comprehension, scope: Scope) -> Run:
        slot = self._slot()
        inner = {**scope, node.variable: variable(slot)}
        body = self.run(node.body, inner)
        condition = None if node.condition is None else self.run(node.condition, inner)
        loop = comprehension(node.macro, slot, body, condition)
        over = self.run(node.range, scope)
        return lambda frame: loop(frame, over(frame))

    def _call(self, node: syntax.Call, scope: Scope) -> Run:
        if node.function in _INDEXES:
            return self._selection(node, scope)
        operands = node.arguments if node.target is None else (node.target, *node.arguments)
        arguments = [self.run(each, scope) for each in operands]
        if node.target is not None and node.function in _OR:
            return _OR[node.function](*arguments)
        if node.function == "@in" and _constants(node.arguments[1]):
            return _in_constants(*arguments) if operands[1] != _EMPTY else _never
        table = LIBRARY.functions if node.target is None else LIBRARY.methods
        only = self._overloads.get(id(node))
        return caller(node.function, table[node.function], arguments, only)

    def _slot(self) -> int:
        self.variables += 1
        return self.variables - 1


def _conditional(condition: Run, then: Run, otherwise: Run) -> Run:
    def choose(frame: Frame) -> Value:
        value = condition(frame)
        if type(value) is not bool:
            raise no_overload("?:", value)
        return then(frame) if value else otherwise(frame)

    return choose


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
