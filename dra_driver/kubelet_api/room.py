"""How many calls work beside each other."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Room:
    """For `places` calls at a time; others wait, and who came first is next.

    The interpreter lets one thread run at a time: of calls that all begin at once all end last. Who
    has waited for `patience` seconds goes ahead without a place: those who have them are then held
    up by a card or by the API server, and keep nobody else.
    """

    def __init__(self, places: int = 8, *, patience: float = 0.5) -> None:
        self._places = threading.BoundedSemaphore(places)
        self._patience = patience

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Wait for a place, and keep it inside."""
        placed = self._places.acquire(timeout=self._patience)
        try:
            yield
        finally:
            if placed:
                self._places.release()
