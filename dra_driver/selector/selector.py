"""Selectors: does a device satisfy a CEL expression?"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Final

from dra_driver.model.errors import InvalidValue
from dra_driver.selector.allowance import Allowance, AllowanceSpent
from dra_driver.selector.checker.checker import check
from dra_driver.selector.device import DeviceValue, SelectorInput, Shape, device_variable
from dra_driver.selector.errors import EvaluationError, RefusedError
from dra_driver.selector.interpreter.budget import LIMIT, CostBudget
from dra_driver.selector.interpreter.program import Program, compile_program
from dra_driver.selector.parser.build import build
from dra_driver.selector.parser.source import load_grammar, parse
from dra_driver.selector.reads import Path, reads
from dra_driver.selector.values import Optional, Value, kind

_EXPRESSIONS: Final = 1_024
_CHARACTERS: Final = 256 * 1024
"""Of all expressions that are kept compiled, each of which takes up to 240 bytes: 60 MiB."""
_SHAPES: Final = 1_024
_ANSWERS: Final = 131_072
_SHOWN: Final = 200  # characters of an expression or a reason that people are told
_TOTAL: Final = 2 * LIMIT
_SHARE: Final = 1_000
"""What an evaluation may cost on average once its expression has spent `_TOTAL`: a claim must not
keep the controller busy for a second with each of 100,000 devices."""

Values = tuple[Value, ...]
_NOTHING: Final[frozenset[int]] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class _Reading:
    """What an expression reads of the devices of one shape."""

    positions: frozenset[int]
    entries: tuple[DeviceValue, ...]
    pick: Callable[[Values], Values]


class _Selector:
    """A compiled expression. Devices whose values it reads are equal get one evaluation."""

    def __init__(self, expression: str, allowance: Allowance) -> None:
        """Raises RefusedError for an expression that has no meaning here."""
        budget = CostBudget(allowance)
        tree = build(parse(expression, budget), budget)
        self._program: Program = compile_program(tree, check(tree, budget), budget)
        self._paths: frozenset[Path] = reads(tree)
        self.is_about_driver = self._paths == {("driver",)}
        self._patterns = frozenset(budget.paid)
        self._compiling = budget.spent
        self._is_refused = False  # in some evaluation, by its cost
        self._spent = 0
        self._evaluations = 0
        self.reading = lru_cache(_SHAPES)(self._reading)
        self.answers: dict[tuple[_Reading, Values], bool | str] = {}

    @property
    def cost(self) -> int:
        """Steps to compile it and, on average, to evaluate it once; or the limit."""
        mean = self._compiling + self._spent // max(self._evaluations, 1)
        return LIMIT if self._is_refused else min(mean, LIMIT)

    def evaluate(self, reading: _Reading, values: Values, allowance: Allowance) -> bool:
        """Raises EvaluationError and RefusedError."""
        if self._spent > _TOTAL + _SHARE * self._evaluations:
            raise RefusedError(
                f"it costs more than {_SHARE} steps for each of {self._evaluations} kinds of device"
            )
        budget = CostBudget(allowance, self._patterns)
        budget.check()
        try:
            result = self._program.evaluate(device_variable(reading.entries, values), budget)
            budget.settle()
        except (EvaluationError, RefusedError) as error:
            self._is_refused |= isinstance(error, RefusedError)
            self._count(budget)
            raise
        self._count(budget)
        while isinstance(result, Optional):  # upstream takes the value for the optional one
            result = result.value
        if type(result) is not bool:
            raise EvaluationError(f"its result is not a bool but a {kind(result)}")
        return result

    def _count(self, budget: CostBudget) -> None:
        """One more evaluation that came to its end."""
        self._evaluations += 1
        self._spent += budget.spent

    def _reading(self, shape: Shape) -> _Reading:
        read = [n for n, entry in enumerate(shape.entries) if self._reads(entry)]
        entries = tuple(shape.entries[n] for n in read)
        return _Reading(frozenset(read), entries, _picker(read))

    def _reads(self, entry: DeviceValue) -> bool:
        return any(entry.path[: len(path)] == path for path in self._paths)


class Selectors:
    """Compiles each expression once and remembers each answer, refusals too, as far as there is
    room; one instance for each thread. `allowance` bounds what one decision may cost."""

    def __init__(self, allowance: Allowance | None = None) -> None:
        self.allowance = allowance or Allowance()
        self.evaluations = 0  # how often an expression was really evaluated, and not remembered
        self._known: OrderedDict[str, _Selector | str] = OrderedDict()
        self._characters = 0
        self._answers = 0

    @staticmethod
    def load() -> None:
        """Do once for the process what the first expression would wait for."""
        load_grammar()

    def matches(self, expression: str, device: SelectorInput) -> bool:
        """Whether `device` satisfies `expression`. Raises InvalidValue, with the expression and
        the reason, where that cannot be told; it is never silently False. Raises AllowanceSpent
        where the decision has cost too much to find it out now."""
        try:
            answer = self._answer(expression, device)
        except AllowanceSpent as spent:
            spent.selector = expression
            raise
        if isinstance(answer, str):
            raise InvalidValue(
                answer, remedy="correct the selector of the DeviceClass or of the claim's request"
            )
        return answer

    def reads(self, expression: str, shape: Shape) -> frozenset[int]:
        """The positions in the shape of all entries that decide what the expression evaluates to.
        Raises AllowanceSpent."""
        selector = self._compiled(expression)
        return _NOTHING if isinstance(selector, str) else selector.reading(shape).positions

    def excludes(self, expressions: Iterable[str], driver: str) -> bool:
        """Whether one of the expressions is about the driver alone, and matches another one: then
        no device of this driver satisfies all of them. Raises AllowanceSpent."""
        for expression in expressions:
            selector = self._compiled(expression)
            if isinstance(selector, _Selector) and selector.is_about_driver:
                with suppress(InvalidValue):
                    if not self.matches(expression, _of_driver(driver)):
                        return True
        return False

    def cost(self, expression: str) -> int:
        """Steps to compile it and, on average, to evaluate it for one device: the limit if it is
        refused, and 0 if it is not known."""
        selector = self._known.get(expression)
        if selector is None:
            return 0
        return selector.cost if isinstance(selector, _Selector) else LIMIT

    def _compiled(self, expression: str) -> _Selector | str:
        """The expression; or in words why it has no meaning here."""
        selector = self._known.get(expression)
        if selector is None:
            return self._add(expression)
        self._known.move_to_end(expression)
        return selector

    def _answer(self, expression: str, device: SelectorInput) -> bool | str:
        """The answer; or in words why there is none."""
        selector = self._compiled(expression)
        if isinstance(selector, str):
            return selector
        reading = selector.reading(device.shape)
        question = reading, reading.pick(device.values)
        answer = selector.answers.get(question)
        if answer is None:
            answer = self._evaluate(expression, selector, *question)
            self.evaluations += 1
            self._answers += 1
            self._trim()  # which may drop the selector's own
            selector.answers[question] = answer
        return answer

    def _evaluate(
        self, expression: str, selector: _Selector, reading: _Reading, values: Values
    ) -> bool | str:
        try:
            return selector.evaluate(reading, values, self.allowance)
        except (EvaluationError, RefusedError) as error:
            return _refusal(expression, error)

    def _add(self, expression: str) -> _Selector | str:
        self.allowance.check()
        selector: _Selector | str
        try:
            selector = _Selector(expression, self.allowance)
        except RefusedError as error:
            selector = _refusal(expression, error)
        self._known[expression] = selector
        self._characters += len(expression)
        self._trim()
        return selector

    def _trim(self) -> None:
        """Drop what was not asked for the longest time, with its answers."""
        while len(self._known) > 1 and (
            len(self._known) > _EXPRESSIONS
            or self._characters > _CHARACTERS
            or self._answers > _ANSWERS
        ):
            expression, selector = self._known.popitem(last=False)
            self._characters -= len(expression)
            if isinstance(selector, _Selector):
                self._answers -= len(selector.answers)
        if self._answers > _ANSWERS:
            for only in self._known.values():
                assert isinstance(only, _Selector)  # or it had no answers
                only.answers.clear()
            self._answers = 1  # that which is about to be added


@lru_cache(_SHAPES)
def _of_driver(driver: str) -> SelectorInput:
    return SelectorInput.of(driver, {})


def _refusal(expression: str, error: Exception) -> str:
    return f"the selector {_cut(repr(expression))} cannot be evaluated: {_cut(str(error))}"


def _cut(text: str) -> str:
    """Long texts without their middle: a reason may stand at either end."""
    half = _SHOWN // 2
    return text if len(text) <= _SHOWN else f"{text[:half]}…{text[-half:]}"


def _picker(positions: list[int]) -> Callable[[Values], Values]:
    match positions:
        case []:
            return lambda _values: ()
        case [only]:
            return lambda values: (values[only],)
        case _:
            return itemgetter(*positions)
