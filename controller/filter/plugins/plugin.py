"""What the plugins are given."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from controller.allocator.nodes.node_set import NodeSet
from controller.cache.assigned_pods import NodeUsage
from controller.cache.pod_terms import Namespaces


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The pods that are on nodes, the one that looks for a node left out. `left` are those that
    would be left on the one node that is looked at: all of them, or those that cannot be preempted.
    `mapped` are the resources that DeviceClasses serve."""

    pods: NodeUsage
    left: NodeUsage
    namespaces: Namespaces
    mapped: Collection[str]


class Unfit(NamedTuple):
    """Nodes that do not fit, and why, in words for people that all of them have in common."""

    reason: str
    nodes: NodeSet


class FilterPlugin(Protocol):
    """A plugin of kube-scheduler (k8s.io/kubernetes, pkg/scheduler/framework/plugins)."""

    def unfit(
        self, pod: Mapping[str, Any], snapshot: Snapshot, nodes: NodeSet, /
    ) -> Collection[Unfit]:
        """Those of `nodes` on which the pod does not fit; a node may have several reasons."""

    def looks_at_other_nodes(self, pod: Mapping[str, Any], snapshot: Snapshot, /) -> bool:
        """Whether pods of one node decide about other nodes, too."""
