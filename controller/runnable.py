"""What the process runs, and what its probes ask each part of it."""

from __future__ import annotations

from collections.abc import Mapping
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


def ended_thread(threads: Mapping[str, bool]) -> str | None:
    """`threads` says by name whether each is alive. Returns words about the first that is not."""
    return next((f"{name} ended" for name, is_alive in threads.items() if not is_alive), None)
