"""All pauses: of keys whose step failed or was in vain, of claims after a release, and of nodes on
which a pod failed. Pure: told the time.

Nothing here is needed for correctness after a restart: a claim without allocation that still
carries the finalizer was allocated once, and is treated as released just now.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from controller.cache.keys import Key
from dra_driver.util.backoff import Backoff


class Cause(Enum):
    """Why a key pauses, with the first and the longest pause in seconds."""

    # As kube-scheduler's podInitialBackoffSeconds and podMaxBackoffSeconds.
    WOKEN_IN_VAIN = 1.0, 10.0
    STOPPED = 0.5, 300.0  # its decision cost more than its allowance
    CALL_FAILED = 0.1, 30.0
    FAULT = 1.0, 300.0  # its step failed by a fault of the controller


@dataclass(slots=True)
class _Pause:
    backoff: Backoff
    until: float = 0.0

    def begin(self, now: float) -> float:
        """Gives how many seconds it lasts."""
        seconds = self.backoff.next()
        self.until = now + seconds
        return seconds


class RetryBackoff:
    """Pauses of a key that grow until its cause is forgotten. `draw` gives numbers in [0, 1)."""

    def __init__(self, draw: Callable[[], float]) -> None:
        self._draw = draw
        self._pauses: dict[tuple[Key, Cause], _Pause] = {}

    def begin(self, key: Key, cause: Cause, now: float) -> float:
        """Gives how many seconds the pause lasts."""
        pause = self._pauses.get((key, cause))
        if pause is None:
            first, longest = cause.value
            pause = _Pause(Backoff(first=first, longest=longest, draw=self._draw))
            self._pauses[key, cause] = pause
        return pause.begin(now)

    def until(self, key: Key) -> float:
        """Before this time the key is not reconciled, whatever changes."""
        return max(self.ends(key, Cause.STOPPED), self.ends(key, Cause.FAULT))

    def ends(self, key: Key, cause: Cause) -> float:
        """When the key's last pause for that cause ends; 0 where there was none."""
        pause = self._pauses.get((key, cause))
        return 0.0 if pause is None else pause.until

    def forget(self, key: Key, *causes: Cause) -> None:
        """The next pause for one of these causes is the first again."""
        for cause in causes:
            self._pauses.pop((key, cause), None)


@dataclass(slots=True)
class _PodMemory:
    granted_at: float | None = None
    verdict: str | None = None
    failed: dict[str, _Pause] = field(default_factory=dict)


class BackoffState:
    """How kube-scheduler took the allocations so far: quiet times of claims, and of each waiting
    pod the nodes that did not work out.

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
        """The pod's claims were allocated. kube-scheduler's last word before that is `verdict`."""
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
        if node not in memory.failed:
            first, longest = self._first_retry, self._longest_retry
            memory.failed[node] = _Pause(Backoff(first=first, longest=longest, draw=self._draw))
        memory.failed[node].begin(now)

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
