"""One call of efsmi on a card at a time, also when whoever made the call is gone.

A killed agent's call may still be running, and take effect after its successor has looked. So each
call inherits an flock(2) on a file of its card, which the kernel gives up when the last process
that has it ends: once the lock is taken, no older call can still change what is listed.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from dra_driver.model.errors import HardwareError
from dra_driver.model.pci import PciAddress
from dra_driver.util.files import lock_errors, open_lock

_INTERVAL: Final = 0.02  # seconds between two attempts


class CardBusy(HardwareError):
    """An earlier call on the card, which was given up, still runs."""


@contextmanager
def alone(directory: Path, address: PciAddress, *, patience: float) -> Iterator[int]:
    """Give the descriptor for the call to inherit, of a file in the directory, which is made when
    first needed. Raises CardBusy when another call does not end within `patience` seconds,
    HardwareError where the file cannot be used."""
    path = directory / f"efsmi-{address.slug}.lock"
    with lock_errors(path, HardwareError):
        lock = open_lock(path)
    try:
        deadline = time.monotonic() + patience
        while not _taken(lock):
            if time.monotonic() >= deadline:
                raise CardBusy(
                    f"an `efsmi` call on card {address} has not ended for {patience:g} s",
                    remedy="look at the kernel log for a card that hangs",
                )
            time.sleep(_INTERVAL)
        yield lock
    finally:
        # Not unlocked: that would take it from a call that still runs, too.
        os.close(lock)


def _taken(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
