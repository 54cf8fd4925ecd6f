"""On which nodes there are pods that selectors match, or whose own anti-affinity matches a pod."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, NamedTuple, TypeVar

from controller.cache.assigned_pod import AssignedPod
from controller.cache.label_selector import LabelSelector
from controller.cache.pod_terms import AffinityTerm, Labels, Namespaces
from controller.cache.recent import Recent

_REMEMBERED: Final = 64  # selections: pods of one workload have the same

NodeCounts = Mapping[str, int]
"""How many of some pods are on each node; no node has none."""

_Counted = TypeVar("_Counted", bound=Hashable)

Assigned = tuple[AssignedPod, str]
"""A pod, and the node that it is on."""


class PodSelection(NamedTuple):
    """Pods that all selectors match, each in its namespaces."""

    parts: tuple[tuple[frozenset[str], LabelSelector | None], ...]
    with_deleting: bool = True

    @property
    def namespaces(self) -> frozenset[str]:
        """No pod of others is in it."""
        return frozenset.intersection(*(namespaces for namespaces, _ in self.parts))

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
        self._counts: Recent[PodSelection, Counter[str]] = Recent(_REMEMBERED)

    def add(self, pod: AssignedPod, node: str, times: int) -> None:
        for selection, counts in self._counts.items():
            if selection.has(pod):
                count(counts, node, times)

    def on_nodes(
        self,
        selection: PodSelection,
        kinds: Iterable[AssignedPod],
        assigned: Iterable[Assigned],
    ) -> NodeCounts:
        """`assigned` are all pods, and `kinds` the objects of those that count, each once."""

        def find() -> Counter[str]:
            chosen = {kind for kind in kinds if selection.has(kind)}
            return Counter([node for pod, node in assigned if pod in chosen] if chosen else ())

        return self._counts.of(selection, find)


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
                count(known.setdefault(term, Counter()), node, times)
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


def count(counts: Counter[_Counted], what: _Counted, times: int) -> None:
    """So many more, or less; nothing is counted as none."""
    counts[what] += times
    if not counts[what]:
        del counts[what]
