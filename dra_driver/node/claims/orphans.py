"""What ended claims left on cards that failed: on record until it is taken away. Pure.

A remnant is recorded as being unprepared, so recovery and each look at the node go on with it, and
nobody is given what it holds.
"""

from __future__ import annotations

from dra_driver.model.claim import ClaimRef
from dra_driver.model.owner import Owner, Remnant
from dra_driver.model.pci import PciAddress
from dra_driver.node.checkpoint.ledger import Ledger
from dra_driver.node.checkpoint.records import Hold, Kind, Record, record


def remnant(ledger: Ledger, owner: Owner, holds: tuple[Hold, ...]) -> tuple[Record, ...]:
    """The record, if any, by which what `owner` had and could not be taken away is nobody's."""
    if not holds:
        return ()
    assert isinstance(owner, ClaimRef)
    return (record(Kind.UNPREPARING, Remnant.of(owner, ledger.holdings), holds),)


def remnant_cards(ledger: Ledger) -> frozenset[PciAddress]:
    """The cards on which something was left."""
    return frozenset(
        card
        for holding in ledger.holdings.values()
        if isinstance(holding.owner, Remnant)
        for card in holding.cards
    )
