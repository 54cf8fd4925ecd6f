"""What kube-scheduler's refusals of a node say about other nodes. Pure.

The replicas of a workload share what is learnt. It orders nodes, and excludes none: a reason names
what is wrong with some node, not with which one.
"""

from __future__ import annotations

import re
from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from controller.cache import nodes, pods
from controller.cache.keys import uid_of
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
# About the one node, or about nodes that the controller leaves out itself.
_OF_ONE_NODE: Final = (
    "Too many pods",
    "node(s) didn't have free ports",
    "node(s) had untolerated taint",
    "node(s) didn't match Pod's node affinity/selector",
    "node(s) were unschedulable",
    "node(s) exceed max volume count",
    "resourceclaim not available on the node",
    "cannot allocate all claims",
)
_HOSTNAME: Final = "kubernetes.io/hostname"
_LABELS: Final = ("topology.kubernetes.io/zone", "node.kubernetes.io/instance-type")


class Likeness(NamedTuple):
    """What nodes have in common: a label's value, None where they lack the label; or that they lack
    a resource, if `value` is empty and `is_resource`."""

    key: str
    value: str | None = ""
    is_resource: bool = False


class Learnt(NamedTuple):
    """`refused` nodes, what nodes have in common with them that the reasons `named`, and what they
    have in common otherwise, where a reason names nothing that is known: `guessed`."""

    refused: frozenset[str]
    named: frozenset[Likeness]
    guessed: frozenset[Likeness]


_NOTHING: Final = Learnt(frozenset(), frozenset(), frozenset())


@dataclass(frozen=True, slots=True)
class _Refusal:
    at: float
    node: str
    named: frozenset[Likeness]
    guessed: frozenset[Likeness]


@dataclass(slots=True)
class Refusals:
    """One instance, one thread. `retention`: seconds for which a refusal counts."""

    retention: float
    _by_workload: OrderedDict[str, deque[_Refusal]] = field(default_factory=OrderedDict)

    def learn(self, pod: Object, node: Mapping[str, Any], verdict: str, now: float) -> None:
        """kube-scheduler refused the node for the pod, with this message."""
        named, guessed = set[Likeness](), set[Likeness]()
        for reason in _REASON.findall(_of_filter(verdict)):
            likenesses = _named(reason, pod, node)
            if likenesses is None:
                guessed.update(_of_labels(_LABELS, node))
            else:
                named.update(likenesses)
        refusal = _Refusal(now, nodes.name_of(node), frozenset(named), frozenset(guessed))
        known = self._by_workload.setdefault(_workload(pod), deque(maxlen=_NODES))
        known.append(refusal)
        self._by_workload.move_to_end(_workload(pod))
        if len(self._by_workload) > _WORKLOADS:
            self._by_workload.popitem(last=False)

    def learnt(self, pod: Object, now: float) -> Learnt:
        """What is known for the pod and its replicas."""
        known = self._by_workload.get(_workload(pod))
        while known and known[0].at < now - self.retention:
            known.popleft()
        if not known:
            return _NOTHING
        return Learnt(
            frozenset(refusal.node for refusal in known),
            frozenset().union(*(refusal.named for refusal in known)),
            frozenset().union(*(refusal.guessed for refusal in known)),
        )


def lacks(node: Mapping[str, Any], resource: str) -> bool:
    """Whether the node has nothing of the resource, used or not."""
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    return str(allocatable.get(resource, "0")) == "0"


def _of_filter(verdict: str) -> str:
    """What the filters said, without preemption: ``1 Insufficient cpu, 2 …``."""
    return verdict.partition(" nodes are available: ")[2].partition(" preemption: ")[0]


def _named(
    reason: str, pod: Object, node: Mapping[str, Any]
) -> Iterator[Likeness] | tuple[Likeness, ...] | None:
    """What other nodes have in common with this one that the reason names; None if the reason is
    not known."""
    if reason.startswith(_INSUFFICIENT):
        resource = reason.removeprefix(_INSUFFICIENT)
        return (Likeness(resource, is_resource=True),) if lacks(node, resource) else ()
    if reason.startswith(_SPREAD):
        return _of_labels(pods.spread_keys(pod), node)
    if reason.startswith(_ANTI_AFFINITY):
        return _of_labels(pods.affinity_keys(pod, "podAntiAffinity"), node)
    if reason.startswith(_AFFINITY):
        return _of_labels(pods.affinity_keys(pod, "podAffinity"), node)
    return () if reason.startswith(_OF_ONE_NODE) or "deallocation" in reason else None


def _of_labels(keys: tuple[str, ...] | list[str], node: Mapping[str, Any]) -> Iterator[Likeness]:
    """Without the hostname: no other node has it in common."""
    labels = nodes.labels_of(node)
    return (Likeness(key, labels.get(key)) for key in keys if key != _HOSTNAME)


def _workload(pod: Object) -> str:
    return pods.workload(pod) or uid_of(pod)
