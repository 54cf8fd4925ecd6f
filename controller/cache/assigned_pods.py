"""All pods on nodes, and what they take there: as kube-scheduler counts them, and early."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from sys import intern
from typing import Final

from controller.allocator.nodes.node_set import NodeNumbers
from controller.cache import pods
from controller.cache.assigned_pod import AssignedPod
from controller.cache.host_ports import HostPorts
from controller.cache.matching_pods import (
    Assigned,
    MatchingPods,
    NodeCounts,
    PodSelection,
    RepellingPods,
    count,
)
from controller.cache.node_resources import NodeResources
from controller.cache.nodes import HOSTNAME
from controller.cache.pod_requests import resources_of
from controller.cache.recent import Recent
from dra_driver.model.claims.claim import Object

_PRIORITIES: Final = 4  # for which it is counted what would be left after preemption


class NodeUsage:
    """What pods take of nodes: those of the `assigned` ones that were added. `kinds` are all
    objects of these by namespace, each once. Both are those of the moment."""

    def __init__(
        self,
        numbers: NodeNumbers,
        kinds: Mapping[str, Collection[AssignedPod]],
        assigned: Collection[Assigned],
        least: int | None = None,
    ) -> None:
        """`least` is the least priority of those that are added."""
        self.resources = NodeResources(numbers)
        self.ports = HostPorts(numbers)
        self.repelling = RepellingPods()
        self._kinds = kinds
        self._assigned = assigned
        self._least = least
        self._matching = MatchingPods()

    def add(self, pod: AssignedPod, node: str, times: int) -> None:
        """One more such pod is on the node; one less, if `times` is -1."""
        self.resources.add(node, pod.requests, times)
        self.ports.add(node, pod.ports, times)
        self.repelling.add(pod, node, times)
        self._matching.add(pod, node, times)

    def matching(self, selection: PodSelection) -> NodeCounts:
        """How many of the pods are in the selection, by node; until the next change."""
        least = self._least
        kinds = (
            kind
            for namespace in selection.namespaces
            for kind in self._kinds.get(namespace, ())
            if least is None or kind.priority >= least
        )
        return self._matching.on_nodes(selection, kinds, self._assigned)


class AssignedPods:
    """All pods of the cluster count, whatever they use: where they are bound, else where they are
    nominated, else where their claims are allocated. One instance, one thread.
    """

    def __init__(self, numbers: NodeNumbers) -> None:
        self._freed: set[str] = set()
        self._frees_all = False  # nodes, not only those
        self._numbers = numbers
        self._allocatable: dict[str, Mapping[str, int]] = {}
        self._assigned: dict[str, Assigned] = {}  # by UID
        self._kinds: defaultdict[str, Counter[AssignedPod]] = defaultdict(Counter)
        self._priorities: Counter[int] = Counter()
        self._all = NodeUsage(numbers, self._kinds, self._assigned.values())
        self._from: Recent[int, NodeUsage] = Recent(_PRIORITIES)  # by the least priority

    def set_node(self, name: str, node: Object | None) -> None:
        """The node as it is now; None where it is gone. A pod may come before its node."""
        allocatable = None
        if node is not None:
            allocatable = resources_of((node.get("status") or {}).get("allocatable"))
        if allocatable == self._allocatable.get(name):
            return
        self._freed.add(name)
        if allocatable is None:
            del self._allocatable[name]
        else:
            self._allocatable[name] = allocatable
        for usage in self._usages(None):
            usage.resources.set_node(name, allocatable)

    def set_pod(self, uid: str, pod: Object | None, assumed_node: str = "") -> None:
        """The pod of that UID as it is now; None where it is gone. While it is neither bound nor
        nominated it counts on `assumed_node`, or nowhere if that is empty."""
        new: Assigned | None = None
        if pod is not None and not pods.is_done(pod):
            node = pods.node_name(pod) or pods.nominated_node(pod) or assumed_node
            new = (AssignedPod.of(pod), intern(node)) if node else None
        self._set(uid, new)

    def keep_pods(self, uids: Collection[str]) -> None:
        """These are all pods of the cluster."""
        for uid in self._assigned.keys() - uids:
            self._set(uid, None)

    def usage(self) -> NodeUsage:
        """Of all pods."""
        return self._all

    def take_freed(self) -> set[str]:
        """The present nodes that have changed since the last call, or whose pods have: other pods
        may fit there, or near to there."""
        freed, frees_all = self._freed, self._frees_all
        self._freed, self._frees_all = set(), False
        return set(self._allocatable) if frees_all else freed & self._allocatable.keys()

    def has_below(self, priority: int) -> bool:
        """Whether there is a pod of lower priority."""
        return any(each < priority for each in self._priorities)

    def usage_from(self, priority: int) -> NodeUsage:
        """Of the pods that one of that priority cannot preempt."""
        return self._from.of(priority, lambda: self._count_from(priority))

    def _count_from(self, priority: int) -> NodeUsage:
        usage = NodeUsage(self._numbers, self._kinds, self._assigned.values(), priority)
        for name, allocatable in self._allocatable.items():
            usage.resources.set_node(name, allocatable)
        for pod, node in self._assigned.values():
            if pod.priority >= priority:
                usage.add(pod, node, 1)
        return usage

    @contextmanager
    def without(self, uid: str) -> Iterator[None]:
        """As if the pod of that UID were on no node."""
        known, changed = self._assigned.get(uid), (self._freed, self._frees_all)
        self._freed = set()
        self._set(uid, None)
        try:
            yield
        finally:
            self._set(uid, known)
            self._freed, self._frees_all = changed

    def _set(self, uid: str, new: Assigned | None) -> None:
        old = self._assigned.get(uid)
        if new == old:
            return
        if old is not None:
            del self._assigned[uid]
        if new is not None:
            self._assigned[uid] = new
        for each, times in ((old, -1), (new, 1)):
            if each is not None:
                pod, node = each
                count(self._priorities, pod.priority, times)
                count(self._kinds[pod.namespace], pod, times)
                self._freed.add(node)
                self._frees_all |= _reaches_far(pod)
                for usage in self._usages(pod.priority):
                    usage.add(pod, node, times)

    def _usages(self, priority: int | None) -> Iterator[NodeUsage]:
        """Those in which a pod of that priority counts; all, for None."""
        return chain(
            [self._all],
            (usage for least, usage in self._from.items() if priority is None or priority >= least),
        )


def _reaches_far(pod: AssignedPod) -> bool:
    """Whether it keeps others away from more than its own node."""
    return any(term.topology_key != HOSTNAME for term in pod.repels)
