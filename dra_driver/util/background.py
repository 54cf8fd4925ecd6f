"""Parts of a program that work in a thread of their own until they are stopped."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable

from dra_driver.util.hooks import OnChange

# Sleeps for so many seconds; True when the part was stopped meanwhile.
Wait = Callable[[float], bool]


class Background(ABC):
    """One such part; its work is `run`, and ends with the program whatever it does.

    `wait` takes the place of real time where a test tells it. `interrupt` ends whatever else the
    work waits for; `stop` calls it.
    """

    def __init__(
        self, name: str, *, wait: Wait | None = None, interrupt: OnChange | None = None
    ) -> None:
        self._stopped = threading.Event()
        self._wait = wait or self._stopped.wait
        self._interrupt = interrupt
        self._thread = threading.Thread(target=self.run, name=name, daemon=True)
        self.is_started = False

    def start(self) -> None:
        """Begin; does nothing if it has begun."""
        if not self.is_started:
            self._thread.start()
            self.is_started = True

    def stop(self, timeout: float) -> None:
        """Begin nothing further, and wait for what is in hand for at most `timeout` seconds."""
        self._stopped.set()
        if self._interrupt is not None:
            self._interrupt()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def is_alive(self) -> bool:
        """False before `start`, and when the work has ended, which without `stop` is a fault."""
        return self._thread.is_alive()

    def ended(self) -> str | None:
        """The name of the thread, or of one that belongs to it, if it was started and is not alive:
        without `stop` that is a fault. None otherwise."""
        return self._thread.name if self.is_started and not self._thread.is_alive() else None

    @abstractmethod
    def run(self) -> None:
        """The thread's work; it returns soon after `stop`."""


class Woken(Background):
    """One whose work waits for `wake`."""

    def __init__(self, name: str, *, wait: Wait | None = None) -> None:
        super().__init__(name, wait=wait, interrupt=self.wake)
        self._woken = threading.Event()

    def wake(self) -> None:
        """Look now what there is to do: something has changed. May be called by any thread."""
        self._woken.set()
