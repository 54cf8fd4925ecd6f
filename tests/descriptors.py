"""Waits for descriptors. A process that runs many tests has numbers above 1023, which
`select.select` refuses (FD_SETSIZE)."""

from __future__ import annotations

import selectors
from typing import Protocol, TypeVar


class _HasDescriptor(Protocol):
    def fileno(self) -> int: ...


F = TypeVar("F", bound=int | _HasDescriptor)


def readable(*sources: F, within: float | None = None) -> list[F]:
    """Those that can be read or have ended, as soon as there is one, and at the latest after so
    many seconds. Raises ValueError if one is closed already."""
    with selectors.PollSelector() as selector:
        for source in sources:
            selector.register(source, selectors.EVENT_READ, source)
        return [key.data for key, _ in selector.select(within)]
