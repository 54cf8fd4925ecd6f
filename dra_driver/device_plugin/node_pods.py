"""The pods of this node on the API server: which are pending, and which have ended."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from dra_driver.kube.api import Change
from dra_driver.kube.errors import KubeError
from dra_driver.kubelet_api.device_plugin.record import Recorded
from dra_driver.model.claims.claim import Object

logger = logging.getLogger(__name__)

# The kubelet's UID of a static pod, whose mirror has another UID (pkg/kubelet/config,
# `applyDefaults`: MD5 of the manifest).
_STATIC: Final = re.compile(r"[0-9a-f]{32}")


ReadPods = Callable[[], Collection[Object]]
"""Lists the node's pods on the API server; raises KubeError."""


PodsLag = Callable[[], float]
"""By how many seconds the watch of pods may lag behind the kubelet's."""


PodsCondition = Callable[[Collection[Object]], bool]
"""Whether these pods are as awaited; must not block."""


class NodePods:
    """The handler of a watch of the node's pods. Thread-safe. Before the first list no pod is
    pending and none has ended."""

    def __init__(self, read: ReadPods = lambda: (), lag: PodsLag = lambda: 0.0) -> None:
        self._read = read
        self._lag = lag
        self._lock = threading.Condition()
        self._pods: dict[str, Object] | None = None

    def on_replace(self, items: Sequence[Object]) -> None:
        with self._lock:
            self._pods = {pod["metadata"]["uid"]: pod for pod in sorted(items, key=_age)}
            self._lock.notify_all()

    def on_event(self, change: Change, obj: Object) -> None:
        with self._lock:
            pods = dict(self._pods or {})
            if change is Change.DELETED:
                pods.pop(obj["metadata"]["uid"], None)
            else:
                pods[obj["metadata"]["uid"]] = obj  # a known pod stays at its position
            self._pods = pods
            self._lock.notify_all()

    def wait_for(self, condition: PodsCondition) -> bool:
        """Wait until `condition` is true of the pods that have not ended, or for as long as the
        watch may lag; returns whether it is true."""
        with self._lock:
            return self._lock.wait_for(
                lambda: condition([pod for pod in self._known() if not _is_over(pod)]), self._lag()
            )

    def _known(self) -> Collection[Object]:
        return (self._pods or {}).values()

    def waiting(self) -> list[Object]:
        """The pending pods, in the order in which they came to the node, as for the kubelet. Pods
        of the first list are sorted by age, the oldest first."""
        with self._lock:
            return [pod for pod in self._known() if _phase(pod) == "Pending"]

    def without_ended(self, recorded: Collection[Recorded]) -> Collection[Recorded]:
        """The kubelet's record without pods that have ended.

        A kubelet (1.30 at least) has the pod that it admitted last on record until it admits
        another one (1.30.14, ``pendingAdmissionPod`` in devicemanager/manager.go). The watch may
        lag, so the pods are read from the API server before one counts as ended. If it does not
        answer, the whole record counts.
        """
        with self._lock:
            pods = self._pods
        if pods is None or not _ended(recorded, pods.values()):
            return recorded
        try:
            ended = _ended(recorded, self._read())
        except KubeError as error:
            logger.info("whether recorded pods have ended is unknown: %s", error)
            return recorded
        return [each for each in recorded if each.pod not in ended]


def _age(pod: Object) -> tuple[str, str]:
    metadata = pod["metadata"]
    return str(metadata.get("creationTimestamp", "")), str(metadata["name"])


def _ended(recorded: Iterable[Recorded], pods: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    there = {name for pod in pods if not _is_over(pod) for name in _names(pod)}
    return frozenset(
        each.pod for each in recorded if each.pod not in there and not _STATIC.fullmatch(each.pod)
    )


def _names(pod: Mapping[str, Any]) -> Iterator[str]:
    """The names that the kubelet's record may have for the pod."""
    metadata = pod["metadata"]
    yield metadata["uid"]
    yield f"{metadata['namespace']}/{metadata['name']}"


def _is_over(pod: Mapping[str, Any]) -> bool:
    """A pod can be marked as failed by others than the kubelet while its containers run on."""
    status = pod.get("status") or {}
    containers = (
        each
        for kind in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
        for each in status.get(kind) or ()
    )
    return _phase(pod) in {"Succeeded", "Failed"} and not any(
        "running" in (each.get("state") or {}) for each in containers
    )


def _phase(pod: Mapping[str, Any]) -> str:
    return str((pod.get("status") or {}).get("phase", "Pending"))
