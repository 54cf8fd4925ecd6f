"""Limits, measures and charges the steps of the deciding thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from prometheus_client import Histogram

from controller.queue.fair_queue import Namespaces
from dra_driver.selector.allowance import SECONDS, Allowance


class StepLimiter:
    """`allowance` is the one of the thread's selectors; `durations` has the label ``kind``."""

    def __init__(
        self,
        allowance: Allowance,
        namespaces: Namespaces,
        durations: Histogram,
        clock: Callable[[], float],
    ) -> None:
        self._allowance = allowance
        self._namespaces = namespaces
        self._durations = durations
        self._clock = clock
        self._began_at: float | None = None

    @contextmanager
    def step(self, kind: str, namespace: str, seconds: float = SECONDS) -> Iterator[None]:
        """One step for an object of the namespace, which is charged. The step may raise
        AllowanceSpent after so many seconds. Steps do not nest."""
        self._began_at = began_at = self._clock()
        self._allowance.begin(seconds)
        try:
            yield
        finally:
            self._began_at = None
            now = self._clock()
            self._durations.labels(kind).observe(now - began_at)
            self._namespaces.charge(namespace, now - began_at, now)

    def running_for(self) -> float:
        """For how many seconds the present step has run; safe for any thread."""
        began_at = self._began_at
        return 0.0 if began_at is None else self._clock() - began_at
