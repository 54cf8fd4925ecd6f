"""Tells pods what their nodes' agents say that they have, for tools of the vendor's gcushare."""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from controller.cache import pods
from controller.cache.keys import uid_of
from controller.extender.annotations import assigned
from dra_driver.kube.api import ObjectApi
from dra_driver.kube.errors import Conflict, NotFound
from dra_driver.kube.resources import PODS
from dra_driver.model.claim import Object
from dra_driver.model.errors import GcuError
from dra_driver.model.node_cards import NodeCard
from dra_driver.util.backoff import Backoff

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Setback:
    """A pod that could not be written, and when it is tried again."""

    backoff: Backoff = field(default_factory=lambda: Backoff(first=1.0, longest=60.0))
    due: float = 0.0


class Assignments:
    """Safe for several threads. `cards` gives what the agent of a node told last; `clock` is
    monotonic seconds. What is written is never read here."""

    def __init__(
        self,
        api: ObjectApi,
        cards: Callable[[str], Sequence[NodeCard]],
        *,
        clock: Callable[[], float],
    ) -> None:
        self._api = api
        self._cards = cards
        self._clock = clock
        self._setbacks: dict[str, _Setback] = {}  # by UID, of pods on nodes that have changed
        self._lock = threading.Lock()
        self._pods: dict[str, dict[str, Object]] = defaultdict(dict)  # by node, by UID
        self._changed: set[str] = set()

    def put(self, pod: Object) -> None:
        """A pod with our limits, as it is now."""
        node = pods.node_name(pod)
        if not node or pods.is_done(pod):
            self.drop(pod)
            return
        with self._lock:
            self._pods[node][uid_of(pod)] = pod
            self._changed.add(node)

    def drop(self, pod: Object) -> None:
        """The pod is no more, or has ended."""
        with self._lock:
            self._pods[pods.node_name(pod)].pop(uid_of(pod), None)

    def keep(self, uids: Collection[str]) -> None:
        """No other pods are there."""
        with self._lock:
            for known in self._pods.values():
                for uid in known.keys() - set(uids):
                    del known[uid]

    def node_changed(self, name: str) -> None:
        with self._lock:
            self._changed.add(name)

    def look(self) -> None:
        """Write to those pods of which something else is told than they say; one that could not be
        written is tried again after a pause, and keeps no other one waiting."""
        with self._lock:
            changed = {node: list(self._pods[node].values()) for node in self._changed}
            self._changed = set()
        there = {uid_of(pod) for its in changed.values() for pod in its}
        self._setbacks = {uid: each for uid, each in self._setbacks.items() if uid in there}
        failed = {node for node, its in changed.items() if its and not self._tell(node, its)}
        with self._lock:
            self._changed |= failed

    def _tell(self, node: str, its: Sequence[Object]) -> bool:
        """Whether all of the pods say now what they have."""
        cards = self._cards(node)
        done = True
        for pod in its:
            wanted = assigned(pod, cards)
            present = pod["metadata"].get("annotations") or {}
            if wanted.items() - present.items():
                done &= self._attempt(pod, wanted)
        return done

    def _attempt(self, pod: Object, wanted: Mapping[str, str]) -> bool:
        uid = uid_of(pod)
        setback = self._setbacks.setdefault(uid, _Setback())
        if self._clock() < setback.due:
            return False
        if self._write(pod, wanted):
            del self._setbacks[uid]
            return True
        setback.due = self._clock() + setback.backoff.next()
        return False

    def _write(self, pod: Object, wanted: Mapping[str, str]) -> bool:
        metadata = pod["metadata"]
        # The UID makes the server refuse it for another pod of that name.
        patch = {"metadata": {"uid": metadata["uid"], "annotations": dict(wanted)}}
        try:
            self._api.patch(PODS, metadata["name"], patch, namespace=metadata["namespace"])
        except (NotFound, Conflict):
            return True  # it is another one by now, or none
        except GcuError as error:
            logger.info("pod %s/%s: %s", metadata["namespace"], metadata["name"], error)
            return False
        return True
