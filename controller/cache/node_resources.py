"""How much cpu, memory and pod slots each node has left, as nodes and pods come and go."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping
from functools import lru_cache
from sys import intern
from typing import Any, Final, NamedTuple

from controller.allocator.capacity import NANO, Amount
from controller.allocator.nodes.node_set import NodeNumbers, NodeSet
from controller.cache import pods
from dra_driver.model.claims.claim import Object
from dra_driver.model.errors import InvalidValue

_NO_LIST: Final[Mapping[str, str]] = {}
_RESIZE_PENDING: Final = "PodResizePending"
_BEYOND_ALL: Final = 2**200  # more than any node has
_REMEMBERED: Final = 64  # amounts: pods of one workload ask for the same


class Resources(NamedTuple):
    """Of a node or for a pod (kube-scheduler: framework.Resource): cpus, bytes and pods, all in
    nano units."""

    cpu: int = 0
    memory: int = 0
    pods: int = 0

    @staticmethod
    def of(listed: Mapping[str, str] | None) -> Resources:
        """A ResourceList (core/v1); what else it has is left out."""
        if not listed:
            return NOTHING
        get = listed.get
        return _parsed(get("cpu", "0"), get("memory", "0"), get("pods", "0"))

    def plus(self, other: Resources) -> Resources:
        return Resources(self.cpu + other.cpu, self.memory + other.memory, self.pods + other.pods)

    def minus(self, other: Resources) -> Resources:
        return Resources(self.cpu - other.cpu, self.memory - other.memory, self.pods - other.pods)

    def most(self, other: Resources) -> Resources:
        """The greater of each."""
        return self if self is other else Resources(*map(max, self, other))

    def fits(self, asked: Resources) -> bool:
        """Whether there is so much left. A resource that is not asked for may be overdrawn."""
        return (
            asked.pods <= self.pods
            and (not asked.cpu or asked.cpu <= self.cpu)
            and (not asked.memory or asked.memory <= self.memory)
        )


NOTHING: Final = Resources()


@lru_cache(4096)
def _parsed(*quantities: str) -> Resources:
    return Resources(*map(_amount, quantities))


def _amount(text: str) -> int:
    try:
        return Amount.parse(text).value
    except InvalidValue:  # such as 1e120, which upstream reads: no ranking may stop on a pod
        return _BEYOND_ALL


def pod_requests(pod: Mapping[str, Any]) -> Resources:
    """What the pod takes of its node, itself included; summed as in kube-scheduler
    (k8s.io/component-helpers, resource.PodRequests)."""
    spec, status = pod["spec"], pod.get("status") or {}
    is_infeasible = _is_infeasible(status)
    asked, listed = _containers(spec, status, is_infeasible), _requests(spec)
    if listed:  # what the pod as a whole asks for stands in place of its containers' sum
        whole = _in_force(Resources.of(listed), status, is_infeasible)
        asked = asked._replace(
            **{name: getattr(whole, name) for name in ("cpu", "memory") if name in listed}
        )
    return _one_object(asked.plus(Resources.of(spec.get("overhead")))._replace(pods=NANO))


@lru_cache(4096)
def _one_object(asked: Resources) -> Resources:
    """For replicas: all pods of the cluster are counted."""
    return asked


def _containers(
    spec: Mapping[str, Any], status: Mapping[str, Any], is_infeasible: bool
) -> Resources:
    """All that run for good, sidecars among them, or what is needed while one initialises the pod
    beside the sidecars before it."""
    statuses = {
        container["name"]: container
        for kind in ("containerStatuses", "initContainerStatuses")
        for container in status.get(kind) or ()
    }
    running, sidecars, initialising = NOTHING, NOTHING, NOTHING
    for container in spec.get("containers") or ():  # not decoded where it counts nowhere
        asked = Resources.of(_requests(container))
        given = statuses.get(container["name"], _NO_LIST)
        running = running.plus(_in_force(asked, given, is_infeasible))
    for container in spec.get("initContainers") or ():
        asked = Resources.of(_requests(container))
        if container.get("restartPolicy") == "Always":
            asked = _in_force(asked, statuses.get(container["name"], _NO_LIST), is_infeasible)
            running, sidecars = running.plus(asked), sidecars.plus(asked)
        else:
            initialising = initialising.most(sidecars.plus(asked))
    return running.most(initialising)


def _in_force(asked: Resources, status: Mapping[str, Any], is_infeasible: bool) -> Resources:
    """What counts while a container, or a pod as a whole, is resized in place."""
    if status.get("resources") is None:
        return asked
    given = Resources.of(status.get("allocatedResources"))
    in_force = Resources.of(_requests(status)).most(given)
    return in_force if is_infeasible else in_force.most(asked)


def _is_infeasible(status: Mapping[str, Any]) -> bool:
    """Whether the kubelet will never resize the pod as it was asked to."""
    return any(
        is_read(condition) and condition.get("reason") == "Infeasible"
        for condition in status.get("conditions") or ()
    )


def is_read(condition: Mapping[str, Any]) -> bool:
    """Whether `pod_requests` reads such a condition of a pod."""
    return bool(condition["type"] == _RESIZE_PENDING)


def _requests(holder: Mapping[str, Any]) -> Mapping[str, str]:
    return (holder.get("resources") or {}).get("requests") or _NO_LIST


class NodeResources:
    """All pods of the cluster count, whatever they use: where they are bound, else where they are
    nominated, else where their claims are allocated.

    The nodes that have capacity for an amount are found once, and updated as the nodes change.
    """

    def __init__(self, numbers: NodeNumbers) -> None:
        self.numbers = numbers
        self._epoch = numbers.epoch
        self._allocatable: dict[str, Resources] = {}
        self._free: dict[str, Resources] = {}
        self._counted: dict[str, tuple[Resources, str]] = {}  # by UID of the pod, with its node
        self._with_capacity: OrderedDict[Resources, NodeSet] = OrderedDict()

    def set_node(self, name: str, node: Object | None) -> None:
        """The node as it is now; None where it is gone. A pod may come before its node."""
        status = (node or {}).get("status") or {}
        allocatable = Resources.of(status.get("allocatable"))
        before = self._allocatable.pop(name, NOTHING)
        if node is not None:
            self._allocatable[name] = allocatable
        self._add(name, allocatable.minus(before))

    def set_pod(self, uid: str, pod: Object | None, assumed_node: str = "") -> None:
        """The pod of that UID as it is now; None where it is gone. While it is neither bound nor
        nominated it counts on `assumed_node`, or nowhere if that is empty."""
        old, new = self._counted.get(uid), None
        if pod is not None and not pods.is_done(pod):
            node = pods.node_name(pod) or pods.nominated_node(pod) or assumed_node
            new = (pod_requests(pod), intern(node)) if node else None
        if new == old:
            return
        if old is not None:
            del self._counted[uid]
            self._add(old[1], old[0])
        if new is not None:
            self._counted[uid] = new
            self._add(new[1], NOTHING.minus(new[0]))

    def keep_pods(self, uids: Collection[str]) -> None:
        """These are all pods of the cluster."""
        for uid in self._counted.keys() - uids:
            self.set_pod(uid, None)

    def nodes_with_capacity(self, pod: Object) -> NodeSet:
        """The nodes that can take the pod without another one's end; until the next change."""
        if self._epoch != self.numbers.epoch:
            self._epoch = self.numbers.epoch
            self._with_capacity.clear()
        asked = pod_requests(pod)
        nodes = self._with_capacity.get(asked)
        if nodes is None:
            fitting = [node for node, free in self._free.items() if free.fits(asked)]
            nodes = self._with_capacity[asked] = self.numbers.set_of(fitting)
            if len(self._with_capacity) > _REMEMBERED:
                self._with_capacity.popitem(last=False)
        self._with_capacity.move_to_end(asked)
        return nodes

    def allocated_share(self, nodes: NodeSet) -> int:
        """How much cpu and memory of these nodes is requested, in percent: what kube-scheduler's
        placements are scored by (1.37.2, `resourceAllocationScorer.scorePlacement` with
        MostAllocated, cpu and memory of equal weight)."""
        allocatable = free = NOTHING
        for name in self.numbers.names(nodes):
            allocatable = allocatable.plus(self._allocatable.get(name, NOTHING))
            free = free.plus(self._free.get(name, NOTHING))
        shares = [
            100 * min(total, total - left) // total
            for total, left in ((allocatable.cpu, free.cpu), (allocatable.memory, free.memory))
            if total
        ]
        return sum(shares) // len(shares) if shares else 0

    def _add(self, node: str, more: Resources) -> None:
        """Of the node so much more is free; less, where it is negative."""
        if more == NOTHING:
            return
        free = self._free.get(node, NOTHING).plus(more)
        if free == NOTHING:
            del self._free[node]
        else:
            self._free[node] = free
        if not self._with_capacity or not (node in self._allocatable or node in self.numbers):
            return
        bit = self.numbers.bit(node)
        for asked, nodes in self._with_capacity.items():
            self._with_capacity[asked] = nodes | bit if free.fits(asked) else nodes & ~bit
