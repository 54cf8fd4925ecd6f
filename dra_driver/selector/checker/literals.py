"""Checks of calls with literal arguments that can only ever fail, as upstream's compiler does them
(github.com/google/cel-go v0.26.0, cel/validator.go and ext/formatting.go)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from dra_driver.selector.errors import EvaluationError, RefusedError
from dra_driver.selector.interpreter.budget import CostBudget
from dra_driver.selector.library import LIBRARY
from dra_driver.selector.library.formatting import SHOWN, clauses
from dra_driver.selector.library.regex import PATTERN_METHODS, compiled
from dra_driver.selector.parser import syntax
from dra_driver.selector.parser.syntax import Node
from dra_driver.selector.types import BOOL, BYTES, DOUBLE, DYN, INT, NULL, STRING, UINT, Type
from dra_driver.selector.values import Uint

LITERAL_TYPES: Final[dict[type, Type]] = {
    bool: BOOL,
    int: INT,
    Uint: UINT,
    float: DOUBLE,
    str: STRING,
    bytes: BYTES,
    type(None): NULL,
}
_CONVERSIONS: Final = frozenset(
    {"int", "uint", "double", "bool", "string", "bytes", "duration", "timestamp"}
)


def check_literals(
    call: syntax.Call, operands: tuple[Node, ...], kind: Callable[[Node], Type], budget: CostBudget
) -> None:
    """Raise RefusedError for a literal that the function can do nothing with. The number and the
    types of the operands have been checked; `kind` tells the type of a node below. `budget` pays
    for patterns."""
    if not operands:
        return
    first, *others = operands
    try:
        if call.function in PATTERN_METHODS and isinstance(others[0], syntax.Literal):
            compiled(budget, others[0].value)
        elif call.function == "format" and isinstance(first, syntax.Literal):
            _check_format(clauses(first.value), others[0], kind)
        elif call.function in _CONVERSIONS and isinstance(first, syntax.Literal):
            _convert(call.function, first)
    except EvaluationError as error:
        raise RefusedError(str(error)) from error


def _convert(function: str, literal: syntax.Literal) -> None:
    wanted = (LITERAL_TYPES[type(literal.value)],)
    for overload in LIBRARY.functions[function]:
        if overload.arguments == wanted:
            overload.compute(literal.value)


def _check_format(verbs: list[str], values: Node, kind: Callable[[Node], Type]) -> None:
    if not isinstance(values, syntax.ListOf):
        return
    if len(verbs) != len(values.elements):
        raise RefusedError(f"format() of {len(verbs)} clauses with {len(values.elements)} values")
    for verb, value in zip(verbs, values.elements, strict=True):
        for part in _parts(value) if verb == "s" else (value,):
            given = kind(part)
            if not given.variable and given != DYN and given.name not in SHOWN[verb]:
                raise RefusedError(f"format: %{verb} cannot show a {given}")


def _parts(value: Node) -> Iterator[Node]:
    """The value with all that it is a literal of."""
    yield value
    if isinstance(value, syntax.ListOf):
        for each in value.elements:
            yield from _parts(each)
    elif isinstance(value, syntax.MapOf):
        for entry in value.entries:
            for each in entry:
                yield from _parts(each)
