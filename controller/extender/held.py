"""What is held of a node's cards: what its agent tells, and pods of which it has not told. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from controller.allocator.allocated_devices import DeviceAllocation
from controller.allocator.capacity import NANO
from controller.allocator.device import DeviceId
from controller.extender.limit_request import LimitRequest
from dra_driver.model.device import device_name
from dra_driver.model.mode import Mode
from dra_driver.model.names import CAPACITY_SIZE, CAPACITY_SLICES, pool_name
from dra_driver.model.node_cards import NodeCard
from dra_driver.model.pci import PciAddress

_Told = defaultdict[str, Counter[PciAddress]]  # by UID: how much of which cards
_Unowned = Counter[tuple[PciAddress, Mode, int]]  # containers that hold so much, whosever they are
_CAPACITIES = {Mode.SHARED: CAPACITY_SLICES, Mode.DRS: CAPACITY_SIZE}


@dataclass(frozen=True, slots=True)
class BoundPod:
    """A pod that is bound to the node, or is being bound to it. `name` is ``namespace/name``;
    `cards` are those that it was placed for, none where it was bound past the extender.

    `static` is None but for a mirror pod, which the kubelet never runs. It is the UID of the static
    pod that the mirror stands for, empty where the mirror names none.
    """

    uid: str
    name: str
    asked: LimitRequest
    cards: tuple[PciAddress, ...]
    static: str | None = None

    @property
    def recorded(self) -> str:
        """The UID by which the kubelet, and so the agent, knows it."""
        return self.uid if self.static is None else self.static


@dataclass(frozen=True, slots=True)
class Held:
    """`unplaced` names the pods that hold something of which nobody knows where it is."""

    holds: tuple[DeviceAllocation, ...]
    unplaced: tuple[str, ...]


def held_on(
    node: str, cards: Iterable[NodeCard], tenants: Iterable[BoundPod], ended: Collection[str]
) -> Held:
    """All that is held on the node. `ended` are UIDs of pods that hold nothing any more."""
    cards = tuple(cards)
    found = [hold for card in cards for hold in _told_of(node, card, ended)]
    told, unowned = _owners(cards, ended)
    taken = {card.address for card in cards if card.mode is Mode.WHOLE}
    rooms = {(card.address, mode): _room(card, mode, ended) for card in cards for mode in Mode}
    unplaced = []
    for tenant in tenants:
        if tenant.static is not None:
            continue  # the static pod's devices are told of, and anybody can make a mirror of none
        its = told[tenant.uid]
        rest = _rest(tenant, its, unowned)
        missing = _untold(node, tenant, rest, its, taken=taken, rooms=rooms)
        if missing is None:
            unplaced.append(tenant.name)
        else:
            found += missing
    return Held(tuple(found), tuple(sorted(unplaced)))


def _told_of(node: str, card: NodeCard, ended: Collection[str]) -> Iterator[DeviceAllocation]:
    if card.mode is None:
        return
    # The mode outlives its holders: the agent has an instance to destroy, or a mode to leave.
    yield _hold(node, card.address, card.mode, 0)
    if card.mode is not Mode.WHOLE:
        for each in card.held:
            if each.pod not in ended:
                yield _hold(node, card.address, card.mode, each.amount)


def _owners(cards: Iterable[NodeCard], ended: Collection[str]) -> tuple[_Told, _Unowned]:
    told: _Told = defaultdict(Counter)
    unowned: _Unowned = Counter()
    for card in cards:
        for each in card.held:
            if not each.pod and card.mode:
                unowned[card.address, card.mode, each.amount] += 1
            elif each.pod not in ended:
                told[each.pod][card.address] += each.amount
    return told, unowned


def _rest(tenant: BoundPod, told: Mapping[PciAddress, int], unowned: _Unowned) -> int:
    """How much of what the pod asks for is not told of.

    What is told of nobody is taken for this pod's where it is on a card that the pod was placed
    on, and as much as one of its containers asks for; it is taken out of `unowned`. It counts in
    any case, so that a wrong guess is but one pod for another that was placed there, too.
    """
    asked = tenant.asked
    amount = asked.total - sum(told.values())
    if told:
        return amount
    sizes = [size for _, size in asked.containers]
    if asked.mode is Mode.WHOLE:
        # Told of one by one. Whoever binds a pod by hand may have it ask for any number.
        sizes = [1 for card in tenant.cards if unowned[card, asked.mode, 1]][: sum(sizes)]
    for size in sizes:
        for card in tenant.cards:
            if unowned[card, asked.mode, size]:
                unowned[card, asked.mode, size] -= 1
                amount -= size
                break
    return amount


def _untold(
    node: str,
    tenant: BoundPod,
    amount: int,
    told: Mapping[PciAddress, int],
    *,
    taken: Collection[PciAddress],
    rooms: Mapping[tuple[PciAddress, Mode], int],
) -> list[DeviceAllocation] | None:
    """Where the rest is: beside what is told of the pod if that card has room for it, else where
    it was placed, as the agent prefers them; None where nobody knows. `taken` are whole cards of
    which the agent tells."""
    if amount <= 0:
        return []
    mode = tenant.asked.mode
    if mode is Mode.WHOLE:
        others = [card for card in tenant.cards if card not in taken][:amount]
        return [_hold(node, card, mode, 1) for card in others] if len(others) == amount else None
    places = (*told, *tenant.cards)
    roomy = (card for card in places if rooms.get((card, mode), 0) >= amount)
    return [_hold(node, next(roomy, places[0]), mode, amount)] if places else None


def _room(card: NodeCard, mode: Mode, ended: Collection[str]) -> int:
    """How much of the card its agent tells to be nobody's, if it is in that mode."""
    if card.mode not in {None, mode}:
        return 0
    held = sum(each.amount for each in card.held if each.pod not in ended)
    return (card.slices if mode is Mode.SHARED else card.total) - held


def _hold(node: str, card: PciAddress, mode: Mode, amount: int) -> DeviceAllocation:
    device = DeviceId(pool_name(node), device_name(mode, card))
    if mode is Mode.WHOLE:
        return DeviceAllocation(device, None)
    return DeviceAllocation(device, {_CAPACITIES[mode]: amount * NANO} if amount else {})
