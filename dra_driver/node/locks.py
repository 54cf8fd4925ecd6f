"""Locks on claims and cards that hold between threads and between two agents on one node.

A lock is a lock of the kernel's on a file: it goes away with the process, and each one has its own
open file, so that threads exclude each other too. No cycle can form: a call takes those of all its
claims first, in ascending order. Then the lock of one claim at a time is held, and with it those of
its cards, in the order of their addresses.
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

from dra_driver.model.errors import JournalError
from dra_driver.model.identifiers import check_id
from dra_driver.model.pci import PciAddress
from dra_driver.node.checkpoint.logfile import is_at
from dra_driver.util.filelock import open_lock

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
        self._calls = directory / "calls.lock"
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
        fd = self._acquire(self._claims, _byte(check_id(uid, "UID")))
        try:
            yield
        finally:
            os.close(fd)

    @contextmanager
    def calls(self, uids: Iterable[str]) -> Iterator[None]:
        """No other call prepares one of these claims meanwhile.

        Two pods that share a claim can ask for it at the same moment, each together with claims of
        its own. It names the cards of one of the two, and the other must find it prepared.
        """
        # Several UIDs may have the same byte.
        fd = self._acquire(self._calls, *sorted({_byte(uid) for uid in uids}))
        try:
            yield
        finally:
            os.close(fd)

    @contextmanager
    def cards(self, cards: Iterable[PciAddress]) -> Iterator[None]:
        """Nobody else gives out or takes back something of these cards meanwhile."""
        with ExitStack() as stack:
            for card in sorted(cards):
                fd = self._acquire(self._of_card(card), None)
                stack.callback(os.close, fd)
            yield

    def _of_card(self, card: PciAddress) -> Path:
        # Made once, for the reason that `CdiDirectory` has.
        path = self._of_cards.get(card)
        if path is None:
            path = self._of_cards[card] = self._directory / f"card-{card.slug}.lock"
        return path

    def _acquire(self, path: Path, *places: int | None) -> int:
        """A descriptor whose closing gives the locks back, of the whole file (None) or of bytes."""
        try:
            while True:
                fd = self._open_locked(path, places)
                if is_at(fd, path):  # else somebody removed it: others would lock a new one
                    return fd
                os.close(fd)
        except OSError as error:
            raise JournalError(
                f"the lock {path} cannot be taken: {error.strerror}",
                remedy="check that the disk is neither full nor failing nor read-only",
            ) from error

    def _open_locked(self, path: Path, places: Iterable[int | None]) -> int:
        fd = open_lock(path)
        try:
            for place in places:
                self._take(fd, place)
        except BaseException:
            os.close(fd)
            raise
        return fd


def _byte(uid: str) -> int:
    return zlib.crc32(uid.encode(errors="surrogatepass"))
