"""The cards that can serve a request, found by their signatures, not node by node."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from functools import reduce
from itertools import islice
from operator import or_
from typing import Any, Final, NamedTuple

from controller.allocator.device import DeviceKind
from controller.allocator.device_request import DeviceRequest
from controller.allocator.nodes.fleet import Fleet
from controller.allocator.nodes.node_info import NodeInfo
from controller.allocator.nodes.node_set import NodeCounter, NodeSet, numbers
from controller.allocator.nodes.signature import CardSignature
from controller.allocator.packing.policy import Policy
from controller.allocator.packing.strategy import Strategy
from controller.allocator.state import SignatureIndex
from dra_driver.model.devices.topology import bits
from dra_driver.selector.selector import Selectors

COMPARED: Final = 16  # nodes that are compared; the best one is taken


class CardQuery(NamedTuple):
    """`attributes` are those that each device must have. With `alike`, all devices of the request
    must have the same value of each. `strategy` says which of a card's devices is the best."""

    device_request: DeviceRequest
    attributes: tuple[str, ...]
    alike: bool
    strategy: Strategy


class MatchingCards(SignatureIndex):
    """The signatures of cards with a free device for the query. For one device they are grouped by
    how full the device would be, for several by the values of the attributes.

    Signatures are `exact` if they decide which nodes have the devices. They do not if a selector
    or a constraint reads what is a card's own, or a card has several devices that match: then the
    nodes found are those that may have them.
    """

    def __init__(self, query: CardQuery) -> None:
        super().__init__()
        self._query = query
        self._count = 1 if query.device_request.admin_access else query.device_request.count or 1
        self.exact = query.alike or self._count == 1
        self._groups: dict[Hashable, list[CardSignature]] = {}
        self._group_of: dict[CardSignature, int] = {}
        self._least_cards = self._count

    def nodes(self, fleet: Fleet) -> NodeSet:
        """The nodes that have enough cards."""
        if not self.exact or self._count == 1:
            return _nodes_with(fleet, self._group_of, self._least_cards)
        found = [_nodes_with(fleet, each, self._count) for each in self._groups.values()]
        return reduce(or_, found, 0)

    def ordered(self, fleet: Fleet, nodes: NodeSet, policy: Policy) -> Iterator[NodeInfo]:
        """Those of `nodes` that have enough cards, the best first. For several devices, the first
        few of equally full nodes are compared by how near the cards are. Only if `exact`."""
        for tie in self._ties(fleet, nodes, policy):
            found = map(fleet.at, numbers(tie))
            if self._count > 1:
                yield from sorted(islice(found, COMPARED), key=self._spread)
            yield from found

    def _ties(self, fleet: Fleet, nodes: NodeSet, policy: Policy) -> Iterator[NodeSet]:
        """Sets of equally full nodes."""
        nodes_by = policy.for_nodes
        levels = fleet.levels(nodes_by)
        if self._count > 1:
            yield from levels.walk(nodes & self.nodes(fleet))
        elif nodes_by.card_first and self._query.strategy.card_first:
            for _, part in self._by_fill(fleet, nodes):
                yield from levels.walk(part)
        else:
            parts = sorted(self._by_fill(fleet, nodes))
            for level in levels.walk(reduce(or_, [part for _, part in parts], 0)):
                yield from filter(None, [level & part for _, part in parts])

    def _spread(self, node: NodeInfo) -> tuple[int, int]:
        """How far apart the cards are that the node would give."""
        available = [0] * len(self._groups)
        for number, card in enumerate(node.cards):
            group = self._group_of.get(card.signature)
            if group is not None:
                available[group] |= 1 << number
        cards = node.topology.nearest(self._count, *available, free=node.free_cards) or ()
        return node.topology.spread(bits(cards))

    def _by_fill(self, fleet: Fleet, nodes: NodeSet) -> Iterator[tuple[Any, NodeSet]]:
        """The nodes by the fill of their best device, the best first."""
        for fill in self._in_order(self._groups):
            if part := nodes & _nodes_with(fleet, self._groups[fill]):
                yield fill, part
                nodes ^= part

    def _in_order(self, fills: Collection[Any]) -> list[Any]:
        return sorted(fills, key=self._query.strategy.card_key)

    def _examine(self, signature: CardSignature, selectors: Selectors) -> None:
        fit = signature.fit(self._query.device_request, selectors)
        key: Hashable = ()
        if fit is None:
            self.exact = False
            self._count_cards_with_two(signature.kinds)
        else:
            kinds, attributes = signature.kinds, self._query.attributes
            free = [each for each in fit.free if all(map(kinds[each.at].has, attributes))]
            if not free:
                return
            if self._count == 1:
                key = self._in_order([each.fill for each in free])[0]
            else:
                kind = kinds[free[0].at]
                values = [kind.attribute(name) for name in attributes]
                key = tuple(values)
                single = all(each is not None and len(each.values) == 1 for each in values)
                self.exact &= single and len(free) == 1 and not kind.multiple
                self._count_cards_with_two([kinds[each.at] for each in free])
        self._groups.setdefault(key, []).append(signature)
        self._group_of[signature] = list(self._groups).index(key)

    def _count_cards_with_two(self, kinds: Sequence[DeviceKind]) -> None:
        """`kinds` may be free on one card: a request that tolerates the taint of the device for
        administrators gets it, and another one."""
        admins = (self._query.device_request.capacity_fit(e) for e in kinds if e.is_for_admins)
        if len(kinds) > 1 and any(fit is not None and not fit.taints for fit in admins):
            self._least_cards = -(-self._count // 2)


def _nodes_with(fleet: Fleet, signatures: Iterable[CardSignature], count: int = 1) -> NodeSet:
    """The nodes with at least `count` of these cards."""
    known = [sets for each in signatures if (sets := fleet.with_cards[each])]
    if count == 1 or len(known) == 1:
        return reduce(or_, [sets[count - 1] for sets in known if len(sets) >= count], 0)
    return NodeCounter([nodes for sets in known for nodes in sets]).at_least(count)
