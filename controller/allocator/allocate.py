"""The decision: which devices of which node, for all claims of one pod together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import islice
from operator import or_
from types import MappingProxyType
from typing import Final

from controller.allocator.claim_request import ClaimRequest, ExactRequest
from controller.allocator.device import CardKey
from controller.allocator.diagnosis import diagnose
from controller.allocator.node_info import NodeInfo
from controller.allocator.node_set import NodeSet, numbers
from controller.allocator.order import Order, Policy, Score
from controller.allocator.plain import (
    PlainRequest,
    Serving,
    nodes_for_one,
    nodes_for_several,
    plain_request,
)
from controller.allocator.search import NodeSearch
from controller.allocator.search_state import Budget, DeviceAssignments, SearchLimitReached
from controller.allocator.state import Shape, State
from dra_driver.model.packing import Packing

MOST_STEPS = 100_000
NO_PEERS: Final[Mapping[CardKey, int]] = MappingProxyType({})
_COMPARED: Final = 16  # nodes that are searched, of which the best is taken


@dataclass(frozen=True, slots=True)
class Allocation:
    """All claims on one node; `grants` has one tuple for each claim, in the order given."""

    node: str
    grants: DeviceAssignments


@dataclass(frozen=True, slots=True)
class FitError:
    """Nothing was allocated. `explain` says why, for people. It takes longer than the decision, so
    it is called only if somebody reads it, and before the state changes."""

    explain: Callable[[], str]

    @property
    def reason(self) -> str:
        return self.explain()


def allocate(
    state: State,
    wanted: Sequence[ClaimRequest],
    nodes: NodeSet,
    *,
    policy: Policy | None = None,
    peers: Mapping[CardKey, int] = NO_PEERS,
    roomy: NodeSet = 0,
    steps: int = MOST_STEPS,
) -> Allocation | FitError:
    """Devices for all of `wanted` on one of `nodes`, or the reason why there are none.

    All or nothing. Finds an allocation whenever one exists, unless `steps` choices that turned
    out wrong did not suffice, which the reason then says. Raises AllowanceSpent where the allowance
    of the state's selectors ends before; the next attempt gets further. `policy` is what holds
    where the claims themselves say nothing. `peers` has the cards that replicas of the same
    workload use, each with how many of them: what spreads keeps away from those cards and their
    nodes. `roomy` nodes come before all others. Sets of nodes are those of `state.numbers`.
    """
    decision = _Decision(state, wanted, policy, peers, steps)
    for part in (nodes & roomy, nodes & ~roomy):
        for node in decision.apart(part):
            grants = decision.grants(node)
            if grants is not None:
                return Allocation(node.name, grants)
    return FitError(partial(diagnose, state, wanted, nodes, decision.stopped(nodes)))


def rank(
    state: State,
    wanted: Sequence[ClaimRequest],
    nodes: NodeSet,
    *,
    policy: Policy | None = None,
) -> list[str]:
    """Those of `nodes` on each of which `allocate` finds devices for all of `wanted`, the best
    first."""
    return [node.name for node in _Decision(state, wanted, policy).ordered(nodes)]


def feasible(
    state: State,
    wanted: Sequence[ClaimRequest],
    nodes: NodeSet,
    *,
    policy: Policy | None = None,
) -> NodeSet:
    """The same in no order."""
    return _Decision(state, wanted, policy).feasible(nodes)


def can_serve(
    state: State,
    wanted: Sequence[ClaimRequest],
    nodes: NodeSet,
    *,
    policy: Policy | None = None,
) -> bool:
    """Whether `allocate` finds devices for all of `wanted` on one of `nodes`, or cannot tell,
    because the search is stopped there."""
    decision = _Decision(state, wanted, policy)
    return any(True for _ in decision.ordered(nodes)) or bool(decision.stopped(nodes))


class _Decision:
    """One question, put to many nodes."""

    def __init__(
        self,
        state: State,
        wanted: Sequence[ClaimRequest],
        policy: Policy | None,
        peers: Mapping[CardKey, int] = NO_PEERS,
        steps: int = MOST_STEPS,
    ) -> None:
        state.fleet.refresh()
        self._state = state
        self._wanted = wanted
        self._policy = (policy or Policy()).for_claims(wanted)
        self._peers = peers
        self._budget = Budget(steps, state.selectors.allowance)
        self._limited: NodeSet = 0

    def stopped(self, nodes: NodeSet) -> str:
        """On how many of `nodes` the search ended early; empty if on none."""
        limited = (self._limited & nodes).bit_count()
        if not limited:
            return ""
        return (
            f"the search was stopped on {'1 node' if limited == 1 else f'{limited} nodes'}, after "
            f"{self._budget.per_node} choices that led nowhere"
        )

    def ordered(self, nodes: NodeSet) -> Iterator[NodeInfo]:
        """Those of `nodes` that serve the claims, the best first."""
        nodes &= self._state.fleet.everywhere
        found = self._plain()
        if found is None:
            return self._searched(nodes)
        plain, serving, cards = found
        fleet = self._state.fleet
        if plain.count > 1:
            return nodes_for_several(fleet, serving, nodes, self._policy, plain.count)
        return nodes_for_one(fleet, serving, nodes, self._policy, cards)

    def feasible(self, nodes: NodeSet) -> NodeSet:
        """The same in no order."""
        nodes &= self._state.fleet.everywhere
        found = self._plain()
        if found is None:
            return sum(1 << node.number for node in self._searched(nodes))
        plain, serving, _ = found
        return nodes & serving.nodes(self._state.fleet, plain.count)

    def _plain(self) -> tuple[PlainRequest, Serving, Packing] | None:
        """None where the claims are not one plain request, or signatures do not tell."""
        plain = plain_request(self._wanted)
        if plain is None:
            return None
        cards = self._policy.cards_for(plain.request.demand)
        serving = self._state.plain.serving(plain, cards)
        return None if serving is None else (plain, serving, cards)

    def apart(self, nodes: NodeSet) -> Iterator[NodeInfo]:
        """The same. With a policy that spreads, the nodes with the fewest peers come first."""
        if not self._peers or self._policy.nodes is not Packing.SPREAD:
            yield from self.ordered(nodes)
            return
        on_node: Counter[str] = Counter()
        for (pool, _), replicas in self._peers.items():
            name = self._state.inventory.node_of(pool)
            if name is not None:
                on_node[name] += replicas
        with_peers = self._state.numbers.set_of(on_node.keys())
        yield from self.ordered(nodes & ~with_peers)
        yield from sorted(self.ordered(nodes & with_peers), key=lambda each: on_node[each.name])

    def grants(self, node: NodeInfo) -> DeviceAssignments | None:
        """What the node would give; None where the search was stopped."""
        self._budget.begin_node()
        order = Order(self._policy, node, self._peers)
        try:
            found = NodeSearch(self._state, self._wanted, order, self._budget).run()
        except SearchLimitReached:
            self._limited |= 1 << node.number
            return None
        return None if found is None else found.grants(len(self._wanted))

    def _searched(self, nodes: NodeSet) -> Iterator[NodeInfo]:
        """By searches, a few at a time: of those that serve the claims, the best first."""
        shape = self._state.shapes.of((tuple(each.shape for each in self._wanted), self._policy))
        self._limited = shape.limited
        fleet = self._state.fleet
        levels = fleet.by_load if self._policy.nodes is Packing.SPREAD else fleet.by_free
        first = self._possible(nodes, only_first=True)
        rest = 0
        if any(len(each.alternatives) > 1 for claim in self._wanted for each in claim.requests):
            rest = self._possible(nodes & ~first, only_first=False)
        if (first | rest).bit_count() <= _COMPARED:
            first, rest = first | rest, 0
        for part in (first, rest):
            walked = levels.walk(part & ~shape.failed & ~shape.limited)
            scored = (each for level in walked for each in self._scored(shape, level))
            while few := sorted(islice(scored, _COMPARED)):
                yield from (fleet.at(number) for _, number in few)

    def _scored(self, shape: Shape, nodes: NodeSet) -> Iterator[tuple[Score, int]]:
        for number in numbers(nodes):
            score = shape.scores.get(number)
            if score is None and not (self._limited and self._budget.exhausted):
                score = self._score(self._state.fleet.at(number))
                if score is not None:
                    shape.scores[number] = score
                elif self._limited >> number & 1:
                    shape.limited |= 1 << number
                else:
                    shape.failed |= 1 << number
            if score is not None:
                yield score, number

    def _score(self, node: NodeInfo) -> Score | None:
        self._budget.begin_node()
        order = Order(self._policy, node)
        try:
            found = NodeSearch(self._state, self._wanted, order, self._budget).run()
        except SearchLimitReached:
            self._limited |= 1 << node.number
            return None
        return None if found is None else found.score(order)

    def _possible(self, nodes: NodeSet, *, only_first: bool) -> NodeSet:
        """The nodes that have a card for each request, looked at alone; for the first alternative
        of each, or for any."""
        for wanted in self._wanted:
            for request in wanted.requests:
                alternatives = request.alternatives[:1] if only_first else request.alternatives
                nodes &= reduce(or_, map(self._with_card, alternatives), 0)
        return nodes

    def _with_card(self, request: ExactRequest) -> NodeSet:
        found = 0
        for signature, cards in self._state.fleet.with_cards.items():
            fit = signature.fit(request.demand, self._state.selectors)
            if cards and (fit is None or fit.free):
                found |= cards[0]
        return found
