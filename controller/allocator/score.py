"""Which of two nodes is better for what each of them would give."""

from __future__ import annotations

from collections.abc import Sequence

from controller.allocator.attempt import Candidate
from controller.allocator.order import Order
from controller.allocator.policy import Packing
from controller.allocator.ranking import Score
from controller.allocator.request import Wanted
from controller.allocator.search import Grant, Grants


def score(order: Order, wanted: Sequence[Wanted], grants: Grants) -> Score:
    """The least is the best: first the earlier alternatives (the sum of their indices, as
    kube-scheduler scores them), then as the policy says, then how near the cards are."""
    whole, shared = _split(grants)
    summary, policy = order.summary, order.policy
    fill = _fill(order, shared)
    if policy.nodes is Packing.SPREAD:
        preferred: tuple[int, ...] = (summary.load, -summary.free, *fill)
    elif policy.cards is Packing.SPREAD:
        preferred = (summary.free, -summary.load)
    else:
        preferred = (*fill, summary.free, -summary.load)
    return (_alternatives(wanted, grants), *preferred, _spread_out(whole))


def _alternatives(wanted: Sequence[Wanted], grants: Grants) -> int:
    total = 0
    for each, granted in zip(wanted, grants, strict=True):
        chosen = {grant.request.name for grant in granted}
        for request in each.requests:
            total += next(n for n, sub in enumerate(request.alternatives) if sub.name in chosen)
    return total


def _split(grants: Grants) -> tuple[list[Grant], list[Grant]]:
    given = [grant for each in grants for grant in each if not grant.request.demand.admin_access]
    whole = [grant for grant in given if not grant.device.multiple]
    return whole, [grant for grant in given if grant.device.multiple]


def _fill(order: Order, shared: Sequence[Grant]) -> tuple[int, int, int]:
    """How many free cards would be opened for shares, what would be left of the cards in all,
    and minus the shares of the same size beside which they would stand."""
    opened, left, same = 0, 0, 0
    for grant in shared:
        offer = grant.request.demand.offer(grant.device.kind)
        assert offer is not None  # it was granted
        is_free, rest, equal = order.fill(Candidate(grant.device, offer))
        opened, left, same = opened + is_free, left + rest, same + equal
    return opened, left, same


def _spread_out(whole: Sequence[Grant]) -> int:
    """Over how many switches, root complexes and NUMA nodes several cards are spread; the farther
    the level, the more it weighs."""
    if len(whole) < 2:
        return 0
    places = {grant.device.place for grant in whole}
    roots = {place[1:] for place in places}
    nodes = {place.numa for place in places}
    return 10_000 * len(nodes) + 100 * len(roots) + len(places)
