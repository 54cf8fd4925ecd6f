"""The steps of the deciding thread: each has an allowance, is measured, and is charged; and what
fails with one object ends alone, so that all others are served.

A fault is an exception that nobody expected: an object holds something that the code does not
understand. It would come again with the same object after every restart.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from controller.cache.cache import RESOURCE_OF
from controller.cache.keys import Key, Subject
from controller.queue.fair_queue import Namespaces
from controller.reconcile.reporter import Reporter
from dra_driver.kube.resources import Resource
from dra_driver.model.claim import Object
from dra_driver.selector.allowance import SECONDS, Allowance

logger = logging.getLogger(__name__)


class Steps:
    """`allowance` is that of the thread's selectors."""

    def __init__(
        self,
        allowance: Allowance,
        namespaces: Namespaces,
        reporter: Reporter,
        clock: Callable[[], float],
    ) -> None:
        self._allowance = allowance
        self._namespaces = namespaces
        self._reporter = reporter
        self._clock = clock
        self._since: float | None = None
        # Objects whose event failed, and keys whose step did.
        self._set_aside: set[tuple[Resource | Subject, str, str]] = set()

    @contextmanager
    def step(self, kind: str, namespace: str = "", seconds: float = SECONDS) -> Iterator[None]:
        """What is done in here may raise AllowanceSpent after so many seconds, and is charged to
        the namespace, if it is done for one. Steps do not nest."""
        self._since = started = self._clock()
        self._allowance.begin(seconds)
        try:
            yield
        finally:
            self._since = None
            now = self._clock()
            self._reporter.steps.labels(kind).observe(now - started)
            if namespace:
                self._namespaces.charge(namespace, now - started, now)

    def lasting(self) -> float:
        """For how many seconds the present step has lasted; safe for any thread."""
        since = self._since
        return 0.0 if since is None else self._clock() - since

    @contextmanager
    def isolate(self, resource: Resource, obj: Object) -> Iterator[None]:
        """What is done with the object in here may fail: it ends, and the program goes on. What is
        known of the object stays as it was, and its next event is taken in as any other."""
        try:
            yield
        except Exception as error:
            name = _name_of(obj)
            logger.exception("%s %s/%s is set aside until it changes", resource.kind, *name)
            self._set_aside.add((resource, *name))
            self._reporter.failed_by_fault(resource, obj, error)
        else:
            if not self._set_aside:
                return
            self._set_aside.discard((resource, *_name_of(obj)))
        self._count()

    def begin_list(self, resource: Resource) -> None:
        """All objects of the kind are taken in anew."""
        self._set_aside = {each for each in self._set_aside if each[0] is not resource}
        self._count()

    def failed(self, key: Key, obj: Object | None, error: Exception) -> None:
        """The step of the key failed by a fault; `obj` is what is known of it."""
        self._set_aside.add((key.subject, key.namespace, key.name))
        self._reporter.failed_by_fault(RESOURCE_OF[key.subject], obj, error)
        self._count()

    def succeeded(self, key: Key) -> None:
        if self._set_aside:
            self._set_aside.discard((key.subject, key.namespace, key.name))
            self._count()

    def _count(self) -> None:
        self._reporter.set_aside.set(len(self._set_aside))


def _name_of(obj: Object) -> tuple[str, str]:
    metadata = obj.get("metadata") or {}
    return str(metadata.get("namespace", "")), str(metadata.get("name", ""))
