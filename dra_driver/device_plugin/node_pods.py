"""The pods of this node as the API server has them: which wait, and which have ended."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from dra_driver.kube.api import Change
from dra_driver.kube.errors import KubeError
from dra_driver.kubelet_api.device_plugin.record import Recorded
from dra_driver.model.claim import Object

logger = logging.getLogger(__name__)

# The kubelet's own name for a pod that the API server has under another UID (pkg/kubelet/config,
# `applyDefaults`: MD5 of the manifest).
_STATIC: Final = re.compile(r"[0-9a-f]{32}")


class NodePods:
    """What a watch tells of the node's pods. Thread-safe; before the watch has told anything, no
    pod waits and none has ended.

    `read` asks the API server for all of them as they are now, and raises KubeError.
    """

    def __init__(self, read: Callable[[], Collection[Object]] = lambda: ()) -> None:
        self._read = read
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
                pods[obj["metadata"]["uid"]] = obj  # a known one keeps its place
            self._pods = pods
            self._lock.notify_all()

    def wait_for(self, is_there: Callable[[Collection[Object]], bool], within: float) -> bool:
        """Return when `is_there` is true of the pods that have not ended, or after `within` seconds
        at most; says which. It is called after each event of the watch, and must not block."""
        with self._lock:
            return self._lock.wait_for(lambda: is_there(self._present()), within)

    def _present(self) -> list[Object]:
        return [pod for pod in (self._pods or {}).values() if not _is_over(pod)]

    def waiting(self) -> list[Object]:
        """Those of which no container runs yet, in the order in which they came to the node: so the
        kubelet is told of them, too. Of those that were there before, the oldest first."""
        with self._lock:
            pods = self._pods or {}
        return [pod for pod in pods.values() if _phase(pod) == "Pending"]

    def left(self, recorded: Collection[Recorded]) -> Collection[Recorded]:
        """What of the kubelet's record is not of pods that have ended.

        Up to 1.30 at least, kubelets keep the pod that they admitted last on record until they
        admit another one (1.30.14, ``pendingAdmissionPod`` in devicemanager/manager.go). The watch
        may be late, so the API server is asked before a pod counts as ended; where it does not
        answer, the kubelet's word stands.
        """
        with self._lock:
            pods = self._pods
        if pods is None or not _ended(recorded, pods.values()):
            return recorded
        try:
            ended = _ended(recorded, self._read())
        except KubeError as error:
            logger.info("whether pods have ended that the kubelet has on record: %s", error)
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
    """By which the kubelet's record may call it."""
    metadata = pod["metadata"]
    yield metadata["uid"]
    yield f"{metadata['namespace']}/{metadata['name']}"


def _is_over(pod: Mapping[str, Any]) -> bool:
    """Others than the kubelet may call a pod failed while its containers run on."""
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
