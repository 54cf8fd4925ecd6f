"""The log once more, in a rotated file on the node, for who collects files and not containers."""

from __future__ import annotations

import logging
import os
import sys
from io import FileIO, TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Final

_MODE: Final = 0o640  # names of claims and pods of all tenants are in it


class LogFileHandler(RotatingFileHandler):
    """Writes to a file that another process may rotate: during an update two agents of a node
    write to one. A line that cannot be written is lost here, and is on standard error."""

    def __init__(self, path: Path, mib: int, files: int) -> None:
        """`path` grows up to `mib` MiB, then it becomes ``PATH.1``. There are `files` at most, 2 or
        more, with the present one. It is opened for the first line."""
        self._problem = ""
        super().__init__(
            path, maxBytes=mib << 20, backupCount=files - 1, encoding="utf-8", delay=True
        )

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._reopen_if_replaced()
        except OSError:
            self.handleError(record)
            return
        super().emit(record)

    def doRollover(self) -> None:  # noqa: N802 (the base's)
        """Not if another agent has done it since the size was read."""
        stream = self.stream
        self._reopen_if_replaced()
        if self.stream is stream:
            super().doRollover()

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: ARG002, N802 (the base's)
        """Says a new reason once: a full disk would fail each line."""
        problem = repr(sys.exc_info()[1])
        if problem != self._problem:
            print(f"the log file {self.baseFilename} is not written: {problem}", file=sys.stderr)
        self._problem = problem

    def _open(self) -> TextIOWrapper:
        descriptor = os.open(
            self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, _MODE
        )
        # Without a buffer: a line is one write, so those of two agents do not mix, and nothing is
        # left over from a write that failed.
        return TextIOWrapper(
            FileIO(descriptor, "a"),
            encoding=self.encoding,
            errors="backslashreplace",
            write_through=True,
        )

    def _reopen_if_replaced(self) -> None:
        # None before the first line and after a file that could not be opened; closed after one
        # that could not be closed, as on a full disk of the network.
        stream = self.stream
        if stream is not None and not stream.closed:
            try:
                if os.path.samestat(os.fstat(stream.fileno()), Path(self.baseFilename).stat()):
                    return
            except FileNotFoundError:
                pass
            self.stream = None
            stream.close()
        self.stream = self._open()
