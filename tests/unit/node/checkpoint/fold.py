"""The ledger that records of the journal add up to."""

from __future__ import annotations

from dra_driver.node.checkpoint.ledger import Ledger
from dra_driver.node.checkpoint.records import Record, decode, encode


def ledger(*records: Record) -> Ledger:
    state = Ledger()
    for entry in records:
        state = state.apply(entry)
    return state


def refolded(state: Ledger) -> Ledger:
    return ledger(*(decode(encode(raw)) for raw in state.raw_records()))
