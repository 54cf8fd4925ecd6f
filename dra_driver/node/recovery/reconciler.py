"""Compares journal, CDI files and cards: finishes or undoes what this driver began, and reports
foreign instances.

The instances of a card are listed only if it is in DRS mode or should be, once for all its claims.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field

from dra_driver.hardware.breaker import CardSilent
from dra_driver.hardware.drs.drs import Drs
from dra_driver.hardware.drs.locks import CardBusy
from dra_driver.hardware.efsmi.runner import EfsmiHung
from dra_driver.model.card import Card, Problem, Virtualization
from dra_driver.model.claims.owner import Orphan, Owner
from dra_driver.model.devices.device import parse_device_name
from dra_driver.model.errors import GcuError
from dra_driver.model.instance import Instance
from dra_driver.model.mode import Mode
from dra_driver.model.names import TAINT_FOREIGN
from dra_driver.model.pci import PciAddress
from dra_driver.node.checkpoint.journal import Journal
from dra_driver.node.checkpoint.ledger import ClaimState, Ledger
from dra_driver.node.checkpoint.records import CardRecordKind, card_record
from dra_driver.node.claims.manager import PreparedClaimManager
from dra_driver.node.claims.restore import Outcome
from dra_driver.node.locks import Locks
from dra_driver.node.modes.drs import foreign
from dra_driver.node.recovery.recovery import Report

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Findings(Report):
    """What a reconciliation found and did; claims by UID.

    ``foreign`` has the problem of each card that another program divides. Cards in ``unknown``
    could not be examined: their last finding stays in effect.
    """

    foreign: dict[PciAddress, Problem] = field(default_factory=dict)
    unknown: dict[PciAddress, GcuError] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReconciler:
    """May run during calls of the kubelet, and in two agents at once: all take the same locks.
    Never destroys an instance unless the journal proves that it is this driver's."""

    claim_manager: PreparedClaimManager
    journal: Journal
    locks: Locks
    drs: Drs

    def run(self, cards: Iterable[Card], *, adopt: bool = False) -> Findings:
        """Examine `cards`, as they were last read, and every claim.

        With `adopt`, an empty card in DRS mode counts as one that this driver switched on: the
        journal may have lost that record. Raises JournalError; a failure of one claim or card is in
        the findings.
        """
        findings = Findings()
        findings.adopt_unrecorded(self.claim_manager)
        for uid, held in self.journal.snapshot().claims.items():
            if held.state is not ClaimState.PREPARE_COMPLETED:
                self._recover(findings, uid, examine=True)
        missing: set[str] = set()
        for card in cards:
            if card.address in findings.unknown:
                continue
            try:
                self._examine(findings, card, missing, adopt=adopt)
            except GcuError as error:
                logger.warning("card %s could not be examined: %s", card.address, error)
                findings.unknown[card.address] = error
        for uid, held in self.journal.snapshot().claims.items():
            if held.state is ClaimState.PREPARE_COMPLETED:
                self._recover(findings, uid, examine=uid in missing)
        return findings

    def _recover(self, findings: Findings, uid: str, *, examine: bool) -> None:
        held = self.journal.snapshot().claims.get(uid)
        if held is None:
            return
        asked = {device.card for device in held.devices if device.mode is Mode.DRS}
        silent = [findings.unknown[card] for card in asked & findings.unknown.keys()]
        if silent and held.state is not ClaimState.PREPARE_COMPLETED:
            self._failed(findings, held.owner, silent[0])
            return
        try:
            outcome = self.claim_manager.recover(held.owner, examine=examine)
        except GcuError as error:
            if isinstance(error, EfsmiHung | CardBusy | CardSilent) and error.device is not None:
                findings.unknown[parse_device_name(error.device)[1]] = error
            self._failed(findings, held.owner, error)
        else:
            if outcome is not Outcome.UNCHANGED:
                logger.warning("%s: %s", held.owner.title, outcome)
                findings.recovered[uid] = outcome

    def _failed(self, findings: Findings, owner: Owner, error: GcuError) -> None:
        logger.warning("%s could not be recovered: %s", owner.title, error)
        # An orphan was reported when it became one.
        if not isinstance(owner, Orphan):
            findings.failed[owner.uid] = error

    def _examine(self, findings: Findings, card: Card, missing: set[str], *, adopt: bool) -> None:
        address = card.address
        with self.locks.cards([address]):
            ledger = self.journal.snapshot()
            switched = address in ledger.switched
            # Where efsmi does not show the mode, only a listing shows who divides the card.
            if card.virtualization not in {Virtualization.DRS, None} and not switched:
                return
            listed = self.drs.instances(address)
            unheld = foreign(listed, ledger, address)
            if unheld and not _unfinished(ledger, address):
                text = (
                    f"DRS instances without a record of this agent: {', '.join(map(str, unheld))}"
                )
                findings.foreign[address] = Problem(TAINT_FOREIGN, "", text)
            missing |= _without(ledger, address, listed)
            in_doubt = card.virtualization is not None and not listed and not switched
            if in_doubt and self.drs.is_on(address):
                if not adopt:
                    text = "somebody switched DRS mode on; switch it off to let the card be used"
                    findings.foreign[address] = Problem(TAINT_FOREIGN, "", text)
                    return
                self.journal.write(card_record(CardRecordKind.DRS_ON, address))
        self.claim_manager.disable_drs(address)


def _unfinished(ledger: Ledger, card: PciAddress) -> bool:
    """Whether a claim may have an instance on the card that its record does not name."""
    return any(
        held.state is not ClaimState.PREPARE_COMPLETED or device.instance is None
        for held, device in ledger.holders_of(card)
        if device.mode is Mode.DRS
    )


def _without(ledger: Ledger, card: PciAddress, listed: tuple[Instance, ...]) -> set[str]:
    """The UIDs of claims whose instance is not listed."""
    return {
        held.owner.uid
        for held, device in ledger.holders_of(card)
        if device.mode is Mode.DRS
        and (device.instance is None or not device.instance.is_in(listed))
    }
