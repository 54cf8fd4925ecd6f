"""Sends a list to all open streams, and again whenever it has changed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar

import grpc

T = TypeVar("T")

STREAMS: Final = 8
"""For how many open streams a server has threads. The kubelet opens one. The streams of a former
kubelet end with its process, because the kernel closes its unix sockets."""


class Broadcaster(Generic[T]):
    """Serves each stream in the thread that gRPC gives it, which sleeps between two lists.

    gRPC needs a thread for each open stream, so the server has `STREAMS` threads more than it
    answers calls at a time. Any more take the threads of calls.
    """

    def __init__(self, source: Callable[[], T], *, resend: float) -> None:
        """`source` gives the present list: called by several threads at once, it neither raises
        nor waits. An unchanged list is sent again after `resend` seconds."""
        self._source = source
        self._resend = resend
        self._changed = threading.Condition()
        self._version = 0
        self.listeners = 0
        """How many streams are open."""
        self._stopped = False

    def wake(self) -> None:
        """The list has changed: send it now."""
        with self._changed:
            self._version += 1
            self._changed.notify_all()

    def stop(self) -> None:
        """End all streams; a later stream ends at once."""
        self._stopped = True
        self._notify()

    def lists(self, context: grpc.ServicerContext) -> Iterator[T]:
        """The lists for one stream, until it ends."""
        with self._changed:
            self.listeners += 1
        try:
            # False if the call has ended already.
            if not context.add_callback(self._notify):
                return
            last_sent = None
            while (version := self._next(last_sent, context)) is not None:
                yield self._source()
                last_sent = version
        finally:
            with self._changed:
                self.listeners -= 1
                self._changed.notify_all()

    def _next(self, last_sent: int | None, context: grpc.ServicerContext) -> int | None:
        """Block until the version differs from `last_sent`. Returns the version, or None if the
        stream has ended."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._stopped or self._version != last_sent or not context.is_active(),
                timeout=self._resend,
            )
            return None if self._stopped or not context.is_active() else self._version

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()
