"""How long to wait before trying again."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(eq=False, kw_only=True)
class Backoff:
    """Delays that double from `first` to `longest` seconds, each shortened at random by up to
    half, so that many clients refused at once do not come back at once.

    `draw` gives numbers in [0, 1); tests pass their own.
    """

    first: float = 0.5
    longest: float = 30.0
    draw: Callable[[], float] = random.random

    def __post_init__(self) -> None:
        self._failures = 0

    def next(self) -> float:
        """The delay after one more failure, in seconds."""
        full: float = min(self.longest, self.first * 2.0 ** min(self._failures, 32))
        self._failures += 1
        return full * (1.0 - self.draw() / 2.0)

    def reset(self) -> None:
        """It worked: the next failure waits `first` again."""
        self._failures = 0
