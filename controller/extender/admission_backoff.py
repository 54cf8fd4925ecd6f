"""Nodes that did not admit a pod are excluded for the next pods of its workload for some seconds.

A Deployment makes another pod at once. A kubelet whose agent is away admits no pod, and reports
that with its next status only, ten seconds later: until then it would get one pod after another.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from prometheus_client import Counter

from controller.cache import pods
from controller.cache.keys import full_name
from dra_driver.asks.limits import Pod

_FIRST, _LONGEST = 5.0, 60.0  # seconds
_FORGOTTEN: Final = 60.0  # seconds after the pause: the next refusal is a first one again

_Place = tuple[str, str]  # UID of what made the pod, name of a node


@dataclass(frozen=True, slots=True)
class _Refusal:
    """No pod is sent before `until`. `reason` is for the pod's event."""

    until: float
    pause: float
    reason: str
    over: bool = False


@dataclass(slots=True)
class AdmissionBackoff:
    """Safe for several threads. `counter` counts the pods. Each workload has its own pauses: the
    pods of one may be wrong, as with a size that no card has, and those of others are not."""

    counter: Counter
    clock: Callable[[], float]
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _refusals: dict[_Place, _Refusal] = field(default_factory=dict)
    _over: int = 0

    def count_expired(self) -> int:
        """The number of pauses that have ended so far. When it changes, nodes that were excluded
        may take pods again."""
        now = self.clock()
        with self._lock:
            self._forget_old(now)
            for place, refusal in list(self._refusals.items()):
                if refusal.until <= now and not refusal.over:
                    self._refusals[place] = replace(refusal, over=True)
                    self._over += 1
            return self._over

    def record_rejection(self, pod: Pod, node: str) -> None:
        """The node did not admit the pod. A pod without a workload is not made again."""
        self.counter.inc()
        workload = pods.workload(pod)
        if workload is None:
            return
        now = self.clock()
        reason = (
            f"it did not admit {full_name(pod)} of the same workload; "
            f"it is tried again within {_LONGEST:.0f} s"
        )
        with self._lock:
            self._forget_old(now)  # nothing else does so while this replica follows
            before = self._refusals.get((workload, node))
            if before is not None and now < before.until:
                return  # the pod was bound before the pause began
            pause = min(_LONGEST, 2 * before.pause) if before else _FIRST
            self._refusals[workload, node] = _Refusal(now + pause, pause, reason)

    def excluded(self, pod: Pod, nodes: Iterable[str]) -> Mapping[str, str]:
        """The nodes of `nodes` that the pod may not use now, with the reason."""
        workload, now = pods.workload(pod), self.clock()
        if workload is None:
            return {}
        with self._lock:
            refusals = {node: self._refusals.get((workload, node)) for node in nodes}
        return {
            node: refusal.reason
            for node, refusal in refusals.items()
            if refusal is not None and now < refusal.until
        }

    def _forget_old(self, now: float) -> None:
        for place, refusal in list(self._refusals.items()):
            if refusal.until + _FORGOTTEN <= now:
                del self._refusals[place]
