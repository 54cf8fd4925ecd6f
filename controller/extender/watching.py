"""Event handlers of the watches of nodes and pods: they feed the cluster and the retry queue."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

from controller.cache import pods
from controller.cache.keys import uid_of
from controller.extender.admission_backoff import AdmissionBackoff
from controller.extender.annotated_cluster import AnnotatedCluster
from controller.extender.gcushare.annotator import AssignmentAnnotator
from controller.extender.limit_request import concerns_us
from controller.extender.retry_queue import RetryQueue
from dra_driver.kube.api import Change
from dra_driver.model.claims.claim import Object

# The kubelet's reason for a pod whose devices it could not have; upstream: lifecycle/predicate.go.
_REFUSED_BY_NODE = "UnexpectedAdmissionError"


class NodeHandler:
    """A `dra_driver.kube.watch.WatchHandler`."""

    def __init__(
        self, cluster: AnnotatedCluster, lock: threading.Lock, annotator: AssignmentAnnotator
    ) -> None:
        self._cluster = cluster
        self._lock = lock
        self._annotator = annotator
        self._known: set[str] = set()

    def on_replace(self, items: Sequence[Object]) -> None:
        listed = {node["metadata"]["name"] for node in items}
        with self._lock:
            for name in self._known - listed:
                self._cluster.drop_node(name)
            for node in items:
                self._cluster.put_node(node)
            self._known = listed
        for name in listed:
            self._annotator.on_node_change(name)

    def on_event(self, change: Change, obj: Object) -> None:
        name = obj["metadata"]["name"]
        with self._lock:
            if change is Change.DELETED:
                self._known.discard(name)
                self._cluster.drop_node(name)
            else:
                self._known.add(name)
                self._cluster.put_node(obj)
        self._annotator.on_node_change(name)


@dataclass(frozen=True, slots=True)
class PodHandler:
    """A `dra_driver.kube.watch.WatchHandler`."""

    cluster: AnnotatedCluster
    lock: threading.Lock
    retry_queue: RetryQueue
    annotator: AssignmentAnnotator
    admission_backoff: AdmissionBackoff

    def on_replace(self, items: Sequence[Object]) -> None:
        ours = [pod for pod in items if concerns_us(pod)]
        listed = {uid_of(pod) for pod in ours}
        with self.lock:
            for uid in self.cluster.pods() - listed:
                self.cluster.drop_pod(uid)
            for pod in ours:
                self.cluster.put_pod(pod)
        self.retry_queue.retain({uid_of(pod) for pod in ours if not pods.node_name(pod)})
        self.annotator.retain(listed)
        for pod in ours:
            self.annotator.put(pod)

    def on_event(self, change: Change, obj: Object) -> None:
        if not concerns_us(obj):
            return
        uid = uid_of(obj)
        if change is Change.DELETED or pods.node_name(obj):
            self.retry_queue.drop(uid)
        if change is Change.DELETED:
            self.annotator.drop(obj)
        else:
            self.annotator.put(obj)
        with self.lock:
            if change is Change.DELETED:
                self.cluster.drop_pod(uid)
                return
            was_bound = self.cluster.has_pod(uid)
            self.cluster.put_pod(obj)
        status = obj.get("status") or {}
        if was_bound and pods.is_done(obj) and status.get("reason") == _REFUSED_BY_NODE:
            self.admission_backoff.record_rejection(obj, pods.node_name(obj))
