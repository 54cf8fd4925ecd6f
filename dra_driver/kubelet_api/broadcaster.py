"""Lists that are sent to everybody who listens: at once when they change."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar

import grpc

logger = logging.getLogger(__name__)

T = TypeVar("T")

STREAMS: Final = 8
"""How many may listen at a time. One kubelet listens once to each agent; the others of before
have gone as soon as their process has ended, since the kernel closes a unix socket then."""


class Broadcaster(Generic[T]):
    """Serves each stream from the thread that gRPC gives it, asleep between two lists.

    gRPC keeps a thread for each stream that is open, so the server needs `STREAMS` more of them
    than it answers calls with; another stream is refused at once and takes none.
    """

    def __init__(self, source: Callable[[], T], *, what: str, resend: float | None = None) -> None:
        """`source` gives a list, from several threads at once, and neither raises nor waits;
        `what` it tells of is named in a refusal. `resend` is after how many seconds a list is
        sent again that has not changed."""
        self._source = source
        self._what = what
        self._resend = resend
        self._changed = threading.Condition()
        self._version = 0
        self._open = 0
        self._stopped = False

    @property
    def listeners(self) -> int:
        """How many streams are open."""
        return self._open

    def wake(self) -> None:
        """Something is different: send the list now."""
        with self._changed:
            self._version += 1
            self._changed.notify_all()

    def stop(self) -> None:
        """End all streams; those that come later end at once."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def lists(self, context: grpc.ServicerContext) -> Iterator[T]:
        """The lists for one stream, until it ends. Refuses with RESOURCE_EXHAUSTED."""
        self._enter(context)
        try:
            # Where the call has ended already there is nobody to call back.
            if not context.add_callback(self._look_up):
                return
            told = None
            while (version := self._next(told, context)) is not None:
                yield self._source()
                told = version
        finally:
            self._leave()

    def _next(self, told: int | None, context: grpc.ServicerContext) -> int | None:
        """Sleep until there is something to tell to who knows the version `told`; gives the
        version then, or None when the stream has ended."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._stopped or self._version != told or not context.is_active(),
                timeout=self._resend,
            )
            return None if self._stopped or not context.is_active() else self._version

    def _enter(self, context: grpc.ServicerContext) -> None:
        with self._changed:
            refused = self._open >= STREAMS
            if not refused:
                self._open += 1
        if refused:
            logger.warning("somebody else wants to hear of %s: too many do", self._what)
            context.abort(
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                f"{STREAMS} streams hear of {self._what} already",
            )

    def _leave(self) -> None:
        with self._changed:
            self._open -= 1
            self._changed.notify_all()

    def _look_up(self) -> None:
        with self._changed:
            self._changed.notify_all()
