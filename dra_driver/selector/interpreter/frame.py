"""What one evaluation of a selector carries along."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dra_driver.selector.interpreter.budget import CostBudget
from dra_driver.selector.values import Value


@dataclass(slots=True)
class Frame:
    """What the evaluation may still cost, and the values of its variables."""

    budget: CostBudget
    variables: list[Value]


Run = Callable[[Frame], Value]
