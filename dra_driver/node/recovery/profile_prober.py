"""Reads the DRS profiles of cards, from one idle card of each kind.

efsmi lists profiles in DRS mode only. So the mode is switched on and off again, with the card's
lock held and a record in the journal, and only if no owner can be using the card.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from dra_driver.hardware.drs.drs import Drs
from dra_driver.hardware.drs.profiles import CardVariant, ProfileTables
from dra_driver.model.card import Card, Virtualization
from dra_driver.model.errors import GcuError, Refused
from dra_driver.model.pci import PciAddress
from dra_driver.node.checkpoint.journal import Journal
from dra_driver.node.checkpoint.records import CardRecordKind, card_record
from dra_driver.node.locks import Locks
from dra_driver.util.hooks import Clock

logger = logging.getLogger(__name__)

_FIRST_RETRY = 60.0  # seconds
_LAST_RETRY = 3600.0


class _Setback(msgspec.Struct, frozen=True):
    """Why a card could not be examined, and when it may be tried again."""

    reason: str
    delay: float
    due: float


@dataclass(slots=True, eq=False, kw_only=True)
class ProfileProber:
    """The journal says which cards are in use, and that is enough: an allocated claim that is not
    prepared has no container yet, and its prepare waits for the card's lock (ADR 8). The agent may
    not list claims."""

    drs: Drs
    tables: ProfileTables
    journal: Journal
    locks: Locks
    clock: Clock = time.monotonic
    _setbacks: dict[tuple[PciAddress, CardVariant], _Setback] = field(
        init=False, default_factory=dict
    )

    def reason(self, card: Card) -> str | None:
        """Why the card's profiles are unknown; None where they are known."""
        if self.tables.table(card) is not None:
            return None
        if setback := self._setbacks.get(_key(card)):
            return setback.reason
        return f"the DRS profiles of {CardVariant.of(card)} are unknown until such a card is free"

    def run(self, cards: Iterable[Card]) -> bool:
        """Examine one free card of each kind whose profiles are unknown. Returns whether the
        profiles of a kind became known.

        Raises JournalError. A card that does not offer DRS is tried again, because its firmware may
        have changed, each time after twice the pause.
        """
        learnt = False
        for card in cards:
            is_idle = not card.problems and card.virtualization is Virtualization.DISABLED
            setback = self._setbacks.get(_key(card))
            is_due = setback is None or self.clock() >= setback.due
            if is_idle and is_due and self.tables.table(card) is None:
                learnt |= self._try(card)
        return learnt

    def _try(self, card: Card) -> bool:
        key = _key(card)
        with self.locks.cards([card.address]):
            ledger = self.journal.snapshot()
            if ledger.holders_of(card.address) or card.address in ledger.switched:
                return False
            try:
                self._examine(card)
            except GcuError as error:
                before = self._setbacks.get(key)
                delay = min(before.delay * 2, _LAST_RETRY) if before else _FIRST_RETRY
                self._setbacks[key] = _Setback(str(error), delay, self.clock() + delay)
                logger.info("card %s has no DRS device: %s", card.address, error)
                return False
        self._setbacks.pop(key, None)
        return True

    def _examine(self, card: Card) -> None:
        address = card.address
        if self.drs.instances(address):
            raise Refused(f"card {address} has DRS instances of somebody else")
        self.journal.write(card_record(CardRecordKind.DRS_ON, address))
        failure: GcuError | None = None
        try:
            self.drs.switch_on(address)
            self.tables.learn(card, self.drs.profiles(address))
        except GcuError as error:
            failure = error
        # If this fails, the record stays, and the next reconciliation switches DRS mode off.
        self.drs.switch_off(address)
        self.journal.write(card_record(CardRecordKind.DRS_OFF, address))
        if failure is not None:
            raise failure


def _key(card: Card) -> tuple[PciAddress, CardVariant]:
    return card.address, CardVariant.of(card)
