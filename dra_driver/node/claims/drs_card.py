"""DRS instances, created and destroyed with their claims (docs/dev/drs.md)."""

from __future__ import annotations

import logging
from collections.abc import Callable

from msgspec.structs import replace

from dra_driver.hardware.drs.drs import CreateMadeOther, CreateRefused, Drs
from dra_driver.hardware.drs.profiles import ProfileTables
from dra_driver.model.card import Card
from dra_driver.model.claims.measures import Share, instance_shares, share_of_units
from dra_driver.model.errors import ForeignCard
from dra_driver.model.instance import Instance
from dra_driver.model.pci import PciAddress
from dra_driver.model.profile import Profile, ProfileTable, profile_size
from dra_driver.node.checkpoint.ledger import Ledger
from dra_driver.node.checkpoint.records import PreparedDevice

logger = logging.getLogger(__name__)


class DrsCard:
    """Creates and destroys instances. `ledger` gives the present state of the journal.

    All but `total` and `share` are called with the card's lock held, and raise GcuError. A process
    that was killed may have done their work already.
    """

    def __init__(self, drs: Drs, tables: ProfileTables, ledger: Callable[[], Ledger]) -> None:
        self._drs = drs
        self._tables = tables
        self._ledger = ledger

    def total(self, card: Card) -> int | None:
        """The sum of sizes; None while the card's profiles are unknown: then it is not counted."""
        table = self._tables.table(card)
        return None if table is None else table.total

    def share(self, device: PreparedDevice, card: Card) -> Share | None:
        """By the profile of the device's size; None while the card's profiles are unknown."""
        table = self._tables.table(card)
        if table is None:
            return None
        shares = instance_shares((profile.name for profile in table), table.total)
        return share_of_units(shares, device.amount)

    def with_state_before(self, device: PreparedDevice) -> PreparedDevice:
        """The device with all instances of the card before the intent is written, so that later
        steps can identify a new one.

        Raises ForeignCard if one of them is of no claim: another program divides the card, or an
        instance that could not be destroyed yet must not be confused with the next one.
        """
        listed = self._drs.instances(device.card)
        unknown = foreign(listed, self._ledger(), device.card)
        if unknown:
            raise ForeignCard(
                f"card {device.card} has DRS instances that no claim of this driver holds: "
                f"{', '.join(map(str, unknown))}",
                remedy="an agent that was killed takes its own away when it starts; destroy others "
                "if nobody needs them (efsmi -i INDEX --drs --destroy-instance ID), and leave the "
                "card to this driver",
            )
        return replace(device, instance=None, instances_before=listed)

    def create(self, device: PreparedDevice, card: Card) -> PreparedDevice:
        """Create the instance, once the intent is durable; returns the device with it."""
        try:
            made = self._create(device, card)
        except CreateMadeOther:
            self._learn(card)
            raise
        logger.info("card %s: made DRS instance %s", card.address, made)
        return replace(device, instance=made, instances_before=None)

    def verify(self, device: PreparedDevice) -> PreparedDevice | None:
        """The device with its instance; None if efsmi does not list it, so that it must be created
        again."""
        if device.instance is None:
            made = self._interrupted_create(device)
            return None if made is None else replace(device, instance=made, instances_before=None)
        return device if device.instance.is_in(self._drs.instances(device.card)) else None

    def destroy(self, device: PreparedDevice) -> None:
        """Destroy what was created, whether or not `create` ended: only an instance that the
        journal, or the listing before the create, proves to be this claim's."""
        instance = device.instance or self._interrupted_create(device)
        if instance is not None:
            self._drs.destroy(device.card, instance)
            logger.info("card %s: destroyed DRS instance %s", device.card, instance)

    def reset(self, card: PciAddress) -> bool:
        """Switch DRS mode off, but never while efsmi lists an instance; returns whether it is."""
        left = self._drs.instances(card)
        if left:
            logger.warning("card %s stays in DRS mode: it has %s", card, ", ".join(map(str, left)))
            return False
        self._drs.switch_off(card)
        return True

    def _create(self, device: PreparedDevice, card: Card) -> Instance:
        """Switches DRS mode on first, but where instances were listed a moment ago, which shows
        that it is on. If nothing is made there, that may have shown nothing."""
        listed = device.instances_before or ()
        # An earlier request of the same claim may have created one since.
        before = (*listed, *self._ledger().instances(card.address))
        if listed and self._tables.table(card) is not None:
            try:
                return self._drs.create(card.address, self._profile(device, card), before)
            except CreateRefused as error:
                logger.info("card %s: with DRS mode switched on again: %s", card.address, error)
        self._drs.switch_on(card.address)
        return self._drs.create(card.address, self._profile(device, card), before)

    def _profile(self, device: PreparedDevice, card: Card) -> Profile:
        """Raises InvalidValue where the card has no profile of that size.

        The profiles of an empty card are read again: new firmware may have other profile ids, and
        nothing cheap shows it. Those of a divided card are not: it is not public whether the card
        then lists only what is left. Its table was read before its first instance was created.
        """
        table = self._tables.table(card)
        # Instances of the journal may be gone, or were created since for an earlier request.
        if table is None or not (
            device.instances_before
            or (self._ledger().instances(device.card) and self._drs.instances(device.card))
        ):
            table = self._learn(card)
        return table.for_size(device.amount or table.total)

    def _learn(self, card: Card) -> ProfileTable:
        table = self._drs.profiles(card.address)
        self._tables.learn(card, table)
        return table

    def _interrupted_create(self, device: PreparedDevice) -> Instance | None:
        """The instance of an interrupted create, if that can be proved: it did not exist before, no
        claim has it, and it is the only such instance of the device's size."""
        if device.instances_before is None:
            return None
        candidates = [
            one
            for one in foreign(self._drs.instances(device.card), self._ledger(), device.card)
            if not one.is_in(device.instances_before) and profile_size(one.profile) == device.amount
        ]
        if len(candidates) > 1:
            logger.error(
                "card %s has %d instances that one interrupted create may have made; they stay",
                device.card,
                len(candidates),
            )
            return None
        return candidates[0] if candidates else None


def foreign(listed: tuple[Instance, ...], ledger: Ledger, card: PciAddress) -> tuple[Instance, ...]:
    """The instances of `listed` that no claim has."""
    held = ledger.instances(card)
    return tuple(one for one in listed if not one.is_in(held))
