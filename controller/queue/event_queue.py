"""From the threads of watches and writes to the one thread that decides."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from controller.cache.keys import Key
from dra_driver.kube.api import Change
from dra_driver.kube.resources import Resource
from dra_driver.model.claim import Object


@dataclass(frozen=True, slots=True)
class Replaced:
    """All objects of a kind."""

    resource: Resource
    items: Sequence[Object]


@dataclass(frozen=True, slots=True)
class Event:
    """One object of a kind."""

    resource: Resource
    change: Change
    object: Object


@dataclass(frozen=True, slots=True)
class Finished:
    """A write ended; `settle` raises what it raised."""

    key: Key
    settle: Callable[[], None]


News = Replaced | Event | Finished


class Inbox:
    """News in the order in which they came; `take` waits for them. `since` is when the first of
    those came that were taken last."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.since = 0.0
        self._clock = clock
        self._first_at = 0.0
        self._news: list[News] = []
        self._awake = False
        self._condition = threading.Condition()

    def put(self, news: News) -> None:
        with self._condition:
            if not self._news:
                self._first_at = self._clock()
            self._news.append(news)
            self._condition.notify()

    def __len__(self) -> int:
        with self._condition:
            return len(self._news)

    def wake(self) -> None:
        """Let `take` return, though there is nothing new."""
        with self._condition:
            self._awake = True
            self._condition.notify()

    def take(self, timeout: float | None) -> list[News]:
        """All news, after at most `timeout` seconds; None waits for ever."""
        with self._condition:
            self._condition.wait_for(lambda: self._news or self._awake, timeout)
            news, self._news = self._news, []
            self._awake = False
            self.since = self._first_at
            return news


class InboxHandler:
    """A reflector's handler that puts everything in the inbox."""

    def __init__(self, inbox: Inbox, resource: Resource) -> None:
        self._inbox = inbox
        self._resource = resource

    def on_replace(self, items: Sequence[Object]) -> None:
        self._inbox.put(Replaced(self._resource, items))

    def on_event(self, change: Change, obj: Object) -> None:
        self._inbox.put(Event(self._resource, change, obj))
