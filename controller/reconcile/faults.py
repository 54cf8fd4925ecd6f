"""Isolates faults: what fails with one object ends alone, and all other objects are served.

A fault is an exception that nobody expected: an object holds something that the code does not
understand. It would come again with the same object after every restart.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from controller.cache.packed import unpacked
from controller.reconcile.reporter import Reporter
from dra_driver.kube.resources import Resource
from dra_driver.model.claims.claim import ReadOnlyObject

logger = logging.getLogger(__name__)


class FaultIsolator:
    """Its length is the number of objects whose last event failed."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self._faulty: set[tuple[Resource, str, str]] = set()

    def __len__(self) -> int:
        return len(self._faulty)

    @contextmanager
    def isolate(self, resource: Resource, obj: ReadOnlyObject) -> Iterator[None]:
        """An exception in here is reported and ends here. What the cache has of the object stays
        as it was, and the object's next event is handled like any other."""
        try:
            if self._faulty:
                self._faulty.discard((resource, *_name(obj)))
            yield
        except Exception as error:
            name = _name(obj)
            logger.exception("%s %s/%s is not handled until it changes", resource.kind, *name)
            self._faulty.add((resource, *name))
            self._reporter.failed_by_fault(resource, unpacked(obj), error)

    def on_replaced(self, resource: Resource) -> None:
        """All objects of the kind are handled again."""
        self._faulty = {each for each in self._faulty if each[0] is not resource}


def _name(obj: ReadOnlyObject) -> tuple[str, str]:
    metadata = obj.get("metadata") or {}
    return str(metadata.get("namespace", "")), str(metadata.get("name", ""))
