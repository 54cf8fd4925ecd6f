"""Waits for an API server that is away, or refuses because it has too much to do."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from dra_driver.kube.errors import KubeError, TooManyRequests, Unavailable
from dra_driver.util.background import Wait
from dra_driver.util.backoff import Backoff

logger = logging.getLogger(__name__)

T = TypeVar("T")


class ServerWait:
    """Repeats calls that a program makes before it serves, until the API server answers them.

    `problem` says what is waited for, for the readiness probe; it is None otherwise.
    `wait(seconds)` sleeps, and returns True when the program is to stop.
    """

    def __init__(self, wait: Wait, backoff: Backoff | None = None) -> None:
        self._wait = wait
        self._backoff = backoff or Backoff()
        self.problem: str | None = None

    def until_answered(self, call: Callable[[], T]) -> T:
        """What `call` returns, which may be repeated from its beginning. Raises the last error if
        the program is to stop, and at once any other error than Unavailable and TooManyRequests."""
        while True:
            try:
                answer = call()
            except (Unavailable, TooManyRequests) as error:
                self._report(error)
                if self._wait(max(error.retry_after or 0.0, self._backoff.next())):
                    raise
            else:
                self.problem = None
                self._backoff.reset()
                return answer

    def _report(self, error: KubeError) -> None:
        problem = f"waiting for the API server: {error}"
        if problem != self.problem:
            logger.warning("%s", problem)
        self.problem = problem
