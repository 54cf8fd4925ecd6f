"""Locks on claims and cards, between threads and between two agents on one node.

A lock is a lock of the kernel on a file: it ends with the process. Each lock has an open file of
its own, so that threads exclude each other, too. No deadlock is possible: a call takes the locks of
all its claims first, in ascending order. Then it has the lock of one claim at a time, and with that
the locks of the claim's cards, in the order of their addresses.
"""

from __future__ import annotations

import fcntl
import os
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Final

from dra_driver.model.identifiers import check_id
from dra_driver.model.pci import PciAddress
from dra_driver.util.files import lock_errors, open_lock

# fcntl(2), struct flock: type, whence, start, length, and a process that must be 0.
_FLOCK: Final = struct.Struct("@hhqqi")


Take = Callable[[int, int | None], None]


def take_lock(fd: int, byte: int | None, *, wait: bool = True) -> None:
    """Lock an open file, or one byte of it. Raises OSError; without `wait` BlockingIOError if it is
    locked already."""
    if byte is None:
        fcntl.flock(fd, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    else:
        # A lock of the open file, not of the process: other threads wait, too.
        wanted = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0)
        fcntl.fcntl(fd, fcntl.F_OFD_SETLKW if wait else fcntl.F_OFD_SETLK, wanted)


class Locks:
    """Lock files in `directory`, which is created when it is first needed; `take` waits for a
    lock."""

    def __init__(self, directory: Path, *, take: Take = take_lock) -> None:
        self._calls = directory / "calls.lock"
        self._claims = directory / "claims.lock"
        self._take = take
        # Made once for each card, because a Path interns its parts (`CdiDirectory`).
        self._of_card: Callable[[PciAddress], Path] = cache(
            lambda card: directory / f"card-{card.slug}.lock"
        )

    def claim(self, uid: str) -> AbstractContextManager[None]:
        """No other thread or process prepares, unprepares or recovers the claim meanwhile.

        All claims share one file, in which each locks one byte: to create and remove a file for
        each claim would take longer than the rest of the call. Two claims may have the same byte;
        then one waits for the other. Raises InvalidValue for a malformed UID.
        """
        return self._locked(self._claims, _byte(check_id(uid, "UID")))

    def calls(self, uids: Iterable[str]) -> AbstractContextManager[None]:
        """No other call prepares one of these claims meanwhile.

        Two pods that share a claim can request it at the same moment, each together with claims of
        its own. One call names the pod's cards in the shared claim, and the other call must find
        that claim prepared.
        """
        # Several UIDs may have the same byte.
        return self._locked(self._calls, *sorted({_byte(uid) for uid in uids}))

    @contextmanager
    def cards(self, cards: Iterable[PciAddress]) -> Iterator[None]:
        """No other thread or process changes the use of these cards meanwhile."""
        with ExitStack() as stack:
            for card in sorted(cards):
                stack.enter_context(self._locked(self._of_card(card), None))
            yield

    @contextmanager
    def _locked(self, path: Path, *places: int | None) -> Iterator[None]:
        """These bytes of the file are locked, or the whole file (None)."""
        with lock_errors(path):
            fd = open_lock(path)
        try:
            with lock_errors(path):
                for place in places:
                    self._take(fd, place)
            yield
        finally:
            os.close(fd)  # which releases the locks


def _byte(uid: str) -> int:
    return zlib.crc32(uid.encode(errors="surrogatepass"))
