"""A bound on the work of one evaluation."""

from __future__ import annotations

from typing import Final

from dra_driver.selector.errors import RefusedError
from dra_driver.selector.values import Value

LIMIT: Final = 1_000_000  # resource.k8s.io/v1, CELSelectorExpressionMaxCost


class Budget:
    """Counts down from a limit in cel-go's spirit: one for each step, and the size of what a call
    is given. A character counts one here and a tenth there, so that memory is bounded too."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._left = limit

    @property
    def spent(self) -> int:
        return self._limit - self._left

    def spend(self, cost: int) -> None:
        """Raises RefusedError when the limit is passed."""
        self._left -= cost
        if self._left < 0:
            raise RefusedError(f"it costs more than {self._limit} steps")

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
