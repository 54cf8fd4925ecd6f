"""Annotates pods with the devices that their nodes' agents report, for tools of gcushare."""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field

from controller.cache import pods
from controller.cache.keys import uid_of
from controller.extender.gcushare.annotations import assigned
from dra_driver.kube.api import ObjectApi
from dra_driver.kube.errors import Conflict, Invalid, NotFound
from dra_driver.kube.resources import PODS
from dra_driver.model.claims.claim import Object
from dra_driver.model.devices.node_cards import NodeCard
from dra_driver.model.errors import GcuError
from dra_driver.util.backoff import Backoff

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _RetryState:
    """Of a pod that could not be patched: when it is tried again."""

    backoff: Backoff = field(default_factory=lambda: Backoff(first=1.0, longest=60.0))
    due: float = 0.0


@dataclass(slots=True)
class AssignmentAnnotator:
    """Safe for several threads. `cards` gives the last report of a node's agent; `clock` is
    monotonic seconds."""

    api: ObjectApi
    cards: Callable[[str], Sequence[NodeCard]]
    _: KW_ONLY
    clock: Callable[[], float]
    # By UID, of pods on nodes that have changed.
    _retries: dict[str, _RetryState] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    # By node, by UID.
    _pods: dict[str, dict[str, Object]] = field(default_factory=lambda: defaultdict(dict))
    _changed: set[str] = field(default_factory=set)

    def put(self, pod: Object) -> None:
        """A pod with GCU limits, in its current state."""
        node = pods.node_name(pod)
        if not node or pods.is_done(pod):
            self.drop(pod)
            return
        with self._lock:
            self._pods[node][uid_of(pod)] = pod
            self._changed.add(node)

    def drop(self, pod: Object) -> None:
        """The pod was deleted, or has ended."""
        with self._lock:
            self._pods[pods.node_name(pod)].pop(uid_of(pod), None)

    def retain(self, uids: Collection[str]) -> None:
        """Drop all pods but these."""
        with self._lock:
            for known in self._pods.values():
                for uid in known.keys() - set(uids):
                    del known[uid]

    def on_node_change(self, name: str) -> None:
        """The node of that name, or its agent's report, has changed."""
        with self._lock:
            self._changed.add(name)

    def write_due(self) -> None:
        """Patch the pods whose annotations differ from their agent's report. A pod that cannot be
        patched is tried again after a pause, and does not delay others."""
        with self._lock:
            changed = {node: list(self._pods[node].values()) for node in self._changed}
            self._changed = set()
        there = {uid_of(pod) for its in changed.values() for pod in its}
        self._retries = {uid: retry for uid, retry in self._retries.items() if uid in there}
        failed = {node for node, its in changed.items() if its and not self._annotate(node, its)}
        with self._lock:
            self._changed |= failed

    def _annotate(self, node: str, its: Sequence[Object]) -> bool:
        """Whether the annotations of all these pods are up to date."""
        cards = self.cards(node)
        done = True
        for pod in its:
            annotations = assigned(pod, cards)
            present = pod["metadata"].get("annotations") or {}
            if annotations.items() - present.items():
                done &= self._attempt(pod, annotations)
        return done

    def _attempt(self, pod: Object, annotations: Mapping[str, str]) -> bool:
        """Whether the pod is patched. It is tried at most once in a pause."""
        uid = uid_of(pod)
        retry = self._retries.setdefault(uid, _RetryState())
        if self.clock() < retry.due:
            return False
        if self._write(pod, annotations):
            del self._retries[uid]
            return True
        retry.due = self.clock() + retry.backoff.next()
        return False

    def _write(self, pod: Object, annotations: Mapping[str, str]) -> bool:
        """Whether nothing is left to be written."""
        metadata = pod["metadata"]
        # The UID makes the server refuse it for another pod of that name.
        patch = {"metadata": {"uid": metadata["uid"], "annotations": dict(annotations)}}
        try:
            self.api.patch(PODS, metadata["name"], patch, namespace=metadata["namespace"])
        except (NotFound, Conflict, Invalid):
            return True  # the pod was deleted, or is another one of that name
        except GcuError as error:
            logger.info("pod %s/%s: %s", metadata["namespace"], metadata["name"], error)
            return False
        return True
