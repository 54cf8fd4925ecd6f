"""How much cpu and memory a pod asks of its node, summed as kube-scheduler does. Pure.

Source: k8s.io/component-helpers/resource, PodRequests, 1.36.3, with the gates that are on there by
default: a resize of a running pod counts with the greatest of what is asked, given and in force.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple, Self

from controller.allocator.capacity import NANO, Amount
from dra_driver.model.errors import InvalidValue

_NO_LIST: Final[Mapping[str, str]] = {}
_RESIZE_PENDING: Final = "PodResizePending"
_BEYOND_ALL: Final = 2**200  # more than any node has


class Room(NamedTuple):
    """Of a node or for a pod: cpus, bytes and pods, all in nano units."""

    cpu: int = 0
    memory: int = 0
    pods: int = 0

    @classmethod
    def of(cls, listed: Mapping[str, str] | None) -> Self:
        """A ResourceList (core/v1); what else it has is left out."""
        listed = listed or _NO_LIST
        return cls(*(_amount(listed.get(name, "0")) for name in cls._fields))

    def plus(self, other: Room) -> Room:
        return Room(self.cpu + other.cpu, self.memory + other.memory, self.pods + other.pods)

    def minus(self, other: Room) -> Room:
        return Room(self.cpu - other.cpu, self.memory - other.memory, self.pods - other.pods)

    def most(self, other: Room) -> Room:
        """The greater of each."""
        return Room(
            max(self.cpu, other.cpu), max(self.memory, other.memory), max(self.pods, other.pods)
        )

    def takes(self, asked: Room) -> bool:
        """Whether there is so much left. Who asks for nothing of a resource, needs none left."""
        return (
            asked.pods <= self.pods
            and (not asked.cpu or asked.cpu <= self.cpu)
            and (not asked.memory or asked.memory <= self.memory)
        )


NO_ROOM: Final = Room()


def asked_by(pod: Mapping[str, Any]) -> Room:
    """What the pod takes of its node, itself included."""
    spec = pod["spec"]
    asked = _pod_level(pod, _containers(pod)).plus(Room.of(spec.get("overhead")))
    return _alike(asked._replace(pods=NANO))


@lru_cache(4096)
def _alike(asked: Room) -> Room:
    """One object for replicas: all pods of the cluster are counted."""
    return asked


def _containers(pod: Mapping[str, Any]) -> Room:
    """All that run for good, sidecars among them, or what is needed while one initialises the pod
    beside the sidecars before it."""
    statuses = {
        each["name"]: each
        for kind in ("containerStatuses", "initContainerStatuses")
        for each in (pod.get("status") or {}).get(kind) or ()
    }
    running, sidecars, initialising = NO_ROOM, NO_ROOM, NO_ROOM
    for container in pod["spec"]["containers"]:
        running = running.plus(_container(pod, container, statuses))
    for container in pod["spec"].get("initContainers") or ():
        if container.get("restartPolicy") == "Always":
            asked = _container(pod, container, statuses)
            running, sidecars = running.plus(asked), sidecars.plus(asked)
        else:
            asked = Room.of(_requests(container))
            initialising = initialising.most(sidecars.plus(asked))
    return running.most(initialising)


def _container(
    pod: Mapping[str, Any], container: Mapping[str, Any], statuses: Mapping[str, Any]
) -> Room:
    asked, status = Room.of(_requests(container)), statuses.get(container["name"])
    if status is None or status.get("resources") is None:
        return asked
    return _in_force(pod, asked, status)


def _pod_level(pod: Mapping[str, Any], containers: Room) -> Room:
    """What the pod as a whole asks for stands in place of its containers' sum."""
    listed = _requests(pod["spec"])
    asked, status = Room.of(listed), pod.get("status") or {}
    if listed and status.get("resources") is not None:
        asked = _in_force(pod, asked, status)
    return containers._replace(
        **{name: getattr(asked, name) for name in ("cpu", "memory") if name in listed}
    )


def _in_force(pod: Mapping[str, Any], asked: Room, status: Mapping[str, Any]) -> Room:
    given = Room.of(status.get("allocatedResources"))
    found = Room.of(_requests(status)).most(given)
    return found if _is_infeasible(pod) else found.most(asked)


def _is_infeasible(pod: Mapping[str, Any]) -> bool:
    """Whether the kubelet will never resize the pod as it was asked to."""
    return any(
        (each["type"], each.get("reason")) == (_RESIZE_PENDING, "Infeasible")
        for each in (pod.get("status") or {}).get("conditions") or ()
    )


def is_read(condition: Mapping[str, Any]) -> bool:
    """Whether `asked_by` reads such a condition of a pod."""
    return bool(condition["type"] == _RESIZE_PENDING)


def _requests(holder: Mapping[str, Any]) -> Mapping[str, str]:
    return (holder.get("resources") or {}).get("requests") or _NO_LIST


def _amount(text: str) -> int:
    try:
        return Amount.parse(text).value
    except InvalidValue:  # such as 1e120, which upstream reads: no ranking may stop on a pod
        return _BEYOND_ALL
