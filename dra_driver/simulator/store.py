"""The state on disk, shared by processes that may be killed at any instruction.

``state/lock`` is held (flock) for every read-and-write; ``state/state.json`` is only ever
replaced as a whole, so that a reader without the lock sees one state or the next. A change and
its line in the record are two files: the state carries its line too, and whoever takes the lock
next writes it when the record lacks it. Nothing is fsynced: the machine outlives its processes,
not a power cut. Without pathlib for the reason given in `record`.
"""

# ruff: noqa: PTH105, PTH110, PTH118, PTH123 - without pathlib, see above
from __future__ import annotations

import fcntl
import json
import os
import os.path
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dra_driver.model.errors import GcuError
from dra_driver.simulator import record
from dra_driver.simulator.state import FORMAT, MachineState, from_json, to_json


class Transaction:
    """The machine while its lock is held."""

    def __init__(self, store: Store, machine: MachineState) -> None:
        self._store = store
        self.machine = machine

    def commit(self, machine: MachineState, entry: record.RecordLine) -> None:
        """Make `machine` the state and `entry`, with the state's sequence, its last record.

        An unchanged machine keeps its sequence and is not written again.
        """
        if machine != self.machine:
            machine = machine._replace(sequence=self.machine.sequence + 1)
            entry = entry._replace(sequence=machine.sequence)
            self._store.write(machine, entry)
            self.machine = machine
        self._store.record.append(entry._replace(sequence=self.machine.sequence))


class Store:
    """The folder ``state`` below `root`, the absolute path of a machine."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.folder = os.path.join(root, "state")
        self.record = record.CallRecord(self.folder)
        self._state = os.path.join(self.folder, "state.json")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the machine's lock. Raise GcuError where there is no machine."""
        with self._flock("lock"):
            yield

    @contextmanager
    def card_locked(self, bdf: str) -> Iterator[None]:
        """Hold the lock of one card: taken before the machine's, held through the delays."""
        with self._flock(f"card-{bdf}.lock"):
            yield

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Read the machine under its lock, and complete the record where a kill left it short."""
        with self.locked():
            machine, entry = self._load()
            last = self.record.last()
            if last is None or last.sequence < machine.sequence:
                self.record.append(entry)
            yield Transaction(self, machine)

    def read(self) -> MachineState:
        """The newest state, without the lock."""
        return self._load()[0]

    def write(self, machine: MachineState, entry: record.RecordLine) -> None:
        """Replace the state; the caller holds the lock."""
        document = {"format": FORMAT, "machine": to_json(machine), "entry": record.to_json(entry)}
        self.replace_file("state.json", json.dumps(document, ensure_ascii=False))

    def replace_file(self, name: str, text: str) -> None:
        """Put `text` in the place of a file of the folder, never half; the lock is held."""
        path = os.path.join(self.folder, name)
        with open(f"{path}.new", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(f"{path}.new", path)

    def _load(self) -> tuple[MachineState, record.RecordLine]:
        try:
            with open(self._state, "rb") as file:
                document: dict[str, Any] = json.loads(file.read())
        except FileNotFoundError:
            raise self.missing() from None
        if document.get("format") != FORMAT:
            raise GcuError(
                f"the machine in {self.root} was made by another version of the simulator",
                remedy="make it again with gcu-simulator create --replace",
            )
        return from_json(document["machine"]), record.from_json(document["entry"])

    @contextmanager
    def _flock(self, name: str) -> Iterator[None]:
        try:
            file = os.open(
                os.path.join(self.folder, name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644
            )
        except FileNotFoundError:
            raise self.missing() from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
        finally:
            os.close(file)

    def exists(self) -> bool:
        """Whether there is a machine, of whatever version."""
        return os.path.exists(self._state)

    def readable(self) -> bool:
        """Whether there is a machine that this version understands."""
        try:
            self.read()
        except GcuError:
            return False
        return True

    def missing(self) -> GcuError:
        """The error for a folder without a machine."""
        return GcuError(
            f"there is no simulated machine in {self.root}",
            remedy="make one with gcu-simulator create",
        )
