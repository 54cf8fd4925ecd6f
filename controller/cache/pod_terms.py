"""What a pod requires of the pods that are near to it: views on its spec as values. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from controller.cache import pods
from controller.cache.label_selector import LabelSelector
from controller.cache.nodes import HOSTNAME, labels_of
from dra_driver.model.claims.claim import ReadOnlyObject

Labels = Mapping[str, str]
Namespaces = Mapping[str, ReadOnlyObject]
"""All of the cluster, by their names."""

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


class AffinityTerm(NamedTuple):
    """A PodAffinityTerm (core/v1) of a pod, whose namespace it has where it names none."""

    topology_key: str
    namespaces: frozenset[str]
    namespace_selector: LabelSelector | None
    selector: LabelSelector | None

    @classmethod
    def of(cls, term: Mapping[str, Any], namespace: str) -> AffinityTerm:
        named, selector = term.get("namespaces") or (), term.get("namespaceSelector")
        if not named and selector is None:
            named = (namespace,)
        return cls(
            term["topologyKey"],
            frozenset(named),
            LabelSelector.of(selector),
            LabelSelector.of(term.get("labelSelector")),
        )

    def matches(self, namespace: str, labels: Labels, namespaces: Namespaces) -> bool:
        """Whether it is about pods with these labels of that namespace."""
        if self.selector is None:
            return False
        is_named = namespace in self.namespaces or (
            self.namespace_selector is not None
            and namespace in namespaces
            and self.namespace_selector.matches(labels_of(namespaces[namespace]))
        )
        return is_named and self.selector.matches(labels)

    def all_namespaces(self, namespaces: Namespaces) -> frozenset[str]:
        """Those that it names, or selects of the given ones."""
        selector = self.namespace_selector
        if selector is None:
            return self.namespaces
        return self.namespaces.union(
            name for name, found in namespaces.items() if selector.matches(labels_of(found))
        )


class SpreadConstraint(NamedTuple):
    """A TopologySpreadConstraint (core/v1) that says DoNotSchedule. `honors_affinity` and
    `honors_taints`: nodes count that the pod's node affinity selects, whose taints it tolerates."""

    topology_key: str
    max_skew: int
    min_domains: int
    selector: LabelSelector | None
    honors_affinity: bool
    honors_taints: bool

    @classmethod
    def of(cls, constraint: Mapping[str, Any]) -> SpreadConstraint:
        return cls(
            constraint["topologyKey"],
            int(constraint.get("maxSkew") or 1),
            int(constraint.get("minDomains") or 1),
            LabelSelector.of(constraint.get("labelSelector")),
            constraint.get("nodeAffinityPolicy", "Honor") == "Honor",
            constraint.get("nodeTaintsPolicy", "Ignore") == "Honor",
        )


def affinity_terms(pod: Mapping[str, Any], kind: str) -> tuple[AffinityTerm, ...]:
    """The required ones; `kind` is podAffinity or podAntiAffinity."""
    terms = ((pod["spec"].get("affinity") or {}).get(kind) or {}).get(_REQUIRED)
    namespace = pod["metadata"]["namespace"]
    return tuple(AffinityTerm.of(term, namespace) for term in terms or ())


def spread_constraints(pod: Mapping[str, Any]) -> tuple[SpreadConstraint, ...]:
    """Those that must hold."""
    return tuple(
        SpreadConstraint.of(each)
        for each in pod["spec"].get("topologySpreadConstraints") or ()
        if each.get("whenUnsatisfiable") == "DoNotSchedule"
    )


def sequence_of(pod: Mapping[str, Any]) -> str:
    """The workload of a pod that depends on pods of other nodes than its own, else empty: of other
    nodes than the one that it looks at, kube-scheduler counts bound pods alone, so the replicas
    before this one must come to it first (`controller.write.commands.Command.sequence`)."""
    depends = (
        spread_constraints(pod)
        or affinity_terms(pod, "podAffinity")
        or any(each.topology_key != HOSTNAME for each in affinity_terms(pod, "podAntiAffinity"))
    )
    return pods.workload(pod) or "" if depends else ""
