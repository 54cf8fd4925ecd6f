"""Pods that no node could take, and that kube-scheduler shall retry.

kube-scheduler retries an unschedulable pod after cluster events that it knows, and every five
minutes. A new report of an agent is no such event, but a change of the pod is: so a pod that would
fit now gets a new value of an annotation.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Hashable
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import islice
from typing import Final

from controller.cache import pods
from controller.cache.keys import uid_of
from controller.extender.limit_request import parse_limits
from dra_driver.kube.api import ObjectApi
from dra_driver.kube.errors import Conflict, Invalid, NotFound
from dra_driver.kube.resources import PODS
from dra_driver.model.claims.claim import Object
from dra_driver.model.errors import GcuError, Refused
from dra_driver.model.names import DRIVER

logger = logging.getLogger(__name__)

ANNOTATION_RETRY: Final = f"{DRIVER}/retry"
_FIRST, _LONGEST = 2.0, 60.0  # seconds; kube-scheduler backs off by itself from 1 s to 10 s
# kube-scheduler retries a pod within five minutes: a pod that it does not ask about any more was
# deleted.
_FORGOTTEN: Final = 900.0  # seconds
# With so many nodes kube-scheduler may have left out others, which it asks about at its next
# attempt (1.36.3, schedule_one.go, `minFeasibleNodesToFind`).
_ENOUGH: Final = 100
_AT_ONCE: Final = 16  # retried at a time: what is free may be enough for one


@dataclass(frozen=True, slots=True)
class _WaitingPod:
    """`nodes` are those to which the pod may go, as they were asked about, last at `asked_at`; None
    where there may be others. Pods with equal `demand` fit the same nodes. Nothing is done before
    `due`, and after that not for `pause` seconds, which double. `seen` is the version of the cache
    that had no place."""

    pod: Object
    demand: Hashable
    nodes: tuple[str, ...] | None
    asked_at: float
    due: float
    pause: float
    seen: int = -1


@dataclass(slots=True)
class RetryQueue:
    """Safe for several threads. `fits` says whether a pod could go to any of these nodes now; None
    means all nodes."""

    api: ObjectApi
    _: KW_ONLY
    fits: Callable[[Object, Collection[str] | None], bool]
    clock: Callable[[], float]
    now_ns: Callable[[], int]
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _pods: dict[str, _WaitingPod] = field(default_factory=dict)

    def __len__(self) -> int:
        with self._lock:
            return len(self._pods)

    def add(self, pod: Object, nodes: Collection[str]) -> None:
        """None of `nodes` could take the pod."""
        uid, now = uid_of(pod), self.clock()
        places = tuple(nodes) if len(nodes) < _ENOUGH else None
        with self._lock:
            known = self._pods.get(uid)
            if known is None:
                self._pods[uid] = _WaitingPod(pod, _demand(pod), places, now, now + _FIRST, _FIRST)
            else:
                self._pods[uid] = replace(
                    known, pod=pod, demand=_demand(pod), nodes=places, asked_at=now
                )

    def drop(self, uid: str) -> None:
        """The pod does not wait any more."""
        with self._lock:
            self._pods.pop(uid, None)

    def retain(self, uids: Collection[str]) -> None:
        """Drop all pods but these."""
        with self._lock:
            self._pods = {uid: waiting for uid, waiting in self._pods.items() if uid in uids}

    def retry_due(self, version: int) -> None:
        """Have kube-scheduler retry the pods that would fit now, by priority and age. `version`
        changes whenever a pod may fit that did not before."""
        now = self.clock()
        with self._lock:
            self._pods = {
                uid: waiting
                for uid, waiting in self._pods.items()
                if now - waiting.asked_at < _FORGOTTEN
            }
            due = [
                waiting
                for waiting in self._pods.values()
                if waiting.due <= now and waiting.seen != version
            ]
        due.sort(key=lambda waiting: pods.urgency(waiting.pod))
        unfit: set[Hashable] = set()  # thousands of replicas need one answer
        fitting = (waiting for waiting in due if self._fits_now(waiting, version, unfit))
        for waiting in islice(fitting, _AT_ONCE):
            self._retry(waiting)

    def _fits_now(self, waiting: _WaitingPod, version: int, unfit: set[Hashable]) -> bool:
        """Whether the pod would fit. `unfit` has the demands, with their nodes, that do not; the
        pod's is added if it does not either."""
        asked = waiting.demand, waiting.nodes
        if asked not in unfit and self.fits(waiting.pod, waiting.nodes):
            return True
        unfit.add(asked)
        self._change(waiting, lambda known: replace(known, seen=version))
        return False

    def _retry(self, waiting: _WaitingPod) -> None:
        metadata = waiting.pod["metadata"]
        annotations = {ANNOTATION_RETRY: str(self.now_ns())}
        # The UID makes the server refuse it for another pod of that name.
        patch = {"metadata": {"uid": metadata["uid"], "annotations": annotations}}
        try:
            self.api.patch(PODS, metadata["name"], patch, namespace=metadata["namespace"])
        except (NotFound, Conflict, Invalid):
            self.drop(metadata["uid"])  # the pod was deleted, or is another one of that name
            return
        except GcuError as error:
            logger.info("pod %s/%s: %s", metadata["namespace"], metadata["name"], error)
        pause = min(_LONGEST, 2 * waiting.pause)
        due = self.clock() + pause
        self._change(waiting, lambda known: replace(known, due=due, pause=pause))

    def _change(self, waiting: _WaitingPod, change: Callable[[_WaitingPod], _WaitingPod]) -> None:
        uid = uid_of(waiting.pod)
        with self._lock:
            known = self._pods.get(uid)
            if known is not None:
                self._pods[uid] = change(known)


def _demand(pod: Object) -> Hashable:
    """What decides which nodes can take the pod: its limits, and the workload whose pods nodes did
    not admit."""
    try:
        return parse_limits(pod), pods.workload(pod)
    except Refused as error:
        return str(error)
