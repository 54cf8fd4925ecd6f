"""Reads the ledger from a journal that an agent may have open. `Journal.open` would rewrite it."""

from __future__ import annotations

from pathlib import Path

from dra_driver.model.errors import InvalidValue, JournalError
from dra_driver.node.checkpoint import frames
from dra_driver.node.checkpoint.ledger import Ledger
from dra_driver.node.checkpoint.records import decode


def read_ledger(directory: Path) -> Ledger:
    """All holdings; none where there is no journal. Nobody may be writing to it meanwhile.

    A last record that was not written completely is left out. Raises JournalError where the file
    cannot be read, or not all of it.
    """
    path = directory / "journal"
    try:
        found = frames.scan(path.read_bytes())
    except FileNotFoundError:
        return Ledger()
    except OSError as error:
        raise JournalError(f"the journal {path} cannot be read: {error.strerror}") from error
    damaged = JournalError(f"the journal {path} is damaged")
    try:
        records = [decode(payload) for payload in found.payloads]
    except InvalidValue as error:
        raise damaged from error
    if found.damage or not records or records[0].kind != "header":
        raise damaged
    if len(records) - 1 < records[0].raw.get("records", 0):
        raise damaged
    ledger = Ledger()
    for record in records:
        if record.kind != "header":
            ledger = ledger.apply(record)
    return ledger
