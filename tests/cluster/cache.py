"""The machine's cache: what is expensive to make and the same for every checkout."""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_WAIT_NOTICE_SECONDS = 10.0


def cache_root() -> Path:
    """$GCU_DRA_CACHE, else gcu-dra-driver in the user's cache folder ($XDG_CACHE_HOME)."""
    if chosen := os.environ.get("GCU_DRA_CACHE"):
        return Path(chosen)
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "gcu-dra-driver"


@contextmanager
def locked(path: Path, while_waiting: Callable[[float], None] | None = None) -> Iterator[None]:
    """Hold the lock file `path`, which the kernel releases when this process dies.

    While another process has it, `while_waiting` is called at once and then every ten seconds
    with the seconds waited so far. The file stays: removing it would let two holders in.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        started = time.monotonic()
        notice = 0.0
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                waited = time.monotonic() - started
                if while_waiting and waited >= notice:
                    while_waiting(waited)
                    notice = waited + _WAIT_NOTICE_SECONDS
                time.sleep(0.1)
        yield


def build_once(
    target: Path,
    make: Callable[[Path], None],
    while_waiting: Callable[[float], None] | None = None,
) -> Path:
    """The folder `target`, made by `make(folder)` unless it is already there.

    A target that exists is complete: it is made beside its place and renamed when `make` has
    returned. Of several makers at once one works and the others take its result; what a killed
    maker left is removed by the next one. Whatever `make` raises is passed on.
    """
    if target.is_dir():
        return target
    with locked(target.parent / f"{target.name}.lock", while_waiting):
        # The lock shows that nobody works on these any more.
        for leftover in target.parent.glob(f".{target.name}.*"):
            shutil.rmtree(leftover)
        if target.is_dir():
            return target
        unfinished = target.parent / f".{target.name}.{os.getpid()}"
        unfinished.mkdir()
        try:
            make(unfinished)
            unfinished.rename(target)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    return target
