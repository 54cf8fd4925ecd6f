"""What efsmi says of each PCI address. Pure. An address or index that two cards claim is given to
neither."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace

import msgspec

from dra_driver.hardware.efsmi.listing import ListedCard
from dra_driver.hardware.efsmi.query import QueriedCard
from dra_driver.hardware.efsmi.summary import SummaryRow
from dra_driver.model.card import Virtualization
from dra_driver.model.errors import HardwareError
from dra_driver.model.pci import PciAddress


class EfsmiUnclear(HardwareError):
    """``efsmi`` says of a card what is cut off, contradicts itself, or is not understood."""


class Survey(msgspec.Struct, frozen=True):
    """`cards` have an address of their own. `failures` says why an address has no card here: efsmi
    speaks of it (EfsmiUnclear), or does not answer for it (EfsmiHung if a call for it took its
    whole limit, else EfsmiFailed). `stray` is what efsmi says of cards that have no address. `rows`
    of the summary have the modes; None where each card was asked by itself, as the summary is of
    all cards."""

    cards: dict[PciAddress, QueriedCard]
    failures: dict[PciAddress, HardwareError]
    stray: list[str]
    rows: tuple[SummaryRow, ...] | None = None

    def card(self, address: PciAddress) -> QueriedCard:
        """Raises its failure; HardwareError if efsmi does not list the card, EfsmiUnclear if it
        shows the card in `rows`, so that the list was cut off."""
        if address in self.cards:
            return self.cards[address]
        if address in self.failures:
            raise self.failures[address]
        is_shown = any(row.slot == _slot(address) for row in self.rows or ())
        doubts = [*(["its summary shows the card"] if is_shown else ()), *self.stray]
        kind = EfsmiUnclear if doubts else HardwareError
        raise kind("; ".join([f"efsmi does not list card {address}", *doubts]))


def by_address(queried: Sequence[QueriedCard]) -> Survey:
    """What the blocks of ``-q`` say of each address."""
    found = Survey({}, {}, [])
    indexes = Counter(card.index for card in queried)
    claims: dict[PciAddress, list[QueriedCard]] = defaultdict(list)
    for card in queried:
        if card.address is not None:
            claims[card.address].append(card)
        else:
            doubt = "; ".join(card.unclear) or "neither `efsmi -q` nor `-L` tells its address"
            found.stray.append(f"of DEV ID {card.index} {doubt}")
    for address, cards in claims.items():
        first = cards[0]
        if len(cards) > 1:
            found.failures[address] = EfsmiUnclear(
                f"`efsmi -q` gives PCI address {address} to several cards (DEV ID "
                f"{' and '.join(str(card.index) for card in cards)})"
            )
        elif indexes[first.index] > 1:
            found.failures[address] = EfsmiUnclear(
                f"`efsmi -q` prints DEV ID {first.index} for card {address} and for another"
            )
        else:
            found.cards[address] = first
    return found


def row_of(address: PciAddress, index: int, rows: Sequence[SummaryRow]) -> SummaryRow:
    """The card's row of the summary, found by index. The summary's part of the address must agree,
    because indexes can move between two calls. Raises EfsmiUnclear if no row shows the card."""
    found = [row for row in rows if row.index == index]
    name = f"card {address} (index {index})"
    if len(found) != 1:
        often = "several times" if found else "not at all"
        raise EfsmiUnclear(f"efsmi's summary shows {name} {often}")
    (row,) = found
    if row.slot != _slot(address):
        raise EfsmiUnclear(
            f"efsmi's summary shows {row.slot} at index {index}, where card {address} "
            "was a moment ago",
            remedy="the agent looks again by itself",
        )
    return row


def mode_of(address: PciAddress, index: int, rows: Sequence[SummaryRow]) -> Virtualization:
    """The card's mode in the summary. Raises EfsmiUnclear if it is not known."""
    row = row_of(address, index, rows)
    if row.mode is None:
        raise EfsmiUnclear(
            f"efsmi's summary shows no known GCU Virt for card {address} (index {index}), but "
            f"'{row.word}'",
            remedy="report this efsmi version; known are Disable, DRS and SRIOV",
        )
    return row.mode


def _slot(address: PciAddress) -> str:
    """As the summary shows the address, without the domain that it shortens."""
    return str(address).partition(":")[2]


def located(card: QueriedCard, listed: Sequence[ListedCard]) -> QueriedCard:
    """The block of ``-q`` with the address that ``-L`` has for its index, where it has none. What
    was printed and not understood is not replaced by what another table says."""
    if card.address is not None or any(doubt.startswith("PCIe Info") for doubt in card.unclear):
        return card
    found = [row for row in listed if row.index == card.index]
    if len(found) != 1:
        return card
    return replace(card, address=found[0].address, uuid=card.uuid or found[0].uuid)
