"""Everything that was done to the machine, one JSON object a line in ``state/record.jsonl``.

Part of every call of ``efsmi``, and so without pathlib, whose import takes longer than the call's
own work. At `LIMIT_BYTES` the file is put aside as ``record.1.jsonl``, and the one before it is
dropped. Appended under the machine's lock only.
"""

# ruff: noqa: PTH105, PTH108, PTH110, PTH118, PTH123 - without pathlib, see above
from __future__ import annotations

import json
import os
import os.path
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

LIMIT_BYTES: Final = 32 * 1024 * 1024


class RecordLine(NamedTuple):
    """One line.

    `event` is ``end``, or ``begin`` for a mutating call that has started (a call that is killed
    has no end). `mutates` says what kind of command it is, `changed` whether the cards are
    different after it. `sequence` is the state's after the call, `time` in seconds since the
    epoch, `outcome` one sentence.
    """

    sequence: int
    time: float
    pid: int
    argv: tuple[str, ...]
    command: str
    event: str
    mutates: bool
    changed: bool
    card: str | None
    exit_code: int | None
    outcome: str


def to_json(entry: RecordLine) -> dict[str, Any]:
    return entry._asdict()


def from_json(raw: dict[str, Any]) -> RecordLine:
    return RecordLine(**{**raw, "argv": tuple(raw["argv"])})


class CallRecord:
    """The record below the path `folder`."""

    def __init__(self, folder: str) -> None:
        self._current = os.path.join(folder, "record.jsonl")
        self._older = os.path.join(folder, "record.1.jsonl")

    def append(self, entry: RecordLine) -> None:
        """One write, which a kill cannot tear."""
        line = json.dumps(to_json(entry), ensure_ascii=False, separators=(",", ":")) + "\n"
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        file = os.open(self._current, flags, 0o644)
        try:
            os.write(file, line.encode())
            full = os.fstat(file).st_size >= LIMIT_BYTES
        finally:
            os.close(file)
        if full:
            os.replace(self._current, self._older)

    def last(self) -> RecordLine | None:
        """The newest whole entry."""
        for path in (self._current, self._older):
            for line in reversed(_lines(path, last_bytes=16384)):
                if (entry := _parse(line)) is not None:
                    return entry
        return None

    def __iter__(self) -> Iterator[RecordLine]:
        """All that is kept, oldest first."""
        for path in (self._older, self._current):
            for line in _lines(path):
                if (entry := _parse(line)) is not None:
                    yield entry

    def clear(self) -> None:
        """Forget everything."""
        for path in (self._current, self._older):
            if os.path.exists(path):
                os.unlink(path)


def _parse(line: bytes) -> RecordLine | None:
    # A line is torn only where the disk was full; what stands around it is still true.
    try:
        return from_json(json.loads(line))
    except (ValueError, TypeError, KeyError):
        return None


def _lines(path: str, last_bytes: int | None = None) -> list[bytes]:
    """The lines of the file or of its end, the first of which may then be cut."""
    try:
        with open(path, "rb") as file:
            if last_bytes is not None:
                file.seek(max(0, os.fstat(file.fileno()).st_size - last_bytes))
            return file.read().splitlines()
    except FileNotFoundError:
        return []
