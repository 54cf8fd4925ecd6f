"""The common case, one device for one request: the best that is free, without a search."""

from __future__ import annotations

from collections.abc import Sequence

from controller.allocator.attempt import Attempt
from controller.allocator.candidates import Candidate, fitting, free_devices
from controller.allocator.order import Order, best_fill
from controller.allocator.policy import Policy
from controller.allocator.ranking import Score
from controller.allocator.request import ExactRequest, Wanted
from controller.allocator.score import rate, score
from controller.allocator.search import Grant, Grants
from controller.allocator.state import State

# What lies between these two is the fill of a card that shares have, and of no other.
_UNSHARED, _FREE = (0, 0, 0), (1, 0, 0)


def single_request(wanted: Sequence[Wanted]) -> ExactRequest | None:
    """The request, where one device is all that is asked and there is no alternative."""
    if len(wanted) != 1 or len(wanted[0].requests) != 1:
        return None
    first, *others = wanted[0].requests[0].alternatives
    if others or first.demand.count != 1 or first.demand.admin_access:
        return None
    return first


def score_single(
    state: State, wanted: Wanted, request: ExactRequest, node: str, policy: Policy
) -> Score | None:
    """The score of what `pick` would give."""
    if not _is_plain(state, wanted):
        order = Order(policy, state.summary(node))
        grants = pick(state, wanted, request, node, order)
        return None if grants is None else score(state, order, [wanted], grants)
    openings = state.opened(request.demand, node)
    cards = policy.cards_for(request.demand)
    fill = best_fill(request.demand, openings, cards)
    return None if fill is None else rate(policy.nodes, cards, openings.summary, fill)


def pick(
    state: State, wanted: Wanted, request: ExactRequest, node: str, order: Order
) -> Grants | None:
    """What a NodeSearch would find for the claim of that one request."""
    found = _candidates(state, wanted, request, node, order)
    if not found:
        return None
    best = order.best(request.demand, found)
    shared = best.offer.consumed if best.device.multiple else None
    return ((Grant(request, best.device, shared),),)


def _candidates(
    state: State, wanted: Wanted, request: ExactRequest, node: str, order: Order
) -> list[Candidate]:
    """All that could be granted; where a card in use is best, free ones may be left out."""
    demand = request.demand
    if _is_plain(state, wanted) and not order.heeds_peers(demand):
        openings = state.opened(demand, node)
        fill = best_fill(demand, openings, order.policy.cards_for(demand))
        if fill is None:
            return []
        if _UNSHARED < fill < _FREE:
            return fitting(demand, openings.shared)
    found = free_devices(state, demand, node)
    if found and state.inventory.counts:
        fresh = Attempt(state)
        found = [each for each in found if fresh.allows(each.device)]
    if wanted.constraints:
        found = [each for each in found if _satisfies(wanted, request, each)]
    return found


def _is_plain(state: State, wanted: Wanted) -> bool:
    return not wanted.constraints and not state.inventory.counts


def _satisfies(wanted: Wanted, request: ExactRequest, candidate: Candidate) -> bool:
    """One device breaks a constraint only by not having the attribute."""
    return all(
        each.add((), candidate.device) is not None
        for each in wanted.constraints
        if each.applies(request.name)
    )
