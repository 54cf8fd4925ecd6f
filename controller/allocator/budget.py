"""The bound on a decision's work."""

from __future__ import annotations

from dra_driver.selector.allowance import Allowance

_SHARE = 10  # one node gets a tenth, so that a hard node does not keep others from being tried
_STRIDE = 32  # choices between two looks at the allowance; less than a millisecond


class SearchLimitReached(Exception):
    """The search was stopped before it had tried everything."""


class Budget:
    """How many choices may turn out wrong, over all nodes of one decision. `allowance` is what the
    decision may take in all; its end is no answer for any node."""

    def __init__(self, steps: int, allowance: Allowance) -> None:
        self.steps = steps
        self.per_node = max(1, steps // _SHARE)
        self.spent = 0
        self._allowance = allowance
        self._until = self._next_limit()

    def check(self) -> None:
        """Raises AllowanceSpent where the decision has taken too long; for what takes time and is
        no choice."""
        self._allowance.check()

    def begin_node(self) -> None:
        """What follows is spent on another node. Raises AllowanceSpent."""
        self.check()
        self._until = self._next_limit()

    def spend(self) -> None:
        """Raises SearchLimitReached where nothing is left for the node, AllowanceSpent where the
        decision has taken too long."""
        if self.spent >= self._until:
            raise SearchLimitReached
        self.spent += 1
        if not self.spent % _STRIDE:
            self.check()

    @property
    def exhausted(self) -> bool:
        """Whether nothing is left for other nodes either."""
        return self.spent >= self.steps

    def _next_limit(self) -> int:
        return min(self.steps, self.spent + self.per_node)
