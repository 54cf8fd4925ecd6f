"""DRS instances: made for a claim, and gone with it. docs/dev/drs.md tells the life of a card."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from dra_driver.hardware.drs.drs import Drs
from dra_driver.hardware.drs.errors import CreateMadeOther
from dra_driver.hardware.drs.profiles import ProfileTables
from dra_driver.model.card import Card
from dra_driver.model.errors import ForeignCard
from dra_driver.model.instance import Instance
from dra_driver.model.pci import PciAddress
from dra_driver.model.profile import Profile, ProfileTable, profile_size
from dra_driver.node.checkpoint.ledger import Ledger
from dra_driver.node.checkpoint.records import PreparedDevice

logger = logging.getLogger(__name__)


class DrsCard:
    """`ledger` gives the journal's state of this moment."""

    def __init__(self, drs: Drs, tables: ProfileTables, ledger: Callable[[], Ledger]) -> None:
        self._drs = drs
        self._tables = tables
        self._ledger = ledger

    def total(self, _hold: PreparedDevice, card: Card, /) -> int | None:
        """The sum of sizes; None while the card's profiles are unknown: then the card counts."""
        table = self._tables.table(card)
        return None if table is None else table.total

    def snapshot(self, hold: PreparedDevice, /) -> PreparedDevice:
        """The hold with all instances of the card, which are all held by claims.

        Raises ForeignCard where some are not: a card that somebody else divides is not used, and
        what a claim left that could not be undone yet must not be mistaken for what is made now.
        """
        listed = self._drs.instances(hold.card)
        unknown = foreign(listed, self._ledger(), hold.card)
        if unknown:
            raise ForeignCard(
                f"card {hold.card} has DRS instances that no claim of this driver holds: "
                f"{', '.join(map(str, unknown))}",
                remedy="destroy them if nobody needs them (efsmi -i INDEX --drs "
                "--destroy-instance ID), and leave the card to this driver",
            )
        return replace(hold, instance=None, instances_before=listed)

    def create(self, hold: PreparedDevice, card: Card, /) -> PreparedDevice:
        """The hold with its instance."""
        self._drs.switch_on(card.address)
        profile = self._profile(hold, card)
        # An earlier request of the same claim may have made one since the card was surveyed.
        before = (*(hold.instances_before or ()), *self._ledger().instances(card.address))
        try:
            made = self._drs.create(card.address, profile, before)
        except CreateMadeOther:
            self._learn(card)
            raise
        logger.info("card %s: made DRS instance %s", card.address, made)
        return replace(hold, instance=made, instances_before=None)

    def verify(self, hold: PreparedDevice, /) -> PreparedDevice | None:
        """The hold with its instance if that is listed."""
        if hold.instance is None:
            made = self._made(hold)
            return None if made is None else replace(hold, instance=made, instances_before=None)
        return hold if hold.instance.is_in(self._drs.instances(hold.card)) else None

    def destroy(self, hold: PreparedDevice, /) -> None:
        """Destroys what the journal, or the listing before the create, proves to be ours."""
        instance = hold.instance or self._made(hold)
        if instance is not None:
            self._drs.destroy(hold.card, instance)
            logger.info("card %s: destroyed DRS instance %s", hold.card, instance)

    def reset(self, card: PciAddress, /) -> bool:
        """DRS mode off, but never while an instance is listed."""
        left = self._drs.instances(card)
        if left:
            logger.warning("card %s stays in DRS mode: it has %s", card, ", ".join(map(str, left)))
            return False
        self._drs.switch_off(card)
        return True

    def _profile(self, hold: PreparedDevice, card: Card) -> Profile:
        """Raises InvalidValue where the card has none of that size.

        An empty card is asked anew: another firmware, which nothing cheap tells of, may have other
        profile ids. A divided one is not, as it is not public whether it counts what is left of
        it; its table was read before its first instance was made.
        """
        table = self._tables.table(card)
        if table is None or self._is_empty(hold):
            table = self._learn(card)
        return table.for_size(hold.amount or table.total)

    def _learn(self, card: Card) -> ProfileTable:
        table = self._drs.profiles(card.address)
        self._tables.learn(card, table)
        return table

    def _is_empty(self, hold: PreparedDevice) -> bool:
        """Whether the surveyed card has no instance yet. Where the journal names some, they may
        be gone, or made since the survey for an earlier request of the same claim."""
        if hold.instances_before:
            return False
        return not self._ledger().instances(hold.card) or not self._drs.instances(hold.card)

    def _made(self, hold: PreparedDevice) -> Instance | None:
        """What a create that was interrupted made for the hold, if that can be proved: it was not
        there before, nobody holds it, and it is the only one of its size of which that is so."""
        if hold.instances_before is None:
            return None
        candidates = [
            one
            for one in foreign(self._drs.instances(hold.card), self._ledger(), hold.card)
            if not one.is_in(hold.instances_before) and profile_size(one.profile) == hold.amount
        ]
        if len(candidates) > 1:
            logger.error(
                "card %s has %d instances that may be of one interrupted create; they are left",
                hold.card,
                len(candidates),
            )
            return None
        return candidates[0] if candidates else None


def foreign(listed: tuple[Instance, ...], ledger: Ledger, card: PciAddress) -> tuple[Instance, ...]:
    """What of `listed` no claim holds."""
    held = ledger.instances(card)
    return tuple(one for one in listed if not one.is_in(held))
