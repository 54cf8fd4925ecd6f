"""What a claim service is given for a call, and whom it tells of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import grpc

from dra_driver.model.errors import GcuError


class Caller:
    """A call's context: active until it gives up."""

    def __init__(self) -> None:
        self.active = True

    def is_active(self) -> bool:
        return self.active

    def add_callback(self, _: Callable[[], None]) -> bool:
        return self.active

    @property
    def context(self) -> grpc.ServicerContext:
        return cast("grpc.ServicerContext", self)


class Observer:
    """Remembers which operations began, and with how many errors they ended."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended: list[tuple[str, int]] = []

    def on_begin(self, operation: str) -> None:
        self.begun.append(operation)

    def on_end(self, operation: str, seconds: float, errors: Sequence[GcuError]) -> None:
        assert seconds >= 0
        self.ended.append((operation, len(errors)))
