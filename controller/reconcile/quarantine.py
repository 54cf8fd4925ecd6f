"""Objects that are set aside after a fault of the controller, so that all others are served.

A fault is an exception that nobody expected: an object holds something that the code does not
understand. It would come again with the same object after every restart.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from controller.cache.keys import Key
from controller.queue.retry_backoff import Cause, RetryBackoff
from controller.reconcile.reporter import Reporter
from dra_driver.kube.resources import Resource
from dra_driver.model.claim import Object

logger = logging.getLogger(__name__)


class Quarantine:
    """An event that fails leaves what is known of its object as it was; the next event of the
    object is taken in as any other. A step that fails is tried again when its object changes: at
    once after the first failure, then ever later, so that a step which itself changes the object
    does not fail in a loop. `isolate` is safe for several threads."""

    def __init__(
        self, narrator: Reporter, backoff: RetryBackoff, clock: Callable[[], float]
    ) -> None:
        self._narrator = narrator
        self._backoff = backoff
        self._clock = clock
        self._events: set[tuple[Resource, str, str]] = set()

    @contextmanager
    def isolate(self, resource: Resource, obj: Object) -> Iterator[None]:
        """What is done with the object in here may fail: it ends, and the program goes on."""
        try:
            yield
        except Exception as error:
            name = _name_of(obj)
            logger.exception("%s %s/%s is set aside until it changes", resource.kind, *name)
            self._events.add((resource, *name))
            self._narrator.set_aside(self._count(), resource, obj, error)
        else:
            if self._events:
                self._events.discard((resource, *_name_of(obj)))
                self._narrator.set_aside_now(self._count())

    def begin_list(self, resource: Resource) -> None:
        """All objects of the kind are taken in anew."""
        self._events = {each for each in self._events if each[0] is not resource}
        self._narrator.set_aside_now(self._count())

    def fail_step(
        self, key: Key, resource: Resource, obj: Object | None, error: Exception
    ) -> float:
        """Set aside what the key names, of which `obj` is what is known. Gives when the step is
        to be tried again at the latest."""
        until = self._backoff.set_aside(key, self._clock())
        self._narrator.set_aside(self._count(), resource, obj, error)
        return until

    def end_step(self, key: Key) -> None:
        """The step did not fail."""
        if self._backoff.forget(key, Cause.FAULT):
            self._narrator.set_aside_now(self._count())

    def __bool__(self) -> bool:
        """Whether any step is set aside."""
        return self._backoff.set_aside_keys() > 0

    def change(self, key: Key) -> None:
        """What the step of the key is about has changed."""
        self._backoff.on_change(key)

    def _count(self) -> int:
        return self._backoff.set_aside_keys() + len(self._events)


def _name_of(obj: Object) -> tuple[str, str]:
    metadata = obj.get("metadata") or {}
    return str(metadata.get("namespace", "")), str(metadata.get("name", ""))
