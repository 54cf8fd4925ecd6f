"""How long an allocation may wait for its pod to be bound, and what follows if it waits in vain.
Pure.

Times are seconds of the worker's clock. A *unit* is what is bound, or released, as one: a pod, or
all pods of a gang. It is named by its UID.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from controller.cache.pods import BINDING_LIMIT, Condition
from dra_driver.util.backoff import Backoff

UNUSED_LIMIT: Final = 330.0
"""Seconds after which an allocation is released though nobody else can use it. kube-scheduler tries
a pod again five minutes after it rejected the pod, and checks for such pods every thirty seconds
(1.37.1, pod-max-in-unschedulable-pods-duration, flushUnschedulableEntitiesLeftover): by then it has
tried every pod."""
_RECENT: Final = 600.0
_SAMPLES: Final = 1024
_PROMISE: Final = 10.0  # longer than a release and the allocation after it take


@dataclass(slots=True)
class _UnitState:
    backoff: Backoff | None = None  # from the first pause on
    paused_until: float = 0.0
    until_tried: bool = False
    condition: Condition = None
    node_failed: bool = False
    allocated_at: float = 0.0
    asked_until: float = 0.0
    met: set[str] = field(default_factory=set)  # units that one of the two gave its devices to


class BindClock:
    """One instance, one thread. `patience`: seconds that kube-scheduler has to bind a pod at least.
    A released unit pauses for `first_pause` seconds, and up to `longest_pause` as it happens again.
    """

    def __init__(
        self,
        *,
        patience: float,
        first_pause: float,
        longest_pause: float,
        draw: Callable[[], float],
    ) -> None:
        self._patience = patience
        self._first_pause = first_pause
        self._longest_pause = longest_pause
        self._draw = draw
        self._bindings: deque[tuple[float, float]] = deque(maxlen=_SAMPLES)
        self._units: dict[str, _UnitState] = {}
        self._promised: dict[str, float] = {}  # until when, by the UIDs of pods

    def record_binding(self, seconds: float, now: float) -> None:
        """A pod was bound so many seconds after its allocation."""
        self._bindings.append((now, seconds))

    def patience(self, now: float) -> float:
        """Seconds from an allocation until it may be released: twice as long as 99 of 100 recent
        pods took, if that is more than the setting, so that a slow cluster loses nothing."""
        while self._bindings and self._bindings[0][0] < now - _RECENT:
            self._bindings.popleft()
        seconds = sorted(seconds for _, seconds in self._bindings)
        p99 = seconds[-1 - len(seconds) // 100] if seconds else 0.0
        return max(self._patience, min(2 * p99, BINDING_LIMIT))

    def begin_pause(
        self,
        unit: str,
        now: float,
        *,
        first: float | None = None,
        until_tried: bool = False,
        condition: Condition = None,
        node_failed: bool = False,
    ) -> float:
        """The unit's devices were released: nothing is allocated for it for a while, which grows
        from `first` seconds. With `until_tried` no scheduler has come to it: the pause ends when
        its `condition` changes. `node_failed`: it could not be bound where it was. Returns the
        seconds."""
        state = self._unit(unit)
        if state.backoff is None:
            first = self._first_pause if first is None else first
            longest = max(first, self._longest_pause)
            state.backoff = Backoff(first=first, longest=longest, draw=self._draw)
        seconds = state.backoff.next()
        state.paused_until = now + seconds
        state.until_tried, state.condition = until_tried, condition
        state.node_failed = node_failed
        return seconds

    def paused_until(self, unit: str, condition: Condition) -> float:
        """When the unit may be allocated again; a time in the past if it may be now."""
        found = self._units.get(unit)
        if found is None or (found.until_tried and found.condition != condition):
            return 0.0
        return found.paused_until

    def has_node_failed(self, unit: str) -> bool:
        """Whether the unit could not be bound where it was before its last pause."""
        found = self._units.get(unit)
        return found is not None and found.node_failed

    def record_allocation(self, unit: str, pod: str, now: float) -> None:
        """A pod of the unit got devices. Of a pod alone `BackoffState` knows when."""
        if unit != pod:
            self._unit(unit).allocated_at = now
        self._promised.pop(pod, None)

    def allocated_at(self, unit: str, otherwise: float) -> float:
        """When the unit got devices last; `otherwise` if another process allocated them."""
        found = self._units.get(unit)
        return max(otherwise, 0.0 if found is None else found.allocated_at)

    def ask_again_at(self, unit: str, at: float) -> None:
        """Nobody could use what the unit holds: ask again then."""
        self._unit(unit).asked_until = at

    def asked_until(self, unit: str) -> float:
        """Until when it is known that nobody could use what the unit holds: one answer for all pods
        of a gang."""
        found = self._units.get(unit)
        return 0.0 if found is None else found.asked_until

    def is_promised(self, pod: str, now: float) -> bool:
        """Whether devices were released for the pod that it has not got yet: one release is enough
        for it."""
        return self._promised.get(pod, 0.0) > now

    def begin_handover(self, unit: str, other: str, pod: str, now: float) -> None:
        """The devices of `unit` are being released for `pod`, which is of the unit `other`."""
        self._unit(unit).met.add(other)
        self._unit(other).met.add(unit)
        self._promised[pod] = now + _PROMISE

    def have_met(self, unit: str, other: str) -> bool:
        """Whether one of the two gave its devices to the other before. It is not done again: the
        two could take turns for ever."""
        found = self._units.get(unit)
        return found is not None and other in found.met

    def on_not_released(self, unit: str, other: str, pod: str) -> None:
        """The release failed: the unit does not pause, and the two have not met. Both `other` and
        `pod` are empty if it was for nobody."""
        self._promised.pop(pod, None)
        self._unit(unit).paused_until = 0.0
        for one, two in ((unit, other), (other, unit)):
            if one in self._units:
                self._units[one].met.discard(two)

    def forget(self, unit: str) -> None:
        """The unit was bound, or is gone."""
        self._units.pop(unit, None)
        self._promised.pop(unit, None)

    def _unit(self, unit: str) -> _UnitState:
        return self._units.setdefault(unit, _UnitState())
