"""What the node has for an owner, a CDI file and instances: takes it away, or makes it again.

The file is removed first, then the devices, the record last. Devices that an ended claim leaves on
a card that fails become an orphan. It is recorded as an owner that is being unprepared: recovery
and each reconciliation try again to destroy it, and no other owner gets its devices (ADR 20).
"""

from __future__ import annotations

import logging
from contextlib import nullcontext
from dataclasses import dataclass
from enum import StrEnum

from msgspec.structs import replace

from dra_driver.hardware.drs.drs import CardGone
from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.claims.owner import Orphan, Owner
from dra_driver.model.errors import HardwareError
from dra_driver.model.pci import PciAddress
from dra_driver.node.cdi.files import CdiSpecs
from dra_driver.node.checkpoint.journal import Journal
from dra_driver.node.checkpoint.ledger import Ledger, PreparedClaim
from dra_driver.node.checkpoint.records import (
    CardRecordKind,
    ClaimStep,
    PreparedDevices,
    Record,
    card_record,
    record,
)
from dra_driver.node.claims.device_ops import DeviceOps, OnRecreated, Undestroyed
from dra_driver.node.claims.failures import DeviceCircuitBreaker
from dra_driver.node.claims.reallocation import aliases

logger = logging.getLogger(__name__)


class Outcome(StrEnum):
    """What recovery did for an owner."""

    UNCHANGED = "nothing was to be done"
    ROLLED_BACK = "an unfinished prepare was undone"
    FINISHED = "what had begun was finished"
    RECREATED = "its DRS instance was gone, and was made again"
    RENDERED = "its CDI file was missing or outdated, and was written"
    ADOPTED = "taken into the journal from its CDI file"
    REMOVED = "its CDI file could not be read, and was removed"


def orphan_records(ledger: Ledger, owner: Owner, devices: PreparedDevices) -> tuple[Record, ...]:
    """The record that makes an orphan of the `devices` of `owner`; none without devices."""
    if not devices:
        return ()
    assert isinstance(owner, ClaimRef)
    return (record(ClaimStep.UNPREPARE_STARTED, Orphan.of(owner, ledger.claims), devices),)


def cards_with_orphans(ledger: Ledger) -> frozenset[PciAddress]:
    """The cards on which ended claims left devices."""
    return frozenset(
        card
        for held in ledger.claims.values()
        if isinstance(held.owner, Orphan)
        for card in held.cards
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Belongings:
    """Each method is called with the locks of the owner and of its cards held. After a failure a
    record accounts for everything that still exists, so every step can be repeated."""

    journal: Journal
    specs: CdiSpecs
    device_ops: DeviceOps
    failures: DeviceCircuitBreaker
    on_recreated: OnRecreated

    def release_or_orphan(self, held: PreparedClaim, *, drop_aliases: bool = False) -> None:
        """Release the owner's devices. Devices that cannot be destroyed become orphans after some
        tries, so that the pod can terminate; until then raises HardwareError.

        CDI names of an earlier allocation stay on record, because the kubelet will use them again;
        `drop_aliases` drops them, too.
        """
        self._begin(held)
        undestroyed = self._destroy(held)
        if undestroyed and not self._may_orphan(held, undestroyed):
            raise _worst(undestroyed)
        self._forget(held, undestroyed, drop_aliases=drop_aliases)
        for device, error in undestroyed:
            logger.warning(
                "%s is unprepared but for %s: %s", held.owner.title, device.device_name, error
            )
            self.failures.on_orphaned(held.owner, device, error)
        orphaned = [device for device, _ in undestroyed]
        returned = tuple(device for device in held.devices if device not in orphaned)
        self.failures.on_unprepared(held.owner, returned)

    def release(self, held: PreparedClaim) -> None:
        """Release all devices of the owner; raises the error of one that cannot be destroyed."""
        self._begin(held)
        self.undo(held)

    def undo(self, held: PreparedClaim) -> None:
        """`release` for a prepare that was not answered: nothing is written before the effects, as
        its record accounts for all that may be there."""
        undestroyed = self._destroy(held)
        if undestroyed:
            raise _worst(undestroyed)
        self._forget(held)

    def restore(self, held: PreparedClaim, *, is_requested: bool = False) -> Outcome:
        """Create the missing devices of a prepared claim again, and its CDI file.

        If the cards cannot be examined, this counts as a failure of the claim only if the kubelet
        requests it: otherwise a container may run with it.
        """
        attempt = self.failures.attempt(held.owner, held.devices)
        with attempt if is_requested else nullcontext():
            missing = self._missing(held)
            if not missing:
                outcome = self.render(held)
        if missing:
            self._recreate(held, missing)
            return Outcome.RECREATED
        if missing is not None:
            self.failures.on_prepared(held.owner)
        return outcome

    def render(self, held: PreparedClaim) -> Outcome:
        """Write the CDI file where it is missing or outdated."""
        return Outcome.RENDERED if self.specs.refresh(held) else Outcome.UNCHANGED

    def _begin(self, held: PreparedClaim) -> None:
        """Nothing is written before the file is removed where no card is changed: a kill between
        leaves a prepared owner, whose file recovery writes."""
        is_prepared = held.state is ClaimStep.PREPARE_COMPLETED
        changes = is_prepared and self.journal.snapshot().changes_cards(held.devices)
        if changes or held.state is ClaimStep.PREPARE_STARTED:
            self.journal.write(record(ClaimStep.UNPREPARE_STARTED, held.owner, held.devices))

    def _destroy(self, held: PreparedClaim) -> Undestroyed:
        """The file goes first: no container may start with a device that is being destroyed."""
        self.specs.remove(held.owner.uid)
        return self.device_ops.destroy(held.devices)

    def _may_orphan(self, held: PreparedClaim, undestroyed: Undestroyed) -> bool:
        """At once if the card is gone or has orphans already. Otherwise after some tries: usually a
        destroy fails for a short time only."""
        if not isinstance(held.owner, ClaimRef):
            return False
        failing = cards_with_orphans(self.journal.snapshot())
        doubtful = {
            device.card for device, error in undestroyed if not isinstance(error, CardGone)
        } - failing
        if not any(map(self.specs.hardware.is_on_bus, doubtful)):
            return True
        return self.failures.count_failed_unprepare(held.owner)

    def _forget(
        self, held: PreparedClaim, undestroyed: Undestroyed = (), *, drop_aliases: bool = False
    ) -> None:
        """The owner's record accounts for everything else, so it is removed last, in one commit
        with the record of an orphan."""
        lost = {device.card for device, _ in undestroyed}
        out = self.device_ops.leave_drs(held.owner, held.cards - lost)
        off = [card_record(CardRecordKind.DRS_OFF, card) for card in out]
        names = {} if drop_aliases else aliases(held.devices)
        kind = ClaimStep.RELEASED if names else ClaimStep.FORGOTTEN
        end = record(kind, held.owner, (), names)
        orphans = tuple(replace(device, cdi_aliases=()) for device, _ in undestroyed)
        self.journal.commit(lambda now: [*orphan_records(now, held.owner, orphans), end, *off])

    def _recreate(self, held: PreparedClaim, missing: frozenset[PciAddress]) -> None:
        may_run = self.specs.exists(held.owner.uid)
        with self.failures.attempt(held.owner, held.devices):
            cards = self.specs.read_cards(held.devices, missing)
            devices = self.device_ops.recreate(
                held.owner,
                held.devices,
                cards,
                on_recreated=self.on_recreated if may_run else lambda _instance: None,
            )
            self.render(replace(held, devices=devices))
        made = (device.device_name for device in held.devices if device.card in missing)
        self.failures.on_prepared(held.owner, made)

    def _missing(self, held: PreparedClaim) -> frozenset[PciAddress] | None:
        """The cards on which devices are missing. None where the cards do not answer, and a
        container may run with the claim."""
        try:
            return self.device_ops.missing(held.devices)
        except HardwareError:
            if not self.specs.exists(held.owner.uid):
                raise
            logger.warning("%s is not examined", held.owner.title, exc_info=True)
            return None


def _worst(undestroyed: Undestroyed) -> HardwareError:
    """The error to report: one of a present card rather than of one that is gone."""
    return next(
        (error for _, error in undestroyed if not isinstance(error, CardGone)), undestroyed[0][1]
    )
