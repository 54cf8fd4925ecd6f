"""Counts pods that our gate holds back although nobody has decided about them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from controller import metric_specs as specs
from controller.cache import pods
from controller.cache.keys import Key, uid_of
from controller.cache.packed import unpacked
from dra_driver.kube.api import Change
from dra_driver.model.claims.claim import ReadOnlyObject

logger = logging.getLogger(__name__)

_PATIENCE: Final = 60.0
"""Seconds that a decision may take: most take milliseconds."""


class GatedPods(Collector):
    """The handler of a watch of all pods, and the metric. Every replica has one, because nobody
    leads where it matters most. Thread-safe.

    `is_waiting` says of a pod whether this replica has decided that it waits, `leads` whether this
    replica leads, and `has_leader` whether any does. `clock` returns seconds.
    """

    def __init__(
        self,
        *,
        is_waiting: Callable[[Key], bool],
        leads: Callable[[], bool],
        has_leader: Callable[[], bool],
        clock: Callable[[], float],
    ) -> None:
        self._is_waiting = is_waiting
        self._leads = leads
        self._has_leader = has_leader
        self._clock = clock
        self._lock = threading.Lock()
        self._since: dict[tuple[Key, str], float] = {}  # by pod and UID

    def on_replace(self, items: Sequence[ReadOnlyObject]) -> None:
        now, gated = self._clock(), map(_gated, items)
        with self._lock:
            self._since = {pod: self._since.get(pod, now) for pod, is_gated in gated if is_gated}

    def on_event(self, change: Change, obj: ReadOnlyObject) -> None:
        pod, is_gated = _gated(obj)
        with self._lock:
            if is_gated and change is not Change.DELETED:
                self._since.setdefault(pod, self._clock())
            else:
                self._since.pop(pod, None)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Called for each request of metrics."""
        yield specs.UNDECIDED_GATES.samples({(): float(self._count())})

    def _count(self) -> int:
        leads = self._leads()
        if not leads and self._has_leader():
            return 0  # the leader counts
        limit = self._clock() - _PATIENCE
        with self._lock:
            late = [key for (key, _), since in self._since.items() if since < limit]
        return sum(not (leads and self._is_waiting(key)) for key in late)


def _gated(obj: ReadOnlyObject) -> tuple[tuple[Key, str], bool]:
    """The pod, and whether our gate alone holds it back."""
    pod = unpacked(obj)
    try:
        is_gated = pods.has_our_gate(pod) and not pods.is_aside(pod)
    except (LookupError, TypeError, AttributeError) as error:
        # The watch goes on: one object that differs from its model must not end it.
        logger.warning("pod %s cannot be read: %r", pod["metadata"].get("name"), error)
        is_gated = False
    return (pods.key_of(pod), uid_of(pod)), is_gated
