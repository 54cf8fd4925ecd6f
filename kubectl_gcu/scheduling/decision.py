"""What the controller's own allocator decides about a waiting pod on the present cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import Final
from uuid import uuid4

from controller.allocator.allocate import NO_PEERS, Allocation, FitError, allocate
from controller.allocator.claim_request import ClaimRequest, parse_claim
from controller.allocator.diagnosis import count_words, diagnose_nodes
from controller.allocator.nodes.node_set import NodeSet, numbers
from controller.allocator.ownership import is_ours
from controller.allocator.packing.policy import Policy
from controller.allocator.results import allocation_status
from controller.allocator.state import State
from controller.cache.cache import ClusterCache
from controller.cache.keys import uid_of
from controller.filter.node_filter import FeasibleNodes, NodeFilter
from controller.filter.usage import check_allocated, check_requested, check_scheduler
from dra_driver.kube.api import Change
from dra_driver.kube.resources import (
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from dra_driver.model.claims.claim import Object, allocation, results
from dra_driver.model.errors import InvalidValue, Refused
from dra_driver.model.names import pool_name
from dra_driver.selector.selector import Selectors
from kubectl_gcu.scheduling.packing import (
    configured_ignored_fields,
    configured_packing,
    is_for_scheduler,
    served_schedulers,
    without_counters,
)
from kubectl_gcu.scheduling.remedies import (
    tainted_cards,
    users_of_several,
    when_all_claims_ended,
    without_node_constraints,
)
from kubectl_gcu.scheduling.verdict import Verdict

_NEWEST: Final = 2**63  # a version that no server has given yet
_MOST_NAMED: Final = 3
_MOST_TRIED: Final = 500  # claims; each costs a decision


class LiveAllocator:
    """The controller's cache and allocator on objects as they were listed. Reservations for the
    pod that is first in line, and nodes on which a pod failed, are in the controller's memory
    alone: nothing of them is known here."""

    def __init__(self, objects: Mapping[Resource, tuple[Object, ...]]) -> None:
        """`objects` has slices, claims, nodes, pods and DeviceClasses, and DeviceTaintRules where
        there are any."""
        selectors = Selectors()
        self._cache = ClusterCache(selectors)
        slices = objects[RESOURCE_SLICES]
        self.for_scheduler = is_for_scheduler(objects[PODS], slices)
        """Whether kube-scheduler allocates; it serves the same pods, maybe by other devices."""
        if self.for_scheduler:
            slices = tuple(map(without_counters, slices))
        self._schedulers = frozenset() if self.for_scheduler else served_schedulers(objects[PODS])
        self._cache.replace(RESOURCE_SLICES, slices)
        for resource in (DEVICE_CLASSES, NODES, RESOURCE_CLAIMS, PODS):
            self._cache.replace(resource, objects[resource])
        self._cache.replace(DEVICE_TAINT_RULES, objects.get(DEVICE_TAINT_RULES, ()))
        self._claims = {each["metadata"]["uid"]: each for each in objects[RESOURCE_CLAIMS]}
        self._pods = {_key(each) for each in objects[PODS]}
        self.packing = configured_packing(objects[PODS])
        """The controller's, where a pod of it is among the objects."""
        self._ignored = configured_ignored_fields(objects[PODS])
        state = self._cache.state()
        self._filter = NodeFilter(self._cache, state.numbers, selectors.allowance)

    def decide(
        self, pod: Object, claims: Mapping[str, Object], volumes: Sequence[Object] = ()
    ) -> Verdict | None:
        """About the pod's `claims`, by their names in the pod; None where nothing of them is to be
        allocated. `volumes` are node selectors of the pod's volumes. Raises Refused and
        InvalidValue where a claim asks for what cannot be given."""
        wanted = self._wanted(pod, claims)
        if not wanted:
            return None
        state, nodes = self._cache.state(), self._nodes(pod, claims, volumes)
        decision = self._allocate(pod, wanted, nodes)
        if isinstance(decision, Allocation):
            check_allocated(pod, self._ours(claims), wanted, decision)
            return Verdict(decision.node)
        reason = nodes.explain(decision.explain)
        relaxed, constraints = without_node_constraints(pod)
        others = self._nodes(relaxed, claims, volumes).feasible & ~nodes.feasible
        elsewhere = self._elsewhere(others, wanted, constraints)
        if not nodes.feasible:
            remedy = "no claim's end helps: change what keeps the pod from every node"
            remedy = "; ".join(filter(None, (remedy, elsewhere)))
            return Verdict("", reason, remedy=remedy, needs_person=True)
        by_node = dict(self._by_node(state, wanted, nodes))
        found = self._with_remedy(Verdict("", reason, by_node), wanted, nodes)
        return replace(found, remedy="; ".join(filter(None, (found.remedy, elsewhere))))

    def _elsewhere(self, others: NodeSet, wanted: list[ClaimRequest], constraints: str) -> str:
        """Which of these nodes would serve the pod but for what its author wrote about nodes."""
        state = self._cache.state()
        fit = [
            number
            for number in islice(numbers(others), _MOST_TRIED)
            if isinstance(allocate(state, wanted, 1 << number), Allocation)
        ]
        if not fit:
            return ""
        count = "1 other node" if len(fit) == 1 else f"{len(fit)} other nodes"
        has = "has" if len(fit) == 1 else "have"
        names = list(state.numbers.names(sum(1 << number for number in fit)))
        more = ", …" if len(names) > _MOST_NAMED else ""
        return (
            f"{count} that the pod's {constraints} excludes {has} what it asks for: "
            f"{', '.join(names[:_MOST_NAMED])}{more}"
        )

    def _with_remedy(
        self, verdict: Verdict, wanted: list[ClaimRequest], nodes: FeasibleNodes
    ) -> Verdict:
        """Claims on nodes that do not fit the pod cannot help."""
        pools = {pool_name(name) for name in self._cache.state().numbers.names(nodes.feasible)}
        held = [
            each
            for each in self._claims.values()
            if not pools.isdisjoint(result.pool for result in results(each))
        ]
        if not self._would_fit(wanted, nodes, without=held):
            asked = [exact.device_request for each in wanted for exact in each.exact_requests()]
            with self._without(held) as state:
                remedy = when_all_claims_ended(count_words(state, a, nodes.feasible) for a in asked)
                tainted = tainted_cards(state, asked, nodes.feasible)
            return replace(verdict, remedy=remedy, tainted=tainted, needs_person=True)
        tried, untried = held[:_MOST_TRIED], len(held[_MOST_TRIED:])
        helps = tuple(
            f"{each['metadata']['namespace']}/{each['metadata']['name']}"
            for each in tried
            if self._would_fit(wanted, nodes, without=[each])
        )
        helps_pods = tuple(
            f"{namespace}/{name}"
            for (namespace, name), several in islice(users_of_several(tried), _MOST_TRIED)
            if self._would_fit(wanted, nodes, without=several)
        )
        remedy = ""
        if not helps and not helps_pods:
            remedy = "it fits when several claims end; no single one is enough"
        if untried:
            remedy = f"{untried} of {len(held)} claims were not tried"
        return replace(verdict, helps=helps, helps_pods=helps_pods, remedy=remedy)

    def place(self, pod: Object, claims: Mapping[str, Object]) -> list[Object] | Verdict:
        """Decide, and count the devices as allocated from now on. Returns the pod's claims as they
        would be then; or why there are no devices for them. Raises as `decide`."""
        wanted = self._wanted(pod, claims)
        if not wanted:
            return list(claims.values())
        nodes = self._nodes(pod, claims)
        decision = self._allocate(pod, wanted, nodes)
        if isinstance(decision, FitError):
            return Verdict("", nodes.explain(decision.explain))
        check_allocated(pod, self._ours(claims), wanted, decision)
        user = {"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
        for each, grants in zip(wanted, decision.assignments, strict=True):
            status = allocation_status(
                each,
                grants,
                decision.node,
                self._cache.state().classes,
                timestamp="",
                new_share_id=lambda: str(uuid4()),
            )
            made = each.claim | {"status": {"allocation": status, "reservedFor": [user]}}
            made["metadata"] = made["metadata"] | {"resourceVersion": str(_NEWEST)}
            self._cache.apply(RESOURCE_CLAIMS, Change.MODIFIED, made)
            self._claims[made["metadata"]["uid"]] = made
        self._add_pod(pod, claims)
        return [self._claims.get(each["metadata"]["uid"], each) for each in claims.values()]

    def _add_pod(self, pod: Object, claims: Mapping[str, Object]) -> None:
        """What spreads keeps apart from the cards of replicas, so the next ones need to see it. One
        that exists stays as it is."""
        if _key(pod) in self._pods:
            return
        made = [
            {"name": reference, "resourceClaimName": claim["metadata"]["name"]}
            for reference, claim in claims.items()
        ]
        metadata = pod["metadata"] | {"resourceVersion": str(_NEWEST)}
        placed = pod | {"metadata": metadata, "status": {"resourceClaimStatuses": made}}
        self._cache.apply(PODS, Change.ADDED, placed)

    def servable(self, waiting: Iterable[tuple[Object, Mapping[str, Object]]]) -> list[Object]:
        """Of pods with their claims those that would be served if all allocated claims ended."""
        pods = list(waiting)
        allocated = [each for each in self._claims.values() if results(each)] if pods else []
        with self._without(allocated):
            found = [pod for pod, claims in pods[:_MOST_TRIED] if self._is_servable(pod, claims)]
        return found + [pod for pod, _ in pods[_MOST_TRIED:]]

    def _is_servable(self, pod: Object, claims: Mapping[str, Object]) -> bool:
        try:
            wanted = self._wanted(pod, claims)
        except (Refused, InvalidValue):
            return False
        decision = allocate(self._cache.state(), wanted, self._nodes(pod, claims).feasible)
        return isinstance(decision, Allocation) or bool(decision.stopped)

    def claims(self) -> tuple[Object, ...]:
        """All claims, with those that were placed."""
        return tuple(self._claims.values())

    def serves(self, claim: Object) -> bool:
        """Whether the claim is for this driver to allocate, and not to be refused."""
        try:
            return is_ours(claim, self._cache.state())
        except Refused:
            return False

    def _ours(self, claims: Mapping[str, Object]) -> dict[str, Object]:
        state = self._cache.state()
        return {name: each for name, each in claims.items() if is_ours(each, state)}

    def _wanted(self, pod: Object, claims: Mapping[str, Object]) -> list[ClaimRequest]:
        ours, classes = self._ours(claims), self._cache.state().classes
        # By UID: a pod may name a claim twice.
        unallocated = {uid_of(each): each for each in ours.values() if allocation(each) is None}
        wanted = [parse_claim(each, classes, self._ignored) for each in unallocated.values()]
        if wanted:
            check_scheduler(pod, self._schedulers)
            check_requested(pod, ours, wanted)
        return wanted

    def _nodes(
        self, pod: Object, claims: Mapping[str, Object], volumes: Sequence[Object] = ()
    ) -> FeasibleNodes:
        selectors = [
            (selector, "not where the pod's other claims are")
            for each in claims.values()
            if (selector := (allocation(each) or {}).get("nodeSelector"))
        ]
        selectors += [(each, "not where the pod's volumes are") for each in volumes]
        return self._filter.feasible_nodes(pod, selectors, {})

    def _allocate(
        self, pod: Object, wanted: list[ClaimRequest], nodes: FeasibleNodes
    ) -> Allocation | FitError:
        policy = self.packing or Policy()
        spreads = policy.keeps_apart(wanted)
        return allocate(
            self._cache.state(),
            wanted,
            nodes.feasible,
            policy=policy,
            peers=self._cache.cards_of_replicas(pod) if spreads else NO_PEERS,
            with_capacity=self._cache.nodes_with_capacity(pod),
        )

    def _by_node(
        self, state: State, wanted: list[ClaimRequest], nodes: FeasibleNodes
    ) -> Iterator[tuple[str, str]]:
        for some, reason in diagnose_nodes(state, wanted, nodes.feasible):
            for name in state.numbers.names(some):
                yield name, reason

    def _would_fit(
        self, wanted: list[ClaimRequest], nodes: FeasibleNodes, *, without: Sequence[Object]
    ) -> bool:
        with self._without(without) as state:
            return isinstance(allocate(state, wanted, nodes.feasible), Allocation)

    @contextmanager
    def _without(self, claims: Sequence[Object]) -> Iterator[State]:
        """As if these claims had ended."""
        for claim in claims:
            self._cache.apply(RESOURCE_CLAIMS, Change.DELETED, claim)
        yield self._cache.state()
        for claim in claims:
            self._cache.apply(RESOURCE_CLAIMS, Change.ADDED, claim)


def _key(obj: Object) -> tuple[str, str]:
    return obj["metadata"]["namespace"], obj["metadata"]["name"]
