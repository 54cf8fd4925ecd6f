"""Waits for an API server that is away, has too much to do, or has only just started."""

from __future__ import annotations

import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Final, TypeVar

from dra_driver.kube.errors import KubeError, TooManyRequests, Unavailable
from dra_driver.util.background import Wait
from dra_driver.util.backoff import Backoff

logger = logging.getLogger(__name__)

T = TypeVar("T")

_REFUSALS: Final = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})

STARTS: Final = 15.0
"""Seconds for which an API server that starts refuses what it allows: it answers before it has
listed roles and service accounts (seen with 1.37.2: 403 to GET /version)."""


class ServerWait:
    """Repeats calls that a program makes before it serves, until the API server answers them.

    `problem` says what is waited for, for the readiness probe; it is None otherwise.
    `wait(seconds)` sleeps, and returns True when the program is to stop.
    """

    def __init__(
        self, wait: Wait, backoff: Backoff | None = None, *, starts: float = STARTS
    ) -> None:
        self._wait = wait
        self._backoff = backoff or Backoff()
        self._starts = starts
        self.problem: str | None = None

    def until_answered(self, call: Callable[[], T]) -> T:
        """What `call` returns, which may be repeated from its beginning. Raises the last error if
        the program is to stop, or if 401 or 403 is answered for longer than a server needs to
        start; and at once any other error than these, Unavailable and TooManyRequests."""
        refused = 0.0
        while True:
            try:
                answer = call()
            except KubeError as error:
                if not self._may_pass(error, refused):
                    raise
                self._report(error)
                seconds = max(error.retry_after or 0.0, self._backoff.next())
                refused = refused + seconds if error.status in _REFUSALS else 0.0
                if self._wait(seconds):
                    raise
            else:
                self.problem = None
                self._backoff.reset()
                return answer

    def _may_pass(self, error: KubeError, refused: float) -> bool:
        """Whether the same call may be answered later, after so many seconds of refusals."""
        if error.status in _REFUSALS:
            return refused < self._starts
        return isinstance(error, (Unavailable, TooManyRequests))

    def _report(self, error: KubeError) -> None:
        problem = f"waiting for the API server: {error}"
        if problem != self.problem:
            logger.warning("%s", problem)
        self.problem = problem
