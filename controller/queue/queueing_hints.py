"""Classes of unschedulable pods, and which events help them (kube-scheduler: queueing hints)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from controller.allocator.allocate import can_serve
from controller.allocator.claim_request import ClaimRequest
from controller.allocator.nodes.node_set import NodeSet
from controller.allocator.packing.policy import Policy
from controller.allocator.state import State
from controller.cache import nodes, pods
from controller.cache.keys import Key
from controller.cache.scheduling_demand import scheduling_demand
from controller.filter.node_filter import NodeFilter
from controller.placer.pod_claims import PodClaims
from controller.queue.fair_queue import StepLimiter
from dra_driver.model.claims.claim import Object
from dra_driver.selector.allowance import AllowanceSpent

HINT_SECONDS: Final = 0.1
"""After so long the thread handles its events before it asks for the next hint."""


@dataclass(frozen=True, slots=True)
class PodClass:
    """Pods that the same events help: their claims have equal shapes, and they have equal
    constraints on nodes and on what is there. `pod`, its unallocated claims `wanted`, and the node
    `selectors` of its volumes and of its other claims stand for all of them."""

    shape: tuple[object, ...]
    constraints: tuple[object, ...]
    pod: Object = field(compare=False)
    wanted: Sequence[ClaimRequest] = field(compare=False)
    selectors: Sequence[Object] = field(compare=False, default=())

    @classmethod
    def of(cls, asked: PodClaims) -> PodClass:
        pod, required = asked.pod, [selector for selector, _ in asked.selectors]
        on_nodes = nodes.digest([nodes.demand(pod), required])
        constraints = pods.node_name(pod), on_nodes, scheduling_demand(pod)
        shape = tuple(each.shape for each in asked.together)
        return cls(shape, constraints, pod, asked.together, required)


@dataclass(frozen=True, slots=True)
class QueueingHints:
    """Asks the filter and the allocator."""

    state: State
    node_filter: NodeFilter
    policy: Policy
    steps: StepLimiter

    def helps(self, pod_class: PodClass, key: Key, changed: NodeSet) -> bool:
        """Whether one of the changed nodes can serve the class, whose first pod is `key`. True if
        that takes too long to find out."""
        with self.steps.step("hint", key.namespace, HINT_SECONDS):
            return self.can_serve(pod_class, changed, if_unknown=True)

    def can_serve(self, pod_class: PodClass, nodes: NodeSet, *, if_unknown: bool) -> bool:
        """Whether one of the nodes can serve the class; in a step. `if_unknown` if that takes too
        long to find out."""
        try:
            feasible = self._feasible(pod_class, nodes)
            return bool(feasible) and can_serve(
                self.state, pod_class.wanted, feasible, policy=self.policy
            )
        except AllowanceSpent:
            return if_unknown

    def _feasible(self, pod_class: PodClass, changed: NodeSet) -> NodeSet:
        bound = pods.node_name(pod_class.pod)
        if bound:
            numbers = self.state.numbers
            return changed & numbers.bit(bound) if bound in numbers else 0
        feasible = self.node_filter.feasible_among(pod_class.pod, changed)
        for selector in pod_class.selectors:
            if feasible:
                feasible &= self.node_filter.matching(selector)
        return feasible
