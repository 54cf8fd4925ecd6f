"""Counts pods that have cards of a node past the driver: without a claim, and without limits."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Iterator, Sequence

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from controller import metric_specs as specs
from controller.agents import RunningAgents
from controller.cache import pods
from controller.cache.card_access import direct_access
from controller.cache.keys import uid_of
from controller.cache.packed import unpacked
from dra_driver.kube.api import Change
from dra_driver.model.claims.claim import Object, ReadOnlyObject

logger = logging.getLogger(__name__)


class UnclaimedPods(Collector):
    """The handler of a watch of all pods, and the metric. Thread-safe.

    A pod counts where an agent runs, since elsewhere there is no card. The agents themselves do
    not count. Their RuntimeClass is the vendor's.
    """

    def __init__(self, agents: RunningAgents) -> None:
        self._agents = agents
        self._lock = threading.Lock()
        self._suspects: dict[str, Object] = {}  # by UID

    def on_replace(self, items: Sequence[ReadOnlyObject]) -> None:
        suspects = {uid_of(pod): pod for pod in map(unpacked, items) if _is_suspect(pod)}
        with self._lock:
            self._suspects = suspects

    def on_event(self, change: Change, obj: ReadOnlyObject) -> None:
        pod = unpacked(obj)
        with self._lock:
            if change is not Change.DELETED and _is_suspect(pod):
                self._suspects[uid_of(pod)] = pod
            else:
                self._suspects.pop(uid_of(pod), None)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Called for each request of metrics."""
        nodes, own = self._agents.nodes(), self._agents.uids()
        classes = self._agents.runtime_classes()
        with self._lock:
            suspects = list(self._suspects.values())
        yield specs.PODS_WITHOUT_CLAIM.samples(
            Counter(
                (pods.node_name(pod), pod["metadata"]["namespace"])
                for pod in suspects
                if pods.node_name(pod) in nodes
                and uid_of(pod) not in own
                and direct_access(pod, classes)
            )
        )


def _is_suspect(pod: Object) -> bool:
    """Whether the pod would count if its RuntimeClass, if any, is the vendor's."""
    try:
        name = pod["spec"].get("runtimeClassName")
        is_bound = bool(pods.node_name(pod)) and not pods.is_done(pod)
        return is_bound and bool(direct_access(pod, {name} if name else ()))
    except (LookupError, TypeError, AttributeError) as error:
        # The watch goes on: one object that differs from its model must not end it.
        logger.warning("pod %s cannot be read: %r", pod["metadata"].get("name"), error)
        return False
