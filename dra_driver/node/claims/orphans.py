"""What ended claims left on cards that failed: on record until it is taken away. Pure.

A remnant is recorded as being unprepared, so recovery and each look at the node go on with it, and
nobody is given what it holds.
"""

from __future__ import annotations

from dra_driver.model.claim import ClaimRef
from dra_driver.model.owner import Orphan, Owner
from dra_driver.model.pci import PciAddress
from dra_driver.node.checkpoint.ledger import Ledger
from dra_driver.node.checkpoint.records import Kind, PreparedDevice, Record, record


def orphan_records(
    ledger: Ledger, owner: Owner, holds: tuple[PreparedDevice, ...]
) -> tuple[Record, ...]:
    """The record, if any, by which what `owner` had and could not be taken away is nobody's."""
    if not holds:
        return ()
    assert isinstance(owner, ClaimRef)
    return (record(Kind.UNPREPARE_STARTED, Orphan.of(owner, ledger.claims), holds),)


def cards_with_orphans(ledger: Ledger) -> frozenset[PciAddress]:
    """The cards on which something was left."""
    return frozenset(
        card
        for holding in ledger.claims.values()
        if isinstance(holding.owner, Orphan)
        for card in holding.cards
    )
