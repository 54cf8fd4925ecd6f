"""Pods that no node could take, and that kube-scheduler is told to try once more.

It tries a refused pod again when the cluster changes in a way that it knows (and every five
minutes); what an agent tells of its cards is none. So a pod that would fit now gets an annotation
anew: a change of the pod itself is one.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from controller.cache import pods
from controller.cache.keys import uid_of
from dra_driver.kube.api import ObjectApi
from dra_driver.kube.errors import Conflict, NotFound
from dra_driver.kube.resources import PODS
from dra_driver.model.claim import Object
from dra_driver.model.errors import GcuError
from dra_driver.model.names import DRIVER

logger = logging.getLogger(__name__)

ANNOTATION_RETRY: Final = f"{DRIVER}/retry"
_FIRST, _LONGEST = 2.0, 60.0  # seconds; kube-scheduler backs off by itself from 1 s to 10 s
# kube-scheduler comes back to a refused pod within five minutes: one that it does not ask about any
# more was deleted while it was being refused.
_FORGOTTEN: Final = 900.0  # seconds
# From so many nodes on kube-scheduler may leave it at them, and asks about others at its next
# attempt (1.36.3, schedule_one.go, `minFeasibleNodesToFind`).
_ENOUGH: Final = 100
_AT_ONCE: Final = 16  # so many are tried again at a time: what is free may be enough for one


@dataclass(frozen=True, slots=True)
class _Waiter:
    """`nodes` are those to which the pod may go, as they were asked about, last at `asked`; None
    where there may be others. Nothing is done before `due`, and after that not for `pause` seconds,
    which double. `seen` is the version of the view that had no place."""

    pod: Object
    nodes: tuple[str, ...] | None
    asked: float
    due: float
    pause: float
    seen: int = -1


class RetryQueue:
    """Safe for several threads. `fits` says whether a pod could go to any of some nodes now, or to
    any node at all where it is given None."""

    def __init__(
        self,
        api: ObjectApi,
        *,
        fits: Callable[[Object, Collection[str] | None], bool],
        clock: Callable[[], float],
        now_ns: Callable[[], int],
    ) -> None:
        self._api = api
        self._fits = fits
        self._clock = clock
        self._now_ns = now_ns
        self._lock = threading.Lock()
        self._waiters: dict[str, _Waiter] = {}

    def __len__(self) -> int:
        with self._lock:
            return len(self._waiters)

    def add(self, pod: Object, nodes: Collection[str]) -> None:
        """No node of `nodes` could take the pod."""
        uid, now = uid_of(pod), self._clock()
        places = tuple(nodes) if len(nodes) < _ENOUGH else None
        with self._lock:
            known = self._waiters.get(uid)
            if known is None:
                self._waiters[uid] = _Waiter(pod, places, now, now + _FIRST, _FIRST)
            else:
                self._waiters[uid] = replace(known, pod=pod, nodes=places, asked=now)

    def drop(self, uid: str) -> None:
        """The pod waits no longer."""
        with self._lock:
            self._waiters.pop(uid, None)

    def keep(self, uids: Collection[str]) -> None:
        """No other pods are there."""
        with self._lock:
            self._waiters = {uid: each for uid, each in self._waiters.items() if uid in uids}

    def look(self, version: int) -> None:
        """Have those tried again that would fit now, the first in line first. `version` is
        another one whenever that may have become true of any."""
        now = self._clock()
        with self._lock:
            self._waiters = {
                uid: each for uid, each in self._waiters.items() if now - each.asked < _FORGOTTEN
            }
            due = [
                each for each in self._waiters.values() if each.due <= now and each.seen != version
            ]
        due.sort(key=lambda each: pods.urgency(each.pod))
        for each in islice((each for each in due if self._has_place(each, version)), _AT_ONCE):
            self._tell(each)

    def _has_place(self, waiter: _Waiter, version: int) -> bool:
        found = self._fits(waiter.pod, waiter.nodes)
        if not found:
            self._change(waiter, lambda known: replace(known, seen=version))
        return found

    def _tell(self, waiter: _Waiter) -> None:
        metadata = waiter.pod["metadata"]
        annotations = {ANNOTATION_RETRY: str(self._now_ns())}
        # The UID makes the server refuse it for another pod of that name.
        patch = {"metadata": {"uid": metadata["uid"], "annotations": annotations}}
        try:
            self._api.patch(PODS, metadata["name"], patch, namespace=metadata["namespace"])
        except (NotFound, Conflict):
            self.drop(metadata["uid"])  # it is another one by now, or none
            return
        except GcuError as error:
            logger.info("pod %s/%s: %s", metadata["namespace"], metadata["name"], error)
        pause = min(_LONGEST, 2 * waiter.pause)
        due = self._clock() + pause
        self._change(waiter, lambda known: replace(known, due=due, pause=pause))

    def _change(self, waiter: _Waiter, change: Callable[[_Waiter], _Waiter]) -> None:
        uid = uid_of(waiter.pod)
        with self._lock:
            known = self._waiters.get(uid)
            if known is not None:
                self._waiters[uid] = change(known)
