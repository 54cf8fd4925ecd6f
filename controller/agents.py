"""On which nodes an agent runs."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Final

from dra_driver.kube.api import Api, Change
from dra_driver.kube.decode import Typed
from dra_driver.kube.resources import PODS
from dra_driver.kube.watch import Reflector
from dra_driver.model.claims.claim import Object

_AGENTS: Final = "app.kubernetes.io/name=gcu-dra-driver,app.kubernetes.io/component=agent"


AGENT_POD: Final = {
    "metadata": {"name": str, "uid": str, "resourceVersion": str},
    "spec": {"nodeName": str, "runtimeClassName": str},
    "status": {"containerStatuses": [{"state": dict[str, Any]}]},
}
"""What is read of an agent's pod: there is one for each node."""


class RunningAgents:
    """The handler of a watch of the agents' pods. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[str, tuple[str, str]] = {}  # node and RuntimeClass by the pod's UID
        self._is_synced = False

    @property
    def is_synced(self) -> bool:
        """Whether the pods were listed."""
        with self._lock:
            return self._is_synced

    def nodes(self) -> set[str]:
        """The nodes on which an agent's container runs."""
        with self._lock:
            return {node for node, _ in self._running.values()}

    def uids(self) -> set[str]:
        """The UIDs of the pods whose container runs."""
        with self._lock:
            return set(self._running)

    def runtime_classes(self) -> set[str]:
        """The RuntimeClasses of these pods: the vendor's, if any."""
        with self._lock:
            return {name for _, name in self._running.values() if name}

    def on_replace(self, items: Sequence[Object]) -> None:
        running = {_uid(each): _where(each) for each in items if _is_running(each)}
        with self._lock:
            self._running = running
            self._is_synced = True

    def on_event(self, change: Change, obj: Object) -> None:
        with self._lock:
            if change is not Change.DELETED and _is_running(obj):
                self._running[_uid(obj)] = _where(obj)
            else:
                self._running.pop(_uid(obj), None)


def agents_reflector(api: Api, namespace: str, agents: RunningAgents) -> Reflector:
    """Watches the agents' pods in `namespace`."""
    return Reflector(
        api,
        PODS,
        agents,
        namespace=namespace,
        label_selector=_AGENTS,
        decoder=Typed(AGENT_POD),
    )


def _is_running(pod: Object) -> bool:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return any("running" in (each.get("state") or {}) for each in statuses)


def _where(pod: Object) -> tuple[str, str]:
    """Its node and its RuntimeClass."""
    spec = pod["spec"]
    return str(spec.get("nodeName") or ""), str(spec.get("runtimeClassName") or "")


def _uid(pod: Object) -> str:
    return str(pod["metadata"]["uid"])
