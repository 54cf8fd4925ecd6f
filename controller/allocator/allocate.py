"""The decision: which devices of which node, for all claims of one pod together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Final

from controller.allocator.budget import Budget, SearchLimitReached
from controller.allocator.device import CardKey
from controller.allocator.order import Order
from controller.allocator.policy import Policy
from controller.allocator.ranking import Ranking, Score
from controller.allocator.reasons import explain
from controller.allocator.request import Wanted
from controller.allocator.score import score
from controller.allocator.search import Grant, Grants, NodeSearch
from controller.allocator.single import pick, score_single, single_request
from controller.allocator.state import State
from dra_driver.model.packing import Packing
from dra_driver.selector.allowance import AllowanceSpent

MOST_STEPS = 100_000
NO_PEERS: Final[Mapping[CardKey, int]] = MappingProxyType({})
_FEW = 16  # so few nodes are looked at one by one, without a ranking of all others


@dataclass(frozen=True, slots=True)
class Allocation:
    """All claims on one node; `grants` has one tuple for each claim, in the order given."""

    node: str
    grants: tuple[tuple[Grant, ...], ...]


@dataclass(frozen=True, slots=True)
class Unsatisfied:
    """Nothing was allocated. `explain` says why, for people. It takes longer than the decision, so
    it is called only if somebody reads it, and before the state changes."""

    explain: Callable[[], str]

    @property
    def reason(self) -> str:
        return self.explain()


def allocate(
    state: State,
    wanted: Sequence[Wanted],
    nodes: Collection[str],
    *,
    policy: Policy | None = None,
    peers: Mapping[CardKey, int] = NO_PEERS,
    roomy: AbstractSet[str] = frozenset(),
    steps: int = MOST_STEPS,
) -> Allocation | Unsatisfied:
    """Devices for all of `wanted` on one of `nodes`, or the reason why there are none.

    All or nothing. Finds an allocation whenever one exists, unless `steps` choices that turned
    out wrong did not suffice, which the reason then says. Raises AllowanceSpent where the allowance
    of the state's selectors ends before; the next attempt gets further. `policy` is what holds
    where the claims themselves say nothing. `peers` has the cards that replicas of the same
    workload use, each with how many of them: what spreads keeps away from those cards and their
    nodes. `roomy` nodes come before all others. A set of many `nodes` is quicker than a list.
    """
    state.settle()
    allowed = nodes if isinstance(nodes, AbstractSet) else frozenset(nodes)
    policy = (policy or Policy()).for_claims(wanted)
    decision = _Decision(state, wanted, policy, peers, steps)
    for node in decision.roomy_first(allowed, roomy):
        grants = decision.grants(node)
        if grants is not None:
            return Allocation(node, grants)
    stopped = decision.stopped(allowed)
    return Unsatisfied(partial(explain, state, wanted, allowed, stopped))


def rank(
    state: State,
    wanted: Sequence[Wanted],
    nodes: Collection[str],
    *,
    policy: Policy | None = None,
) -> list[str]:
    """Those of `nodes` on each of which `allocate` finds devices for all of `wanted`, the best
    first."""
    state.settle()
    policy = (policy or Policy()).for_claims(wanted)
    decision = _Decision(state, wanted, policy, NO_PEERS)
    return list(decision.ordered(nodes))


def can_serve(
    state: State,
    wanted: Sequence[Wanted],
    nodes: Collection[str],
    *,
    policy: Policy | None = None,
) -> bool:
    """Whether `allocate` finds devices for all of `wanted` on one of `nodes`, or cannot tell,
    because the search is stopped there."""
    state.settle()
    policy = (policy or Policy()).for_claims(wanted)
    decision = _Decision(state, wanted, policy, NO_PEERS)
    return any(True for _ in decision.ordered(nodes)) or bool(decision.stopped(nodes))


def catch_up(state: State) -> bool:
    """Take in what changed while nobody waits, so that the next claim like those asked last finds
    the nodes ranked. Whether to call it again, as the allowance has ended before all was done."""
    state.settle()
    latest = state.rankings.latest()
    before = sum(len(ranking.unseen) for ranking in latest)
    try:
        for ranking in latest:
            wanted, policy = ranking.asked
            _Decision(state, wanted, policy, NO_PEERS).look(ranking)
    except AllowanceSpent:
        # Of a node that takes longer than all of the allowance nothing is found out here.
        return sum(len(ranking.unseen) for ranking in latest) < before
    return False


class _Decision:
    """One question, put to one node after the other."""

    def __init__(
        self,
        state: State,
        wanted: Sequence[Wanted],
        policy: Policy,
        peers: Mapping[CardKey, int],
        steps: int = MOST_STEPS,
    ) -> None:
        self._state = state
        self._wanted = wanted
        self._policy = policy
        self._peers = peers
        self._allowance = state.selectors.allowance
        self._budget = Budget(steps, self._allowance)
        self._single = single_request(wanted)
        self._limited: set[str] = set()

    def stopped(self, nodes: Collection[str]) -> str:
        """On how many of `nodes` the search ended early; empty if on none."""
        limited = sum(node in nodes for node in self._limited)
        if not limited:
            return ""
        return (
            f"the search was stopped on {'1 node' if limited == 1 else f'{limited} nodes'}, after "
            f"{self._budget.per_node} choices that led nowhere"
        )

    def ordered(self, nodes: Collection[str]) -> Iterable[str]:
        """Those of `nodes` that serve the claims, the best first."""
        if len(nodes) <= _FEW or self._state.inventory.roams:
            return self._one_by_one(nodes)
        ranking = self._state.rankings.of((self._wanted, self._policy))
        self.look(ranking)
        fit = (node for node in ranking.nodes() if node in nodes)
        return self._apart(fit)

    def look(self, ranking: Ranking) -> None:
        """Bring the ranking up to date, as far as the budget allows."""
        self._limited = ranking.limited
        with suppress(SearchLimitReached):
            ranking.look(self._score)

    def roomy_first(self, nodes: AbstractSet[str], roomy: AbstractSet[str]) -> Iterator[str]:
        """The same, the `roomy` ones before all others. What is the rule is gone through as it
        comes; the exceptions to it may all stand behind thousands of nodes."""
        if 2 * len(roomy) < len(nodes):
            first: AbstractSet[str] = nodes & roomy
            yield from self.ordered(first)
            yield from (node for node in self.ordered(nodes) if node not in first)
            return
        behind = []
        for node in self.ordered(nodes):
            if node in roomy:
                yield node
            else:
                behind.append(node)
        yield from behind

    def grants(self, node: str) -> Grants | None:
        """What the node would give; None where the search was stopped."""
        return self._search(node, Order(self._policy, self._state.summary(node), self._peers))

    def _search(self, node: str, order: Order) -> Grants | None:
        if self._single is not None:
            return pick(self._state, self._wanted[0], self._single, node, order)
        self._budget.begin_node()
        try:
            return NodeSearch(self._state, self._wanted, node, order, self._budget).run()
        except SearchLimitReached:
            self._limited.add(node)
            return None

    def _one_by_one(self, nodes: Iterable[str]) -> Iterable[str]:
        scored: list[tuple[Score, str]] = []
        with suppress(SearchLimitReached):
            for node in sorted(nodes):
                found = self._score(node)
                if found is not None:
                    scored.append((found, node))
        return self._apart(node for _, node in sorted(scored))

    def _score(self, node: str) -> Score | None:
        """Raises SearchLimitReached where nothing is left to spend on any node."""
        self._allowance.check()
        if self._single is not None:
            return score_single(self._state, self._wanted[0], self._single, node, self._policy)
        self._limited.discard(node)
        order = Order(self._policy, self._state.summary(node))
        grants = self._search(node, order)
        if grants is not None:
            return score(self._state, order, self._wanted, grants)
        if node in self._limited and self._budget.exhausted:
            raise SearchLimitReached
        return None

    def _apart(self, nodes: Iterable[str]) -> Iterable[str]:
        """With a policy that spreads, the nodes with the fewest peers first; those without any, and
        with any other policy all, as they come."""
        if not self._peers or self._policy.nodes is not Packing.SPREAD:
            return nodes
        on_node: Counter[str] = Counter()
        for (pool, _), replicas in self._peers.items():
            for node in self._state.inventory.nodes_of(pool):
                on_node[node] += replicas
        return _fewest_first(nodes, on_node)


def _fewest_first(nodes: Iterable[str], on_node: Mapping[str, int]) -> Iterator[str]:
    behind = []
    for node in nodes:
        if on_node.get(node):
            behind.append(node)
        else:
            yield node
    yield from sorted(behind, key=on_node.__getitem__)
