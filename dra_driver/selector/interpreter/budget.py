"""A bound on the work of one evaluation, or of compiling one expression."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dra_driver.selector.allowance import Allowance
from dra_driver.selector.errors import RefusedError
from dra_driver.selector.values import Optional, Value

LIMIT: Final = 1_000_000  # resource.k8s.io/v1, CELSelectorExpressionMaxCost
NODE: Final = 10  # what it costs to build, to check or to compile one node of a tree
_STRIDE: Final = 500  # steps between two looks at the allowance; about a quarter of a millisecond


class CostBudget:
    """Counts down from a limit in cel-go's spirit: one for each step, and the size of what a call
    is given. A character counts one here and a tenth there, so that memory is bounded too.

    What is spent here is spent of the decision's `allowance`, too. `paid` are patterns that this
    expression has paid for already.
    """

    def __init__(self, allowance: Allowance, paid: Iterable[str] = ()) -> None:
        self.paid = set(paid)
        self._allowance = allowance
        self._left = LIMIT
        self._reported = LIMIT

    @property
    def spent(self) -> int:
        return LIMIT - self._left

    def spend(self, cost: int) -> None:
        """Raises RefusedError when the limit is passed, AllowanceSpent when the decision's is."""
        self._left -= cost
        if self._reported - self._left >= _STRIDE:
            self.check()

    def check(self) -> None:
        """As `spend` does from time to time, and as is right before anything that takes long."""
        self.settle()
        self._allowance.check()

    def settle(self) -> None:
        """Charge the allowance. Raises RefusedError when the limit is passed."""
        spent, self._reported = self._reported - self._left, self._left
        self._allowance.charge(spent)
        if self._left < 0:
            raise RefusedError(f"it costs more than {LIMIT} steps")

    def weigh(self, value: Value) -> None:
        """Spend the size of a value with all that it holds.

        Counting as it goes: lists that hold one list twice, and so on, grow exponentially.
        """
        if isinstance(value, str | bytes):
            self.spend(1 + len(value))
        elif isinstance(value, list):
            self.spend(1 + len(value))
            for each in value:
                self.weigh(each)
        elif isinstance(value, dict):
            self.spend(1 + len(value))
            for key, each in value.items():
                self.weigh(key)
                self.weigh(each)
        else:
            self.spend(1)
            if isinstance(value, Optional):
                self.weigh(value.content)
