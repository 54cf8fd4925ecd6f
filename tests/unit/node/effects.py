"""Effects that end the agent, or fail, at a chosen moment."""

from __future__ import annotations

from collections.abc import Callable

from dra_driver.model.effects import Effects, Point


class Crash(BaseException):
    """The process is killed here: nothing of ours may catch it."""


class Kill(Effects):
    """Kills at the `n`-th moment before or after an effect, counted from 1; 0 never does."""

    def __init__(self, n: int = 0) -> None:
        self.n = n
        self.moments: list[str] = []

    def before(self, point: Point) -> None:
        self._moment(f"before {point}")

    def after(self, point: Point) -> None:
        self._moment(f"after {point}")

    def _moment(self, name: str) -> None:
        self.moments.append(name)
        if len(self.moments) == self.n:
            raise Crash(name)


class Failing(Effects):
    """Raises `error` before each effect of `point` while `on`."""

    def __init__(self, point: Point, error: Callable[[], BaseException]) -> None:
        self.point = point
        self.error = error
        self.on = True

    def before(self, point: Point) -> None:
        if self.on and point is self.point:
            raise self.error()
