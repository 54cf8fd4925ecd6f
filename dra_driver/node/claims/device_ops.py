"""What giving out devices does to cards, mode by mode, with the records that belong between.

Every method is called with the locks of the cards held, and raises GcuError, which says what device
is to blame.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping

from dra_driver.model.card import Card
from dra_driver.model.errors import ForeignCard, GcuError, HardwareError
from dra_driver.model.mode import Mode
from dra_driver.model.names import TAINT_FOREIGN
from dra_driver.model.owner import Owner
from dra_driver.model.pci import PciAddress
from dra_driver.node.checkpoint.journal import Journal
from dra_driver.node.checkpoint.records import CardKind, Kind, PreparedDevice, card_record, record
from dra_driver.node.claims.failures import attribute_to
from dra_driver.node.modes.driver import ModeDriver
from dra_driver.node.ports import Hardware

logger = logging.getLogger(__name__)

Holds = tuple[PreparedDevice, ...]
Cards = Mapping[PciAddress, Card]
Left = tuple[tuple[PreparedDevice, HardwareError], ...]
"""What could not be taken away, and why."""


class DeviceOps:
    """Takes the steps of each hold's mode."""

    def __init__(
        self, hardware: Hardware, journal: Journal, steps: Mapping[Mode, ModeDriver]
    ) -> None:
        self._hardware = hardware
        self._journal = journal
        self._steps = steps

    def snapshot(self, holds: Holds, cards: Cards) -> Holds:
        """The holds with what must be known before anything is made; raises ForeignCard where a
        card is somebody else's."""
        surveyed = []
        for hold in holds:
            with attribute_to(hold.device):
                for problem in cards[hold.card].problems:
                    if problem.taint == TAINT_FOREIGN and not hold.admin_access:
                        raise ForeignCard(f"card {hold.card} is not ours to use: {problem.text}")
                surveyed.append(self._steps[hold.mode].snapshot(hold))
        return tuple(surveyed)

    def totals(self, holds: Holds, cards: Cards) -> dict[str, int]:
        """By device of the surveyed `holds`, how much of its capacity there is, where that is
        counted."""
        totals = {
            hold.device: self._steps[hold.mode].total(hold, cards[hold.card]) for hold in holds
        }
        return {device: total for device, total in totals.items() if total is not None}

    def create(self, owner: Owner, holds: Holds, cards: Cards) -> Holds:
        """Make what the holds stand for, and record each thing that was made."""
        made = list(holds)
        for at, hold in enumerate(holds):
            if hold.admin_access:
                continue  # whoever holds the card decides what it is like
            with attribute_to(hold.device):
                if hold.mode is not Mode.DRS:
                    self._leave_drs(hold.card)
                made[at] = self._steps[hold.mode].create(hold, cards[hold.card])
            if made[at] != hold:
                self._journal.write(record(Kind.PREPARE_STARTED, owner, tuple(made)))
        return tuple(made)

    def missing(self, holds: Holds) -> frozenset[PciAddress]:
        """The cards on which something of a prepared claim is not as recorded."""
        return frozenset(hold.card for hold in holds if self._find(hold) != hold)

    def recreate(self, owner: Owner, holds: Holds, cards: Cards) -> Holds:
        """Make again what of a prepared claim is missing on `cards`, recording each step before
        it is taken."""
        made = list(holds)
        for at, hold in enumerate(holds):
            if hold.card not in cards:
                continue
            step, found = self._steps[hold.mode], self._find(hold)
            if found is None:
                with attribute_to(hold.device):
                    made[at] = step.snapshot(hold)
                self._journal.write(record(Kind.PREPARE_COMPLETED, owner, tuple(made)))
                with attribute_to(hold.device):
                    found = step.create(made[at], cards[hold.card])
            if found != made[at]:
                made[at] = found
                self._journal.write(record(Kind.PREPARE_COMPLETED, owner, tuple(made)))
        return tuple(made)

    def destroy(self, holds: Holds) -> Left:
        """Take away what the holds stand for. Gives those whose card did not let it happen, with
        the reason; such a card is asked once, as each time may take long."""
        failed: dict[PciAddress, HardwareError] = {}
        left: list[tuple[PreparedDevice, HardwareError]] = []
        for hold in holds:
            try:
                if hold.card not in failed:
                    with attribute_to(hold.device):
                        self._steps[hold.mode].destroy(hold)
            except HardwareError as error:
                failed[hold.card] = error
            if hold.card in failed:
                left.append((hold, failed[hold.card]))
        return tuple(left)

    def leave_drs(self, owner: Owner, cards: Collection[PciAddress]) -> tuple[PciAddress, ...]:
        """Switch out of DRS mode those of the cards that nobody else than `owner` holds anything
        of; those that are out now."""
        ledger = self._journal.snapshot()
        return tuple(
            card
            for card in sorted(ledger.switched.intersection(cards))
            if all(uid == owner.uid for uid in ledger.drs_holders_of(card))
            and self._try_vacate(card)
        )

    def disable_drs(self, card: PciAddress) -> None:
        """Switch a card out of DRS mode and record it."""
        if self._steps[Mode.DRS].reset(card):
            self._journal.write(card_record(CardKind.DRS_OFF, card))

    def _try_vacate(self, card: PciAddress) -> bool:
        try:
            return self._steps[Mode.DRS].reset(card)
        except GcuError:
            # It stays recorded as switched, and is tried again before anything else is given
            # out of the card, and whenever the node is looked at.
            logger.exception("card %s stays in DRS mode for now", card)
            return False

    def _leave_drs(self, card: PciAddress) -> None:
        if card not in self._journal.snapshot().switched:
            return
        self.disable_drs(card)
        if card in self._journal.snapshot().switched:
            raise ForeignCard(
                f"card {card} is still in DRS mode", remedy="it is switched out of it before use"
            )

    def _find(self, hold: PreparedDevice) -> PreparedDevice | None:
        with attribute_to(hold.device):
            return self._steps[hold.mode].verify(hold)
