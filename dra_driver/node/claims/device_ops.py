"""What preparing and unpreparing devices does to cards, with the records in between.

Every method but `DeviceOps.share` is called with the locks of the cards held. Each raises a
GcuError with the device that caused it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection

import msgspec
from msgspec.structs import replace

from dra_driver.model.card import Cards
from dra_driver.model.claims.measures import (
    Share,
    memory_per_slice,
    share_of_units,
    slice_shares,
    whole_share,
)
from dra_driver.model.claims.owner import Owner
from dra_driver.model.errors import ForeignCard, GcuError, HardwareError
from dra_driver.model.instance import Instance
from dra_driver.model.mode import Mode
from dra_driver.model.names import TAINT_FOREIGN
from dra_driver.model.pci import PciAddress
from dra_driver.node.checkpoint.journal import Journal
from dra_driver.node.checkpoint.records import (
    CardRecordKind,
    ClaimStep,
    PreparedDevice,
    PreparedDevices,
    card_record,
    record,
)
from dra_driver.node.claims.drs_card import DrsCard
from dra_driver.node.claims.failures import attribute_to
from dra_driver.node.ports import Hardware

logger = logging.getLogger(__name__)


class RecreatedInstance(msgspec.Struct, frozen=True):
    """`after` replaces `before` under a prepared claim. `before` is None where the record does not
    name it: the agent was killed, or failed, between the check and the create. The claim's CDI file
    names the new instance. The environment of a running container still names the old one, and
    nobody can change that."""

    owner: Owner
    card: PciAddress
    before: Instance | None
    after: Instance

    @property
    def text(self) -> str:
        """What happened and what to do, for people."""
        gone = f" {self.before}" if self.before is not None else ""
        return (
            f"{self.owner.title}: its DRS instance{gone} on card {self.card} was gone, and "
            f"{self.after} was made in its place; a container that started before has the old one "
            "in TOPS_VISIBLE_DEVICES and cannot use the new one: restart its pod"
        )


OnRecreated = Callable[[RecreatedInstance], None]
"""Called for each instance that was lost under a claim whose containers may run. Neither raises nor
waits."""

SliceCount = Callable[[PciAddress], int]
"""The number of slices of a card."""

Undestroyed = tuple[tuple[PreparedDevice, HardwareError], ...]
"""The devices that could not be destroyed, and why."""


class DeviceOps:
    """Only DRS devices are created on a card and destroyed. A whole card needs nothing, and slices
    are counted."""

    def __init__(
        self, hardware: Hardware, journal: Journal, drs: DrsCard, slice_count: SliceCount
    ) -> None:
        self._hardware = hardware
        self._journal = journal
        self._drs = drs
        self._slice_count = slice_count

    def share(self, device: PreparedDevice) -> Share | None:
        """What the device is of its card; None while that is unknown."""
        with attribute_to(device.device_name):
            card = self._hardware.card(device.card)
            if device.mode is Mode.DRS:
                return self._drs.share(device, card)
            if device.mode is Mode.WHOLE:
                return whole_share(card.memory_mib)
            total = self._slice_count(device.card)
            shares = slice_shares(total, memory_per_slice(card.memory_mib, total))
            return share_of_units(shares, device.amount)

    def with_state_before(self, devices: PreparedDevices, cards: Cards) -> PreparedDevices:
        """The devices with the instances that their cards have before anything is created, or with
        the number of slices of their card: that number counts as long as any slice of the card is
        in use, even if the rules change. Raises ForeignCard for a card that another program
        uses."""
        examined = []
        for device in devices:
            with attribute_to(device.device_name):
                for problem in cards[device.card].problems:
                    if problem.taint == TAINT_FOREIGN and not device.admin_access:
                        raise ForeignCard(f"card {device.card} is not ours to use: {problem.text}")
                examined.append(self._with_state_before(device))
        return tuple(examined)

    def totals(self, devices: PreparedDevices, cards: Cards) -> dict[str, int]:
        """The capacity of each device's card, by device name, without devices whose capacity is not
        counted."""
        totals = {
            device.device_name: self._drs.total(cards[device.card])
            if device.mode is Mode.DRS
            else device.total
            for device in devices
        }
        return {device: total for device, total in totals.items() if total is not None}

    def create(self, owner: Owner, devices: PreparedDevices, cards: Cards) -> PreparedDevices:
        """Create the devices, and record each one as soon as it exists; the caller records the
        last one."""
        made = list(devices)
        for at, device in enumerate(devices):
            if device.admin_access:
                continue  # the card stays as its owner uses it
            with attribute_to(device.device_name):
                if device.mode is Mode.DRS:
                    made[at] = self._drs.create(device, cards[device.card])
                elif not self._is_drs_off(device.card):
                    raise ForeignCard(
                        f"card {device.card} is still in DRS mode, and efsmi did not switch it off",
                        remedy="the agent tries again at the next call",
                    )
            if made[at] != device and device is not devices[-1]:
                self._journal.write(record(ClaimStep.PREPARE_STARTED, owner, tuple(made)))
        return tuple(made)

    def missing(self, devices: PreparedDevices) -> frozenset[PciAddress]:
        """The cards on which a device is not as recorded."""
        return frozenset(device.card for device in devices if self._verify(device) != device)

    def recreate(
        self, owner: Owner, devices: PreparedDevices, cards: Cards, *, on_recreated: OnRecreated
    ) -> PreparedDevices:
        """Create again the devices that are missing on `cards`. Each step is recorded before it
        is taken."""
        made = list(devices)
        for at, device in enumerate(devices):
            if device.mode is not Mode.DRS or device.card not in cards:
                continue
            found = self._verify(device)
            if found is None:
                with attribute_to(device.device_name):
                    made[at] = self._drs.with_state_before(device)
                self._journal.write(record(ClaimStep.PREPARE_COMPLETED, owner, tuple(made)))
                with attribute_to(device.device_name):
                    found = self._drs.create(made[at], cards[device.card])
            if found != made[at]:
                made[at] = found
                self._journal.write(record(ClaimStep.PREPARE_COMPLETED, owner, tuple(made)))
                if found.instance is not None and found.instance != device.instance:
                    on_recreated(
                        RecreatedInstance(owner, device.card, device.instance, found.instance)
                    )
        return tuple(made)

    def destroy(self, devices: PreparedDevices) -> Undestroyed:
        """Destroy the devices; returns those that could not be destroyed. After a failure the other
        devices of that card are not tried, as each try may take long."""
        failed: dict[PciAddress, HardwareError] = {}
        undestroyed: list[tuple[PreparedDevice, HardwareError]] = []
        for device in devices:
            try:
                if device.mode is Mode.DRS and device.card not in failed:
                    with attribute_to(device.device_name):
                        self._drs.destroy(device)
            except HardwareError as error:
                failed[device.card] = error
            if device.card in failed:
                undestroyed.append((device, failed[device.card]))
        return tuple(undestroyed)

    def leave_drs(self, owner: Owner, cards: Collection[PciAddress]) -> tuple[PciAddress, ...]:
        """Switch DRS mode off on those `cards` where the driver switched it on and only `owner` has
        instances. Returns the cards where it is off now."""
        ledger = self._journal.snapshot()
        out = []
        for card in sorted(ledger.switched.intersection(cards)):
            if any(held.owner.uid != owner.uid for held, _ in ledger.drs_holders_of(card)):
                continue
            try:
                if self._drs.reset(card):
                    out.append(card)
            except GcuError:
                # It stays recorded as switched on. It is tried again by each reconciliation, and
                # before the card is used in another mode.
                logger.exception("card %s stays in DRS mode for now", card)
        return tuple(out)

    def disable_drs(self, card: PciAddress) -> bool:
        """Switch a card's DRS mode off, and record it. Returns whether it is off: not while efsmi
        lists an instance."""
        is_off = self._drs.reset(card)
        if is_off:
            self._journal.write(card_record(CardRecordKind.DRS_OFF, card))
        return is_off

    def _is_drs_off(self, card: PciAddress) -> bool:
        return card not in self._journal.snapshot().switched or self.disable_drs(card)

    def _with_state_before(self, device: PreparedDevice) -> PreparedDevice:
        if device.mode is Mode.DRS:
            return self._drs.with_state_before(device)
        if device.mode is Mode.SHARED:
            return replace(device, total=self._slice_count(device.card))
        return device

    def _verify(self, device: PreparedDevice) -> PreparedDevice | None:
        if device.mode is not Mode.DRS:
            return device
        with attribute_to(device.device_name):
            return self._drs.verify(device)
