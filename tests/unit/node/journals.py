"""Small journals for tests."""

from __future__ import annotations

from pathlib import Path

from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.effects import NO_FAULTS, Effects
from dra_driver.node.checkpoint import frames
from dra_driver.node.checkpoint.journal import Journal
from dra_driver.node.checkpoint.records import ClaimStep, Record, decode, record
from tests.unit.node.world import hold

CAPACITY = 1 << 13


def ref(number: int) -> ClaimRef:
    return ClaimRef("team", f"claim-{number}", f"uid-{number}")


def prepared(number: int) -> Record:
    return record(ClaimStep.PREPARE_COMPLETED, ref(number), (hold(number % 4),))


def forgotten(number: int) -> Record:
    return record(ClaimStep.FORGOTTEN, ref(number), ())


def opened(directory: Path, effects: Effects = NO_FAULTS) -> Journal:
    journal = Journal(directory, effects=effects, capacity=CAPACITY)
    journal.open()
    if not journal.is_complete:
        journal.mark_rebuilt(journal.losses)
    return journal


def uids(journal: Journal) -> set[str]:
    return set(journal.snapshot().claims)


def records_in(path: Path) -> list[Record]:
    return [decode(payload) for payload in frames.scan(path.read_bytes()).payloads]
