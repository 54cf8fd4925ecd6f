"""Selectors: does a device satisfy a CEL expression?"""

from __future__ import annotations

from functools import lru_cache

import lark
from celpy import Environment, celtypes
from celpy.celparser import CELParseError

from dra_driver.model.errors import InvalidValue
from dra_driver.selector.check import check
from dra_driver.selector.device import SelectorInput
from dra_driver.selector.errors import EvaluationError, UnsupportedError
from dra_driver.selector.evaluator import SelectorEvaluator

_PROGRAMS = 1_024
_ANSWERS = 65_536
_NAMES = frozenset({"device"})

Tree = lark.Tree[lark.Token]


class Selectors:
    """Compiles each expression once and remembers each answer; one instance for each thread."""

    def __init__(self) -> None:
        self._environment = Environment()
        self._compiled = lru_cache(_PROGRAMS)(self._compile)
        self._answered = lru_cache(_ANSWERS)(self._evaluate)

    def matches(self, expression: str, device: SelectorInput) -> bool:
        """Whether `device` satisfies `expression`. Raises InvalidValue, with the expression and
        the reason, where that cannot be told; it is never silently False."""
        answer = self._answered(expression, device)
        if isinstance(answer, str):
            raise InvalidValue(
                f"the selector {expression!r} cannot be evaluated: {answer}",
                remedy="correct the selector of the DeviceClass or of the claim's request",
            )
        return answer

    def _evaluate(self, expression: str, device: SelectorInput) -> bool | str:
        tree = self._compiled(expression)
        if isinstance(tree, str):
            return tree
        try:
            value = SelectorEvaluator(tree, device.variables()).visit(tree)
        except (EvaluationError, UnsupportedError) as error:
            return str(error)
        except RecursionError:
            return "it is nested too deeply"
        if not isinstance(value, celtypes.BoolType):
            return f"its result is not a bool but {type(value).__name__}"
        return bool(value)

    def _compile(self, expression: str) -> Tree | str:
        try:
            tree: Tree = self._environment.compile(expression)
            check(tree, _NAMES)
        except CELParseError as error:
            return f"syntax error at line {error.line}, column {error.column}"
        except UnsupportedError as error:
            return str(error)
        except RecursionError:
            return "it is nested too deeply"
        return tree
