"""Hands the newest snapshot to all who follow."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from dra_driver.util.debouncer import Debouncer
from kubectl_gcu.view.snapshot import PageSnapshot

_DELAY: Final = 0.1  # seconds; a pod's start is several changes within that
_LONGEST: Final = 0.4  # seconds that a change waits for others


class PagePublisher:
    """Takes a snapshot soon after something has changed. Thread-safe."""

    def __init__(self, take: Callable[[], PageSnapshot]) -> None:
        """`take` returns the snapshot of this moment."""
        self._take = take
        self._taking = threading.Lock()
        self._changed = threading.Condition()
        self._newest: PageSnapshot | None = None
        self._debouncer = Debouncer(self.publish, delay=_DELAY, longest=_LONGEST)
        self._is_stopped = False

    def on_change(self) -> None:
        """Something has changed: publish it soon."""
        self._debouncer.trigger()

    def publish(self) -> None:
        """Take a snapshot, and wake all who wait for one."""
        with self._taking:  # one after another, so that none is followed by an older one
            newest = self._take()
            with self._changed:
                self._newest = newest
                self._changed.notify_all()

    def stop(self) -> None:
        """Nobody waits any more."""
        self._debouncer.stop()
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()

    def next(self, known: PageSnapshot | None, timeout: float) -> PageSnapshot | None:
        """A snapshot that is not `known`, as soon as there is one; None after `timeout` seconds, or
        when the publisher was stopped."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._is_stopped or self._newest is not known, timeout=timeout
            )
            newest = self._newest
        return None if self.is_stopped or newest is known else newest

    @property
    def is_stopped(self) -> bool:
        return self._is_stopped
