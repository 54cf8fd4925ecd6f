"""What kube-scheduler's refusals of a node say about other nodes. Pure.

The replicas of a workload share what is learnt. It orders nodes, and excludes none: a reason names
what is wrong with some node, not with which one.
"""

from __future__ import annotations

import re
from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from controller.cache import nodes, pods
from controller.cache.keys import uid_of
from controller.cache.pod_terms import (
    AffinityTerm,
    SpreadConstraint,
    affinity_terms,
    spread_constraints,
)
from dra_driver.model.claims.claim import Object

_WORKLOADS: Final = 256
_NODES: Final = 256  # of one workload

# kube-scheduler 1.34.4 to 1.37.2, pkg/scheduler/framework/types.go, FitError.Error: how many nodes,
# and the reason that they have in common.
_REASON: Final = re.compile(r"\d+ (.+?)(?=, \d+ |\.(?: |$)|$)")
_INSUFFICIENT: Final = "Insufficient "
_SPREAD: Final = "node(s) didn't match pod topology spread constraints"
_AFFINITY: Final = "node(s) didn't match pod affinity rules"
_ANTI_AFFINITY: Final = "node(s) didn't match pod anti-affinity rules"
_PORTS: Final = "node(s) didn't have free ports"
# About the one node, or about nodes that the controller leaves out itself.
_OF_ONE_NODE: Final = (
    "Too many pods",
    "node(s) had untolerated taint",
    "node(s) didn't match Pod's node affinity/selector",
    "node(s) were unschedulable",
    "node(s) exceed max volume count",
    "resourceclaim not available on the node",
    "cannot allocate all claims",
)
_LABELS: Final = ("topology.kubernetes.io/zone", "node.kubernetes.io/instance-type")

Label = tuple[str, str | None]
"""A label and its value, None on nodes without the label."""


class Learnt(NamedTuple):
    """`nodes` were refused, for resources that they have nothing of (`lacking`), or because of
    pods: others are where a label has another value than there (`together`), or replicas where a
    label of these keys has the same value (`apart`). `guessed` are labels of nodes that were
    refused for a reason that is not known."""

    nodes: frozenset[str] = frozenset()
    lacking: frozenset[str] = frozenset()
    together: frozenset[Label] = frozenset()
    apart: frozenset[str] = frozenset()
    guessed: frozenset[Label] = frozenset()

    @staticmethod
    def union(parts: Sequence[Learnt]) -> Learnt:
        return Learnt(
            frozenset[str]().union(*(part.nodes for part in parts)),
            frozenset[str]().union(*(part.lacking for part in parts)),
            frozenset[Label]().union(*(part.together for part in parts)),
            frozenset[str]().union(*(part.apart for part in parts)),
            frozenset[Label]().union(*(part.guessed for part in parts)),
        )


NOTHING: Final = Learnt()


@dataclass(slots=True)
class Refusals:
    """One instance, one thread. `retention`: seconds for which a refusal counts."""

    retention: float
    _by_workload: OrderedDict[str, deque[tuple[float, Learnt]]] = field(default_factory=OrderedDict)

    def learn(self, pod: Object, node: Mapping[str, Any], verdict: str, now: float) -> None:
        """kube-scheduler refused the node for the pod, with this message."""
        reasons = _REASON.findall(_of_filter(verdict))
        lessons = [_lesson(reason, pod, node) for reason in reasons]
        learnt = Learnt.union([Learnt(frozenset([nodes.name_of(node)])), *lessons])
        workload = _workload(pod)
        self._by_workload.setdefault(workload, deque(maxlen=_NODES)).append((now, learnt))
        self._by_workload.move_to_end(workload)
        if len(self._by_workload) > _WORKLOADS:
            self._by_workload.popitem(last=False)

    def learnt(self, pod: Object, now: float) -> Learnt:
        """What is known for the pod and its replicas."""
        known = self._by_workload.get(_workload(pod))
        while known and known[0][0] < now - self.retention:
            known.popleft()
        return Learnt.union([learnt for _, learnt in known]) if known else NOTHING


def lacks(node: Mapping[str, Any], resource: str) -> bool:
    """Whether the node has nothing of the resource, used or not."""
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    return str(allocatable.get(resource, "0")) == "0"


def _of_filter(verdict: str) -> str:
    """What the filters said, without preemption: ``1 Insufficient cpu, 2 …``."""
    return verdict.partition(" nodes are available: ")[2].partition(" preemption: ")[0]


def _lesson(reason: str, pod: Object, node: Mapping[str, Any]) -> Learnt:
    """What the reason says, if it is that of the node."""
    if reason.startswith(_INSUFFICIENT):
        resource = reason.removeprefix(_INSUFFICIENT)
        return Learnt(lacking=frozenset([resource])) if lacks(node, resource) else NOTHING
    if reason.startswith(_AFFINITY):
        return Learnt(together=_labels(_topology_keys(affinity_terms(pod, "podAffinity")), node))
    if reason.startswith((_SPREAD, _ANTI_AFFINITY, _PORTS)):
        return Learnt(apart=frozenset(_keys_apart(reason, pod)))
    is_known = reason.startswith(_OF_ONE_NODE) or "deallocation" in reason
    return NOTHING if is_known else Learnt(guessed=_labels(_LABELS, node))


def _keys_apart(reason: str, pod: Object) -> list[str]:
    if reason.startswith(_SPREAD):
        return _topology_keys(spread_constraints(pod))
    if reason.startswith(_ANTI_AFFINITY):
        return _topology_keys(affinity_terms(pod, "podAntiAffinity"))
    return [nodes.HOSTNAME]


def _topology_keys(terms: Iterable[AffinityTerm | SpreadConstraint]) -> list[str]:
    return [term.topology_key for term in terms]


def _labels(keys: Iterable[str], node: Mapping[str, Any]) -> frozenset[Label]:
    labels = nodes.labels_of(node)
    return frozenset((key, labels.get(key)) for key in keys)


def _workload(pod: Object) -> str:
    return pods.workload(pod) or uid_of(pod)
