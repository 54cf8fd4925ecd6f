"""What the process runs, and what its probes ask each part of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol


class Runnable(Protocol):
    """A part of the process with threads of its own (controller-runtime: manager.Runnable).
    Constructing one has no effects."""

    def start(self) -> None:
        """Start all threads. Raises GcuError where they cannot serve."""

    def stop(self) -> None:
        """End all threads, in a few seconds."""

    def ready(self) -> str | None:
        """None where it serves, or why it does not yet."""

    def live(self) -> str | None:
        """None, or which thread ended or hangs, which only a fault of ours can cause."""


class RunnableGroup:
    """All parts of the process. Before `start` it is live, and `starting` says why not ready."""

    def __init__(self, starting: Callable[[], str]) -> None:
        self._starting = starting
        self._runnables: Sequence[Runnable] = ()

    def start(self, runnables: Sequence[Runnable]) -> None:
        """Start them in this order. Raises GcuError where one cannot serve."""
        for runnable in runnables:
            runnable.start()
        self._runnables = runnables

    def stop(self) -> None:
        """Stop them, the last one first."""
        for runnable in reversed(self._runnables):
            runnable.stop()

    def ready(self) -> str | None:
        """None where all parts serve, or why the first one does not yet."""
        if not self._runnables:
            return self._starting()
        return next(filter(None, (runnable.ready() for runnable in self._runnables)), None)

    def live(self) -> str | None:
        """None, or what is wrong with the first part in which a thread ended or hangs."""
        return next(filter(None, (runnable.live() for runnable in self._runnables)), None)


def ended_thread(threads: Mapping[str, bool]) -> str | None:
    """`threads` says by name whether each is alive. Returns words about the first that is not."""
    return next((f"{name} ended" for name, is_alive in threads.items() if not is_alive), None)
