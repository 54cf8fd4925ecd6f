"""The bound on a decision's work."""

from __future__ import annotations

_SHARE = 10  # one node gets a tenth, so that a hard node does not keep others from being tried


class SearchLimitReached(Exception):
    """The search was stopped before it had tried everything."""


class Budget:
    """How many choices may turn out wrong, over all nodes of one decision."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.per_node = max(1, steps // _SHARE)
        self.spent = 0
        self._until = self._next_limit()

    def begin_node(self) -> None:
        """What follows is spent on another node."""
        self._until = self._next_limit()

    def spend(self) -> None:
        """Raises SearchLimitReached where nothing is left for the node."""
        if self.spent >= self._until:
            raise SearchLimitReached
        self.spent += 1

    @property
    def exhausted(self) -> bool:
        """Whether nothing is left for other nodes either."""
        return self.spent >= self.steps

    def _next_limit(self) -> int:
        return min(self.steps, self.spent + self.per_node)
