"""From a pod and its claims to devices of one node, or to the reason why it gets none."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import or_
from typing import Protocol

from controller.allocator.allocate import NO_PEERS, Allocation, FitError, allocate, feasible, rank
from controller.allocator.claim_request import ClaimRequest, parse_claim
from controller.allocator.device import CardKey
from controller.allocator.diagnosis import diagnose_nodes
from controller.allocator.nodes.node_set import NodeSet
from controller.allocator.ownership import RequestOwners, request_owners
from controller.allocator.packing.policy import Policy
from controller.allocator.results import granted_amounts
from controller.allocator.state import State
from controller.cache.keys import uid_of
from controller.filter.node_filter import FeasibleNodes
from controller.filter.usage import (
    check_allocated,
    check_requested,
    check_scheduler,
    check_written,
)
from controller.placer.candidates import ALL, Candidates
from controller.placer.outcome import Placed, Unplaced
from controller.placer.pod_claims import PodClaims
from dra_driver.model.claims.claim import Object, allocation
from dra_driver.model.claims.packing import Packing
from dra_driver.model.errors import InvalidValue, Refused


class PlacerCluster(Protocol):
    """Devices, and cards of pods, as they change: a cache."""

    def state(self) -> State: ...

    def cards_of_replicas(self, pod: Object, /) -> Mapping[CardKey, int]: ...


class Nodes(Protocol):
    """On which nodes a pod may run (`controller.filter.node_filter.NodeFilter`)."""

    def feasible_nodes(
        self, pod: Object, selectors: Iterable[tuple[Object, str]], excluded: Mapping[str, str], /
    ) -> FeasibleNodes: ...


class Placer:
    """Every part of the controller that chooses devices for a pod asks here, and so does
    kubectl gcu: they cannot differ.

    `policy` holds where the claims say nothing. Only pods for one of the `schedulers` are placed;
    all are if none is named. `ignored_fields` of claims are not refused (`claim_fields`).
    """

    def __init__(
        self,
        cluster: PlacerCluster,
        nodes: Nodes,
        policy: Policy,
        *,
        schedulers: Collection[str] = (),
        ignored_fields: frozenset[str] = frozenset(),
    ) -> None:
        self._cluster = cluster
        self._nodes = nodes
        self._policy = policy
        self._schedulers = schedulers
        self._ignored_fields = ignored_fields

    def read(self, pod: Object, claims: Mapping[str, Object]) -> PodClaims:
        """`claims` are the pod's, by their names in the pod. Raises Refused or InvalidValue if no
        devices may be allocated for the pod, whichever there are."""
        state = self._cluster.state()
        owners = {name: self._owners(claim, state) for name, claim in claims.items()}
        ours = {name: each.only_ours() for name, each in owners.items() if each.ours}
        wanted = {
            name: replace(self._parsed(claim, state), claim=claims[name])
            for name, claim in ours.items()
            if allocation(claim) is None
        }
        allocated = [claim for claim in claims.values() if allocation(claim) is not None]
        asked = PodClaims(pod, list(wanted.values()), ours, allocated)
        if not wanted:
            return asked
        # Each once: a pod that names a claim twice is refused.
        check_scheduler(pod, self._schedulers)
        check_requested(pod, ours, asked.wanted)
        if not self._policy.by_scheduler:
            return asked
        check_written(asked.wanted)
        return self._with_others(asked, owners.values())

    def place(self, asked: PodClaims, candidates: Candidates = ALL) -> Placed | Unplaced:
        """Devices for all claims that are wanted, on one node. The nominated node comes first.
        Raises AllowanceSpent."""
        found = self._nodes.feasible_nodes(asked.pod, asked.selectors, candidates.excluded)
        if candidates.with_unfit:
            found = found.with_unfit()
        among = candidates.within
        if not candidates.may_preempt:
            among &= ~found.preempting
        nodes = replace(found, feasible=found.feasible & among, nominated=found.nominated & among)
        wanted = asked.together
        parts, packing = _in_order(nodes, candidates.last), candidates.packing
        decision = self._allocate(asked, wanted, parts, packing)
        if isinstance(decision, FitError) and decision.unknown:
            # What other drivers have there is not known: the node is named by ours alone.
            alone = self._allocate(asked, asked.wanted, [decision.unknown], packing)
            if isinstance(alone, Allocation):
                decision, wanted = alone, asked.wanted
        if isinstance(decision, FitError):
            return Unplaced(nodes, decision)
        preempts = bool(nodes.preempting & self._cluster.state().numbers.bit(decision.node))
        placed = Placed(decision.node, decision.assignments, wanted, preempts)
        try:
            check_allocated(asked.pod, asked.ours, asked.wanted, placed.of(asked.wanted))
            for devices in decision.assignments:
                granted_amounts(devices)
        except Refused as error:
            return Unplaced(nodes, error)
        return placed

    def spreads(self, asked: PodClaims) -> bool:
        """Whether pods of one workload are kept apart on nodes."""
        return self._policy.for_claims(asked.wanted).for_nodes.keeps_apart

    def serving(self, asked: PodClaims) -> NodeSet:
        """The nodes on which the pod may run, and that each have devices for all claims that are
        wanted. Raises AllowanceSpent."""
        nodes = self._nodes.feasible_nodes(asked.pod, asked.selectors, {}).feasible
        return feasible(self._cluster.state(), asked.together, nodes, policy=self._policy)

    def rank(self, asked: PodClaims) -> list[str]:
        """The same nodes, the best first. Raises AllowanceSpent."""
        nodes = self._nodes.feasible_nodes(asked.pod, asked.selectors, {}).feasible
        state, peers = self._cluster.state(), self._peers(asked)
        return rank(state, asked.together, nodes, policy=self._policy, peers=peers)

    def reasons(self, asked: PodClaims, nodes: NodeSet) -> dict[str, str]:
        """By node, why it has no devices for the claims; nodes of a kind share one text. Raises
        AllowanceSpent."""
        return diagnose_nodes(self._cluster.state(), asked.together, nodes)

    def _owners(self, claim: Object, state: State) -> RequestOwners:
        """Raises MixesDrivers if the claim is not to be served here."""
        owners = request_owners(claim, state)
        if self._policy.by_scheduler:
            owners.check_alternatives()
        else:  # no allocator of one driver could write the allocation
            owners.check_not_mixed()
        return owners

    def _parsed(
        self, claim: Object, state: State, others: Collection[str] = frozenset()
    ) -> ClaimRequest:
        return parse_claim(claim, state.classes, self._ignored_fields, others)

    def _with_others(self, asked: PodClaims, owners: Iterable[RequestOwners]) -> PodClaims:
        """With what the unallocated claims ask of other drivers."""
        unallocated = [each for each in owners if allocation(each.claim) is None]
        if not any(each.others for each in unallocated):
            return asked
        if not self._cluster.state().others.inventory.is_listed:
            return replace(asked, await_others=True)
        of_ours = {each.ref.uid: each for each in asked.wanted}
        together = [
            claim
            for each in unallocated
            if (claim := self._understood(each) or of_ours.get(uid_of(each.claim))) is not None
        ]
        is_of_others = any(request.of_others for claim in together for request in claim.requests)
        return replace(asked, with_others=together) if is_of_others else asked

    def _understood(self, owners: RequestOwners) -> ClaimRequest | None:
        """The claim with what it asks of other drivers; None if that is not understood."""
        try:
            return self._parsed(owners.claim, self._cluster.state(), owners.others)
        except (Refused, InvalidValue):
            return None

    def _allocate(
        self,
        asked: PodClaims,
        wanted: Sequence[ClaimRequest],
        parts: Sequence[NodeSet],
        packing: Packing | None,
    ) -> Allocation | FitError:
        """On one of the nodes of the first part that serves what is wanted; an empty one is passed
        by, if it is not the last. `packing` is as in `Candidates`."""
        peers = self._peers(asked)
        policy = self._policy if packing is None else replace(self._policy, nodes=packing)
        for part in [*filter(None, parts[:-1]), parts[-1]]:
            state = self._cluster.state()
            decision = allocate(state, wanted, part, policy=policy, peers=peers)
            if isinstance(decision, Allocation):
                break
        return decision

    def _peers(self, asked: PodClaims) -> Mapping[CardKey, int]:
        """The cards of the pod's replicas, where something is to keep apart from them."""
        if not self._policy.keeps_apart(asked.wanted):
            return NO_PEERS
        return self._cluster.cards_of_replicas(asked.pod)


def _in_order(nodes: FeasibleNodes, last: Sequence[NodeSet]) -> list[NodeSet]:
    """Sets of nodes in the order in which they are tried, the last of all nodes. Each has the
    nodes of those before it, which have no devices."""
    parts = list[NodeSet]()
    for later in (nodes.unfit | nodes.preempting, nodes.unfit, 0):
        for first in range(len(last) + 1):
            untried = later | reduce(or_, last[first:], 0)
            for part in (nodes.nominated & ~untried, nodes.feasible & ~untried):
                if part not in parts:
                    parts.append(part)
    return parts
