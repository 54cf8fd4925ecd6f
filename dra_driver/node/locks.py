"""Locks on claims and cards that hold between threads and between two agents on one node.

A lock is a lock of the kernel's on a file: it goes away with the process, and each one has its own
open file, so that threads exclude each other too. Who needs several takes the claim's first, then
the cards' in the order of their addresses, and holds one claim's at a time: no cycle can form.
"""

from __future__ import annotations

import fcntl
import os
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from dra_driver.hardware.lock_file import open_lock
from dra_driver.model.errors import JournalError
from dra_driver.model.identifiers import check_id
from dra_driver.model.pci import PciAddress
from dra_driver.node.logfile import is_at

# fcntl(2), struct flock: type, whence, start, length, and a process that must be 0.
_FLOCK: Final = struct.Struct("@hhqqi")


Take = Callable[[int, int | None], None]


def take_lock(fd: int, byte: int | None, *, wait: bool = True) -> None:
    """Take the lock of an open file, or of one byte of it. Raises OSError: without `wait`
    BlockingIOError where another has it."""
    if byte is None:
        fcntl.flock(fd, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    else:
        # Of the open file, not of the process: other threads wait, too.
        wanted = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0)
        fcntl.fcntl(fd, fcntl.F_OFD_SETLKW if wait else fcntl.F_OFD_SETLK, wanted)


class Locks:
    """Lock files in `directory`, which is made when first needed; `take` waits for a lock."""

    def __init__(self, directory: Path, *, take: Take = take_lock) -> None:
        self._claims = directory / "claims.lock"
        self._directory = directory
        self._take = take
        self._of_cards: dict[PciAddress, Path] = {}

    @contextmanager
    def claim(self, uid: str) -> Iterator[None]:
        """Nobody else prepares, unprepares or recovers the claim meanwhile.

        Claims come and go without end, so they have no files of their own, whose making and
        removing would take longer than all else: each has a byte of one file. That two of them
        may have the same one makes them wait for each other, and does no harm besides.
        Raises InvalidValue for what is no UID.
        """
        byte = zlib.crc32(check_id(uid, "UID").encode())
        fd = self._acquire(self._claims, byte)
        try:
            yield
        finally:
            os.close(fd)

    @contextmanager
    def cards(self, cards: Iterable[PciAddress]) -> Iterator[None]:
        """Nobody else gives out or takes back something of these cards meanwhile."""
        with ExitStack() as stack:
            for card in sorted(cards):
                fd = self._acquire(self._of_card(card))
                stack.callback(os.close, fd)
            yield

    def _of_card(self, card: PciAddress) -> Path:
        # Made once, for the reason that `CdiDirectory` has.
        path = self._of_cards.get(card)
        if path is None:
            path = self._of_cards[card] = self._directory / f"card-{card.slug}.lock"
        return path

    def _acquire(self, path: Path, byte: int | None = None) -> int:
        """A descriptor whose closing gives the lock back."""
        try:
            while True:
                fd = self._open_locked(path, byte)
                if is_at(fd, path):  # else somebody removed it: others would lock a new one
                    return fd
                os.close(fd)
        except OSError as error:
            raise JournalError(
                f"the lock {path} cannot be taken: {error.strerror}",
                remedy="check that the disk is neither full nor failing nor read-only",
            ) from error

    def _open_locked(self, path: Path, byte: int | None) -> int:
        fd = open_lock(path)
        try:
            self._take(fd, byte)
        except BaseException:
            os.close(fd)
            raise
        return fd
