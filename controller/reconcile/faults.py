"""Isolates faults: what fails with one object ends alone, and all other objects are served.

A fault is an exception that nobody expected: an object holds something that the code does not
understand. It would come again with the same object after every restart.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from controller.cache.cache import RESOURCE_OF
from controller.cache.keys import Key, Subject
from controller.reconcile.reporter import Reporter
from dra_driver.kube.resources import Resource
from dra_driver.model.claim import Object

logger = logging.getLogger(__name__)


class FaultIsolator:
    """Knows which objects are set aside, because their event or their step failed."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self._set_aside: set[tuple[Resource | Subject, str, str]] = set()

    @contextmanager
    def isolate(self, resource: Resource, obj: Object) -> Iterator[None]:
        """An exception in here is reported and ends here. What the cache has of the object stays
        as it was, and the object's next event is handled like any other."""
        try:
            if self._set_aside:
                self._set_aside.discard((resource, *_name(obj)))
                self._reporter.set_aside.set(len(self._set_aside))
            yield
        except Exception as error:
            name = _name(obj)
            logger.exception("%s %s/%s is set aside until it changes", resource.kind, *name)
            self._set_aside.add((resource, *name))
            self._reporter.set_aside.set(len(self._set_aside))
            self._reporter.failed_by_fault(resource, obj, error)

    def on_replaced(self, resource: Resource) -> None:
        """All objects of the kind are handled anew."""
        self._set_aside = {each for each in self._set_aside if each[0] is not resource}

    def on_failed_step(self, key: Key, obj: Object | None, error: Exception) -> None:
        """The key's step failed; `obj` is what the cache has."""
        self._set_aside.add((key.subject, key.namespace, key.name))
        self._reporter.set_aside.set(len(self._set_aside))
        self._reporter.failed_by_fault(RESOURCE_OF[key.subject], obj, error)

    def on_step(self, key: Key) -> None:
        """The key's step did not fail."""
        if self._set_aside:
            self._set_aside.discard((key.subject, key.namespace, key.name))
            self._reporter.set_aside.set(len(self._set_aside))


def _name(obj: Object) -> tuple[str, str]:
    metadata = obj.get("metadata") or {}
    return str(metadata.get("namespace", "")), str(metadata.get("name", ""))
