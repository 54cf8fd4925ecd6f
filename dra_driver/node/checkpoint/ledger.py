"""Which owner has which device: the state that results from the journal's records. Pure.

Its rules are the last line of defence: whatever was allocated, by whatever allocator, a card is in
one mode at a time, and no part of it is given twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.claims.owner import ContainerAllocation, Owner
from dra_driver.model.errors import DeviceHeld, Refused
from dra_driver.model.instance import Instance
from dra_driver.model.mode import Mode
from dra_driver.model.pci import PciAddress
from dra_driver.node.checkpoint.records import (
    CardRecordKind,
    CdiNames,
    ClaimStep,
    PreparedDevice,
    PreparedDevices,
    Record,
    card_record,
    read,
)

STATES: Final = tuple(step for step in ClaimStep if step is not ClaimStep.FORGOTTEN)
"""How far a claim can be on this node: the step that was written last."""


class PreparedClaim(msgspec.Struct, frozen=True):
    """An owner with its devices. ``records`` are its JSON objects, in their order: the last one of
    each known kind, and all of unknown kinds, which are preserved. ``names`` are what is left of an
    owner that is released."""

    owner: Owner
    state: ClaimStep
    devices: tuple[PreparedDevice, ...]
    records: tuple[Mapping[str, Any], ...]
    names: CdiNames = {}

    @property
    def cards(self) -> frozenset[PciAddress]:
        """The cards that the owner uses; administrative access does not count as use."""
        return frozenset(device.card for device in self.devices if not device.admin_access)


class Ledger(msgspec.Struct, frozen=True):
    """All prepared claims by their owners' UIDs. Immutable: `apply` returns a new one.

    ``switched`` are the cards whose DRS mode the driver switched on, or was about to, and has not
    switched off since.
    """

    claims: Mapping[str, PreparedClaim] = {}
    switched: frozenset[PciAddress] = frozenset()
    unknown: tuple[Mapping[str, Any], ...] = ()

    def apply(self, record: Record) -> Ledger:
        """The state after `record`."""
        if record.card is not None:
            rest = self.switched - {record.card}
            is_on = record.kind == CardRecordKind.DRS_ON
            return replace(self, switched=rest | {record.card} if is_on else rest)
        if record.owner is None:
            return replace(self, unknown=(*self.unknown, record.raw))
        uid = record.owner.uid
        held = self.claims.get(uid)
        if record.kind == ClaimStep.FORGOTTEN:
            left = dict(self.claims)
            left.pop(uid, None)
            return Ledger(left, self.switched, self.unknown)
        kept = held.records if held else ()
        if record.kind in STATES:
            kept = tuple(raw for raw in kept if raw["kind"] != record.kind)
            state = ClaimStep(record.kind)
            records = (*kept, record.raw)
            held = PreparedClaim(record.owner, state, record.devices, records, record.names)
        elif held is not None:
            held = replace(held, records=(*kept, record.raw))
        else:
            return replace(self, unknown=(*self.unknown, record.raw))
        switched = self.switched | _divided_by(record)
        return Ledger({**self.claims, uid: held}, switched, self.unknown)

    def raw_records(self) -> Iterator[Mapping[str, Any]]:
        """The fewest records that result in this state, with the unknown ones.

        A claim's records of unknown kinds come last: `apply` adds them to a known claim only.
        """
        divided: set[PciAddress] = set()
        for held in self.claims.values():
            for raw in sorted(held.records, key=lambda raw: raw["kind"] not in STATES):
                divided |= _divided_by(read(raw))
                yield raw
        for card in sorted(self.switched):
            yield card_record(CardRecordKind.DRS_ON, card).raw
        # An earlier record of an owner may name a card that the owner has no more.
        for card in sorted(divided - self.switched):
            yield card_record(CardRecordKind.DRS_OFF, card).raw
        yield from self.unknown

    def holders_of(self, card: PciAddress) -> tuple[tuple[PreparedClaim, PreparedDevice], ...]:
        """The owners that use the card, each with the device; not those with administrative
        access."""
        suffix = f"-{card.slug}"  # the end of a device's name: faster than to parse all names
        return tuple(
            (held, device)
            for held in self.claims.values()
            for device in held.devices
            if device.device_name.endswith(suffix) and not device.admin_access
        )

    def drs_holders_of(self, card: PciAddress) -> list[tuple[PreparedClaim, PreparedDevice]]:
        """The owners that use the card in DRS mode, as `holders_of`."""
        return [each for each in self.holders_of(card) if each[1].mode is Mode.DRS]

    def changes_cards(self, devices: PreparedDevices) -> bool:
        """Whether preparing or releasing the devices changes a card: an instance is created or
        destroyed, or DRS mode is switched off."""
        return any(
            not device.admin_access and (device.mode is Mode.DRS or device.card in self.switched)
            for device in devices
        )

    def promised_slices(self, card: PciAddress) -> int | None:
        """The card's number of slices as its owners' slices were counted; the largest, if they
        differ. None if no owner has slices, or the records do not have the number."""
        shared = (device for _, device in self.holders_of(card) if device.mode is Mode.SHARED)
        return max((device.total for device in shared if device.total is not None), default=None)

    def instances(self, card: PciAddress) -> tuple[Instance, ...]:
        """The DRS instances of the card that owners have."""
        return tuple(
            device.instance for _, device in self.holders_of(card) if device.instance is not None
        )

    def prepared_in(self, namespace: str) -> dict[ClaimRef, PreparedClaim]:
        """The prepared claims of that namespace."""
        return {
            held.owner: held
            for held in self.claims.values()
            if isinstance(held.owner, ClaimRef)
            and held.owner.namespace == namespace
            and held.state is ClaimStep.PREPARE_COMPLETED
        }

    def admit(
        self,
        owner: Owner,
        devices: Iterable[PreparedDevice],
        totals: Mapping[str, int] | None = None,
    ) -> None:
        """Raise Refused, with card and owner, unless the owner may have all of `devices`.

        `totals` has the capacity of each device, by its name; a device without one is not counted.
        Earlier devices of the same owner do not count: `devices` replace them.
        """
        wanted = tuple(devices)
        for at, device in enumerate(wanted):
            others = [] if device.admin_access else self._others(owner, device.card)
            for holder, held in [*others, *((owner, each) for each in wanted[:at])]:
                _exclude(owner, device, holder, held)
        for name, total in (totals or {}).items():
            asked = [device for device in wanted if device.device_name == name]
            if asked:
                others = self._others(owner, asked[0].card)
                _count(owner, asked, others, total)

    def _others(self, owner: Owner, card: PciAddress) -> list[tuple[Owner, PreparedDevice]]:
        return [
            (held.owner, device)
            for held, device in self.holders_of(card)
            if held.owner.uid != owner.uid
        ]


def _divided_by(record: Record) -> frozenset[PciAddress]:
    """The cards that are in DRS mode, or about to be, after the record."""
    return frozenset(
        device.card
        for device in record.devices
        if device.mode is Mode.DRS and not device.admin_access
    )


def _exclude(owner: Owner, wanted: PreparedDevice, holder: Owner, held: PreparedDevice) -> None:
    if wanted.card != held.card:
        return
    grants = isinstance(owner, ContainerAllocation) and isinstance(holder, ContainerAllocation)
    if grants and wanted.mode is Mode.WHOLE and held.mode is Mode.WHOLE:
        # The kubelet gives the card of one container to another one if the former has ended, or is
        # an init container of the same pod.
        return
    if (wanted.admin_access or held.admin_access) and wanted.device_name != held.device_name:
        return  # a container may see a card with administrative access in any mode
    if wanted.mode is held.mode and wanted.mode is not Mode.WHOLE:
        if wanted.share_id is None or wanted.share_id != held.share_id:
            return
        clash = f"share {wanted.share_id} of device {wanted.device_name}"
    else:
        clash = f"card {wanted.card}"
    if holder.uid == owner.uid:
        raise Refused(
            f"{owner.title} was allocated {clash} twice, as {held.device_name} for request "
            f"{held.request!r} and as {wanted.device_name} for request {wanted.request!r}",
            remedy=owner.renewal,
        )
    raise DeviceHeld(
        f"{clash} cannot be given to {owner.title} in mode {wanted.mode}: {holder.title} "
        f"(UID {holder.uid}) holds it in mode {held.mode}",
        [holder.uid],
        remedy="the card is free once the pods that use it have ended",
    )


def _count(
    owner: Owner,
    wanted: list[PreparedDevice],
    others: list[tuple[Owner, PreparedDevice]],
    total: int,
) -> None:
    """Raise Refused for more than the rest; a device without an amount has the whole capacity."""
    asked = sum(device.amount or total for device in wanted)
    taken = taken_of(others, total)
    if taken_of([*others, *((owner, device) for device in wanted)], total) <= total:
        return
    unit = "slices" if wanted[0].mode is Mode.SHARED else "units of size"
    amounts: dict[str, int] = {}
    for holder, device in others:
        amounts[holder.title] = amounts.get(holder.title, 0) + (device.amount or total)
    held = ", ".join(f"{title} holds {amount}" for title, amount in amounts.items())
    raise DeviceHeld(
        f"{owner.title} was allocated {asked} of the {total} {unit} of card {wanted[0].card}, and "
        f"{total - taken} are left" + (f": {held}" if held else ""),
        [holder.uid for holder, _ in others],
        remedy=owner.renewal,
    )


def taken_of(devices: Iterable[tuple[Owner, PreparedDevice]], total: int) -> int:
    """How much of a card is in use. A slice that the kubelet handed on from one container to
    another counts once. An instance cannot be handed on in part, so sizes add up."""
    slices = set()
    taken = 0
    for owner, device in devices:
        if isinstance(owner, ContainerAllocation) and device.mode is Mode.SHARED:
            slices |= set(owner.devices)
        else:
            taken += device.amount or total
    return taken + len(slices)
