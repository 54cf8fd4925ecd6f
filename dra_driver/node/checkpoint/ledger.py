"""Who holds which device: a pure state, folded from the journal's records.

Here is the last line of defence: whatever was allocated, by whomever, a card is in one mode at a
time and nothing of it is given twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from dra_driver.model.claim import ClaimRef
from dra_driver.model.errors import Refused
from dra_driver.model.instance import Instance
from dra_driver.model.mode import Mode
from dra_driver.model.owner import ContainerAllocation, Owner
from dra_driver.model.pci import PciAddress
from dra_driver.node.checkpoint.records import (
    CardKind,
    Kind,
    PreparedDevice,
    Record,
    card_record,
    read,
)


class State(StrEnum):
    """How far a holding is."""

    PREPARE_STARTED = "intent"
    PREPARE_COMPLETED = "prepared"
    UNPREPARE_STARTED = "unpreparing"


_STATES: Final = frozenset(state.value for state in State)


@dataclass(frozen=True, slots=True)
class PreparedClaim:
    """An owner with its devices. ``records`` are the JSON objects that made it, in their order:
    the last of each kind known here, and all of other kinds, as they must be kept."""

    owner: Owner
    state: State
    devices: tuple[PreparedDevice, ...]
    records: tuple[Mapping[str, Any], ...]

    @property
    def cards(self) -> frozenset[PciAddress]:
        """The cards that the owner holds something of; administrative access holds nothing."""
        return frozenset(hold.card for hold in self.devices if not hold.admin_access)


@dataclass(frozen=True, slots=True)
class Ledger:
    """All holdings by their owners' UIDs. Never altered: `apply` gives a new one.

    ``switched`` are the cards whose DRS mode is ours: we switched it on, or were about to, and
    have not switched it off since.
    """

    claims: Mapping[str, PreparedClaim] = field(default_factory=dict)
    switched: frozenset[PciAddress] = frozenset()
    unknown: tuple[Mapping[str, Any], ...] = ()

    def apply(self, record: Record) -> Ledger:
        """The state after `record`."""
        if record.card is not None:
            return self._apply_to_card(record.kind, record.card)
        if record.owner is None:
            return replace(self, unknown=(*self.unknown, record.raw))
        uid = record.owner.uid
        held = self.claims.get(uid)
        if record.kind == Kind.FORGOTTEN:
            left = dict(self.claims)
            left.pop(uid, None)
            return Ledger(left, self.switched, self.unknown)
        kept = held.records if held else ()
        if record.kind in _STATES:
            kept = tuple(raw for raw in kept if raw["kind"] != record.kind)
            state = State(record.kind)
            holding = PreparedClaim(record.owner, state, record.holds, (*kept, record.raw))
        elif held is not None:
            holding = replace(held, records=(*kept, record.raw))
        else:
            return replace(self, unknown=(*self.unknown, record.raw))
        switched = self.switched | _divided_by(record)
        return Ledger({**self.claims, uid: holding}, switched, self.unknown)

    def raw_records(self) -> Iterator[Mapping[str, Any]]:
        """The fewest records that lead to this state again, unknown ones included.

        Those of unknown kinds follow: only a claim that is known already can keep them.
        """
        divided: set[PciAddress] = set()
        for holding in self.claims.values():
            for raw in sorted(holding.records, key=lambda raw: raw["kind"] not in _STATES):
                divided |= _divided_by(read(raw))
                yield raw
        for card in sorted(self.switched):
            yield card_record(CardKind.DRS_ON, card).raw
        # An earlier record of an owner may tell of a card that it has no more.
        for card in sorted(divided - self.switched):
            yield card_record(CardKind.DRS_OFF, card).raw
        yield from self.unknown

    def holders_of(self, card: PciAddress) -> tuple[tuple[PreparedClaim, PreparedDevice], ...]:
        """Who holds something of the card, and what; administrative access holds nothing."""
        suffix = f"-{card.slug}"  # a device's name ends so; many are looked at for each claim
        return tuple(
            (holding, hold)
            for holding in self.claims.values()
            for hold in holding.devices
            if hold.device.endswith(suffix) and not hold.admin_access
        )

    def drs_holders_of(self, card: PciAddress) -> frozenset[str]:
        """Who holds something of the card in DRS mode, by UID."""
        holders = self.holders_of(card)
        return frozenset(each.owner.uid for each, hold in holders if hold.mode is Mode.DRS)

    def promised_slices(self, card: PciAddress) -> int | None:
        """Into how many slices the card was cut for those who hold some of them: the most that any
        of them was counted by. None where nobody holds any, or the records do not say it."""
        shared = (hold for _, hold in self.holders_of(card) if hold.mode is Mode.SHARED)
        return max((hold.total for hold in shared if hold.total is not None), default=None)

    def instances(self, card: PciAddress) -> tuple[Instance, ...]:
        """The DRS instances of the card that are held."""
        return tuple(
            hold.instance for _, hold in self.holders_of(card) if hold.instance is not None
        )

    def claims_named(self, namespace: str, name: str) -> tuple[PreparedClaim, ...]:
        """Holdings of claims of that name; several when one was deleted and made anew."""
        return tuple(
            holding
            for holding in self.claims.values()
            if isinstance(holding.owner, ClaimRef)
            and (holding.owner.namespace, holding.owner.name) == (namespace, name)
        )

    def admit(
        self, owner: Owner, holds: Iterable[PreparedDevice], totals: Mapping[str, int] | None = None
    ) -> None:
        """Raise Refused, naming card and holder, unless the owner may hold all of `holds`.

        `totals` says, by device, how much of its capacity there is; a device without one is not
        counted. What the owner itself holds from before does not count: `holds` replace it.
        """
        wanted = tuple(holds)
        for at, hold in enumerate(wanted):
            others = [] if hold.admin_access else self._others(owner, hold.card)
            for holder, held in [*others, *((owner, each) for each in wanted[:at])]:
                _exclude(owner, hold, holder, held)
        for device, total in (totals or {}).items():
            asked = [hold for hold in wanted if hold.device == device]
            if asked:
                others = self._others(owner, asked[0].card)
                _count(owner, asked, others, total)

    def _others(self, owner: Owner, card: PciAddress) -> list[tuple[Owner, PreparedDevice]]:
        return [
            (holding.owner, hold)
            for holding, hold in self.holders_of(card)
            if holding.owner.uid != owner.uid
        ]

    def _apply_to_card(self, kind: str, card: PciAddress) -> Ledger:
        if kind == CardKind.DRS_ON:
            return replace(self, switched=self.switched | {card})
        return replace(self, switched=self.switched - {card})


def _divided_by(record: Record) -> frozenset[PciAddress]:
    """The cards that are in DRS mode, or about to be, where the record is the last word."""
    return frozenset(
        hold.card for hold in record.holds if hold.mode is Mode.DRS and not hold.admin_access
    )


def _exclude(owner: Owner, wanted: PreparedDevice, holder: Owner, held: PreparedDevice) -> None:
    if wanted.card != held.card or _is_handed_on(owner, wanted, holder, held):
        return
    if (wanted.admin_access or held.admin_access) and wanted.device != held.device:
        return  # to see a card beside what one holds of it is no second mode
    if wanted.mode is held.mode and wanted.mode is not Mode.WHOLE:
        if wanted.share_id is None or wanted.share_id != held.share_id:
            return
        clash = f"share {wanted.share_id} of device {wanted.device}"
    else:
        clash = f"card {wanted.card}"
    if holder.uid == owner.uid:
        raise Refused(
            f"{owner.title} was allocated {clash} twice, as {held.device} for request "
            f"{held.request!r} and as {wanted.device} for request {wanted.request!r}",
            remedy=owner.renewal,
        )
    raise Refused(
        f"{clash} cannot be given to {owner.title} in mode {wanted.mode}: {holder.title} "
        f"(UID {holder.uid}) holds it in mode {held.mode}",
        remedy="the card is free once the pods that use it have ended",
    )


def _is_handed_on(
    owner: Owner, wanted: PreparedDevice, holder: Owner, held: PreparedDevice
) -> bool:
    """Whether the kubelet gave a whole card of one container to another one. It does so when the
    former has ended, or is an init container of the same pod: its record is the truth."""
    grants = isinstance(owner, ContainerAllocation) and isinstance(holder, ContainerAllocation)
    return grants and wanted.mode is Mode.WHOLE and held.mode is Mode.WHOLE


def _count(
    owner: Owner,
    wanted: list[PreparedDevice],
    others: list[tuple[Owner, PreparedDevice]],
    total: int,
) -> None:
    """Refuse what is more than is left; a hold of unknown amount takes all there is."""
    asked = sum(hold.amount or total for hold in wanted)
    taken = _taken(others, total)
    if _taken([*others, *((owner, hold) for hold in wanted)], total) <= total:
        return
    unit = "slices" if wanted[0].mode is Mode.SHARED else "units of size"
    amounts: dict[str, int] = {}
    for holder, hold in others:
        amounts[holder.title] = amounts.get(holder.title, 0) + (hold.amount or total)
    held = ", ".join(f"{title} holds {amount}" for title, amount in amounts.items())
    raise Refused(
        f"{owner.title} was allocated {asked} of the {total} {unit} of card {wanted[0].card}, and "
        f"{total - taken} are left" + (f": {held}" if held else ""),
        remedy=owner.renewal,
    )


def _taken(holds: Iterable[tuple[Owner, PreparedDevice]], total: int) -> int:
    """How much of a card is held. A slice that the kubelet handed on from one container to another
    is one; an instance cannot be handed on in part, so sizes add up."""
    slices = set()
    taken = 0
    for owner, hold in holds:
        if isinstance(owner, ContainerAllocation) and hold.mode is Mode.SHARED:
            slices |= set(owner.devices)
        else:
            taken += hold.amount or total
    return taken + len(slices)
