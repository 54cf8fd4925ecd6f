"""Large lists are read without cyclic garbage collection."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final


class CollectionPause:
    """No cyclic collection while anything is inside, in any thread.

    While a program starts, what exists when the last one leaves is exempt from later collections,
    too (`gc.freeze`): objects of the API server have no cycles, and each full collection visits all
    of them. Reading the lists of 3,000 nodes takes half the processor time so (`make
    bench-memory`). Later nothing more is made exempt: what is in use then, such as a compiled
    selector, may become cyclic garbage, and would never be freed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._starting = True

    def end_start(self) -> None:
        """The program has its first lists, or will have no large ones."""
        with self._lock:
            self._starting = False

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            self._inside += 1
            gc.disable()
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if not self._inside:
                    if self._starting:
                        gc.freeze()
                    gc.enable()


no_collection: Final = CollectionPause()
"""Collection belongs to the process, and so does its pause."""
