"""Which devices of a node could serve a demand, as far as what is held tells."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from controller.allocator.demand import Demand, Offer
from controller.allocator.device import Device
from controller.allocator.holdings import Use
from controller.allocator.openings import Opening
from controller.allocator.request import MOST_RESULTS
from controller.allocator.state import State, Verdict, has_room


class Candidate(NamedTuple):
    """A device, what it would give, and what is held of it. A tuple, because a decision makes
    some dozens."""

    device: Device
    offer: Offer
    use: Use | None


def free_devices(state: State, demand: Demand, node: str) -> list[Candidate]:
    """In the order of pools, slices and lists; counters are not looked at."""
    if demand.admin_access:
        devices = state.selected(demand, node).devices
        return [
            _candidate(state, demand, device)
            for device in devices
            if state.verdict(demand, device) is Verdict.FREE
        ]
    return fitting(demand, state.opened(demand, node).devices)


def fitting(demand: Demand, openings: Iterable[Opening]) -> list[Candidate]:
    """Those of `openings` that have room for the demand and whose taints it tolerates."""
    found: list[Candidate] = []
    offer_of = demand.offer
    for device, use in openings:
        offer = offer_of(device.kind)
        if offer is None or offer.taints or (use is not None and not has_room(offer, use)):
            continue
        found.append(Candidate(device, offer, use))
    return found


def all_devices(state: State, demand: Demand, node: str) -> list[Candidate] | None:
    """All that are asked with allocationMode All, at least one; None where not all of them can be
    had. Devices that are too small, or that have too little left to share, do not count."""
    if state.inventory.problem_on(node):
        return None
    wanted: list[Candidate] = []
    for device in state.selected(demand, node).devices:
        verdict = state.verdict(demand, device)
        if verdict in {Verdict.TOO_SMALL, Verdict.FULL}:
            continue
        if verdict is not Verdict.FREE:
            return None
        wanted.append(_candidate(state, demand, device))
    return wanted if 0 < len(wanted) <= MOST_RESULTS else None


def _candidate(state: State, demand: Demand, device: Device) -> Candidate:
    offer = demand.offer(device.kind)
    assert offer is not None  # or it would be too small
    return Candidate(device, offer, state.holdings.use(device.id))
