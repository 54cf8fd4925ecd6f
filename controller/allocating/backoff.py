"""Backoffs of claims after a release, and of nodes on which a pod failed. Pure.

A restart loses nothing that is needed. A claim without allocation that still has the finalizer was
allocated before: it counts as released just now.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from controller.cache.pods import Condition
from controller.queue.backoff import BackoffTimer


@dataclass(frozen=True, slots=True)
class Allocated:
    """The last allocation for a pod: when, the pod's condition before it, and whether
    kube-scheduler binds volumes of the pod before it reserves the claims, and does not say so."""

    at: float
    condition: Condition
    binds_volumes: bool = False


@dataclass(frozen=True, slots=True)
class _Release:
    at: float
    node: str


@dataclass(slots=True)
class _PodState:
    allocated: Allocated | None = None
    failed: dict[str, BackoffTimer] = field(default_factory=dict)


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
        self._released: dict[str, _Release] = {}  # by the claim's UID
        self._pods: dict[str, _PodState] = {}  # by the pod's UID

    def record_release(self, claim_uid: str, now: float, node: str = "") -> None:
        """Somebody cleared the claim's allocation. `node` is where it was, if no waiting pod failed
        there; empty otherwise, or if it is not known."""
        self._released[claim_uid] = _Release(now, node)

    def was_released(self, claim_uid: str) -> bool:
        return claim_uid in self._released

    def quiet_until(self, claim_uid: str) -> float:
        """When the claim may be allocated again; a time in the past if it may be now."""
        released = self._released.get(claim_uid)
        return 0.0 if released is None else released.at + self._quiet_time

    def released_node(self, claim_uid: str) -> str:
        """The `node` of the claim's last release."""
        released = self._released.get(claim_uid)
        return "" if released is None else released.node

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
        state.failed.setdefault(node, BackoffTimer(*self._retry, self._draw)).begin(now)

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
