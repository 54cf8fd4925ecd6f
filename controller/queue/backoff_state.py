"""How kube-scheduler took the allocations so far: claims and nodes that are left alone for a while.

Pure: told the time.

Nothing here is needed for correctness after a restart: a claim without allocation that still
carries the finalizer was allocated once, and is treated as released just now.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from dra_driver.kube.backoff import Backoff


@dataclass(slots=True)
class _Failure:
    until: float
    backoff: Backoff


@dataclass(slots=True)
class _PodMemory:
    granted_at: float | None = None
    verdict: str | None = None
    failed: dict[str, _Failure] = field(default_factory=dict)


class BackoffState:
    """Quiet times of claims, and of each waiting pod the nodes that did not work out.

    `quiet` is how many seconds a claim is left alone after its allocation was taken away: on a
    conflict kube-scheduler reads the claim again and adds its reservation to whatever
    allocation it finds then, which would be another node's. `draw` gives numbers in [0, 1).
    """

    def __init__(
        self, *, quiet: float, first_retry: float, longest_retry: float, draw: Callable[[], float]
    ) -> None:
        self._quiet = quiet
        self._first_retry = first_retry
        self._longest_retry = longest_retry
        self._draw = draw
        self._released: dict[str, float] = {}
        self._pods: dict[str, _PodMemory] = {}

    def released(self, claim_uid: str, now: float) -> None:
        """The claim's allocation was taken away, by whomever."""
        self._released[claim_uid] = now

    def was_released(self, claim_uid: str) -> bool:
        return claim_uid in self._released

    def quiet_until(self, claim_uid: str) -> float:
        """When the claim may be allocated again; the past if nothing stands against it."""
        released = self._released.get(claim_uid)
        return 0.0 if released is None else released + self._quiet

    def granted(self, pod_uid: str, claim_uids: list[str], now: float, verdict: str | None) -> None:
        """The pod's claims were allocated: the scheduler's turn, whose last word is `verdict`."""
        for uid in claim_uids:
            self._released.pop(uid, None)
        memory = self._pods.setdefault(pod_uid, _PodMemory())
        memory.granted_at, memory.verdict = now, verdict

    def granted_at(self, pod_uid: str, now: float, verdict: str | None) -> tuple[float, str | None]:
        """Since when the pod has its allocation, as far as this process knows, and what the
        scheduler had said before that."""
        memory = self._pods.setdefault(pod_uid, _PodMemory())
        if memory.granted_at is None:
            memory.granted_at, memory.verdict = now, verdict
        return memory.granted_at, memory.verdict

    def failed(self, pod_uid: str, node: str, now: float) -> None:
        """The scheduler could not place the pod on the node; the next time it waits longer."""
        memory = self._pods.setdefault(pod_uid, _PodMemory())
        memory.granted_at = None
        known = memory.failed.get(node)
        backoff = (
            known.backoff
            if known
            else Backoff(first=self._first_retry, longest=self._longest_retry, draw=self._draw)
        )
        memory.failed[node] = _Failure(now + backoff.next(), backoff)

    def avoided(self, pod_uid: str, now: float) -> dict[str, float]:
        """Nodes that are not tried for the pod yet, and until when."""
        memory = self._pods.get(pod_uid)
        if memory is None:
            return {}
        return {node: each.until for node, each in memory.failed.items() if each.until > now}

    def failed_nodes(self, pod_uid: str) -> frozenset[str]:
        """All nodes on which the scheduler could not place the pod, however long ago."""
        memory = self._pods.get(pod_uid)
        return frozenset(memory.failed) if memory is not None else frozenset()

    def forget_pod(self, pod_uid: str) -> None:
        self._pods.pop(pod_uid, None)

    def forget_claim(self, claim_uid: str) -> None:
        self._released.pop(claim_uid, None)
