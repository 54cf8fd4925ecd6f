"""Lets one of two agents on a node publish."""

from __future__ import annotations

import os
from pathlib import Path

from dra_driver.node.checkpoint.logfile import is_at
from dra_driver.node.locks import take_lock
from dra_driver.util.files import lock_error, open_lock


class PublishLock:
    """An flock(2) on the file at `path`, held until `release` or the end of the process. While two
    agents run side by side, the first one publishes, and the other one takes over when it ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1

    def try_acquire(self) -> bool:
        """Whether this agent has the lock now; does not wait. Raises JournalError if the file
        cannot be used."""
        try:
            if self._fd >= 0 and is_at(self._fd, self._path):
                return True
            # The file was removed, so the next agent would lock another one.
            self.release()
            self._fd = open_lock(self._path)
            take_lock(self._fd, None, wait=False)
        except BlockingIOError:
            self.release()
        except OSError as error:
            self.release()
            raise lock_error(self._path, error) from error
        return self._fd >= 0

    def release(self) -> None:
        """Let another agent take it; does nothing if this one does not have it."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
