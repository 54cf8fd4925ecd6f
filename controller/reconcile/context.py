"""What the parts of the deciding thread have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from controller.allocator.policy import Policy
from controller.cache import pods
from controller.cache.cache import ClusterCache
from controller.cache.keys import Key
from controller.queue.backoff import BackoffState
from controller.queue.scheduling_queue import SchedulingQueue
from controller.reconcile.reporter import Reporter
from controller.write.dispatcher import WriteDispatcher
from dra_driver.model.claim import Object


@dataclass(frozen=True, slots=True)
class Context:
    """`clock` gives seconds; `patience` is how many of them kube-scheduler has to bind a pod
    whose claims are allocated."""

    cache: ClusterCache
    dispatcher: WriteDispatcher
    backoff: BackoffState
    queue: SchedulingQueue
    narrator: Reporter
    clock: Callable[[], float]
    now: Callable[[], datetime]
    patience: float
    policy: Policy

    def has_pod(self, key: Key, uid: str) -> bool:
        """Whether the pod `key` is there, and still the one with that UID."""
        pod = self.cache.pod(key)
        return pod is not None and pods.uid_of(pod) == uid

    def wake_users(self, claim: Object, *, but: Key | None = None, after: float = 0.0) -> None:
        """Look at the pods that name the claim, `but` this one, `after` so many seconds."""
        at = self.clock() + after
        for key in map(pods.key_of, self.cache.pods_of(claim)):
            if key != but:
                self.queue.add(key, at)
