"""What the controller's own allocator decides about a waiting pod on the present cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from controller.allocator.allocate import Allocation, allocate
from controller.allocator.claim_request import ClaimRequest, parse_claim
from controller.allocator.diagnosis import diagnose_nodes
from controller.allocator.ownership import is_ours
from controller.allocator.state import State
from controller.cache.cache import ClusterCache
from controller.filter.node_filter import FeasibleNodes, NodeFilter
from dra_driver.kube.api import Change
from dra_driver.kube.resources import (
    DEVICE_CLASSES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from dra_driver.model.claims.claim import Object, allocation, results
from dra_driver.selector.selector import Selectors

_MOST_TRIED: Final = 500  # claims, each of which costs a decision


@dataclass(frozen=True, slots=True)
class Verdict:
    """`node` is where the pod would be served now; empty where it cannot be, and then `reason` says
    why, `by_node` the same of each node that fits the pod, and `helps` names claims (``namespace/
    name``) of which the end of any one would be enough. `never` is whether it would not be served
    even if all claims ended."""

    node: str
    reason: str = ""
    by_node: Mapping[str, str] | None = None
    helps: tuple[str, ...] = ()
    never: bool = False


class LiveAllocator:
    """The controller's cache and allocator on objects as they were listed. Reservations for the
    pod that is first in line, and nodes on which a pod failed, are in the controller's memory
    alone: nothing of them is known here."""

    def __init__(self, objects: Mapping[Resource, tuple[Object, ...]]) -> None:
        """`objects` has slices, claims, nodes, pods and DeviceClasses."""
        selectors = Selectors()
        self._cache = ClusterCache(selectors)
        for resource in (RESOURCE_SLICES, DEVICE_CLASSES, NODES, RESOURCE_CLAIMS, PODS):
            self._cache.replace(resource, objects[resource])
        self._claims = objects[RESOURCE_CLAIMS]
        state = self._cache.state()
        self._filter = NodeFilter(self._cache, state.numbers, selectors.allowance)

    def decide(self, pod: Object, claims: Mapping[str, Object]) -> Verdict | None:
        """About the pod's `claims`, by their names in the pod; None where nothing of them is to be
        allocated. Raises Refused and InvalidValue where a claim asks for what cannot be given."""
        state = self._cache.state()
        ours = [each for each in claims.values() if is_ours(each, state)]
        wanted = [parse_claim(each, state.classes) for each in ours if allocation(each) is None]
        if not wanted:
            return None
        selectors = [
            (selector, "not where the pod's other claims are")
            for each in claims.values()
            if (selector := (allocation(each) or {}).get("nodeSelector"))
        ]
        nodes = self._filter.feasible_nodes(pod, selectors, {})
        decision = allocate(state, wanted, nodes.feasible)
        if isinstance(decision, Allocation):
            return Verdict(decision.node)
        reason = nodes.explain(decision.explain)
        by_node = dict(self._by_node(state, wanted, nodes))
        held = [each for each in self._claims if results(each)]
        if not self._would_fit(wanted, nodes, without=held):
            return Verdict("", reason, by_node, never=True)
        helps = (
            f"{each['metadata']['namespace']}/{each['metadata']['name']}"
            for each in held[:_MOST_TRIED]
            if self._would_fit(wanted, nodes, without=[each])
        )
        return Verdict("", reason, by_node, tuple(helps))

    def _by_node(
        self, state: State, wanted: list[ClaimRequest], nodes: FeasibleNodes
    ) -> Iterator[tuple[str, str]]:
        for some, reason in diagnose_nodes(state, wanted, nodes.feasible):
            for name in state.numbers.names(some):
                yield name, reason

    def _would_fit(
        self, wanted: list[ClaimRequest], nodes: FeasibleNodes, *, without: Sequence[Object]
    ) -> bool:
        for claim in without:
            self._cache.apply(RESOURCE_CLAIMS, Change.DELETED, claim)
        decision = allocate(self._cache.state(), wanted, nodes.feasible)
        for claim in without:
            self._cache.apply(RESOURCE_CLAIMS, Change.ADDED, claim)
        return isinstance(decision, Allocation)
