"""The plugin PodTopologySpread (1.37.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from controller.allocator.nodes.node_set import NodeSet
from controller.cache import nodes as node_views
from controller.cache.matching_pods import PodSelection
from controller.cache.pod_terms import SpreadConstraint, spread_constraints
from controller.cache.recent import Recent
from controller.filter.node_labels import NodeLabels
from controller.filter.plugins.domains import Domains, preempted
from controller.filter.plugins.plugin import Snapshot, Unfit

_REMEMBERED: Final = 64  # constraints: pods of one workload have the same


@dataclass(frozen=True, slots=True)
class _Eligible:
    """The nodes whose pods count for a constraint, and in how many domains they are."""

    nodes: NodeSet
    domains: int


class PodTopologySpread:
    """What says DoNotSchedule. The API server has merged matchLabelKeys into the selectors."""

    def __init__(self, labels: NodeLabels) -> None:
        self._labels = labels
        self._version = labels.version
        self._known: Recent[object, _Eligible] = Recent(_REMEMBERED)

    def unfit(self, pod: Mapping[str, Any], snapshot: Snapshot, nodes: NodeSet) -> list[Unfit]:
        constraints = spread_constraints(pod)
        found: list[Unfit] = []
        for constraint in constraints:
            key = constraint.topology_key
            found += [
                Unfit(f"without label {key}", nodes & self._labels.without(key)),
                Unfit(
                    f"excluded by the pod's topology spread over {key}",
                    nodes & self._too_full(pod, constraint, constraints, snapshot),
                ),
            ]
        return [each for each in found if each.nodes]

    def looks_at_other_nodes(self, pod: Mapping[str, Any], _snapshot: Snapshot) -> bool:
        return bool(spread_constraints(pod))

    def _too_full(
        self,
        pod: Mapping[str, Any],
        constraint: SpreadConstraint,
        constraints: Sequence[SpreadConstraint],
        snapshot: Snapshot,
    ) -> NodeSet:
        """The nodes where the pod would make the skew too large."""
        selector, metadata = constraint.selector, pod["metadata"]
        if selector is None or not selector.requirements:  # no pod counts
            return 0
        eligible = self._eligible(pod, constraint, constraints)
        namespace = frozenset([metadata["namespace"]])
        counted = PodSelection(((namespace, selector),), with_deleting=False)
        there = self._on(eligible.nodes, snapshot.pods.matching(counted))
        domains = Domains.of(self._labels, constraint.topology_key, there)
        fewest = 0
        if eligible.domains == len(domains.counts) >= constraint.min_domains:
            fewest = min(domains.counts.values(), default=0)
        is_counted = selector.matches(metadata.get("labels") or {})
        most = constraint.max_skew - is_counted
        full = [value for value, count in domains.counts.items() if count - fewest > most]
        too_full = self._labels.with_values(constraint.topology_key, full)
        if not too_full or snapshot.left is snapshot.pods:
            return too_full
        # kube-scheduler takes the pods that end off the count whether or not they end already.
        ending = PodSelection(counted.parts)
        gone = preempted(snapshot.pods.matching(ending), snapshot.left.matching(ending))
        emptier = (
            node
            for node, count in domains.without(dict(self._on(eligible.nodes, gone)))
            if count - min(fewest, count) <= most
        )
        return too_full & ~self._labels.set_of(emptier)

    def _on(self, eligible: NodeSet, counts: Mapping[str, int]) -> Iterator[tuple[str, int]]:
        """Of the counts by node those on eligible ones."""
        excluded = self._labels.names_of(self._labels.set_of_present(counts) & ~eligible)
        return ((node, count) for node, count in counts.items() if node not in excluded)

    def _eligible(
        self,
        pod: Mapping[str, Any],
        constraint: SpreadConstraint,
        constraints: Sequence[SpreadConstraint],
    ) -> _Eligible:
        if self._version != self._labels.version:
            self._version = self._labels.version
            self._known.clear()
        keys = tuple(each.topology_key for each in constraints)
        policies = constraint.honors_affinity, constraint.honors_taints
        asked = constraint.topology_key, keys, policies, node_views.digest(node_views.demand(pod))
        return self._known.of(asked, lambda: self._find_eligible(pod, constraint, keys))

    def _find_eligible(
        self, pod: Mapping[str, Any], constraint: SpreadConstraint, keys: Sequence[str]
    ) -> _Eligible:
        """Nodes that have all labels of the pod's constraints, and satisfy the policies."""

        def counts(node: Mapping[str, Any]) -> bool:
            labels = node_views.labels_of(node)
            return (
                all(key in labels for key in keys)
                and (not constraint.honors_affinity or node_views.is_selected(pod, node))
                and (not constraint.honors_taints or node_views.is_tolerated(pod, node))
            )

        nodes = self._labels.that(counts)
        names = self._labels.names_of(nodes)
        values = {self._labels.value(constraint.topology_key, name) for name in names}
        return _Eligible(nodes, len(values))
