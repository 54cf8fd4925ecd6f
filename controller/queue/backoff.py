"""Backoffs of keys. Pure."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from controller.cache.keys import Key
from dra_driver.util.backoff import Backoff


class BackoffReason(Enum):
    """Why a key backs off, with the first and the longest backoff in seconds."""

    # As kube-scheduler's podInitialBackoffSeconds and podMaxBackoffSeconds.
    STILL_UNSCHEDULABLE = 1.0, 10.0  # an event made the pod active, and it could not be served
    DECISION_STOPPED = 0.5, 300.0  # the decision cost more than its allowance
    CALL_FAILED = 0.1, 30.0
    FAULT = 1.0, 300.0  # the step failed by a fault of the controller


class BackoffTimer:
    """One growing backoff, and when it ends."""

    def __init__(self, first: float, longest: float, draw: Callable[[], float]) -> None:
        self._backoff = Backoff(first=first, longest=longest, draw=draw)
        self.until = 0.0

    def begin(self, now: float) -> float:
        """Returns how many seconds the backoff lasts."""
        seconds = self._backoff.next()
        self.until = now + seconds
        return seconds


class KeyBackoff:
    """Backoffs of keys, which grow until their reason is forgotten. `draw` returns random numbers
    in [0, 1)."""

    def __init__(self, draw: Callable[[], float]) -> None:
        self._draw = draw
        self._timers: dict[BackoffReason, dict[Key, BackoffTimer]] = {
            each: {} for each in BackoffReason
        }

    def begin(self, key: Key, reason: BackoffReason, now: float) -> float:
        """Returns how many seconds the backoff lasts."""
        timers = self._timers[reason]
        if key not in timers:
            timers[key] = BackoffTimer(*reason.value, self._draw)
        return timers[key].begin(now)

    def blocked_until(self, key: Key) -> float:
        """No step of the key begins before this time, whatever changes."""
        stopped = self.until(key, BackoffReason.DECISION_STOPPED)
        return max(stopped, self.until(key, BackoffReason.FAULT))

    def until(self, key: Key, reason: BackoffReason) -> float:
        """When the key's last backoff for that reason ends; 0 if there was none."""
        timer = self._timers[reason].get(key)
        return 0.0 if timer is None else timer.until

    def forget(self, key: Key, *reasons: BackoffReason) -> None:
        """The next backoff for one of these reasons is the first one again."""
        for reason in reasons:
            self._timers[reason].pop(key, None)

    def count(self, reason: BackoffReason) -> int:
        """How many keys have a backoff for that reason; safe for any thread."""
        return len(self._timers[reason])
