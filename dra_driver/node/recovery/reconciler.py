"""Makes journal, CDI files and cards agree: finishes or undoes what this driver began, and reports
foreign instances.

Another agent may serve meanwhile (rolling update): each step takes the claim's locks, so a claim is
either complete or abandoned by a killed agent. No running pod is harmed: prepared claims stay
prepared, and a claim with only a CDI file is recorded in the journal again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from dra_driver.hardware.drs.drs import Drs
from dra_driver.model.card import Card, Problem, Virtualization
from dra_driver.model.claims.owner import Orphan
from dra_driver.model.errors import GcuError
from dra_driver.model.names import TAINT_FOREIGN
from dra_driver.model.pci import PciAddress
from dra_driver.node.checkpoint.journal import Journal
from dra_driver.node.checkpoint.ledger import PreparedClaim
from dra_driver.node.checkpoint.records import CardRecordKind, ClaimStep, card_record
from dra_driver.node.claims.belongings import Outcome
from dra_driver.node.claims.drs_card import foreign
from dra_driver.node.claims.manager import PreparedClaimManager
from dra_driver.node.locks import Locks

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Findings:
    """What was found and done; claims by UID.

    A claim in `failed` stays as it was. The next reconciliation, the next call of the kubelet and
    the next start try it again. ``foreign`` has the problem of each card that another program
    divides. Cards in ``unknown`` could not be examined: their last finding stays in effect.
    """

    recovered: dict[str, Outcome] = field(default_factory=dict)
    failed: dict[str, GcuError] = field(default_factory=dict)
    foreign: dict[PciAddress, Problem] = field(default_factory=dict)
    unknown: dict[PciAddress, GcuError] = field(default_factory=dict)

    @property
    def adopted(self) -> int:
        """How many claims were taken into the journal from their CDI files."""
        return list(self.recovered.values()).count(Outcome.ADOPTED)

    def recover(self, uid: str, title: str, step: Callable[[], Outcome]) -> None:
        """Run the step of one owner, and add what it did."""
        try:
            outcome = step()
        except GcuError as error:
            logger.warning("%s could not be recovered: %s", title, error)
            self.failed[uid] = error
            return
        if outcome is not Outcome.UNCHANGED:
            logger.warning("%s: %s", title, outcome)
            self.recovered[uid] = outcome

    def adopt_unrecorded(self, claim_manager: PreparedClaimManager) -> None:
        """Record the claims that have a CDI file and no record, because the journal lost it."""
        for uid in sorted(claim_manager.uids_without_record()):
            self.recover(uid, f"claim {uid}", partial(claim_manager.adopt_from_cdi, uid))


def recover_all(claim_manager: PreparedClaimManager, journal: Journal) -> Findings:
    """Recover every claim of the journal, then every CDI file without a record, after
    `Journal.open` and before the kubelet can call.

    It waits for a card that hangs once, and not for each of its claims
    (`dra_driver.hardware.breaker`). Raises JournalError or CdiError where journal or directory
    cannot be used at all; a failure of one claim is in the findings.
    """
    findings = Findings()
    for uid, held in journal.snapshot().claims.items():
        findings.recover(uid, held.owner.title, partial(claim_manager.recover, held.owner))
    findings.adopt_unrecorded(claim_manager)
    return findings


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReconciler:
    """May run during calls of the kubelet, and in two agents at once: all take the same locks.
    Never destroys an instance unless the journal proves that it is this driver's.

    The instances of a card are listed only if it is in DRS mode or should be, once for all its
    claims.
    """

    claim_manager: PreparedClaimManager
    journal: Journal
    locks: Locks
    drs: Drs

    def run(self, cards: Iterable[Card], *, adopt: bool = False) -> Findings:
        """Examine `cards`, as they were last read, and every claim.

        With `adopt`, an empty card in DRS mode counts as one that this driver switched on: the
        journal may have lost that record. Raises JournalError or CdiError; a failure of one claim
        or card is in the findings.
        """
        findings = Findings()
        findings.adopt_unrecorded(self.claim_manager)
        # Those of a card one after the other: if it hangs, the first one waits, and the others fail
        # at once for a while (`dra_driver.hardware.breaker`).
        claims = self.journal.snapshot().claims.values()
        for held in sorted(claims, key=lambda held: sorted(held.cards)):
            if held.state is not ClaimStep.PREPARE_COMPLETED:
                self._recover(findings, held, examine=True)
        missing: set[str] = set()
        for card in cards:
            try:
                self._examine(findings, card, missing, adopt=adopt)
            except GcuError as error:
                logger.warning("card %s could not be examined: %s", card.address, error)
                findings.unknown[card.address] = error
        for uid, held in self.journal.snapshot().claims.items():
            if held.state is ClaimStep.PREPARE_COMPLETED:
                self._recover(findings, held, examine=uid in missing)
        return findings

    def _recover(self, findings: Findings, held: PreparedClaim, *, examine: bool) -> None:
        step = partial(self.claim_manager.recover, held.owner, examine=examine)
        findings.recover(held.owner.uid, held.owner.title, step)
        if isinstance(held.owner, Orphan):  # it was reported when it became one
            findings.failed.pop(held.owner.uid, None)

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
            holders = ledger.drs_holders_of(address)
            # A claim may have an instance on the card that its record does not name.
            unfinished = any(
                held.state is not ClaimStep.PREPARE_COMPLETED or device.instance is None
                for held, device in holders
            )
            if unheld and not unfinished:
                text = (
                    f"DRS instances without a record of this agent: {', '.join(map(str, unheld))}"
                )
                findings.foreign[address] = Problem(TAINT_FOREIGN, "", text)
            missing |= {
                held.owner.uid
                for held, device in holders
                if device.instance is None or not device.instance.is_in(listed)
            }
            in_doubt = card.virtualization is not None and not listed and not switched
            if in_doubt and self.drs.is_on(address):
                if not adopt:
                    text = "somebody switched DRS mode on; switch it off to let the card be used"
                    findings.foreign[address] = Problem(TAINT_FOREIGN, "", text)
                    return
                self.journal.write(card_record(CardRecordKind.DRS_ON, address))
        self.claim_manager.disable_drs(address)
