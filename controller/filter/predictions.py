"""On which nodes kube-scheduler will refuse a pod, as its default filters would say. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from controller.allocator.nodes.node_set import NodeSet
from controller.allocator.state import State
from controller.cache import pods
from controller.cache.assigned_pods import AssignedPods
from controller.cache.keys import uid_of
from controller.cache.pod_terms import Namespaces
from controller.filter.node_labels import NodeLabels, NodeLister
from controller.filter.plugins.inter_pod_affinity import InterPodAffinity
from controller.filter.plugins.node_ports import NodePorts
from controller.filter.plugins.node_resources_fit import NodeResourcesFit
from controller.filter.plugins.plugin import FilterPlugin, Snapshot, Unfit
from controller.filter.plugins.pod_topology_spread import PodTopologySpread
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import CLASS_LIMIT_PREFIX

PLUGINS: Final = ("NodeResourcesFit", "NodePorts", "InterPodAffinity", "PodTopologySpread")
"""The names of the plugins that are considered, in kube-scheduler's order."""


class PredictionCluster(NodeLister, Protocol):
    """Nodes, and pods on nodes: the cache."""

    @property
    def assigned(self) -> AssignedPods: ...

    @property
    def namespaces(self) -> Namespaces: ...

    def state(self) -> State: ...


@dataclass(frozen=True, slots=True)
class Prediction:
    """Of some nodes those that fit the pod; those that would after preemption; and the others,
    each with one reason."""

    fits: NodeSet
    preempting: NodeSet
    unfit: Collection[Unfit]


class Predictions:
    """Pods count that are bound, nominated, or named, and those whose claims are allocated; never
    the one that looks for a node. `unconsidered` are names of plugins."""

    def __init__(self, cluster: PredictionCluster, *, unconsidered: Collection[str] = ()) -> None:
        labels = NodeLabels(cluster, cluster.state().numbers)
        plugins: tuple[FilterPlugin, ...] = (
            NodeResourcesFit(),
            NodePorts(),
            InterPodAffinity(labels),
            PodTopologySpread(labels),
        )
        self._cluster = cluster
        self._plugins = [
            each for name, each in zip(PLUGINS, plugins, strict=True) if name not in unconsidered
        ]

    def of(self, pod: Object, nodes: NodeSet) -> Prediction:
        """What will be said of each of `nodes`."""
        with self._cluster.assigned.without(uid_of(pod)):
            snapshot = self._snapshot()
            unfit = self._unfit(pod, snapshot, nodes)
            fits = nodes & ~_union(unfit)
            preempting = self._preempting(pod, snapshot, nodes & ~fits)
        left = nodes & ~fits & ~preempting
        return Prediction(fits, preempting, _each_once(unfit, left))

    def looks_at_other_nodes(self, pod: Object) -> bool:
        """Whether pods of one node decide about other nodes, too."""
        snapshot = self._snapshot()
        return any(each.looks_at_other_nodes(pod, snapshot) for each in self._plugins)

    def _snapshot(self) -> Snapshot:
        usage = self._cluster.assigned.usage()
        return Snapshot(usage, usage, self._cluster.namespaces, self._mapped())

    def _mapped(self) -> set[str]:
        """Extended resources for which kube-scheduler makes claims (DRAExtendedResource)."""
        mapped = set[str]()
        for name, found in self._cluster.state().classes.items():
            mapped.add(f"{CLASS_LIMIT_PREFIX}{name}")
            if resource := found["spec"].get("extendedResourceName"):
                mapped.add(resource)
        return mapped

    def _unfit(self, pod: Mapping[str, Any], snapshot: Snapshot, nodes: NodeSet) -> list[Unfit]:
        return [found for each in self._plugins for found in each.unfit(pod, snapshot, nodes)]

    def _preempting(self, pod: Object, snapshot: Snapshot, nodes: NodeSet) -> NodeSet:
        """Those of the nodes that would fit without the pods of lower priority that are there
        (kube-scheduler: DefaultPreemption, SelectVictimsOnNode)."""
        assigned, priority = self._cluster.assigned, pods.priority(pod)
        if not nodes or not pods.may_preempt(pod) or not assigned.has_below(priority):
            return 0
        emptied = replace(snapshot, left=assigned.usage_from(priority))
        return nodes & ~_union(self._unfit(pod, emptied, nodes))


def _union(unfit: Collection[Unfit]) -> NodeSet:
    nodes = 0
    for each in unfit:
        nodes |= each.nodes
    return nodes


def _each_once(unfit: Collection[Unfit], nodes: NodeSet) -> list[Unfit]:
    """Each of the nodes with its first reason."""
    found = list[Unfit]()
    for reason, of_reason in unfit:
        if part := of_reason & nodes:
            found.append(Unfit(reason, part))
            nodes ^= part
    return found
