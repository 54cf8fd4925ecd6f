"""The decision: which devices of which node, for all claims of one pod together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import islice
from operator import or_
from types import MappingProxyType
from typing import Final

from controller.allocator.claim_request import ClaimRequest, ExactRequest
from controller.allocator.device import CardKey
from controller.allocator.diagnosis import diagnose
from controller.allocator.first_fit import FirstFit
from controller.allocator.nodes.matching import COMPARED, CardQuery, MatchingCards
from controller.allocator.nodes.node_info import NodeInfo
from controller.allocator.nodes.node_set import NodeSet, numbers
from controller.allocator.order import Order, Score
from controller.allocator.others.inventory import DevicesUnknown
from controller.allocator.packing.policy import BINPACK, Policy
from controller.allocator.results import DeviceAssignments
from controller.allocator.search import NodeSearch
from controller.allocator.state import Budget, NoScore, SearchedNodes, SearchLimitReached, State

MOST_STEPS: Final = 100_000
NO_PEERS: Final[Mapping[CardKey, int]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Allocation:
    """All claims on one node; `assignments` has one tuple for each claim, in the order given."""

    node: str
    assignments: DeviceAssignments


@dataclass(frozen=True, slots=True)
class FitError:
    """Nothing was allocated. If the search was `stopped`, that says on how many nodes. Whether
    `unknown` nodes have the devices that other drivers are to give is not known."""

    state: State
    wanted: Sequence[ClaimRequest]
    nodes: NodeSet
    stopped: str
    unknown: NodeSet = 0

    def explain(self) -> str:
        """Why, for people. It takes longer than the decision, so it is called only if somebody
        reads it, and before the state changes."""
        return diagnose(self.state, self.wanted, self.nodes, self.stopped)


def allocate(
    state: State,
    wanted: Sequence[ClaimRequest],
    nodes: NodeSet,
    *,
    policy: Policy = BINPACK,
    peers: Mapping[CardKey, int] = NO_PEERS,
    steps: int = MOST_STEPS,
) -> Allocation | FitError:
    """Devices for all of `wanted` on one of `nodes`, or the reason why there are none.

    All or nothing. Finds an allocation whenever one exists, unless the search is stopped after
    `steps` choices that failed, which the reason then says. Raises AllowanceSpent if the allowance
    of the state's selectors ends before; the next attempt gets further.

    `policy` holds where the claims themselves say nothing. `peers` has the cards that replicas of
    the same workload use, each with the number of them: a policy that keeps replicas apart avoids
    those cards and their nodes. Sets of nodes are those of `state.numbers`.
    """
    decision = _Decision(state, wanted, policy, steps)
    for node in decision.apart_from(peers, nodes):
        search = decision.search(node, peers)
        if isinstance(search, NodeSearch):
            return Allocation(node.name, search.assignments())
    return FitError(state, wanted, nodes, decision.stopped_on(nodes), decision.unknown & nodes)


def rank(
    state: State,
    wanted: Sequence[ClaimRequest],
    nodes: NodeSet,
    *,
    policy: Policy = BINPACK,
    peers: Mapping[CardKey, int] = NO_PEERS,
) -> list[str]:
    """Those of `nodes` on each of which `allocate` finds devices for all of `wanted`, the best
    first."""
    return [node.name for node in _Decision(state, wanted, policy).apart_from(peers, nodes)]


def feasible(
    state: State, wanted: Sequence[ClaimRequest], nodes: NodeSet, *, policy: Policy = BINPACK
) -> NodeSet:
    """The same nodes as a set."""
    return _Decision(state, wanted, policy).feasible(nodes)


def can_serve(
    state: State, wanted: Sequence[ClaimRequest], nodes: NodeSet, *, policy: Policy = BINPACK
) -> bool:
    """Whether `allocate` finds devices for all of `wanted` on one of `nodes`. Also true if that is
    not known of one of them: the search is stopped, or devices of other drivers are not known."""
    decision = _Decision(state, wanted, policy)
    return any(True for _ in decision.ordered(nodes)) or bool(
        decision.stopped_on(nodes) or decision.unknown & nodes
    )


class _Decision:
    """The nodes for the claims of one pod: by the signatures of cards if these decide, otherwise by
    a search on each node that may have the devices."""

    def __init__(
        self,
        state: State,
        wanted: Sequence[ClaimRequest],
        policy: Policy,
        steps: int = MOST_STEPS,
    ) -> None:
        state.refresh()
        self._state = state
        self._fleet = state.fleet
        self._wanted = wanted
        self._policy = policy.for_claims(wanted)
        self._budget = Budget(steps, state.selectors.allowance)
        self._stopped: NodeSet = 0
        self.unknown: NodeSet = 0
        """Nodes where devices of other drivers are not known."""
        self._asks_others = any(each.of_others for claim in wanted for each in claim.requests)
        self._exact = self._exact_matching()

    def stopped_on(self, nodes: NodeSet) -> str:
        """On how many of `nodes` the search was stopped, in words; empty if on none."""
        count = (self._stopped & nodes).bit_count()
        if not count:
            return ""
        return (
            f"the search was stopped on {'1 node' if count == 1 else f'{count} nodes'}, after "
            f"{self._budget.per_node} choices that led nowhere"
        )

    def feasible(self, nodes: NodeSet) -> NodeSet:
        """Those of `nodes` that serve the claims."""
        if self._exact is not None:
            return nodes & self._exact.nodes(self._fleet)
        return sum(1 << node.number for node in self.ordered(nodes))

    def ordered(self, nodes: NodeSet) -> Iterator[NodeInfo]:
        """Those of `nodes` that serve the claims, the best first."""
        if self._exact is None:
            yield from self._searched(nodes & self._fleet.all_nodes)
            return
        yield from self._exact.ordered(self._fleet, nodes, self._policy)

    def apart_from(self, peers: Mapping[CardKey, int], nodes: NodeSet) -> Iterator[NodeInfo]:
        """The same; with a policy that keeps replicas apart, the nodes with the fewest first."""
        if not peers or not self._policy.for_nodes.keeps_apart:
            yield from self.ordered(nodes)
            return
        on_node: Counter[str] = Counter()
        for (pool, _), replicas in peers.items():
            name = self._state.inventory.node_of(pool)
            if name is not None:
                on_node[name] += replicas
        with_peers = self._state.numbers.set_of(on_node.keys())
        yield from self.ordered(nodes & ~with_peers)
        yield from sorted(self.ordered(nodes & with_peers), key=lambda node: on_node[node.name])

    def search(
        self, node: NodeInfo, peers: Mapping[CardKey, int] = NO_PEERS
    ) -> NodeSearch | NoScore:
        """The search that found what the node would give. Raises AllowanceSpent."""
        self._budget.begin_node()
        order = Order(self._policy, node, peers)
        kind = FirstFit if self._policy.by_scheduler else NodeSearch
        search = kind(self._state, self._wanted, order, self._budget)
        try:
            return search if search.run() else NoScore.FAILED
        except SearchLimitReached:
            return self._stop(node.number)
        except DevicesUnknown:
            self.unknown |= 1 << node.number
            return NoScore.UNKNOWN

    def _stop(self, number: int) -> NoScore:
        """The node with that number was not searched to its end. No pod waits because there are so
        many devices of other drivers."""
        if self._asks_others:
            self.unknown |= 1 << number
            return NoScore.UNKNOWN
        self._stopped |= 1 << number
        return NoScore.STOPPED

    def _exact_matching(self) -> MatchingCards | None:
        """The matching cards of the only request if their signatures decide; None if not."""
        if self._asks_others or len(self._wanted) != 1 or len(self._wanted[0].requests) != 1:
            return None
        exact, *others = self._wanted[0].requests[0].alternatives
        count = exact.device_request.count
        if others or count is None or exact.device_request.admin_access:
            return None
        if count > 1 and self._policy.by_scheduler:
            return None  # the search knows which cards kube-scheduler takes, and how near they are
        found = self._matching(self._wanted[0], exact)
        return found if found.exact else None

    def _matching(self, wanted: ClaimRequest, exact: ExactRequest) -> MatchingCards:
        applying = [each for each in wanted.constraints if each.applies(exact.name)]
        attributes = tuple(sorted({each.attribute for each in applying}))
        alike = not any(each.distinct for each in applying)
        strategy = self._policy.for_cards(exact.device_request)
        query = CardQuery(exact.device_request, attributes, alike, strategy)
        return self._state.index(MatchingCards, query)

    def _searched(self, nodes: NodeSet) -> Iterator[NodeInfo]:
        """By searches, a few at a time: of those that serve the claims, the best first."""
        known = self._state.searched((tuple(each.shape for each in self._wanted), self._policy))
        self._stopped, self.unknown = known.stopped, known.unknown
        tried = known.failed | known.stopped | known.unknown
        levels = self._fleet.levels(self._policy.for_nodes)
        for part in self._parts(nodes):
            scored = (
                (score, number)
                for level in levels.walk(part & ~tried)
                for number in numbers(level)
                if not isinstance(score := self._score(known, number), NoScore)
            )
            while few := sorted(islice(scored, COMPARED)):
                yield from [self._fleet.at(number) for _, number in few]

    def _score(self, known: SearchedNodes, number: int) -> Score | NoScore:
        """The score of the node with that number. A search finds it out, once for as long as the
        node does not change; none begins after the last step of the budget."""
        score: Score | NoScore | None = known.scores.get(number)
        if score is not None:
            return score
        if (self._stopped or self.unknown) and not self._budget.left:
            return self._stop(number) if self._asks_others else NoScore.STOPPED
        search = self.search(self._fleet.at(number))
        score = search.score() if isinstance(search, NodeSearch) else search
        known.record(number, score)
        return score

    def _parts(self, nodes: NodeSet) -> tuple[NodeSet, NodeSet]:
        """The nodes that may have the devices for the first alternative of each request; and those
        that may have them for others. All are in the first part if they are compared together."""
        first, rest = self._possible(nodes, only_first=True), 0
        if any(len(each.alternatives) > 1 for claim in self._wanted for each in claim.requests):
            rest = self._possible(nodes & ~first, only_first=False)
        return (first, rest) if (first | rest).bit_count() > COMPARED else (first | rest, 0)

    def _possible(self, nodes: NodeSet, *, only_first: bool) -> NodeSet:
        """The nodes with enough cards for each request of ours if there was no other, for the first
        alternative of each or for any."""
        for wanted in self._wanted:
            for request in wanted.requests:
                if request.of_others:
                    continue
                alternatives = request.alternatives[:1] if only_first else request.alternatives
                found = [self._matching(wanted, exact).nodes(self._fleet) for exact in alternatives]
                nodes &= reduce(or_, found, 0)
        return nodes
