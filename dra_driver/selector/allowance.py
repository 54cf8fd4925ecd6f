"""A bound on one decision: what its selectors may cost together, and a deadline by the clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

STEPS: Final = 2_000_000
SECONDS: Final = 1.0


class AllowanceSpent(Exception):
    """The decision has cost as much as it may. This is no answer and is never remembered as one;
    what was found out before it stays known, so the next attempt gets further."""

    def __init__(self, limit: str) -> None:
        super().__init__(limit)
        self.limit = limit
        self.selector = ""  # the expression that was being worked on, if it was one

    @property
    def where(self) -> str:
        return "selectors" if self.selector else "search"


class Allowance:
    """One for each deciding thread; without `begin` it has no bounds. Selectors and the allocator's
    search check it again and again while they work."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._limit = ""
        self._until = float("inf")
        self._steps = float("inf")

    def begin(self, seconds: float = SECONDS) -> None:
        """Another decision begins, which may last so many seconds."""
        self._limit = f"{seconds:g} s"
        self._until = self._clock() + seconds
        self._steps = STEPS

    def charge(self, steps: int) -> None:
        """So many steps of compiling or evaluating a selector were done."""
        self._steps -= steps

    def check(self) -> None:
        """Raises AllowanceSpent after the deadline, or when the steps are used up."""
        if self._steps < 0:
            raise AllowanceSpent(f"{STEPS} steps of its selectors")
        if self._clock() >= self._until:
            raise AllowanceSpent(self._limit)
