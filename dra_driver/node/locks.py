"""Locks on claims and cards that hold between threads and between two agents on one node.

A lock is an flock(2) on a file: it goes away with the process, and each `flock` has its own open
file, so that threads exclude each other too. Who needs several takes the claim's first, then the
cards' in the order of their addresses, and holds one claim's at a time: no cycle can form.
"""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from dra_driver.hardware.lock_file import open_lock
from dra_driver.model.errors import JournalError
from dra_driver.model.identifiers import check_id
from dra_driver.model.pci import PciAddress
from dra_driver.node.logfile import is_at

logger = logging.getLogger(__name__)


class Locks:
    """Lock files in `directory`, which is made when first needed."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @contextmanager
    def claim(self, uid: str) -> Iterator[None]:
        """Nobody else prepares, unprepares or recovers the claim meanwhile.

        Raises InvalidValue for a UID that cannot be part of a file's name.
        """
        path = self._directory / f"claim-{check_id(uid, 'UID')}.lock"
        with self._locked(path):
            try:
                yield
            finally:
                # Claims come and go without end, so their files must not stay. Removed under
                # the lock; whoever waits for this file sees that it is gone and opens another.
                _remove(path)

    @contextmanager
    def cards(self, cards: Iterable[PciAddress]) -> Iterator[None]:
        """Nobody else gives out or takes back something of these cards meanwhile."""
        with ExitStack() as stack:
            for card in sorted(cards):
                stack.enter_context(self._locked(self._directory / f"card-{card.slug}.lock"))
            yield

    def sweep(self) -> None:
        """Remove claims' files that a killed agent left; those in use stay, by whomever."""
        for path in self._directory.glob("claim-*.lock"):
            try:
                self._sweep(path)
            except OSError as error:
                # Another agent was faster, say. A file that stays stands in nobody's way.
                logger.debug("the lock %s stays: %s", path, error.strerror)

    def _sweep(self, path: Path) -> None:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if is_at(file.fileno(), path):  # else another agent's new one is there by now
                path.unlink()

    @contextmanager
    def _locked(self, path: Path) -> Iterator[None]:
        fd = self._acquire(path)
        try:
            yield
        finally:
            os.close(fd)

    def _acquire(self, path: Path) -> int:
        try:
            while True:
                fd = _open_locked(path)
                if is_at(fd, path):
                    return fd
                os.close(fd)
        except OSError as error:
            raise JournalError(
                f"the lock {path} cannot be taken: {error.strerror}",
                remedy="check that the disk is neither full nor failing nor read-only",
            ) from error


def _open_locked(path: Path) -> int:
    fd = open_lock(path)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
    except OSError:
        os.close(fd)
        raise
    return fd


def _remove(path: Path) -> None:
    """A file that stays is swept at the next start: no reason to fail what was done under it."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        logger.warning("the lock %s stays: %s", path, error.strerror)
