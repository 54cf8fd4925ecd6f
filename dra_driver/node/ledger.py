"""Which claim holds which device: a pure state, folded from the journal's records.

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
from dra_driver.model.mode import Mode
from dra_driver.model.pci import PciAddress
from dra_driver.node.records import Hold, Kind, Record


class State(StrEnum):
    """How far a claim is."""

    INTENT = "intent"
    PREPARED = "prepared"
    UNPREPARING = "unpreparing"


_STATES: Final = frozenset(state.value for state in State)


@dataclass(frozen=True, slots=True)
class Holding:
    """A claim with its devices. ``records`` are the JSON objects that made it, in their order:
    the last of each kind known here, and all of other kinds, as they must be kept."""

    claim: ClaimRef
    state: State
    holds: tuple[Hold, ...]
    records: tuple[Mapping[str, Any], ...]

    @property
    def cards(self) -> frozenset[PciAddress]:
        """The cards that the claim holds something of."""
        return frozenset(hold.card for hold in self.holds)


@dataclass(frozen=True, slots=True)
class Ledger:
    """All holdings by claim UID. Never altered: `apply` gives a new one."""

    claims: Mapping[str, Holding] = field(default_factory=dict)
    unknown: tuple[Mapping[str, Any], ...] = ()

    def apply(self, record: Record) -> Ledger:
        """The state after `record`."""
        if record.claim is None:
            return replace(self, unknown=(*self.unknown, record.raw))
        uid = record.claim.uid
        held = self.claims.get(uid)
        if record.kind == Kind.FORGOTTEN:
            return replace(self, claims={u: h for u, h in self.claims.items() if u != uid})
        kept = held.records if held else ()
        if record.kind in _STATES:
            kept = tuple(raw for raw in kept if raw["kind"] != record.kind)
            state = State(record.kind)
            holding = Holding(record.claim, state, record.holds, (*kept, record.raw))
        elif held is not None:
            holding = replace(held, records=(*kept, record.raw))
        else:
            return replace(self, unknown=(*self.unknown, record.raw))
        return replace(self, claims={**self.claims, uid: holding})

    def raw_records(self) -> Iterator[Mapping[str, Any]]:
        """The fewest records that lead to this state again, unknown ones included.

        Those of unknown kinds follow: only a claim that is known already can keep them.
        """
        for holding in self.claims.values():
            yield from sorted(holding.records, key=lambda raw: raw["kind"] not in _STATES)
        yield from self.unknown

    def holders_of(self, card: PciAddress) -> tuple[tuple[Holding, Hold], ...]:
        """Who holds something of the card, and what."""
        return tuple(
            (holding, hold)
            for holding in self.claims.values()
            for hold in holding.holds
            if hold.card == card
        )

    def named(self, namespace: str, name: str) -> tuple[Holding, ...]:
        """Holdings of claims of that name; several when one was deleted and made anew."""
        return tuple(
            holding
            for holding in self.claims.values()
            if (holding.claim.namespace, holding.claim.name) == (namespace, name)
        )

    def admit(self, claim: ClaimRef, holds: Iterable[Hold]) -> None:
        """Raise Refused, naming card and holder, unless the claim may hold all of `holds`.

        What the claim itself holds from before does not count: `holds` replace it.
        """
        granted: list[tuple[ClaimRef, Hold]] = []
        for wanted in holds:
            others = [
                (holding.claim, hold)
                for holding, hold in self.holders_of(wanted.card)
                if holding.claim.uid != claim.uid
            ]
            for holder, hold in [*others, *granted]:
                _exclude(claim, wanted, holder, hold)
            granted.append((claim, wanted))


def _exclude(claim: ClaimRef, wanted: Hold, holder: ClaimRef, held: Hold) -> None:
    if wanted.card != held.card:
        return
    if wanted.mode is held.mode and wanted.mode is not Mode.WHOLE:
        if wanted.share_id is None or wanted.share_id != held.share_id:
            return
        clash = f"share {wanted.share_id} of device {wanted.device}"
    else:
        clash = f"card {wanted.card}"
    if holder.uid == claim.uid:
        raise Refused(
            f"claim {claim} was allocated {clash} twice, as {held.device} for request "
            f"{held.request!r} and as {wanted.device} for request {wanted.request!r}",
            remedy="delete the claim and let it be allocated anew",
        )
    raise Refused(
        f"{clash} cannot be given to claim {claim} in mode {wanted.mode}: claim {holder} "
        f"(UID {holder.uid}) holds it in mode {held.mode}",
        remedy="see which pod uses that claim; the card is free once it has ended",
    )
