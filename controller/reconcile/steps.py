"""The steps of the deciding thread: each has an allowance, is measured, and is charged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from controller.queue.active_queue import NamespaceBudget
from controller.reconcile.reporter import Reporter
from dra_driver.selector.allowance import SECONDS, Allowance


class Steps:
    """`allowance` is that of the thread's selectors."""

    def __init__(
        self,
        allowance: Allowance,
        budget: NamespaceBudget,
        narrator: Reporter,
        clock: Callable[[], float],
    ) -> None:
        self._allowance = allowance
        self._budget = budget
        self._narrator = narrator
        self._clock = clock
        self._since: float | None = None

    @contextmanager
    def step(self, kind: str, namespace: str = "", seconds: float = SECONDS) -> Iterator[None]:
        """What is done in here may raise AllowanceSpent after so many seconds, and is charged to
        the namespace, if it is done for one. Steps do not nest."""
        self._since = started = self._clock()
        self._allowance.begin(seconds)
        try:
            yield
        finally:
            self._since = None
            now = self._clock()
            self._narrator.step(kind, now - started)
            if namespace:
                self._budget.charge(namespace, now - started, now)

    def lasting(self) -> float:
        """For how many seconds the present step has lasted; safe for any thread."""
        since = self._since
        return 0.0 if since is None else self._clock() - since
