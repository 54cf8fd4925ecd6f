"""From the threads of watches and writes to the one thread that decides."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from controller.write.commands import WriteDone
from dra_driver.kube.api import Change
from dra_driver.kube.resources import Resource
from dra_driver.model.claim import Object


@dataclass(frozen=True, slots=True)
class Replaced:
    """All objects of a kind."""

    resource: Resource
    items: Sequence[Object]


@dataclass(frozen=True, slots=True)
class ResourceEvent:
    """One object of a kind."""

    resource: Resource
    change: Change
    object: Object


Event = Replaced | ResourceEvent | WriteDone


class EventQueue:
    """Events in the order in which they came; `take` waits for them. `since` is when the first of
    those came that were taken last."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.since = 0.0
        self._clock = clock
        self._first_at = 0.0
        self._pending: list[Event] = []
        self._awake = False
        self._condition = threading.Condition()

    def put(self, event: Event) -> None:
        with self._condition:
            if not self._pending:
                self._first_at = self._clock()
            self._pending.append(event)
            self._condition.notify()

    def __len__(self) -> int:
        with self._condition:
            return len(self._pending)

    def wake(self) -> None:
        """Let `take` return, though there is no event."""
        with self._condition:
            self._awake = True
            self._condition.notify()

    def take(self, timeout: float | None) -> list[Event]:
        """All events, after at most `timeout` seconds; None waits for ever."""
        with self._condition:
            self._condition.wait_for(lambda: self._pending or self._awake, timeout)
            events, self._pending = self._pending, []
            self._awake = False
            self.since = self._first_at
            return events


class ResourceEventHandler:
    """A reflector's handler that puts everything in the event queue."""

    def __init__(self, events: EventQueue, resource: Resource) -> None:
        self._events = events
        self._resource = resource

    def on_replace(self, items: Sequence[Object]) -> None:
        self._events.put(Replaced(self._resource, items))

    def on_event(self, change: Change, obj: Object) -> None:
        self._events.put(ResourceEvent(self._resource, change, obj))
