"""Who uses the state directory: agents share it, and whoever removes it must be alone in it.

A lock of the kernel's on the directory itself (flock(2)), which vanishes with its process: an agent
has it shared from before it reads the journal to its end, and what clears a node up after an
uninstall has it exclusively. It needs no file, so it can be taken on a full disk, and nothing of it
has to be removed last.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from dra_driver.model.effects import Effects, Point
from dra_driver.model.errors import JournalError
from dra_driver.node.logfile import is_at

_OPEN: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class DirectoryGone(JournalError):
    """The directory was removed, and cannot be made again at the path that this process sees."""


class Residence:
    """An agent's share in `directory`, which is made where it is missing.

    It is not given back: what an agent that stops still has under way may write to the journal.
    """

    def __init__(self, directory: Path, *, effects: Effects | None = None) -> None:
        self._directory = directory
        self._effects = effects or Effects()
        self._fd = -1

    def enter(self) -> None:
        """Have a share, from now to the process's end.

        Raises JournalError while somebody removes the directory, or where it cannot be used;
        DirectoryGone where it was removed beneath its mount: what a container has mounted then is
        nowhere on the node, and only a container that starts anew gets another one.
        """
        if self._fd >= 0:
            return
        try:
            fd = _locked(self._directory, fcntl.LOCK_SH, self._effects)
        except OSError as error:
            raise JournalError(
                f"the directory {self._directory} cannot be used: {error.strerror or error}",
                remedy="check that the disk is neither failing nor read-only",
            ) from error
        if fd is None:
            raise JournalError(
                f"{self._directory} is being removed after an uninstall",
                remedy="that takes a moment",
            )
        if os.fstat(fd).st_nlink == 0:
            os.close(fd)
            raise DirectoryGone(f"{self._directory} was removed while this container started")
        self._fd = fd


@contextmanager
def alone(directory: Path) -> Iterator[bool]:
    """Whether no agent has a share in the directory, none getting one meanwhile either. It is made
    where it is missing, as there is nothing to lock otherwise. Raises OSError."""
    fd = _locked(directory, fcntl.LOCK_EX, Effects())
    try:
        yield fd is not None
    finally:
        if fd is not None:
            os.close(fd)


def _locked(directory: Path, how: int, effects: Effects) -> int | None:
    """A descriptor of the directory that is there now, locked; None where others have it."""
    while True:
        try:
            fd = os.open(directory, _OPEN)
        except FileNotFoundError:
            with effects(Point.JOURNAL_CREATE):
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            continue
        try:
            fcntl.flock(fd, how | fcntl.LOCK_NB)
            if is_at(fd, directory):
                return fd
        except BlockingIOError:
            os.close(fd)
            return None
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)
