"""Nodes that did not admit a pod, which the next pods of its workload are kept from for a while.

A Deployment makes another pod at once. A kubelet whose agent is away admits none, and says so with
its next status only, ten seconds later: until then it would be sent one pod after another.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from prometheus_client import Counter

from controller.cache import pods
from controller.extender.limit_request import Pod

_FIRST, _LONGEST = 5.0, 60.0  # seconds
_FORGOTTEN: Final = 60.0  # seconds after the pause: the next refusal is a first one again

_Place = tuple[str, str]  # UID of what made the pod, name of a node


@dataclass(frozen=True, slots=True)
class _Refusal:
    """Nothing is sent before `until`; `reason` says so to people."""

    until: float
    pause: float
    reason: str
    over: bool = False


class AdmissionBackoff:
    """Safe for several threads. `counter` counts the pods. Workloads are told apart: what is wrong
    with the pods of one, such as a size that is none, keeps nobody else from the node."""

    def __init__(self, counter: Counter, clock: Callable[[], float]) -> None:
        self._counter = counter
        self._clock = clock
        self._lock = threading.Lock()
        self._found: dict[_Place, _Refusal] = {}
        self._over = 0

    def look(self) -> int:
        """How many pauses are over so far: with another number, pods may go where none could."""
        now = self._clock()
        with self._lock:
            for place, each in list(self._found.items()):
                if each.until + _FORGOTTEN <= now:
                    del self._found[place]
                elif each.until <= now and not each.over:
                    self._found[place] = replace(each, over=True)
                    self._over += 1
            return self._over

    def note(self, pod: Pod, node: str) -> None:
        """The node did not admit the pod. Nobody makes a pod anew that was made by hand."""
        self._counter.inc()
        workload = pods.workload(pod)
        if workload is None:
            return
        metadata, now = pod["metadata"], self._clock()
        reason = (
            f"it did not admit {metadata['namespace']}/{metadata['name']} of the same workload; "
            f"it is tried again within {_LONGEST:.0f} s"
        )
        with self._lock:
            before = self._found.get((workload, node))
            if before is not None and now < before.until:
                return  # it was on its way already
            pause = min(_LONGEST, 2 * before.pause) if before else _FIRST
            self._found[workload, node] = _Refusal(now + pause, pause, reason)

    def of(self, pod: Pod, nodes: Iterable[str]) -> Mapping[str, str]:
        """Those of `nodes` to which the pod is not to go now, and why."""
        workload, now = pods.workload(pod), self._clock()
        if workload is None:
            return {}
        with self._lock:
            found = {node: self._found.get((workload, node)) for node in nodes}
        return {node: each.reason for node, each in found.items() if each and now < each.until}
