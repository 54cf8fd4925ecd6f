"""Prepares and unprepares one claim, so that a kill between any two steps loses nothing.

An owner is a claim, or what the device plugin gave one container. Each method works for one owner
and takes its locks itself. The order of the steps is the protocol of docs/dev/journal.md: before a
card is changed, an intent is durable; before the CDI file is written, the finished record is.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager

from msgspec.structs import replace

from dra_driver.model.claims.measures import Share
from dra_driver.model.claims.owner import Orphan, Owner
from dra_driver.model.errors import GcuError, Refused
from dra_driver.model.pci import PciAddress
from dra_driver.node.cdi.directory import CdiDirectory, MetadataDirectory
from dra_driver.node.cdi.files import CdiSpecs
from dra_driver.node.cdi.spec import Injection
from dra_driver.node.checkpoint.journal import Journal
from dra_driver.node.checkpoint.ledger import Ledger, PreparedClaim
from dra_driver.node.checkpoint.records import (
    ClaimStep,
    PreparedDevice,
    PreparedDevices,
    Record,
    record,
)
from dra_driver.node.claims.belongings import Belongings, Outcome
from dra_driver.node.claims.device_ops import DeviceOps, OnRecreated, SliceCount
from dra_driver.node.claims.drs_card import DrsCard
from dra_driver.node.claims.failures import DeviceCircuitBreaker
from dra_driver.node.claims.reallocation import (
    aliases,
    is_prepared_with,
    with_aliases,
    with_known_names,
)
from dra_driver.node.locks import Locks
from dra_driver.node.ports import Hardware, IsCancelled

logger = logging.getLogger(__name__)


class PreparedClaimManager:
    """Prepares, verifies and unprepares the devices of owners on this node. Thread-safe; another
    agent may work on the node at the same time."""

    def __init__(
        self,
        *,
        hardware: Hardware,
        journal: Journal,
        cdi: CdiDirectory,
        metadata: MetadataDirectory,
        locks: Locks,
        drs: DrsCard,
        slice_count: SliceCount,
        injection: Injection,
        failures: DeviceCircuitBreaker,
        on_recreated: OnRecreated,
    ) -> None:
        self._journal = journal
        self._locks = locks
        self._failures = failures
        self._device_ops = DeviceOps(hardware, journal, drs, slice_count)
        self._specs = CdiSpecs(hardware, cdi, metadata, injection)
        self._belongings = Belongings(
            journal=journal,
            specs=self._specs,
            device_ops=self._device_ops,
            failures=failures,
            on_recreated=on_recreated,
        )

    def share(self, device: PreparedDevice) -> Share | None:
        """As `dra_driver.node.plan.ShareOf`; changes nothing."""
        return self._device_ops.share(device)

    def attempt(self, owner: Owner, devices: PreparedDevices) -> AbstractContextManager[None]:
        """Around steps before `prepare` that belong to the same try: an error there counts as a
        failure of the prepare."""
        return self._failures.attempt(owner, devices)

    def prepare(
        self, owner: Owner, devices: PreparedDevices, *, is_cancelled: IsCancelled | None = None
    ) -> PreparedDevices:
        """Create the owner's devices and its CDI file.

        Returns the devices as they are prepared: those of an earlier prepare if there was one.
        Raises Refused if another owner holds a card, or if the call `is_cancelled`, and otherwise
        the error of the step that failed. Then everything is undone, or a record accounts for it.
        """
        with self._locked(owner.uid, devices) as held:
            if held is not None and is_prepared_with(owner, held, devices):
                self._belongings.restore(self._recorded(held, owner), is_requested=True)
                return held.devices
            # With the owner's lock: an unprepare that waits for it finds what is created here.
            if is_cancelled is not None and is_cancelled():
                raise Refused(
                    f"nothing is prepared for {owner.title}: the call was given up",
                    remedy="the kubelet asks again where it still needs it",
                )
            with self._failures.attempt(owner, devices):
                if held is not None:
                    devices = self._replace(held, devices)
                cards = self._specs.read_cards(devices)
                devices = self._device_ops.with_state_before(devices, cards)
                totals = self._device_ops.totals(devices, cards)
                step = self._admit(owner, devices, totals)
                with self._undoing(owner.uid):
                    if step is ClaimStep.PREPARE_STARTED:
                        devices = self._device_ops.create(owner, devices, cards)
                        self._journal.write(record(ClaimStep.PREPARE_COMPLETED, owner, devices))
                    self._specs.write(owner, devices, cards)
            used = (each.device_name for each in devices if not each.admin_access)
            self._failures.on_prepared(owner, used)
        return devices

    def verify(self, owner: Owner) -> PreparedDevices:
        """Restore what a prepared claim lacks: instances that are gone, its CDI file.

        Returns its devices. Raises Refused where it is not prepared any more.
        """
        with self._locked(owner.uid) as held:
            if held is None or held.state is not ClaimStep.PREPARE_COMPLETED:
                raise Refused(f"{owner.title} is being unprepared", remedy="the kubelet retries")
            self._belongings.restore(self._recorded(held, owner), is_requested=True)
            return held.devices

    def unprepare(self, owner: Owner) -> None:
        """Take back what the owner has, or make orphans of it; an owner without devices is a
        success. Where the journal has lost the record, the CDI file says what the owner has."""
        with self._locked(owner.uid, recall=True) as held:
            if held is None:
                self._specs.remove(owner.uid)
                self._failures.on_unprepared(owner, ())
                return
            self._belongings.release_or_orphan(held, drop_aliases=True)

    def release(self, expected: PreparedClaim) -> bool:
        """Unprepare an owner that is still as `expected`; returns whether it was.

        The owner may have been given its devices again since the caller decided to release them.
        """
        with self._locked(expected.owner.uid) as held:
            if held != expected:
                return False
            self._belongings.release(held)
            self._failures.on_unprepared(held.owner, held.devices)
            return True

    def recover(self, owner: Owner, *, examine: bool = True) -> Outcome:
        """Finish or undo what a killed agent began for the owner.

        An unfinished prepare was never answered, so it is undone. With `examine`, the devices of a
        prepared claim are compared with its cards, too.
        """
        with self._locked(owner.uid) as held:
            if held is None:
                return Outcome.UNCHANGED
            if held.state is ClaimStep.RELEASED:
                self._specs.remove(owner.uid)  # administrative access leaves nothing else
                return Outcome.UNCHANGED
            if held.state is ClaimStep.PREPARE_COMPLETED:
                if not held.records:
                    self._belongings.restore(self._recorded(held, held.owner))
                    return Outcome.FINISHED
                return self._belongings.restore(held) if examine else self._belongings.render(held)
            self._belongings.release(held)
            if isinstance(held.owner, Orphan):
                self._failures.on_unprepared(held.owner, held.devices)
            is_prepare = held.state is ClaimStep.PREPARE_STARTED
            return Outcome.ROLLED_BACK if is_prepare else Outcome.FINISHED

    def adopt_from_cdi(self, uid: str) -> Outcome:
        """Take an owner into the journal that has a CDI file and no record.

        The file proves that everything was prepared, and a container may run with it. A file that
        cannot be read is removed: no runtime can use it either. Raises Refused where another owner
        holds its card.
        """
        with self._locked(uid, recall=True) as held:
            if held is None:
                return Outcome.REMOVED if self._specs.remove(uid) else Outcome.UNCHANGED
            if held.records:
                return Outcome.UNCHANGED
            self._recorded(held, held.owner)
            return Outcome.ADOPTED

    def uids_without_record(self) -> frozenset[str]:
        """The UIDs of CDI files without a record. The files are listed first: a record is written
        before its file, and removed after it."""
        return self._specs.cdi.uids() - self._journal.snapshot().claims.keys()

    def disable_drs(self, card: PciAddress) -> None:
        """Switch DRS mode off where the driver switched it on and nobody holds an instance; raises
        the error of the step that failed."""
        with self._locks.cards([card]):
            ledger = self._journal.snapshot()
            if card in ledger.switched and not ledger.drs_holders_of(card):
                self._device_ops.disable_drs(card)

    @contextmanager
    def _locked(
        self, uid: str, wanted: PreparedDevices = (), *, recall: bool = False
    ) -> Iterator[PreparedClaim | None]:
        """Lock the owner, its cards and those of `wanted`. Yields the checkpointed claim.

        If there is none and `recall` is set, or the journal is incomplete, yields the claim as its
        CDI file has it (`records == ()`).
        """
        with self._locks.claim(uid):
            # Whoever changes the claim has its lock, so it stays as it is read here.
            held = self._journal.snapshot().claims.get(uid)
            is_whole = self._journal.is_complete
            if held is None and (recall or not is_whole):
                held = self._specs.read_claim(uid)
            elif held is not None and held.state is ClaimStep.PREPARE_STARTED and not is_whole:
                # The record that ended the prepare may be lost: then the file proves that it ended,
                # and has more than the intent has.
                held = self._specs.read_claim(uid) or held
            cards = {device.card for device in wanted if not device.admin_access}
            cards |= held.cards if held else set()
            with self._locks.cards(cards):
                yield held

    def _recorded(self, held: PreparedClaim, owner: Owner) -> PreparedClaim:
        """Write a record of a claim that has none, or whose owner has changed: devices of a
        container that are allocated again. Raises Refused where another owner holds its card."""
        if not held.records or held.owner != owner:
            self._admit(owner, held.devices, is_prepared=True)
        return replace(held, owner=owner)

    def _admit(
        self,
        owner: Owner,
        devices: PreparedDevices,
        totals: Mapping[str, int] | None = None,
        *,
        is_prepared: bool = False,
    ) -> ClaimStep:
        """Record that the owner has the devices; raises Refused where another owner has them.
        Returns the recorded step: a prepare that changes a card is only started, unless it
        `is_prepared` already."""
        step = ClaimStep.PREPARE_COMPLETED

        def decide(ledger: Ledger) -> Sequence[Record]:
            nonlocal step
            ledger.admit(owner, devices, totals)
            if not is_prepared and ledger.changes_cards(devices):
                step = ClaimStep.PREPARE_STARTED
            return [record(step, owner, devices)]

        self._journal.commit(decide)
        return step

    @contextmanager
    def _undoing(self, uid: str) -> Iterator[None]:
        """Around the effects of a prepare: if one fails, undoes them all."""
        try:
            yield
        except Exception:
            try:
                self._belongings.undo(self._journal.snapshot().claims[uid])
            except GcuError:
                # The record stays in the journal and holds the cards. Unprepare, the next
                # reconciliation or the next start finishes it.
                logger.exception("%s could not be undone yet", uid)
            raise

    def _replace(self, held: PreparedClaim, wanted: PreparedDevices) -> PreparedDevices:
        """Release an earlier allocation of the claim; returns the wanted devices with the earlier
        CDI names as aliases."""
        if held.state is ClaimStep.RELEASED:
            return with_aliases(held.names, wanted)
        known = with_known_names(held)
        if {device.cdi_name for device in held.devices} == {each.cdi_name for each in wanted}:
            self._belongings.release(held)
        else:
            self._belongings.release_or_orphan(known)
        return with_aliases(aliases(known.devices), wanted)
