"""The plugin InterPodAffinity (1.37.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from controller.allocator.nodes.node_set import NodeSet
from controller.cache.matching_pods import NodeCounts, PodSelection
from controller.cache.pod_terms import AffinityTerm, affinity_terms
from controller.filter.node_labels import NodeLabels
from controller.filter.plugins.domains import Domains, preempted
from controller.filter.plugins.plugin import Snapshot, Unfit

_AFFINITY = "excluded by the pod's pod affinity"
_ANTI_AFFINITY = "excluded by the pod's pod anti-affinity"
_REPELLED = "where the anti-affinity of other pods keeps it away"


class InterPodAffinity:
    """What is required: of the pod, and by the anti-affinity of the pods that are there."""

    def __init__(self, labels: NodeLabels) -> None:
        self._labels = labels

    def unfit(self, pod: Mapping[str, Any], snapshot: Snapshot, nodes: NodeSet) -> list[Unfit]:
        found = [
            Unfit(_AFFINITY, self._without_affinity(pod, snapshot, nodes)),
            Unfit(_ANTI_AFFINITY, self._near(self._matching_own(pod, snapshot), nodes)),
            Unfit(_REPELLED, self._near(self._repelling(pod, snapshot), nodes)),
        ]
        return [each for each in found if each.nodes]

    def looks_at_other_nodes(self, pod: Mapping[str, Any], snapshot: Snapshot) -> bool:
        kinds = ("podAffinity", "podAntiAffinity")
        return any(affinity_terms(pod, kind) for kind in kinds) or any(
            True for _ in self._repelling(pod, snapshot)
        )

    def _without_affinity(
        self, pod: Mapping[str, Any], snapshot: Snapshot, nodes: NodeSet
    ) -> NodeSet:
        """Where no pod is near that all terms of the pod's affinity match together; if there is
        none in the cluster, and they match the pod itself, any node with the labels will do."""
        terms = affinity_terms(pod, "podAffinity")
        if not terms:
            return 0
        there, gone = self._matching(terms, snapshot)
        domains = [Domains.of(self._labels, term.topology_key, there.items()) for term in terms]
        labelled = nodes
        for each in domains:
            labelled &= ~self._labels.without(each.key)
        near = labelled
        for with_pods in domains:
            emptied = (node for node, count in with_pods.without(gone) if not count)
            near &= with_pods.nodes() & ~self._labels.set_of(emptied)
        if _matches_itself(pod, terms, snapshot):
            near |= labelled & self._without_any(domains, gone)
        return nodes & ~near

    def _without_any(self, domains: Sequence[Domains], gone: Mapping[str, int]) -> NodeSet:
        """All nodes, if no domain has any of the pods; else those on which the only ones end."""
        last = -1
        for with_pods in domains:
            if total := with_pods.total():
                left = (node for node, _ in with_pods.without(gone) if gone[node] == total)
                last &= self._labels.set_of(left)
        return last

    def _matching_own(
        self, pod: Mapping[str, Any], snapshot: Snapshot
    ) -> Iterator[tuple[AffinityTerm, NodeCounts, dict[str, int]]]:
        for term in affinity_terms(pod, "podAntiAffinity"):
            yield term, *self._matching([term], snapshot)

    def _repelling(
        self, pod: Mapping[str, Any], snapshot: Snapshot
    ) -> Iterator[tuple[AffinityTerm, NodeCounts, dict[str, int]]]:
        metadata = pod["metadata"]
        asked = metadata["namespace"], metadata.get("labels") or {}, snapshot.namespaces
        for term, there in snapshot.pods.repelling.matching(*asked):
            yield term, there, preempted(there, snapshot.left.repelling.having(term))

    def _near(
        self, found: Iterator[tuple[AffinityTerm, NodeCounts, dict[str, int]]], nodes: NodeSet
    ) -> NodeSet:
        """Those of `nodes` that have one of the pods in their domain."""
        near = 0
        for term, there, gone in found:
            domains = Domains.of(self._labels, term.topology_key, there.items())
            emptied = (node for node, count in domains.without(gone) if not count)
            near |= domains.nodes() & ~self._labels.set_of(emptied)
        return nodes & near

    def _matching(
        self, terms: Sequence[AffinityTerm], snapshot: Snapshot
    ) -> tuple[NodeCounts, dict[str, int]]:
        """The pods that all terms match, and those of them that would end, by node."""
        selection = PodSelection(
            tuple((term.all_namespaces(snapshot.namespaces), term.selector) for term in terms)
        )
        there = snapshot.pods.matching(selection)
        is_emptied = snapshot.left is not snapshot.pods
        return there, preempted(there, snapshot.left.matching(selection)) if is_emptied else {}


def _matches_itself(
    pod: Mapping[str, Any], terms: Sequence[AffinityTerm], snapshot: Snapshot
) -> bool:
    metadata = pod["metadata"]
    labels = metadata.get("labels") or {}
    return all(term.matches(metadata["namespace"], labels, snapshot.namespaces) for term in terms)
