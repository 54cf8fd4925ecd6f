"""The journal: what is prepared, durable before anybody gets an answer.

One append-only log (`frames`, `records`), shared by all threads of the agent and by two agents
during a rolling update. docs/dev/journal.md has a picture.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from dra_driver.model.effects import Effects
from dra_driver.model.errors import InvalidValue, JournalError
from dra_driver.node.checkpoint import frames
from dra_driver.node.checkpoint.ledger import Ledger
from dra_driver.node.checkpoint.logfile import LogFile
from dra_driver.node.checkpoint.records import (
    Record,
    counted_header,
    decode,
    encode,
    is_short,
    uncounted_header,
)

logger = logging.getLogger(__name__)

# Raise it when a record changes its meaning; new kinds and fields alone need no new version,
# as both are kept by agents that do not know them.
_VERSION: Final = 1
_HEADER: Final = {"kind": "header", "format": "gcu-dra-journal", "version": _VERSION}

# In the header from a loss until `Journal.rebuilt`: an agent that is killed while it rebuilds
# leaves a journal that reads well, and lacks what was lost all the same.
_INCOMPLETE: Final = "incomplete"

Decision = Callable[[Ledger], Iterable[Record]]


@dataclass(frozen=True, slots=True)
class OpenResult:
    """What `Journal.open` found: whether there was a journal, where a damaged one is kept, and
    whether it is complete: nothing was ever lost, or what was lost has been rebuilt."""

    found: bool
    quarantined: Path | None
    complete: bool


class OnDamaged(Protocol):
    """Called with the name under which a damaged journal is kept. Neither raises nor waits."""

    def __call__(self, kept: Path, /) -> None: ...


def ignore_damaged(_kept: Path, /) -> None:
    """For tests and programs that report nothing."""


class Journal:
    """Records in a state directory, folded into a `Ledger`.

    Call `open` first: only it detects that the journal was lost or damaged. Until it has succeeded,
    and while the directory cannot be used, all methods raise JournalError; a caller may try again,
    and then finds either the state before or the state after. Thread-safe.
    """

    def __init__(
        self,
        directory: Path,
        *,
        effects: Effects | None = None,
        capacity: int = 1 << 20,
        on_damaged: OnDamaged = ignore_damaged,
    ) -> None:
        """The file has room for `capacity` bytes before it is compacted."""
        self._file = LogFile(directory, effects=effects or Effects(), capacity=capacity)
        self._on_damaged = on_damaged
        self._ledger = Ledger()
        self._header: dict[str, Any] = {}
        self._is_open = False
        self._mutex = threading.Lock()
        self._syncing = threading.Lock()
        # Tickets count records: written to the file, read from another process, made durable.
        self._written = 0
        self._foreign = 0
        self._durable = 0

    def open(self) -> OpenResult:
        """Read the journal, or create one, and compact it. Call it again if it failed."""
        with self._mutex, self._file.locked():
            found = self._file.exists()
            quarantined: Path | None = None
            try:
                damaged = self._reload()
            except JournalError as error:
                # A disk that cannot read the file must not make the node's pods wait for a person:
                # the records are rebuilt from the CDI files.
                logger.exception("the journal cannot be read")
                quarantined = self._file.quarantine_unreadable(error)
            else:
                # It stays in place until it is rewritten, which a full disk may not allow yet.
                if damaged:
                    quarantined = self._file.quarantine_in_place()
            if quarantined is not None:
                self._on_damaged(quarantined)
            if not found or quarantined is not None:
                self._header = {**_merged(self._header), _INCOMPLETE: True}
            result = OpenResult(found, quarantined, _INCOMPLETE not in self._header)
            try:
                self._compact()
            except JournalError:
                # On a full disk the present file can still be written to, as it has its length
                # already. Pods must be able to terminate.
                if not result.complete or self._file.needs_rewrite:
                    raise
                logger.exception("the journal stays as long as it is")
            self._is_open = True
        return result

    def close(self) -> None:
        """Close the files; nothing is lost without it. A later call opens them again."""
        with self._mutex, self._syncing:  # no thread is writing to a number that is reused soon
            self._file.close()

    def snapshot(self) -> Ledger:
        """The present state, all of it durable, with what another process has written."""
        with self._mutex:
            self._check_open()
            if not self._file.is_known():
                with self._file.locked():
                    self._refresh()
            ledger, ticket = self._ledger, self._foreign
        self._make_durable(ticket)
        return ledger

    def commit(self, decide: Decision) -> Ledger:
        """Write the records that `decide` returns for the present state.

        Nobody else writes between the state and the records, so a rule that `decide` checks holds.
        Its exceptions pass through, and nothing is written then. Returns the state afterwards, once
        the records are durable.
        """
        with self._mutex, self._locked():
            self._refresh()
            for record in decide(self._ledger):
                self._append(record.raw)
                self._ledger = self._ledger.apply(record)
            ledger, ticket = self._ledger, self._written
        self._make_durable(ticket)
        return ledger

    def write(self, record: Record) -> None:
        """Write a record without a rule to check; durable on return."""
        self.commit(lambda _: (record,))

    @property
    def is_complete(self) -> bool:
        """Whether no record is known to be lost; see `OpenResult`."""
        # There is no header while the journal is read again.
        return self._is_open and bool(self._header) and _INCOMPLETE not in self._header

    def rebuilt(self) -> None:
        """Record that all lost records have been rebuilt."""
        with self._mutex, self._locked():
            self._refresh()
            self._header = {key: self._header[key] for key in self._header if key != _INCOMPLETE}
            self._append(self._header)
            ticket = self._written
        self._make_durable(ticket)

    def _check_open(self) -> None:
        if not self._is_open:
            raise JournalError("the journal has not been read since the agent's start")

    def _locked(self) -> AbstractContextManager[None]:
        self._check_open()
        return self._file.locked()

    def _append(self, raw: Mapping[str, Any]) -> None:
        frame = frames.encode(encode(raw))
        if not self._file.fits(frame):
            self._compact(room_for=len(frame))
        self._file.append(frame)
        self._written += 1

    def _make_durable(self, ticket: int) -> None:
        """Return when the record of that ticket is durable.

        While one thread syncs, others queue here; the first of them then syncs for all whose
        records are in the file by then, and the rest find their work done.
        """
        if self._durable >= ticket:  # without waiting for a sync that is not for us
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
        replaced = self._file.replaced()
        damaged = self._reload() if replaced else self._take(self._file.read_new())
        if damaged:
            self._on_damaged(self._file.quarantine_in_place())
            self._header = {**self._header, _INCOMPLETE: True}
        if damaged or self._file.needs_rewrite:
            self._compact()

    def _reload(self) -> bool:
        self._ledger = Ledger()
        self._header = {}
        with self._syncing:  # the file that a thread may be syncing is closed here
            found = self._file.read_all()
        damaged = self._take(found)
        headless = not self._header
        self._header = self._header or dict(_HEADER)
        # An empty file, say: it was cut, or never was a journal.
        return damaged or (headless and self._file.exists())

    def _take(self, found: frames.Scan) -> bool:
        """Apply what was read; returns whether some of it was damaged."""
        damaged = bool(found.damage)
        for following, payload in zip(
            reversed(range(len(found.payloads))), found.payloads, strict=True
        ):
            try:
                record = decode(payload)
            except InvalidValue:
                logger.exception("the journal has a record that cannot be read")
                damaged = True
                continue
            if record.kind == "header":
                damaged = damaged or is_short(record.raw, following)
                self._header = _merged(uncounted_header(record.raw))
            else:
                self._ledger = self._ledger.apply(record)
            self._written += 1
            self._foreign = self._written
        return damaged

    def _compact(self, *, room_for: int = 0) -> None:
        held = list(self._ledger.raw_records())
        raws = [counted_header(self._header, len(held)), *held]
        content = b"".join(frames.encode(encode(raw)) for raw in raws)
        with self._syncing:
            self._file.replace(content, room_for)
            # The new file was synced with all that had been written to the old one.
            self._durable = self._written


def _merged(header: Mapping[str, Any]) -> dict[str, Any]:
    version = header.get("version")
    newest = max(_VERSION, version if isinstance(version, int) else 0)
    return {**header, **_HEADER, "version": newest}
