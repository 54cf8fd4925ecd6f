"""One watch, several handlers."""

from __future__ import annotations

from collections.abc import Sequence

from dra_driver.kube.api import Change
from dra_driver.kube.watch import Handler
from dra_driver.model.claims.claim import Object


class Tee:
    """Hands on what a reflector receives, in the order of the handlers."""

    def __init__(self, *handlers: Handler) -> None:
        self._handlers = handlers

    def on_replace(self, items: Sequence[Object]) -> None:
        for each in self._handlers:
            each.on_replace(items)

    def on_event(self, change: Change, obj: Object) -> None:
        for each in self._handlers:
            each.on_event(change, obj)
