"""What is counted of names."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import partial

from prometheus_client import CollectorRegistry

from controller import metric_specs as specs
from controller.nominate.nominations import Nominations


class GroupReason(StrEnum):
    """What a group of pods waits for."""

    INCOMPLETE = "incomplete"
    DEVICES = "devices"
    REFUSED = "refused"


class NominationMetrics:
    """Public attributes are metrics that their users count in."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.bound = specs.NOMINATED_PODS_BOUND.register(registry)
        for followed in ("true", "false"):
            self.bound.labels(followed)
        self.arrived = specs.ARRIVED_PODS.register(registry)
        for gated in ("true", "false"):
            self.arrived.labels(gated)
        self.names_stopped = specs.NAMES_STOPPED.register(registry)
        self.refused = specs.NOMINATIONS_REFUSED.register(registry)
        self.group_seconds = specs.GROUP_SECONDS.register(registry)
        self._waiting_groups = specs.WAITING_GROUPS.register(registry)
        self._named = specs.NOMINATED_PODS.register(registry)

    def observe(self, nominations: Nominations) -> None:
        """Each scrape reads how many pods are named."""
        self._named.set_function(lambda: float(len(nominations)))

    def observe_groups(self, waiting: Callable[[GroupReason], int]) -> None:
        """Each scrape reads how many groups wait for that reason."""
        for reason in GroupReason:
            self._waiting_groups.labels(reason).set_function(partial(_count, waiting, reason))


def _count(waiting: Callable[[GroupReason], int], reason: GroupReason) -> float:
    return float(waiting(reason))
