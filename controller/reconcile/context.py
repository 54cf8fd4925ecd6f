"""What the parts of the deciding thread have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from controller.allocator.order import Policy
from controller.cache.cache import ClusterCache
from controller.cache.keys import Key, uid_of
from controller.queue.backoff import BackoffState
from controller.queue.scheduling_queue import SchedulingQueue
from controller.reconcile.reporter import Reporter
from controller.write.dispatcher import WriteDispatcher


@dataclass(frozen=True, slots=True)
class Context:
    """`clock` gives seconds; `patience` is how many of them kube-scheduler has to bind a pod
    whose claims are allocated."""

    cache: ClusterCache
    dispatcher: WriteDispatcher
    backoff: BackoffState
    queue: SchedulingQueue
    reporter: Reporter
    clock: Callable[[], float]
    now: Callable[[], datetime]
    patience: float
    policy: Policy

    def has_pod(self, key: Key, uid: str) -> bool:
        """Whether the pod `key` is there, and still the one with that UID."""
        pod = self.cache.get(key)
        return pod is not None and uid_of(pod) == uid
