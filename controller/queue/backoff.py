"""All backoffs: of keys, of claims after a release, of nodes on which a pod failed. Pure.

A restart loses nothing that is needed. A claim without allocation that still has the finalizer was
allocated before: it counts as released just now.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from controller.cache.keys import Key
from controller.cache.pods import Condition
from dra_driver.util.backoff import Backoff


class BackoffReason(Enum):
    """Why a key backs off, with the first and the longest backoff in seconds."""

    # As kube-scheduler's podInitialBackoffSeconds and podMaxBackoffSeconds.
    STILL_UNSCHEDULABLE = 1.0, 10.0  # an event made the pod active, and it could not be served
    DECISION_STOPPED = 0.5, 300.0  # the decision cost more than its allowance
    CALL_FAILED = 0.1, 30.0
    FAULT = 1.0, 300.0  # the step failed by a fault of the controller


class _Timer:
    """One growing backoff, and when it ends."""

    def __init__(self, first: float, longest: float, draw: Callable[[], float]) -> None:
        self._backoff = Backoff(first=first, longest=longest, draw=draw)
        self.until = 0.0

    def begin(self, now: float) -> float:
        """Returns how many seconds the backoff lasts."""
        seconds = self._backoff.next()
        self.until = now + seconds
        return seconds


class KeyBackoff:
    """Backoffs of keys, which grow until their reason is forgotten. `draw` returns random numbers
    in [0, 1)."""

    def __init__(self, draw: Callable[[], float]) -> None:
        self._draw = draw
        self._timers: dict[BackoffReason, dict[Key, _Timer]] = {each: {} for each in BackoffReason}

    def begin(self, key: Key, reason: BackoffReason, now: float) -> float:
        """Returns how many seconds the backoff lasts."""
        timers = self._timers[reason]
        if key not in timers:
            timers[key] = _Timer(*reason.value, self._draw)
        return timers[key].begin(now)

    def blocked_until(self, key: Key) -> float:
        """No step of the key begins before this time, whatever changes."""
        stopped = self.until(key, BackoffReason.DECISION_STOPPED)
        return max(stopped, self.until(key, BackoffReason.FAULT))

    def until(self, key: Key, reason: BackoffReason) -> float:
        """When the key's last backoff for that reason ends; 0 if there was none."""
        timer = self._timers[reason].get(key)
        return 0.0 if timer is None else timer.until

    def forget(self, key: Key, *reasons: BackoffReason) -> None:
        """The next backoff for one of these reasons is the first one again."""
        for reason in reasons:
            self._timers[reason].pop(key, None)

    def count(self, reason: BackoffReason) -> int:
        """How many keys have a backoff for that reason; safe for any thread."""
        return len(self._timers[reason])


@dataclass(frozen=True, slots=True)
class Allocated:
    """The last allocation for a pod: when, the pod's condition before it, and whether
    kube-scheduler binds volumes of the pod before it reserves the claims, and does not say so."""

    at: float
    condition: Condition
    binds_volumes: bool = False


@dataclass(slots=True)
class _PodState:
    allocated: Allocated | None = None
    failed: dict[str, _Timer] = field(default_factory=dict)


class BackoffState:
    """When claims were released, when pods were allocated, and on which nodes pods failed.

    `quiet_time`: seconds for which a claim is left alone after its allocation was cleared. After a
    conflict kube-scheduler reads the claim again and adds its reservation to the allocation that it
    finds then, which could be of another node.
    `first_retry`, `longest_retry`: seconds until a node is tried again for a pod that failed there.
    `draw` returns random numbers in [0, 1).
    """

    def __init__(
        self,
        *,
        quiet_time: float,
        first_retry: float,
        longest_retry: float,
        draw: Callable[[], float],
    ) -> None:
        self._quiet_time = quiet_time
        self._retry = first_retry, longest_retry
        self._draw = draw
        self._released: dict[str, float] = {}  # by the claim's UID
        self._pods: dict[str, _PodState] = {}  # by the pod's UID

    def record_release(self, claim_uid: str, now: float) -> None:
        """Somebody cleared the claim's allocation."""
        self._released[claim_uid] = now

    def was_released(self, claim_uid: str) -> bool:
        return claim_uid in self._released

    def quiet_until(self, claim_uid: str) -> float:
        """When the claim may be allocated again; a time in the past if it may be now."""
        released = self._released.get(claim_uid)
        return 0.0 if released is None else released + self._quiet_time

    def record_allocation(self, pod_uid: str, claim_uids: list[str], found: Allocated) -> None:
        """The pod's claims were allocated."""
        for uid in claim_uids:
            self._released.pop(uid, None)
        self._pods.setdefault(pod_uid, _PodState()).allocated = found

    def allocated(self, pod_uid: str, otherwise: Allocated) -> Allocated:
        """The last allocation for the pod; `otherwise` if another process made it."""
        state = self._pods.setdefault(pod_uid, _PodState())
        if state.allocated is None:
            state.allocated = otherwise
        return state.allocated

    def last_allocated(self, pod_uid: str) -> float | None:
        """When this process allocated the pod's claims; None if it did not."""
        state = self._pods.get(pod_uid)
        return None if state is None or state.allocated is None else state.allocated.at

    def forget_allocation(self, pod_uid: str) -> None:
        """A claim of the pod lost its allocation."""
        if pod_uid in self._pods:
            self._pods[pod_uid].allocated = None

    def record_failure(self, pod_uid: str, node: str, now: float) -> None:
        """kube-scheduler could not place the pod on the node."""
        state = self._pods.setdefault(pod_uid, _PodState())
        state.failed.setdefault(node, _Timer(*self._retry, self._draw)).begin(now)

    def nodes_in_backoff(self, pod_uid: str, now: float) -> dict[str, float]:
        """Nodes that are not tried for the pod yet, and until when."""
        state = self._pods.get(pod_uid, _PodState())
        return {node: timer.until for node, timer in state.failed.items() if timer.until > now}

    def failed_nodes(self, pod_uid: str) -> frozenset[str]:
        """All nodes on which kube-scheduler could not place the pod, however long ago."""
        return frozenset(self._pods.get(pod_uid, _PodState()).failed)

    def forget_pod(self, pod_uid: str) -> None:
        self._pods.pop(pod_uid, None)

    def forget_claim(self, claim_uid: str) -> None:
        self._released.pop(claim_uid, None)
