"""From the threads of watches and writes to the deciding thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from controller.write.commands import WriteDone
from dra_driver.kube.api import Change
from dra_driver.kube.resources import Resource
from dra_driver.model.claims.claim import ReadOnlyObject


@dataclass(frozen=True, slots=True)
class Replaced:
    """A list: all objects of a kind (client-go: the delta ``Replaced``); none if the API server
    does not serve the kind, or forbids the list."""

    resource: Resource
    items: Sequence[ReadOnlyObject]
    is_served: bool = True


@dataclass(frozen=True, slots=True)
class ResourceEvent:
    """One object was added, modified or deleted."""

    resource: Resource
    change: Change
    object: ReadOnlyObject


Event = Replaced | ResourceEvent | WriteDone


class EventQueue:
    """Events in the order of their arrival. `received_at` is when the first of the events arrived
    that `take` returned last."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.received_at = 0.0
        self._clock = clock
        self._first_at = 0.0
        self._pending: list[Event] = []
        self._is_interrupted = False
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

    def interrupt(self) -> None:
        """Let `take` return, even without an event."""
        with self._condition:
            self._is_interrupted = True
            self._condition.notify()

    def take(self, timeout: float | None) -> list[Event]:
        """All pending events. Waits for the first one at most `timeout` seconds; None: for ever."""
        with self._condition:
            self._condition.wait_for(lambda: self._pending or self._is_interrupted, timeout)
            events, self._pending = self._pending, []
            self._is_interrupted = False
            self.received_at = self._first_at
            return events


class ResourceEventHandler:
    """Puts what a reflector receives in the event queue."""

    def __init__(self, events: EventQueue, resource: Resource) -> None:
        self._events = events
        self._resource = resource

    def on_replace(self, items: Sequence[ReadOnlyObject]) -> None:
        self._events.put(Replaced(self._resource, items))

    def on_not_served(self) -> None:
        self._events.put(Replaced(self._resource, (), is_served=False))

    def on_event(self, change: Change, obj: ReadOnlyObject) -> None:
        self._events.put(ResourceEvent(self._resource, change, obj))
