"""The nodes for a claim with one request for devices that nothing but their cards' signatures
tells apart: found in the fleet's sets, without a look at any node."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import islice
from operator import or_
from typing import Final

from controller.allocator.claim_request import ClaimRequest, ExactRequest
from controller.allocator.constraints import Attribute, MatchAttribute
from controller.allocator.device import DeviceKind
from controller.allocator.fleet import Fleet
from controller.allocator.node_info import NodeInfo
from controller.allocator.node_set import NodeSet, numbers
from controller.allocator.order import Policy, emptiest
from controller.allocator.signature import CardSignature, Fill
from dra_driver.model.packing import Packing
from dra_driver.selector.selector import Selectors

_REMEMBERED: Final = 4096  # requests
_COMPARED: Final = 16  # equally full nodes of which the one with the nearest cards is taken


@dataclass(frozen=True, slots=True)
class PlainRequest:
    """`attributes` must be there, and be the same on all `count` devices."""

    request: ExactRequest
    count: int
    attributes: tuple[str, ...]


@dataclass(slots=True)
class Serving:
    """The signatures of cards that serve a plain request, as far as they were looked at: `seen` is
    their number. For one device, by how full the card would be, these in the `order` of the policy
    for cards; for several, by the values that must be the same. They do not tell where a selector
    or a constraint reads what is a card's own."""

    fills: dict[Fill, list[CardSignature]] = field(default_factory=dict)
    order: list[Fill] = field(default_factory=list)
    groups: dict[tuple[Attribute, ...], set[CardSignature]] = field(default_factory=dict)
    tells: bool = True
    seen: int = 0

    def nodes(self, fleet: Fleet, count: int) -> NodeSet:
        """The nodes that have as many cards which serve the request."""
        if count > 1:
            each = (fleet.with_at_least(count, group) for group in self.groups.values())
        else:
            each = (fleet.nodes_with(one) for known in self.fills.values() for one in known)
        return reduce(or_, each, 0)


def plain_request(wanted: Sequence[ClaimRequest]) -> PlainRequest | None:
    """None where more than one request, or one with alternatives or of another form, is made."""
    if len(wanted) != 1 or len(wanted[0].requests) != 1:
        return None
    request, *others = wanted[0].requests[0].alternatives
    count = request.demand.count
    if others or count is None or request.demand.admin_access:
        return None
    constraints = [each for each in wanted[0].constraints if each.applies(request.name)]
    if count > 1 and not all(isinstance(each, MatchAttribute) for each in constraints):
        return None
    return PlainRequest(request, count, tuple(sorted({each.attribute for each in constraints})))


class PlainRequests:
    """Remembers which signatures serve a request, as long as the fleet keeps them."""

    def __init__(self, fleet: Fleet, selectors: Selectors) -> None:
        self._fleet = fleet
        self._selectors = selectors
        self._dropped = fleet.dropped
        self._known: OrderedDict[Hashable, Serving] = OrderedDict()

    def serving(self, plain: PlainRequest, cards: Packing) -> Serving | None:
        """None where signatures do not tell which cards serve it. Raises AllowanceSpent; the next
        attempt goes on from there."""
        if self._dropped != self._fleet.dropped:
            self._dropped = self._fleet.dropped
            self._known.clear()
        key = plain.request.demand, plain.attributes, plain.count > 1, cards
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _REMEMBERED:
                self._known.popitem(last=False)
            found = self._known[key] = Serving()
        if found.seen < len(self._fleet.with_cards):
            for signature in islice(self._fleet.with_cards, found.seen, None):
                self._selectors.allowance.check()
                self._look(found, plain, cards, signature)
                found.seen += 1
            found.order = sorted(found.fills, key=None if cards is Packing.BINPACK else emptiest)
        return found if found.tells else None

    def _look(
        self, found: Serving, plain: PlainRequest, cards: Packing, signature: CardSignature
    ) -> None:
        fit = signature.fit(plain.request.demand, self._selectors)
        if fit is None:
            found.tells = False
            return
        kinds = signature.kinds
        free = [each for each in fit.free if _has(kinds[each.at], plain.attributes)]
        if plain.count > 1:
            self._group(found, plain, signature, [kinds[each.at] for each in free])
        elif free:
            fills = [each.fill for each in free]
            fill = min(fills) if cards is Packing.BINPACK else min(fills, key=emptiest)
            found.fills.setdefault(fill, []).append(signature)

    def _group(
        self,
        found: Serving,
        plain: PlainRequest,
        signature: CardSignature,
        kinds: Sequence[DeviceKind],
    ) -> None:
        """Of one kind of device of the card, if it is the only one."""
        if len(kinds) > 1 or any(kind.multiple for kind in kinds):
            found.tells = False
        for kind in kinds:
            values = [_value(kind, name) for name in plain.attributes]
            common = tuple(each for each in values if each is not None and len(each.values) == 1)
            if len(common) < len(values):
                found.tells = False
            found.groups.setdefault(common, set()).add(signature)


def nodes_for_one(
    fleet: Fleet, serving: Serving, nodes: NodeSet, policy: Policy, cards: Packing
) -> Iterator[NodeInfo]:
    """The nodes that have a card which serves the request, the best first."""
    parts: list[tuple[Fill, NodeSet]] = []
    fill_first = policy.nodes is Packing.BINPACK and cards is Packing.BINPACK
    for fill in serving.order:
        part = nodes & reduce(or_, map(fleet.nodes_with, serving.fills[fill]))
        nodes &= ~part
        if part and fill_first:
            for level in fleet.by_free.walk(part):
                yield from map(fleet.at, numbers(level))
        elif part:
            parts.append((fill, part))
    parts.sort(key=lambda each: each[0])
    levels = fleet.by_load if policy.nodes is Packing.SPREAD else fleet.by_free
    for level in levels.walk(reduce(or_, (part for _, part in parts), 0)):
        for _, part in parts:
            yield from map(fleet.at, numbers(level & part))


def nodes_for_several(
    fleet: Fleet, serving: Serving, nodes: NodeSet, policy: Policy, count: int
) -> Iterator[NodeInfo]:
    """The nodes that have as many cards which serve the request, the best first: of equally full
    ones the first few are compared by how near these cards are."""
    levels = fleet.by_load if policy.nodes is Packing.SPREAD else fleet.by_free

    def apart(node: NodeInfo) -> tuple[int, int]:
        groups = (
            [at for at, card in enumerate(node.cards) if card.signature in group]
            for group in serving.groups.values()
        )
        return node.spread(node.nearest(count, *filter(None, groups)))

    for level in levels.walk(nodes & serving.nodes(fleet, count)):
        found = map(fleet.at, numbers(level))
        yield from sorted(islice(found, _COMPARED), key=apart)
        yield from found


def _value(kind: DeviceKind, name: str) -> Attribute | None:
    """What all devices of the kind have of the attribute; None where it is a card's own."""
    at = kind.position(name)
    if at is None or at in kind.own:
        return None
    return Attribute.of(kind.common.shape.entries[at].kind, kind.common.values[at])


def _has(kind: DeviceKind, names: Sequence[str]) -> bool:
    """Whether devices of the kind have all of the attributes."""
    return all(
        (at := kind.position(name)) is not None
        and (at in kind.own or _value(kind, name) is not None)
        for name in names
    )
