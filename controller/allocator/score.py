"""Which of two nodes is better for what each of them would give."""

from __future__ import annotations

from collections.abc import Sequence

from controller.allocator.order import Fill, Order, fill_of
from controller.allocator.policy import Policy
from controller.allocator.ranking import Score
from controller.allocator.request import Wanted
from controller.allocator.search import Grant, Grants
from controller.allocator.state import State
from controller.allocator.summary import NodeSummary
from dra_driver.model.packing import Packing

_TOGETHER = (0, 0)


def score(state: State, order: Order, wanted: Sequence[Wanted], grants: Grants) -> Score:
    """The least is the best: first the earlier alternatives (the sum of their indices, as
    kube-scheduler scores them), then as the policy says, then how near the cards are."""
    whole, shared = _split(grants)
    cards = [grant.device for grant in whole]
    return rate(
        order.policy.nodes,
        _cards(order.policy, shared),
        order.summary,
        _fill(state, shared),
        alternatives=_alternatives(wanted, grants),
        apart=order.summary.spread(cards) if len(cards) > 1 else _TOGETHER,
    )


def rate(
    nodes: Packing,
    cards: Packing,
    summary: NodeSummary,
    fill: Fill,
    *,
    alternatives: int = 0,
    apart: tuple[int, int] = _TOGETHER,
) -> Score:
    """The parts of a score in the order that the policies for nodes and cards give them. `apart`
    is how far apart several cards are (`NodeSummary.spread`)."""
    if nodes is Packing.SPREAD:
        return (alternatives, summary.load, -summary.free, *fill, *apart)
    if cards is Packing.SPREAD:
        return (alternatives, summary.free, -summary.load, *fill, *apart)
    return (alternatives, *fill, summary.free, -summary.load, *apart)


def _cards(policy: Policy, shared: Sequence[Grant]) -> Packing:
    """Where requests differ, how full the node is counts before how full its cards are."""
    found = {policy.cards_for(grant.request.demand) for grant in shared}
    return Packing.SPREAD if Packing.SPREAD in found else Packing.BINPACK


def _alternatives(wanted: Sequence[Wanted], grants: Grants) -> int:
    total = 0
    for each, granted in zip(wanted, grants, strict=True):
        chosen = {grant.request.name for grant in granted}
        for request in each.requests:
            if len(request.alternatives) == 1:
                continue
            total += next(n for n, sub in enumerate(request.alternatives) if sub.name in chosen)
    return total


def _split(grants: Grants) -> tuple[list[Grant], list[Grant]]:
    given = [grant for each in grants for grant in each if not grant.request.demand.admin_access]
    whole = [grant for grant in given if not grant.device.multiple]
    return whole, [grant for grant in given if grant.device.multiple]


def _fill(state: State, shared: Sequence[Grant]) -> Fill:
    """How many free cards would be opened for shares, what would be left of the cards in all,
    and minus the shares of the same size beside which they would stand."""
    opened, left, same = 0, 0, 0
    for grant in shared:
        offer = grant.request.demand.offer(grant.device.kind)
        assert offer is not None  # it was granted
        use = state.holdings.use(grant.device.id)
        is_free, rest, equal = fill_of(grant.device.kind, offer, use)
        opened, left, same = opened + is_free, left + rest, same + equal
    return opened, left, same
