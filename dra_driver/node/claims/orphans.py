"""Devices that an ended claim left on a card that failed. Pure.

An orphan is recorded as an owner that is being unprepared: recovery and each reconciliation try
again to destroy it, and no other owner gets its devices (ADR 20).
"""

from __future__ import annotations

from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.claims.owner import Orphan, Owner
from dra_driver.model.pci import PciAddress
from dra_driver.node.checkpoint.ledger import Ledger
from dra_driver.node.checkpoint.records import ClaimStep, PreparedDevices, Record, record


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
