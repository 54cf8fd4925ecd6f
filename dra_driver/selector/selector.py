"""Selectors: does a device satisfy a CEL expression?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Final

from dra_driver.model.errors import InvalidValue
from dra_driver.selector.checker.checker import check
from dra_driver.selector.device import Entry, SelectorInput, Shape, device_variable
from dra_driver.selector.errors import EvaluationError, RefusedError
from dra_driver.selector.interpreter.budget import LIMIT, Budget
from dra_driver.selector.interpreter.program import Program, compile_program
from dra_driver.selector.parser.build import build
from dra_driver.selector.parser.source import parse
from dra_driver.selector.reads import Path, reads
from dra_driver.selector.values import Value, kind

_EXPRESSIONS: Final = 1_024
_ANSWERS: Final = 131_072
_TOTAL: Final = 2 * LIMIT
_SHARE: Final = 1_000
"""What an evaluation may cost on average once its expression has spent `_TOTAL`: a claim must not
keep the controller busy for a second with each of 100,000 devices."""

Values = tuple[Value, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Reading:
    """What an expression reads of the devices of one shape."""

    entries: tuple[Entry, ...]
    pick: Callable[[Values], Values]


class _Selector:
    """A compiled expression. Devices whose values it reads are equal get one evaluation."""

    def __init__(self, expression: str) -> None:
        """Raises RefusedError for an expression that has no meaning here."""
        tree = build(parse(expression))
        self._program: Program = compile_program(tree, check(tree))
        self._paths: frozenset[Path] = reads(tree)
        self._spent = 0
        self._evaluations = 0
        self.reading = lru_cache(_EXPRESSIONS)(self._reading)

    def evaluate(self, reading: _Reading, values: Values) -> bool:
        """Raises EvaluationError and RefusedError."""
        if self._spent > _TOTAL + _SHARE * self._evaluations:
            raise RefusedError(
                f"it costs more than {_SHARE} steps for each of {self._evaluations} kinds of device"
            )
        budget = Budget()
        self._evaluations += 1
        try:
            result = self._program.evaluate(device_variable(reading.entries, values), budget)
        finally:
            self._spent += budget.spent
        if type(result) is not bool:
            raise EvaluationError(f"its result is not a bool but a {kind(result)}")
        return result

    def _reading(self, shape: Shape) -> _Reading:
        read = [n for n, entry in enumerate(shape.entries) if self._reads(entry)]
        entries = tuple(shape.entries[n] for n in read)
        return _Reading(entries, _picker(read))

    def _reads(self, entry: Entry) -> bool:
        return any(entry.path[: len(path)] == path for path in self._paths)


class Selectors:
    """Compiles each expression once and remembers each answer; one instance for each thread."""

    def __init__(self) -> None:
        self._compiled = lru_cache(_EXPRESSIONS)(self._compile)
        self._answered = lru_cache(_ANSWERS)(self._evaluate)

    @property
    def evaluations(self) -> int:
        """How often an expression was really evaluated, and not remembered."""
        return self._answered.cache_info().misses

    def matches(self, expression: str, device: SelectorInput) -> bool:
        """Whether `device` satisfies `expression`. Raises InvalidValue, with the expression and
        the reason, where that cannot be told; it is never silently False."""
        selector = self._compiled(expression)
        answer: bool | str
        if isinstance(selector, str):
            answer = selector
        else:
            reading = selector.reading(device.shape)
            answer = self._answered(selector, reading, reading.pick(device.values))
        if isinstance(answer, str):
            raise InvalidValue(
                f"the selector {expression!r} cannot be evaluated: {answer}",
                remedy="correct the selector of the DeviceClass or of the claim's request",
            )
        return answer

    def _evaluate(self, selector: _Selector, reading: _Reading, values: Values) -> bool | str:
        try:
            return selector.evaluate(reading, values)
        except (EvaluationError, RefusedError) as error:
            return str(error)

    def _compile(self, expression: str) -> _Selector | str:
        try:
            return _Selector(expression)
        except RefusedError as error:
            return str(error)


def _picker(positions: list[int]) -> Callable[[Values], Values]:
    match positions:
        case []:
            return lambda _values: ()
        case [only]:
            return lambda values: (values[only],)
        case _:
            return itemgetter(*positions)
