"""The journal: what is prepared, durable before a call is answered.

One append-only log (`frames`, `records`), shared by all threads of the agent and by two agents
during a rolling update. docs/dev/journal.md has a picture.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from dra_driver.model.effects import NO_FAULTS, Effects
from dra_driver.model.errors import InvalidValue, JournalError
from dra_driver.node.checkpoint import frames
from dra_driver.node.checkpoint.ledger import Ledger
from dra_driver.node.checkpoint.logfile import JournalFile
from dra_driver.node.checkpoint.records import Record, decode, encode

logger = logging.getLogger(__name__)

# Raise it when the meaning of a record changes. New kinds and fields need no new version: agents
# that do not know them preserve them.
_VERSION: Final = 1
_HEADER: Final = {"kind": "header", "format": "gcu-dra-journal", "version": _VERSION}

# In the header from a loss until `Journal.mark_rebuilt`: if an agent is killed while it rebuilds,
# the journal can be read without errors, but records are still missing.
_INCOMPLETE: Final = "incomplete"

# How many records a file was made with. All of those were synced, so a missing one is damage, even
# if it seems to be torn.
_RECORDS: Final = "records"

Decision = Callable[[Ledger], Iterable[Record]]


OnDamaged = Callable[[Path], None]
"""Called with the second name of a damaged journal. Neither raises nor waits."""


class Journal:
    """Records in a state directory, folded into a `Ledger`.

    Call `open` first: only it detects that the journal was lost. Until it has succeeded, and while
    the directory cannot be used, all methods raise JournalError. A failed write has either happened
    completely or not at all, and may be repeated. Thread-safe.
    """

    def __init__(
        self,
        directory: Path,
        *,
        effects: Effects = NO_FAULTS,
        capacity: int = 1 << 20,
        on_damaged: OnDamaged = lambda _damaged: None,
    ) -> None:
        """The file is compacted when it has `capacity` bytes."""
        self._file = JournalFile(directory, effects=effects, capacity=capacity)
        self._on_damaged = on_damaged
        self._ledger = Ledger()
        self._header: dict[str, Any] = {}
        self._is_open = False
        self._is_damaged = False  # what is in place, until it is replaced
        self.losses = 0
        """How often this process found that records are lost."""
        self.was_missing = False
        """Whether `open` found no file: as on a new node, or after a loss."""
        self._mutex = threading.Lock()
        self._syncing = threading.Lock()
        # Tickets count records: written to the file, read from another process, made durable.
        self._written = 0
        self._foreign = 0
        self._durable = 0

    def open(self) -> None:
        """Read the journal, or create one, and compact it. Call it again if it failed."""
        with self._mutex, self._file.locked():
            found = self._file.exists()
            self.was_missing |= not found  # a retry of the start finds the new file
            try:
                damaged = self._reload()
            except JournalError:
                # The node's pods must not wait until a person has repaired the disk: the records
                # are rebuilt from the CDI files.
                logger.exception("the journal cannot be read")
                damaged = True
            # It stays in place until it is rewritten, which may fail on a full disk.
            copy = self._file.quarantine() if damaged else None
            if damaged or not found:
                self._mark_incomplete()
            try:
                self._compact()
            except JournalError:
                # On a full disk the present file can still be written, because it is preallocated.
                # Pods must be able to terminate.
                if _INCOMPLETE in self._header or self._file.needs_rewrite:
                    raise
                logger.exception("the journal is not compacted")
            self._is_open = True
            if copy is not None:
                self._on_damaged(copy)

    def close(self) -> None:
        """Close the files; nothing is lost without it. A later call opens them again."""
        with self._mutex, self._syncing:  # the descriptor may be reused, so no thread may use it
            self._file.close()

    def snapshot(self) -> Ledger:
        """The present state, with the records of other processes, which are made durable first."""
        with self._mutex:
            self._check_open()
            if not self._file.is_known():
                with self._file.locked():
                    self._refresh()
            ledger, ticket = self._ledger, self._foreign
        self._make_durable(ticket)
        return ledger

    def commit(self, decide: Decision) -> None:
        """Write the records that `decide` returns for the present state.

        No other thread or process writes between the state and the records, so a rule that `decide`
        checks stays true. If it raises, nothing is written. The records are durable on return.
        """

        def append() -> None:
            records = tuple(decide(self._ledger))
            self._append(*(record.raw for record in records))
            for record in records:
                self._ledger = self._ledger.apply(record)

        self._write(append)

    def write(self, record: Record) -> None:
        """Write a record without a rule to check; durable on return."""
        self.commit(lambda _: (record,))

    @property
    def is_complete(self) -> bool:
        """Whether no record is known to be lost, or all lost records were rebuilt."""
        # The header is empty while the journal is read again.
        return self._is_open and bool(self._header) and _INCOMPLETE not in self._header

    def mark_rebuilt(self, losses: int) -> None:
        """Mark the journal as complete, if no further loss was found since `losses` was read."""

        def append() -> None:
            if self.losses == losses:
                self._header.pop(_INCOMPLETE, None)
                self._append(self._header)

        self._write(append)

    def _check_open(self) -> None:
        if not self._is_open:
            raise JournalError("the journal has not been read since the agent's start")

    def _write(self, append: Callable[[], None]) -> None:
        """Append to what was written before; all is durable on return."""
        with self._mutex:
            self._check_open()
            with self._file.locked():
                self._refresh()
                append()
                ticket = self._written
        self._make_durable(ticket)

    def _mark_incomplete(self) -> None:
        self._header = {**_merged(self._header), _INCOMPLETE: True}
        self.losses += 1

    def _append(self, *raws: Mapping[str, Any]) -> None:
        content = b"".join(frames.encode(encode(raw)) for raw in raws)
        if not self._file.fits(content):
            self._compact(room_for=len(content))
        self._file.append(content)
        self._written += len(raws)

    def _make_durable(self, ticket: int) -> None:
        """Return when the record of that ticket is durable.

        While one thread syncs, others wait here. Then the first of them syncs all records that are
        in the file by then, and the others need not sync.
        """
        if self._durable >= ticket:  # need not wait for the sync of later records
            return
        with self._syncing:
            if self._durable >= ticket:
                return
            written = self._written
            self._file.sync()
            self._durable = written

    def _refresh(self) -> None:
        """Read what another process has written since the last read."""
        if self._file.is_known():
            return
        if not self._file.exists():
            logger.error("the journal was removed; it is written again from memory")
            self._compact()
            return
        found = self._file.read_new()
        self._is_damaged |= self._reload() if found is None else self._take(found)
        if self._is_damaged:
            self._file.needs_rewrite = True  # until all of this has succeeded
            copy = self._file.quarantine()
            self._mark_incomplete()
            self._compact()
            self._is_damaged = False
            self._on_damaged(copy)
        elif self._file.needs_rewrite:
            self._compact()

    def _reload(self) -> bool:
        self._ledger = Ledger()
        self._header = {}
        with self._syncing:  # `read_all` closes the file, which a thread may be syncing
            found = self._file.read_all()
        damaged = self._take(found)
        headless = not self._header
        self._header = self._header or dict(_HEADER)
        # Without a header, such as an empty file: it was cut, or never was a journal.
        return damaged or (headless and self._file.exists())

    def _take(self, found: frames.Scan) -> bool:
        """Apply what was read; returns whether some of it was damaged."""
        damaged = bool(found.damage)
        for at, payload in enumerate(found.payloads, 1):
            try:
                record = decode(payload)
            except InvalidValue:
                logger.exception("the journal has a record that cannot be read")
                damaged = True
                continue
            if record.kind == "header":
                made_with = record.raw.get(_RECORDS)
                damaged |= type(made_with) is int and len(found.payloads) - at < made_with
                self._header = _merged(record.raw)
            else:
                self._ledger = self._ledger.apply(record)
            self._written += 1
            self._foreign = self._written
        return damaged

    def _compact(self, *, room_for: int = 0) -> None:
        held = list(self._ledger.raw_records())
        raws = [{**self._header, _RECORDS: len(held)}, *held]
        content = b"".join(frames.encode(encode(raw)) for raw in raws)
        with self._syncing:
            self._file.replace(content, room_for)
            # The new file was synced with all that had been written to the old one.
            self._durable = self._written


def _merged(header: Mapping[str, Any]) -> dict[str, Any]:
    """The header for a later position, or for another file."""
    version = header.get("version")
    newest = max(_VERSION, version if isinstance(version, int) else 0)
    merged = {**header, **_HEADER, "version": newest}
    merged.pop(_RECORDS, None)
    return merged
