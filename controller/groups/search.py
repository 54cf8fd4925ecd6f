"""The search for nodes for all members of a group, in steps.

kube-scheduler places the members of a group one by one, in the order of its queue, and takes the
first devices of each node (1.37.2, `podGroupSchedulingDefaultAlgorithm`). Names decide on which
node. So the search counts each member as placed for the next one, and begins anew where one finds
no place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import or_
from typing import Final, Protocol

from controller.allocator.nodes.node_set import NodeSet
from controller.allocator.nodes.node_set import numbers as node_numbers
from controller.allocator.packing.policy import BINPACK
from controller.cache.keys import uid_of
from controller.cache.pod_requests import pod_requests
from controller.groups.request import (
    GroupPlaced,
    GroupRequest,
    GroupUnplaced,
    Placement,
    free_cards_needed,
    shortage,
)
from controller.groups.trial import GroupCluster, Trial
from controller.placer.candidates import EVERY_NODE
from controller.placer.outcome import Placed, Unplaced
from controller.placer.placer import Placer
from controller.placer.pod_claims import PodClaims
from controller.queue.queueing_hints import PodClass
from dra_driver.model.claims.packing import Packing

MOST_MEMBERS: Final = 512
"""Members that are placed together. Of a larger group each is placed as it fits."""
MOST_PLACEMENTS: Final = 1_024
"""Attempts to place one member, in one search. Then no further set of nodes is tried."""
_PER_STEP: Final = 64
_FULLEST_FIRST: Final = BINPACK.for_nodes
_ORDERS: Final = 3
"""In so many orders the members are tried: the kind that found no place comes first next time."""


class NodeDomains(Protocol):
    """The nodes by a label: `controller.filter.node_filter.NodeFilter`."""

    def domains(self, key: str, /) -> Mapping[str, NodeSet]: ...


@dataclass(frozen=True, slots=True)
class _Tried:
    """What came of one set of nodes: all that were `placed`, those `left`, and the reason of one of
    these; `fits` if the quorum is placed."""

    placed: int
    nodes: int
    left: Sequence[PodClaims]
    reason: str
    fits: bool


@dataclass(frozen=True, slots=True)
class _Scope:
    """A set of nodes to which the group may go as a whole; `name` is for people."""

    nodes: NodeSet
    name: str = ""


class GroupSearch:
    """`advance` until there is an `outcome`. In between, members count as placed, so other pods are
    decided beside them. One instance, one thread."""

    def __init__(
        self,
        request: GroupRequest,
        cluster: GroupCluster,
        placer: Placer,
        domains: NodeDomains,
        near: Sequence[str],
    ) -> None:
        """`near` are labels of nodes, the nearest first: members share their values, if they
        can."""
        self.outcome: GroupPlaced | GroupUnplaced | None = None
        self.touched: NodeSet = 0
        """Nodes on which members counted as placed for a while."""
        self._request = request
        self._cluster = cluster
        self._placer = placer
        self._domains = domains
        self._near = near
        self._trial = Trial(cluster, placer)
        self._order = request.in_order()
        self._kinds = {id(each): PodClass.of(each) for each in self._order}
        self._full: dict[PodClass, NodeSet] = {}  # nodes that have no room for one more
        self._quorum = request.quorum if len(self._order) <= MOST_MEMBERS else 0
        self._usable = EVERY_NODE & ~request.excluded
        self._spent = 0
        self._steps = self._run()

    def advance(self) -> bool:
        """Go on for one step. Returns whether there is an outcome. Raises AllowanceSpent; then the
        search is to be undone."""
        return any(next(self._steps, _END) is _END for _ in range(_PER_STEP))

    def undo(self) -> None:
        """Count no member as placed."""
        self.touched |= self._trial.used
        self._trial.undo()
        self._full.clear()

    def keep(self) -> tuple[Placement, ...]:
        """The placements of the outcome, which count as allocated by whoever takes them."""
        return self._trial.keep()

    def _run(self) -> Iterator[None]:
        if self._request.topology_key:
            scope, tried = yield from self._in_best_domain()
        else:
            scope, tried = yield from self._nearest()
        if tried.fits and (self._request.is_spread or (yield from self._tighten(scope))):
            self.outcome = GroupPlaced(self._trial.placements, tried.left)
            return
        self.undo()
        lacking = (*tried.left, *self._order)[0]
        self.outcome = GroupUnplaced(tried.placed, self._words(scope, tried), lacking)

    def _nearest(self) -> _Steps:
        """On the fewest nodes; of as few, on nodes that share a label."""
        everywhere, near_each_other = _Scope(self._usable), not self._request.is_spread
        serving = self._placer.serving(self._order[0]) if self._near and near_each_other else 0
        tried = yield from self._try_orders(everywhere)
        if not tried.fits or tried.nodes == 1 or not serving:
            return everywhere, tried
        scopes = list(self._shared_labels(serving & self._usable, tried.nodes))
        if not scopes:
            return everywhere, tried
        for scope in scopes:
            if self._spent > MOST_PLACEMENTS:
                break
            self.undo()
            near = yield from self._try(scope, self._order)
            if near.fits and near.nodes <= tried.nodes and len(near.left) <= len(tried.left):
                return scope, near
        self.undo()
        return everywhere, (yield from self._try_orders(everywhere))

    def _shared_labels(self, serving: NodeSet, nodes: int) -> Iterator[_Scope]:
        """The domains of each label that have so many of the nodes `serving`, the nearest label
        first, and of one label the smallest domain."""
        for key in self._near:
            found = [
                _Scope(part, f"{key}={value}")
                for value, part in self._domains.domains(key).items()
                if (part & serving).bit_count() >= nodes
            ]
            beside = [each for each in found if each.nodes & self._request.beside]
            yield from sorted(
                beside or found, key=lambda each: ((each.nodes & serving).bit_count(), each.name)
            )

    def _in_best_domain(self) -> _Steps:
        """As kube-scheduler chooses a domain (1.37.2, `podGroupSchedulingPlacementAlgorithm`): the
        one of its bound members; otherwise of those that have place for the quorum the best by pods
        placed and by requested cpu and memory, the group's included. Of equal ones kube-scheduler
        takes any; here it is the first by name. Where all members are placed, no domain after it is
        better."""
        key, requested = self._request.topology_key, Counter[str]()
        for asked in self._order:
            requested.update(dict(pod_requests(asked.pod)))
        share = self._cluster.allocated_share
        scopes = [
            _Scope(nodes & self._usable, f"{key}={value}")
            for value, nodes in sorted(self._domains.domains(key).items())
            if not self._request.beside or nodes & self._request.beside
        ]
        tries: list[tuple[_Scope, _Tried, int]] = []
        scopes.sort(key=lambda each: -share(each.nodes, requested))
        for scope in self._with_cards(scopes):
            if self._spent > MOST_PLACEMENTS:
                break
            tried = yield from self._try(scope, self._order)
            if not tried.left:
                return scope, tried
            tries.append((scope, tried, share(scope.nodes, {})))
            self.undo()
        if not tries:
            return _Scope(0), _Tried(0, 0, self._order, f"no node has the label {key}", fits=False)
        most = max(tried.placed for _, tried, _ in tries) or 1
        best, tried, _ = max(
            tries, key=lambda each: (each[1].fits, 100 * each[1].placed // most + each[2])
        )
        if tried.fits:
            tried = yield from self._try(best, self._order)
        return best, tried

    def _with_cards(self, scopes: Sequence[_Scope]) -> Sequence[_Scope]:
        """Those with enough free cards for the quorum; if there are none, the one with most."""
        fleet = self._cluster.state().fleet
        fleet.refresh()
        free = {
            each.name: sum(
                fleet.at(number).free for number in node_numbers(each.nodes & fleet.all_nodes)
            )
            for each in scopes
        }
        needed = free_cards_needed(self._order, self._quorum)
        enough = [each for each in scopes if free[each.name] >= needed]
        return enough or sorted(scopes, key=lambda each: -free[each.name])[:1]

    def _try_orders(self, scope: _Scope) -> _Try:
        """On nodes of the scope, in several orders of the members if it must be."""
        order, kinds = self._order, list[PodClass]()
        tried = yield from self._try(scope, order)
        while not tried.fits and len(kinds) < _ORDERS:
            kind = self._kind(tried.left[0])
            if kind in kinds or kind == self._kind(order[0]):
                break
            kinds.append(kind)
            self.undo()
            order = [each for each in order if self._kind(each) == kind] + [
                each for each in order if self._kind(each) != kind
            ]
            tried = yield from self._try(scope, order)
        return tried

    def _try(self, scope: _Scope, order: Sequence[PodClaims]) -> _Try:
        """Each member beside those before it. A kind of pod that found no place finds none
        later."""
        left, lost, reason = list[PodClaims](), set[PodClass](), ""
        for asked in order:
            kind = self._kind(asked)
            outcome: Placed | Unplaced | None = None
            if kind not in lost:
                self._spent += 1
                yield
                outcome = self._place(asked, scope)
            if isinstance(outcome, Placed):
                self._trial.put(asked, outcome)
                continue
            left.append(asked)
            if outcome is not None:
                lost.add(kind)
                reason = reason or self._why(asked, scope, outcome)
        placed = len(order) - len(left)
        nodes = (self._trial.used & ~self._request.beside).bit_count()
        fits = bool(placed) and placed >= self._quorum
        return _Tried(placed, nodes, left, reason, fits=fits)

    def _place(self, asked: PodClaims, scope: _Scope) -> Placed | Unplaced:
        """On a node of other members, if it may be. Another node is the emptiest one,
        as it has room for most; for a member that comes later, one near the others."""
        within = scope.nodes
        used = self._trial.used | self._request.beside
        kind = self._kind(asked)
        beside, apart = within & used & ~self._full.get(kind, 0), within & ~used
        outcome: Placed | Unplaced | None = None
        for part in (apart, beside) if self._request.is_spread else (beside, apart):
            if part and part == beside:
                outcome = self._trial.place(asked, part)
                if isinstance(outcome, Unplaced):
                    self._full[kind] = self._full.get(kind, 0) | part
            elif part:
                last = self._by_distance(self._request.beside) if self._request.beside else ()
                outcome = self._trial.place(asked, part, last=last, packing=Packing.SPREAD)
            if isinstance(outcome, Placed):
                return outcome
        return outcome or self._trial.place(asked, 0)

    def _kind(self, asked: PodClaims) -> PodClass:
        return self._kinds[id(asked)]

    def _tighten(self, scope: _Scope) -> Generator[None, None, bool]:
        """The members on the node with the fewest of them go to the fullest node that has room for
        all of these: the emptiest ones stay free for what needs them. False if their own node has
        no room for them any more, because others were served meanwhile."""
        on_node = Counter(each.node for each in self._trial.placements)
        numbers = self._cluster.state().numbers
        new = [each for each in on_node if not self._request.beside & numbers.bit(each)]
        if not new:
            return True
        node = min(new, key=lambda each: (on_node[each], each))
        keys = {uid_of(each.pod) for each in self._trial.placements if each.node == node}
        members = [each for each in self._order if uid_of(each.pod) in keys]
        self.touched |= self._trial.used
        self._trial.take_back(node)
        for other in (*self._fuller_than(node, members[0], scope), numbers.bit(node)):
            yield
            if self._place_all(members, other):
                return True
        return False

    def _fuller_than(self, node: str, asked: PodClaims, scope: _Scope) -> list[NodeSet]:
        """One node of each number of free cards below that of the node, the fullest first."""
        fleet = self._cluster.state().fleet
        fleet.refresh()
        found = fleet.node(node)
        serving = self._placer.serving(asked) & scope.nodes & ~self._trial.used
        by_free: dict[int, NodeSet] = {}
        for part in fleet.levels(_FULLEST_FIRST).walk(serving & fleet.all_nodes):
            first = next(node_numbers(part))
            free = fleet.at(first).free
            if found is None or free >= found.free:
                break
            by_free.setdefault(free, 1 << first)
        return list(by_free.values())

    def _place_all(self, members: Sequence[PodClaims], on: NodeSet) -> bool:
        """On that one node, or none of them."""
        numbers = self._cluster.state().numbers
        [name] = numbers.names(on)
        for asked in members:
            self._spent += 1
            outcome = self._trial.place(asked, on)
            if not isinstance(outcome, Placed):
                self._trial.take_back(name)
                return False
            self._trial.put(asked, outcome)
        return True

    def _by_distance(self, used: NodeSet) -> tuple[NodeSet, ...]:
        """Sets of nodes that come later, the nearer first."""
        near = [
            reduce(or_, (part for part in self._domains.domains(key).values() if part & used), 0)
            for key in self._near
        ]
        if not near:
            return ()
        rings = [outer & ~inner for inner, outer in pairwise(near)]
        return (*rings, ~reduce(or_, near))

    def _why(self, asked: PodClaims, scope: _Scope, outcome: Unplaced) -> str:
        """For people, while the others count as placed."""
        found = self._trial.place(asked, scope.nodes)
        return outcome.explain() if isinstance(found, Placed) else found.explain()

    def _words(self, scope: _Scope, tried: _Tried) -> str:
        key, needed = self._request.topology_key, self._request.quorum
        where = f" in one domain of {key}" if key else ""
        best = f" (best is {scope.name})" if key and scope.name else ""
        short = shortage(tried.left[: max(1, needed - tried.placed)])
        count = f"{tried.placed} of {needed} pods fit together" if needed > 1 else "no pod fits"
        return f"{count}{where}{best}; short of {short}: {tried.reason}"


_END: Final = object()
_Try = Generator[None, None, _Tried]
_Steps = Generator[None, None, tuple[_Scope, _Tried]]
