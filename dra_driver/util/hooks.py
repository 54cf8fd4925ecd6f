"""Callbacks and clocks that parts of a program are given."""

from __future__ import annotations

from collections.abc import Callable

Clock = Callable[[], float]
"""Seconds from any start, never going back, such as `time.monotonic`."""


OnChange = Callable[[], None]
"""Called when something has changed that other parts follow. Neither raises nor waits."""


class ChangeHook:
    """An `OnChange` that calls all subscribers, so that whoever reports a change can be built
    before those that follow it. All subscribe before the first change."""

    def __init__(self) -> None:
        self._subscribers: list[OnChange] = []

    def subscribe(self, on_change: OnChange) -> None:
        """Call `on_change` from now on, after those that subscribed before."""
        self._subscribers.append(on_change)

    def __call__(self) -> None:
        for on_change in self._subscribers:
            on_change()
