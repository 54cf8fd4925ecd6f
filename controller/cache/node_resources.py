"""How much cpu, memory and pods each node has left, kept as nodes and pods come and go."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple, Self

from controller.allocator.capacity import NANO, Amount
from controller.allocator.node_set import NodeNumbers, NodeSet
from controller.cache import pods
from dra_driver.model.claim import Object
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
    for container in pod["spec"].get("containers") or ():  # not decoded where it counts nowhere
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


_REMEMBERED: Final = 64  # amounts: pods of one workload ask for the same


class _Seat(NamedTuple):
    """How much a pod asks for, which is summed once, and where it is counted: on its `own` node,
    else where it is `awaited`."""

    asked: Room
    own: str
    awaited: str = ""

    @property
    def node(self) -> str:
        return self.own or self.awaited


class NodeResources:
    """All pods of the cluster count, whatever they use: where they are bound, else where they are
    about to be.

    Which nodes have room for an amount is found out once, and kept as they change.
    """

    def __init__(self, numbers: NodeNumbers) -> None:
        self.numbers = numbers
        self._epoch = numbers.epoch
        self._allocatable: dict[str, Room] = {}
        self._free: dict[str, Room] = {}
        self._seats: dict[str, _Seat] = {}
        self._roomy: OrderedDict[Room, NodeSet] = OrderedDict()

    def set_node(self, name: str, node: Object | None) -> None:
        """The node as it is now; None where it is gone. Pods may be told of before their node."""
        status = (node or {}).get("status") or {}
        allocatable = Room.of(status.get("allocatable"))
        self._add(name, allocatable.minus(self._allocatable.pop(name, NO_ROOM)))
        if node is not None:
            self._allocatable[name] = allocatable

    def set_pod(self, uid: str, pod: Object | None) -> None:
        """The pod of that UID as it is now; None where it is gone."""
        old = self._seats.get(uid)
        seat = None
        if pod is not None and not pods.is_done(pod):
            own = pods.node_name(pod) or pods.nominated_node(pod)
            seat = _Seat(asked_by(pod), own, old.awaited if old is not None else "")
        self._sit(uid, old, seat)

    def await_pod(self, uid: str, node: str) -> None:
        """Something is allocated for the pod on the node, or nowhere if that is empty: it is
        counted there as long as it waits."""
        seat = self._seats.get(uid)
        if seat is not None:
            self._sit(uid, seat, seat._replace(awaited=node))

    def _sit(self, uid: str, old: _Seat | None, new: _Seat | None) -> None:
        if new == old:
            return
        if new is None:
            self._seats.pop(uid, None)
        else:
            self._seats[uid] = new
        if old is not None and old.node:
            self._add(old.node, old.asked)
        if new is not None and new.node:
            self._add(new.node, NO_ROOM.minus(new.asked))

    def keep_pods(self, uids: Collection[str]) -> None:
        """These are all pods of the cluster."""
        for uid in self._seats.keys() - uids:
            self.set_pod(uid, None)

    def nodes_with_capacity(self, pod: Object) -> NodeSet:
        """The nodes that can take the pod without another one's end; until the next change."""
        if self._epoch != self.numbers.epoch:
            self._epoch = self.numbers.epoch
            self._roomy.clear()
        asked = asked_by(pod)
        found = self._roomy.get(asked)
        if found is None:
            found = self.numbers.set_of(
                [node for node, free in self._free.items() if free.takes(asked)]
            )
            self._roomy[asked] = found
            if len(self._roomy) > _REMEMBERED:
                self._roomy.popitem(last=False)
        self._roomy.move_to_end(asked)
        return found

    def _add(self, node: str, more: Room) -> None:
        if more == NO_ROOM:
            return
        free = self._free.get(node, NO_ROOM).plus(more)
        if free == NO_ROOM:
            del self._free[node]
        else:
            self._free[node] = free
        bit = self.numbers.bit(node) if self._roomy else 0
        for asked, roomy in self._roomy.items():
            self._roomy[asked] = roomy | bit if free.takes(asked) else roomy & ~bit
