"""One watch, several handlers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dra_driver.kube.api import Change
from dra_driver.kube.watch import WatchHandler


class Tee:
    """Hands on what a reflector receives, in the order of the handlers."""

    def __init__(self, *handlers: WatchHandler) -> None:
        self._handlers = handlers

    def on_replace(self, items: Sequence[Any]) -> None:
        for handler in self._handlers:
            handler.on_replace(items)

    def on_event(self, change: Change, obj: Any) -> None:
        for handler in self._handlers:
            handler.on_event(change, obj)
