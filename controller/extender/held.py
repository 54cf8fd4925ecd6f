"""What is held of a node's cards: what its agent tells, and pods of which it has not told. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from controller.allocator.amount import NANO
from controller.allocator.device import DeviceId
from controller.allocator.holdings import Hold
from controller.extender.asked import Asked
from dra_driver.model.device import device_name
from dra_driver.model.mode import Mode
from dra_driver.model.names import CAPACITY_SIZE, CAPACITY_SLICES, pool_name
from dra_driver.model.node_cards import NodeCard
from dra_driver.model.pci import PciAddress

_CAPACITIES = {Mode.SHARED: CAPACITY_SLICES, Mode.DRS: CAPACITY_SIZE}


@dataclass(frozen=True, slots=True)
class Tenant:
    """A pod that is bound to the node, or is being bound to it. `name` is ``namespace/name``;
    `cards` are those that it was placed for, none where it was bound past the extender."""

    uid: str
    name: str
    asked: Asked
    cards: tuple[PciAddress, ...]


@dataclass(frozen=True, slots=True)
class Held:
    """`unplaced` names the pods that hold something of which nobody knows where it is."""

    holds: tuple[Hold, ...]
    unplaced: tuple[str, ...]


def held_on(
    node: str, cards: Iterable[NodeCard], tenants: Iterable[Tenant], ended: Collection[str]
) -> Held:
    """All that is held on the node. `ended` are UIDs of pods that hold nothing any more."""
    found: list[Hold] = []
    told: dict[str, Counter[PciAddress]] = {}
    for card in cards:
        if card.mode is None:
            continue
        # The mode outlives its holders: the agent has an instance to destroy, or a mode to leave.
        found.append(_hold(node, card.address, card.mode, 0))
        for each in card.held:
            if each.pod in ended:
                continue
            told.setdefault(each.pod, Counter())[card.address] += each.amount
            if card.mode is not Mode.WHOLE:
                found.append(_hold(node, card.address, card.mode, each.amount))
    unplaced = []
    for tenant in tenants:
        missing = _untold(node, tenant, told.get(tenant.uid, Counter()))
        if missing is None:
            unplaced.append(tenant.name)
        else:
            found += missing
    return Held(tuple(found), tuple(sorted(unplaced)))


def _untold(node: str, tenant: Tenant, told: Mapping[PciAddress, int]) -> list[Hold] | None:
    """What the pod holds beside what the agent tells of it; None where it is not known where."""
    asked = tenant.asked
    amount = asked.total - sum(told.values())
    if amount <= 0:
        return []
    if asked.mode is Mode.WHOLE:
        others = [card for card in tenant.cards if card not in told][:amount]
        if len(others) < amount:
            return None
        return [_hold(node, card, asked.mode, 1) for card in others]
    places = (*told, *tenant.cards)
    return [_hold(node, places[0], asked.mode, amount)] if places else None


def _hold(node: str, card: PciAddress, mode: Mode, amount: int) -> Hold:
    device = DeviceId(pool_name(node), device_name(mode, card))
    if mode is Mode.WHOLE:
        return Hold(device, None)
    return Hold(device, {_CAPACITIES[mode]: amount * NANO} if amount else {})
