"""The fence: nothing is written once our leadership may have ended."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, cast

from dra_driver.kube.api import ObjectApi
from dra_driver.model.errors import Refused


class NotLeader(Refused):
    """Another replica may be the leader by now; nothing was written."""


def boottime() -> float:
    """Seconds on a clock that goes on while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Fence:
    """Open until a deadline on `clock`, which must count suspended time: a process that was
    suspended must not find its fence still open when it continues.

    The fence is opened for a *term* of leadership, whose name no other term has. A write belongs
    to the term that was accepted last. A write of an older term is refused even if this replica
    leads again, because another replica may have led in between.
    """

    def __init__(self, clock: Callable[[], float] = boottime) -> None:
        self._clock = clock
        self._deadline = 0.0
        self._term = ""
        self._accepted: str | None = None

    @property
    def term(self) -> str:
        """The term for which the fence was opened last."""
        return self._term

    def open_until(self, deadline: float, term: str) -> None:
        self._term = term
        self._deadline = deadline

    def close(self) -> None:
        self._deadline = 0.0

    def is_open(self) -> bool:
        return self._clock() < self._deadline

    def accept(self) -> str:
        """Write in the present term from now on; returns its name."""
        term = self._accepted = self._term
        return term

    def check(self) -> None:
        """Raises NotLeader if the deadline has passed, or another term has begun."""
        if not self.is_open() or self._accepted != self._term:
            raise NotLeader("this replica does not hold the lease: nothing was written")


class _FencedApi:
    """Checks the fence when a method other than ``get`` is read, which is just before its call."""

    def __init__(self, api: ObjectApi, fence: Fence) -> None:
        self._api = api
        self._fence = fence

    def __getattr__(self, name: str) -> Any:
        if name != "get":
            self._fence.check()
        return getattr(self._api, name)


def fenced(api: ObjectApi, fence: Fence) -> ObjectApi:
    """The same API; every method but ``get`` raises NotLeader when the fence is closed."""
    return cast("ObjectApi", _FencedApi(api, fence))
