"""From the watches of nodes and pods into the view."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from controller.cache import pods
from controller.cache.keys import uid_of
from controller.extender.admission_backoff import AdmissionBackoff
from controller.extender.assigned import Assignments
from controller.extender.cache import ExtenderCache
from controller.extender.limit_request import concerns_us
from controller.extender.retry_queue import RetryQueue
from dra_driver.kube.api import Change
from dra_driver.model.claim import Object

# The kubelet's reason for a pod whose devices it could not have; upstream: lifecycle/predicate.go.
_REFUSED_BY_NODE = "UnexpectedAdmissionError"


class NodeHandler:
    """A `dra_driver.kube.watch.Handler`."""

    def __init__(self, view: ExtenderCache, lock: threading.Lock, assignments: Assignments) -> None:
        self._view = view
        self._lock = lock
        self._assignments = assignments
        self._known: set[str] = set()

    def on_replace(self, items: Sequence[Object]) -> None:
        listed = {each["metadata"]["name"] for each in items}
        with self._lock:
            for name in self._known - listed:
                self._view.drop_node(name)
            for each in items:
                self._view.put_node(each)
            self._known = listed
        for name in listed:
            self._assignments.node_changed(name)

    def on_event(self, change: Change, obj: Object) -> None:
        name = obj["metadata"]["name"]
        with self._lock:
            if change is Change.DELETED:
                self._known.discard(name)
                self._view.drop_node(name)
            else:
                self._known.add(name)
                self._view.put_node(obj)
        self._assignments.node_changed(name)


class PodHandler:
    """A `dra_driver.kube.watch.Handler`."""

    def __init__(
        self,
        view: ExtenderCache,
        lock: threading.Lock,
        waiting: RetryQueue,
        assignments: Assignments,
        refusals: AdmissionBackoff,
    ) -> None:
        self._view = view
        self._assignments = assignments
        self._lock = lock
        self._waiting = waiting
        self._refusals = refusals

    def on_replace(self, items: Sequence[Object]) -> None:
        ours = [each for each in items if concerns_us(each)]
        listed = {uid_of(each) for each in ours}
        with self._lock:
            for uid in self._view.pods() - listed:
                self._view.drop_pod(uid)
            for each in ours:
                self._view.put_pod(each)
        self._waiting.keep({uid_of(each) for each in ours if not pods.node_name(each)})
        self._assignments.keep(listed)
        for each in ours:
            self._assignments.put(each)

    def on_event(self, change: Change, obj: Object) -> None:
        if not concerns_us(obj):
            return
        uid = uid_of(obj)
        if change is Change.DELETED or pods.node_name(obj):
            self._waiting.drop(uid)
        if change is Change.DELETED:
            self._assignments.drop(obj)
        else:
            self._assignments.put(obj)
        with self._lock:
            if change is Change.DELETED:
                self._view.drop_pod(uid)
                return
            before = self._view.pods()
            self._view.put_pod(obj)
        status = obj.get("status") or {}
        if uid in before and pods.is_done(obj) and status.get("reason") == _REFUSED_BY_NODE:
            self._refusals.note(obj, pods.node_name(obj))
