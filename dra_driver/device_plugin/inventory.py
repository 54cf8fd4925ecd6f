"""Which devices each card has in each mode, from the cards and their use. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dra_driver.config.card_rules import CardConfig
from dra_driver.kubelet_api.device_plugin.service import ListedDevice
from dra_driver.model.card import Card
from dra_driver.model.claims.owner import ContainerAllocation
from dra_driver.model.devices.device import device_name
from dra_driver.model.devices.plugin_device import PluginDevice
from dra_driver.model.mode import Mode
from dra_driver.model.names import TAINT_UNHEALTHY
from dra_driver.model.pci import PciAddress
from dra_driver.model.profile import ProfileTableOf
from dra_driver.node.checkpoint.ledger import Ledger

CardConfigs = Callable[[PciAddress], CardConfig]
"""The configuration of a card."""


@dataclass(frozen=True, slots=True)
class NodeDevices:
    """The state of the node at one moment.

    `cards` is None while the hardware has not been read, or `offer` is unknown. `active` says
    whether new containers are served, or only those that have devices. `failing` are the names of
    failing devices (as in a ResourceSlice), which no new container gets.
    """

    cards: Mapping[PciAddress, Card] | None
    ledger: Ledger
    offer: CardConfigs
    table: ProfileTableOf
    active: bool = True
    failing: frozenset[str] = frozenset()

    @property
    def addresses(self) -> tuple[PciAddress, ...]:
        """All cards that are present or in use, sorted."""
        held = {card for claim in self.ledger.claims.values() for card in claim.cards}
        return tuple(sorted(held | set(self.cards or ())))


NodeViewSource = Callable[[], NodeDevices]
"""The node as it is now; raises JournalError."""


@dataclass(frozen=True, slots=True)
class CardInventory:
    """A card's devices of one mode, with ordinals below `total`. Containers have those in `held`.

    The others exist if the card is `offered` in the mode, and no container gets them if it is
    `blocked`. If it is `unhealthy`, no device should be used.
    """

    card: PciAddress
    mode: Mode
    total: int
    held: frozenset[int]
    offered: bool
    blocked: bool
    unhealthy: bool
    numa_node: int | None

    @property
    def free(self) -> int:
        """How many devices a container can get."""
        return self.total - len(self.held) if self.is_usable else 0

    @property
    def is_usable(self) -> bool:
        """Whether containers may get devices of the card at all."""
        return self.offered and not self.blocked and not self.unhealthy

    def listed(self) -> list[ListedDevice]:
        """The devices in the list for the kubelet. Devices in use are always in it: after a restart
        the kubelet fails pods whose devices are not listed as healthy."""
        return [
            ListedDevice(
                str(PluginDevice(self.card, self.mode, ordinal)),
                not self.unhealthy and (ordinal in self.held or not self.blocked),
                self.numa_node,
            )
            for ordinal in range(self.total)
            if self.offered or ordinal in self.held
        ]


def inventories(view: NodeDevices, mode: Mode) -> tuple[CardInventory, ...]:
    """The inventory of each card that has devices in this mode, sorted by address."""
    found = (_of_card(view, address, mode) for address in view.addresses)
    return tuple(each for each in found if each is not None)


def granted_total(ledger: Ledger, card: PciAddress, mode: Mode) -> int | None:
    """How many devices of the mode the card has while containers use some of them; None if none
    does."""
    return max((grant.total for grant in _grants(ledger, card) if grant.mode is mode), default=None)


def offered_total(view: NodeDevices, card: Card | None, mode: Mode) -> int | None:
    """How many devices of the mode a free card has; None if it is not offered in that mode, or not
    present."""
    if card is None or view.cards is None or not view.active:
        return None
    offer = view.offer(card.address)
    if mode not in offer.modes:
        return None
    if mode is Mode.WHOLE:
        return 1
    if mode is Mode.SHARED:
        return offer.slice_count
    table = view.table(card)
    return None if table is None else table.total


def _of_card(view: NodeDevices, address: PciAddress, mode: Mode) -> CardInventory | None:
    holders = [claim.owner for claim, _ in view.ledger.holders_of(address)]
    grants = _grants(view.ledger, address)
    # DRA serves the card until its claims end.
    if len(grants) < len(holders) or any(grant.mode is not mode for grant in grants):
        return None
    card = (view.cards or {}).get(address)
    offered = offered_total(view, card, mode)
    total = granted_total(view.ledger, address, mode) or offered
    if total is None:
        return None
    devices = {device for grant in grants for device in grant.devices}
    problems = card.problems if card is not None else ()
    is_lost = card is None and view.cards is not None
    unhealthy = is_lost or any(problem.taint == TAINT_UNHEALTHY for problem in problems)
    failing = card is not None and device_name(mode, address) in view.failing
    return CardInventory(
        card=address,
        mode=mode,
        total=total,
        held=frozenset(device.ordinal for device in devices if device.card == address),
        offered=offered is not None,
        blocked=not unhealthy and (bool(problems) or failing),
        unhealthy=unhealthy,
        numa_node=card.numa_node if card is not None else None,
    )


def _grants(ledger: Ledger, card: PciAddress) -> list[ContainerAllocation]:
    return [
        claim.owner
        for claim, _ in ledger.holders_of(card)
        if isinstance(claim.owner, ContainerAllocation)
    ]
