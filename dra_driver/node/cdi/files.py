"""What the container runtime is told of an owner, and what its file proves of it."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping

from dra_driver.model.card import Card
from dra_driver.model.errors import HardwareError, InvalidValue
from dra_driver.model.owner import Owner
from dra_driver.model.pci import PciAddress
from dra_driver.node.cdi.directory import CdiDirectory
from dra_driver.node.cdi.spec import Injection, read_record, render
from dra_driver.node.checkpoint.ledger import PreparedClaim, State
from dra_driver.node.checkpoint.records import PreparedDevice
from dra_driver.node.claims.failures import attribute_to
from dra_driver.node.ports import Hardware

logger = logging.getLogger(__name__)

Holds = tuple[PreparedDevice, ...]


class CdiSpecs:
    """The CDI files of owners. Each method is called with the owner's lock held, and raises
    CdiError when the directory does not allow it."""

    def __init__(self, hardware: Hardware, cdi: CdiDirectory, injection: Injection) -> None:
        self._hardware = hardware
        self._cdi = cdi
        self._injection = injection

    def write(self, owner: Owner, holds: Holds, cards: Mapping[PciAddress, Card]) -> None:
        """Write the owner's file; `cards` has every card that the holds see."""
        self._cdi.write(owner.uid, render(owner, holds, cards, self._injection))

    def remove(self, uid: str) -> bool:
        """Remove the owner's file; say whether there was one."""
        return self._cdi.remove(uid)

    def is_there(self, uid: str) -> bool:
        """Whether a container may run with what the owner's file tells. After a reboot, which no
        container outlives, there is none: it lies on a tmpfs."""
        return self._cdi.read(uid) is not None

    def refresh(self, held: PreparedClaim) -> bool:
        """Write a prepared owner's file where it is missing or its cards have other minors by now;
        say whether it was. Raises HardwareError where it is missing, and cannot be written."""
        present = self._cdi.read(held.owner.uid)
        try:
            cards = self.read_cards(seen(held.devices), held.devices)
        except HardwareError:
            if present is None:
                raise
            # What starts anew with a card that is gone is told by the runtime.
            logger.warning("%s keeps its CDI file unexamined", held.owner.title, exc_info=True)
            return False
        wanted = render(held.owner, held.devices, cards, self._injection)
        if wanted == present:
            return False
        self._cdi.write(held.owner.uid, wanted)
        logger.info("%s: its CDI file was missing or outdated", held.owner.title)
        return True

    def read_claim(self, uid: str) -> PreparedClaim | None:
        """What the owner's file says that it holds, without a record in the journal: all of it was
        made when the file was written. None where there is no file, or none that can be read."""
        content = self._cdi.read(uid)
        if content is None:
            return None
        try:
            owner, holds = read_record(content, uid)
        except InvalidValue:
            logger.exception("the CDI file of %s says nothing", uid)
            return None
        return PreparedClaim(owner, State.PREPARE_COMPLETED, holds, ())

    def uids(self) -> frozenset[str]:
        """The UIDs with a file; called without a lock."""
        return self._cdi.claims()[0]

    def read_cards(
        self, addresses: Collection[PciAddress], holds: Holds = ()
    ) -> dict[PciAddress, Card]:
        """The cards as they are now; one that cannot be read is blamed on its device in `holds`."""
        devices = {hold.card: hold.device for hold in holds}
        cards: dict[PciAddress, Card] = {}
        for address in sorted(addresses):
            with attribute_to(devices.get(address)):
                cards[address] = self._hardware.card(address)
        return cards


def seen(holds: Holds) -> set[PciAddress]:
    """The cards that a container with `holds` is told of."""
    return {address for hold in holds for address in hold.visible_cards}
