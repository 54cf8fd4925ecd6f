"""The CDI file of an owner: written for the container runtime, read when records are lost."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass

from dra_driver.model.card import Card, Cards
from dra_driver.model.claims.owner import Owner
from dra_driver.model.errors import HardwareError, InvalidValue
from dra_driver.model.pci import PciAddress
from dra_driver.node.cdi.directory import CdiDirectory, MetadataDirectory
from dra_driver.node.cdi.metadata import contents
from dra_driver.node.cdi.spec import Injection, read_record, render
from dra_driver.node.checkpoint.ledger import PreparedClaim
from dra_driver.node.checkpoint.records import ClaimStep, PreparedDevices
from dra_driver.node.claims.failures import attribute_to
from dra_driver.node.ports import Hardware

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CdiSpecs:
    """The CDI files of owners. Each method is called with the owner's lock held. Raises CdiError
    if the directory cannot be used."""

    hardware: Hardware
    cdi: CdiDirectory
    metadata: MetadataDirectory
    injection: Injection

    def write(self, owner: Owner, devices: PreparedDevices, cards: Cards) -> None:
        """Write the owner's file, after the metadata that it mounts; `cards` has every card that a
        container sees."""
        self.metadata.write(owner.uid, contents(owner, devices, cards))
        content = render(owner, devices, cards, self.injection, self.metadata.path)
        self.cdi.write(owner.uid, content)

    def remove(self, uid: str) -> bool:
        """Remove the owner's file, then its metadata. Returns whether there was a file."""
        is_removed = self.cdi.remove(uid)
        self.metadata.remove(uid)
        return is_removed

    def exists(self, uid: str) -> bool:
        """Whether the owner has a file, so that a container may run with it. After a reboot it has
        none: the directory is a tmpfs."""
        return self.cdi.read(uid) is not None

    def refresh(self, held: PreparedClaim) -> bool:
        """Write a prepared owner's file if it is missing or outdated, for example after a minor
        changed. Returns whether it was. Raises HardwareError if the file is missing and its cards
        cannot be read."""
        uid = held.owner.uid
        present = self.cdi.read(uid)
        try:
            cards = self.read_cards(held.devices)
        except HardwareError:
            if present is None:
                raise
            # A container that starts with a card that is gone gets its error from the runtime.
            logger.warning("the CDI file of %s is not compared", held.owner.title, exc_info=True)
            return False
        wanted = render(held.owner, held.devices, cards, self.injection, self.metadata.path)
        metadata = contents(held.owner, held.devices, cards).items()
        if wanted == present and all(
            self.metadata.read(uid, request) == content for request, content in metadata
        ):
            return False
        self.write(held.owner, held.devices, cards)
        logger.info("%s: its CDI file was missing or outdated", held.owner.title)
        return True

    def read_claim(self, uid: str) -> PreparedClaim | None:
        """The prepared claim as its file has it, with `records == ()`; the file proves that
        everything had been created. None where there is no file that can be read."""
        content = self.cdi.read(uid)
        if content is None:
            return None
        try:
            owner, devices = read_record(content, uid)
        except InvalidValue:
            logger.exception("the CDI file of %s cannot be read", uid)
            return None
        return PreparedClaim(owner, ClaimStep.PREPARE_COMPLETED, devices, ())

    def read_cards(
        self, devices: PreparedDevices, addresses: Collection[PciAddress] = ()
    ) -> dict[PciAddress, Card]:
        """The cards as they are now, at `addresses`, or all that a container with `devices` sees.
        Raises HardwareError for a card that cannot be read, or that lacks device nodes; the error
        names the card's device."""
        seen = {address for device in devices for address in device.visible_cards}
        names = {device.card: device.device_name for device in devices}
        cards: dict[PciAddress, Card] = {}
        for address in sorted(addresses or seen):
            with attribute_to(names.get(address)):
                cards[address] = _complete(self.hardware.card(address))
        return cards


def _complete(card: Card) -> Card:
    """A container that starts without a device node does not get it later."""
    if card.missing_nodes:
        raise HardwareError(
            f"card {card.address} has no {', '.join(card.missing_nodes)} yet, as cards of model "
            f"{card.model} have",
            remedy="let udev make the nodes of the GCU driver; the kubelet tries again. Where the "
            "driver no longer makes them, remove device-nodes.json in the agent's state directory, "
            "and restart the agent",
        )
    return card
