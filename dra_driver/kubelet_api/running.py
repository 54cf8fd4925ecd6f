"""Which claims are being worked on, and whether anybody still waits for it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import grpc

from dra_driver.model.claim import ClaimRef


class RunningCalls:
    """The calls in hand, by the UIDs of their claims. Thread-safe.

    The kubelet gives a call up after 45 s (k8s.io/kubernetes, ``pkg/kubelet/cm/dra/plugin``) and
    makes it again, while the one before may still wait for a card that hangs. Each would take one
    more thread until none is left for the other cards.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._callers: dict[str, list[grpc.ServicerContext]] = {}

    @contextmanager
    def entered(
        self, refs: Sequence[ClaimRef], context: grpc.ServicerContext
    ) -> Iterator[ClaimRef | None]:
        """Gives None, and the call counts as running inside; or the first claim on which a call
        works that was given up: then this one is to do nothing. Calls that are both waited for
        run beside each other, since pods may share a claim."""
        with self._lock:
            given_up = next(filter(self._is_given_up, refs), None)
            entered = refs if given_up is None else ()
            for ref in entered:
                self._callers.setdefault(ref.uid, []).append(context)
        try:
            yield given_up
        finally:
            with self._lock:
                for ref in entered:
                    self._leave(ref, context)

    def _is_given_up(self, ref: ClaimRef) -> bool:
        return any(not caller.is_active() for caller in self._callers.get(ref.uid, ()))

    def _leave(self, ref: ClaimRef, context: grpc.ServicerContext) -> None:
        callers = self._callers[ref.uid]
        callers.remove(context)
        if not callers:
            del self._callers[ref.uid]
