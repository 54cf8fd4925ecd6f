"""On which nodes there are pods that selectors match, or whose own anti-affinity matches a pod."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, NamedTuple

from controller.cache.assigned_pod import AssignedPod
from controller.cache.label_selector import LabelSelector
from controller.cache.pod_terms import AffinityTerm, Labels, Namespaces

_REMEMBERED: Final = 64  # selections: pods of one workload have the same

NodeCounts = Mapping[str, int]
"""How many of some pods are on each node; no node has none."""

Assigned = tuple[AssignedPod, str]
"""A pod, and the node that it is on."""


class PodSelection(NamedTuple):
    """Pods that all selectors match, each in its namespaces."""

    parts: tuple[tuple[frozenset[str], LabelSelector | None], ...]
    with_deleting: bool = True

    def has(self, pod: AssignedPod) -> bool:
        if pod.is_deleting and not self.with_deleting:
            return False
        return all(
            pod.namespace in namespaces and selector is not None and selector.matches(pod.labels)
            for namespaces, selector in self.parts
        )


class MatchingPods:
    """Counts the pods of each selection on each node. A selection is counted when it is asked for,
    and followed from then on."""

    def __init__(self) -> None:
        self._counts: OrderedDict[PodSelection, Counter[str]] = OrderedDict()

    def add(self, pod: AssignedPod, node: str, times: int) -> None:
        for selection, counts in self._counts.items():
            if selection.has(pod):
                _count(counts, node, times)

    def on_nodes(self, selection: PodSelection, assigned: Iterable[Assigned]) -> NodeCounts:
        """`assigned` are all pods."""
        counts = self._counts.get(selection)
        if counts is None:
            known: dict[int, bool] = {}  # pods of a workload share an object
            counts = self._counts[selection] = Counter()
            for pod, node in assigned:
                is_in = known.get(id(pod))
                if is_in is None:
                    is_in = known[id(pod)] = selection.has(pod)
                if is_in:
                    counts[node] += 1
            if len(self._counts) > _REMEMBERED:
                self._counts.popitem(last=False)
        self._counts.move_to_end(selection)
        return counts


@dataclass(slots=True)
class RepellingPods:
    """Counts, by term of required anti-affinity, the pods that have it on each node."""

    _by_namespace: defaultdict[str, dict[AffinityTerm, Counter[str]]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    _by_selector: dict[AffinityTerm, Counter[str]] = field(default_factory=dict)

    def add(self, pod: AssignedPod, node: str, times: int) -> None:
        for term in pod.repels:
            for known in self._places(term):
                _count(known.setdefault(term, Counter()), node, times)
                if not known[term]:
                    del known[term]

    def having(self, term: AffinityTerm) -> NodeCounts:
        """The pods that have the term."""
        return next((known[term] for known in self._places(term) if term in known), {})

    def matching(
        self, namespace: str, labels: Labels, namespaces: Namespaces
    ) -> Iterator[tuple[AffinityTerm, NodeCounts]]:
        """The terms that are about pods with these labels of that namespace."""
        in_namespace = self._by_namespace.get(namespace) or {}
        for term, counts in chain(in_namespace.items(), self._by_selector.items()):
            if term.matches(namespace, labels, namespaces):
                yield term, counts

    def _places(self, term: AffinityTerm) -> list[dict[AffinityTerm, Counter[str]]]:
        if term.namespace_selector is not None:
            return [self._by_selector]
        return [self._by_namespace[namespace] for namespace in term.namespaces]


def _count(counts: Counter[str], node: str, times: int) -> None:
    counts[node] += times
    if not counts[node]:
        del counts[node]
