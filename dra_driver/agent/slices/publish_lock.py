"""Which of two agents on a node publishes: one at a time."""

from __future__ import annotations

import fcntl
import logging
import os
from pathlib import Path

from dra_driver.model.errors import JournalError
from dra_driver.node.checkpoint.logfile import is_at
from dra_driver.util.filelock import open_lock

logger = logging.getLogger(__name__)


class PublishLock:
    """An flock(2) on the file at `path`, kept from `take` to `give` or to the process's end: while
    two agents run side by side, the one that came first writes, and the other sees that it ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1

    def try_acquire(self) -> bool:
        """Whether it is ours, now or since before; does not wait. Raises JournalError where the
        file cannot be used."""
        try:
            if self._fd >= 0 and is_at(self._fd, self._path):
                return True
            # Somebody removed the file: whoever comes locks another one.
            self.release()
            self._fd = self._locked()
        except OSError as error:
            raise JournalError(
                f"the lock {self._path} cannot be taken: {error.strerror}",
                remedy="check that the disk is neither full nor failing nor read-only",
            ) from error
        return self._fd >= 0

    def release(self) -> None:
        """Let another one take it; does nothing where it is not ours."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _locked(self) -> int:
        fd = open_lock(self._path)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return -1
        except OSError:
            os.close(fd)
            raise
        return fd
