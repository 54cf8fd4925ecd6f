"""The pauses of pods and other keys: one place for all of them. Pure: told the time."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final

from controller.cache.keys import Key
from dra_driver.kube.backoff import Backoff


class Cause(Enum):
    """Why a key pauses, with the first and the longest pause in seconds."""

    # As kube-scheduler's podInitialBackoffSeconds and podMaxBackoffSeconds.
    WOKEN_IN_VAIN = 1.0, 10.0
    STOPPED = 0.5, 300.0  # its decision cost more than its allowance
    CALL_FAILED = 0.1, 30.0
    FAULT = 1.0, 300.0  # its step failed by a fault of the controller


# The fault may lie in an object that the step only reads, such as a DeviceClass.
FAULT_RETRY: Final = 300.0  # seconds, where nothing changes


class _Pause:
    __slots__ = ("after_change", "backoff", "until")

    def __init__(self, backoff: Backoff, now: float) -> None:
        self.backoff = backoff
        self.until = self.after_change = now


class RetryBackoff:
    """Pauses of a key that grow until its cause is forgotten. `draw` gives numbers in [0, 1)."""

    def __init__(self, draw: Callable[[], float]) -> None:
        self._draw = draw
        self._pauses: dict[Cause, dict[Key, _Pause]] = {cause: {} for cause in Cause}

    def begin(self, key: Key, cause: Cause, now: float) -> float:
        """Gives how many seconds the pause lasts."""
        pause = self._of(key, cause, now)
        seconds = pause.backoff.next()
        pause.until = now + seconds
        return seconds

    def set_aside(self, key: Key, now: float) -> float:
        """The step failed by a fault. Gives when it is tried again at the latest; where its object
        changes, that is at once after the first fault, then ever later."""
        known = key in self._pauses[Cause.FAULT]
        pause = self._of(key, Cause.FAULT, now)
        pause.until = now + FAULT_RETRY
        pause.after_change = now + pause.backoff.next() if known else now
        return pause.until

    def on_change(self, key: Key) -> None:
        """What the step of the key reads first of all has changed."""
        pause = self._pauses[Cause.FAULT].get(key)
        if pause is not None:
            pause.until = min(pause.until, pause.after_change)

    def set_aside_keys(self) -> int:
        """How many keys are set aside after a fault."""
        return len(self._pauses[Cause.FAULT])

    def until(self, key: Key) -> float:
        """Before this time the key is not reconciled, whatever changes."""
        return max(self.ends(key, Cause.STOPPED), self.ends(key, Cause.FAULT))

    def ends(self, key: Key, cause: Cause) -> float:
        """When the key's last pause for that cause ends; 0 where there was none."""
        pause = self._pauses[cause].get(key)
        return 0.0 if pause is None else pause.until

    def forget(self, key: Key, cause: Cause) -> bool:
        """The next pause is the first again. Whether there was one."""
        return self._pauses[cause].pop(key, None) is not None

    def _of(self, key: Key, cause: Cause, now: float) -> _Pause:
        pauses = self._pauses[cause]
        if key not in pauses:
            first, longest = cause.value
            pauses[key] = _Pause(Backoff(first=first, longest=longest, draw=self._draw), now)
        return pauses[key]
