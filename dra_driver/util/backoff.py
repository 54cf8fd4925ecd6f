"""How long to wait before trying again."""

from __future__ import annotations

import random
from collections.abc import Callable


class Backoff:
    """Delays that double from `first` to `longest` seconds, each shortened at random by up to
    half, so that many clients refused at once do not come back at once.

    `draw` gives numbers in [0, 1); tests pass their own.
    """

    def __init__(
        self,
        *,
        first: float = 0.5,
        longest: float = 30.0,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._first = first
        self._longest = longest
        self._draw = draw
        self._failures = 0

    def next(self) -> float:
        """The delay after one more failure, in seconds."""
        full: float = min(self._longest, self._first * 2.0 ** min(self._failures, 32))
        self._failures += 1
        return full * (1.0 - self._draw() / 2.0)

    def reset(self) -> None:
        """It worked: the next failure waits `first` again."""
        self._failures = 0
