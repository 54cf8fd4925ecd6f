"""Around each DRA call: every claim gets a result, and no error escapes."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, InitVar, dataclass
from functools import partial
from typing import Protocol, TypeVar

import grpc

from dra_driver.kubelet_api.dra.handler import ClaimHandler
from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.claims.claim_device import Prepared
from dra_driver.model.effects import Effects, Point
from dra_driver.model.errors import GcuError, Refused, internal_error
from dra_driver.telemetry.logs import new_call

logger = logging.getLogger(__name__)

R = TypeVar("R")


class CallObserver(Protocol):
    """Called for each call for claims; `operation` is prepare or unprepare. Neither method raises
    or waits."""

    def on_begin(self, operation: str) -> None:
        """A call has begun."""

    def on_end(self, operation: str, seconds: float, errors: Sequence[GcuError]) -> None:
        """The call is about to be answered; `errors` has one error for each claim that failed."""


@dataclass(eq=False)
class ClaimService:
    """Lets `handler` prepare and unprepare claims, by the kubelet's contract. Thread-safe.

    If a call fails as a whole, the kubelet discards all its results, and one claim would block the
    other claims of the pod. So every failure is a result of the claims that it concerns.

    `at_a_time` calls run at once, and the others wait: the interpreter runs one thread at a time,
    so calls that all run at once would all end last. A call that has waited for `patience` seconds
    runs all the same: those before it wait for a card or for the API server.
    """

    handler: ClaimHandler
    observer: CallObserver
    effects: Effects
    _: KW_ONLY
    at_a_time: InitVar[int] = 8
    patience: float = 0.5

    def __post_init__(self, at_a_time: int) -> None:
        self._places = threading.BoundedSemaphore(at_a_time)
        self._running: dict[str, list[grpc.ServicerContext]] = {}
        self._running_lock = threading.Lock()

    def prepare(
        self, refs: Sequence[ClaimRef], context: grpc.ServicerContext
    ) -> dict[str, Prepared | GcuError]:
        """The devices of each claim, or its error; by UID, one result for each of `refs`."""
        prepare = partial(self.handler.prepare, refs, is_cancelled=lambda: not context.is_active())
        return self._answered("prepare", refs, context, Point.REPLY_PREPARE, prepare)

    def unprepare(
        self, refs: Sequence[ClaimRef], context: grpc.ServicerContext
    ) -> dict[str, GcuError | None]:
        """None for each claim that is unprepared now, or its error; by UID."""
        unprepare = partial(self.handler.unprepare, refs)
        return self._answered("unprepare", refs, context, Point.REPLY_UNPREPARE, unprepare)

    def _answered(
        self,
        operation: str,
        refs: Sequence[ClaimRef],
        context: grpc.ServicerContext,
        reply: Point,
        call: Callable[[], Mapping[str, R | GcuError]],
    ) -> dict[str, R | GcuError]:
        """One result for each of `refs`, which are logged and counted. An error of the call becomes
        the result of all of them."""
        results: dict[str, R | GcuError] = {}
        if not refs:  # `SelfCheck`
            return results
        begun = time.perf_counter()
        with new_call(operation):
            # Not at level info: the result is logged, and a call that hangs is logged by the
            # time limits of the hardware.
            logger.debug("begun: %s", refs)
            self.observer.on_begin(operation)
            try:
                try:
                    with self._admitted(refs, context):
                        found = call()
                except GcuError as error:
                    found = {ref.uid: error for ref in refs}
                except Exception as error:
                    logger.exception("the call failed")
                    found = {ref.uid: internal_error(error) for ref in refs}
                results = _completed(found, refs)
            finally:
                errors = [each for each in results.values() if isinstance(each, GcuError)]
                self.observer.on_end(operation, time.perf_counter() - begun, errors)
            self.effects.before(reply)
            context.add_callback(partial(self.effects.after, reply))
        return results

    @contextmanager
    def _admitted(self, refs: Sequence[ClaimRef], context: grpc.ServicerContext) -> Iterator[None]:
        """Wait for a free place, and hold it inside. Raises Refused if an earlier call for one of
        the claims still runs although the kubelet has given it up.

        The kubelet gives up after 45 s (k8s.io/kubernetes, ``pkg/kubelet/cm/dra/plugin``) and calls
        again, while the earlier call may wait for a card that hangs. Each call would take one more
        thread, until none is left for other cards. Calls that have not been given up run in
        parallel, because pods may share a claim.
        """
        self._begin(refs, context)
        try:
            placed = self._places.acquire(timeout=self.patience)
            try:
                yield
            finally:
                if placed:
                    self._places.release()
        finally:
            self._end(refs, context)

    def _begin(self, refs: Sequence[ClaimRef], context: grpc.ServicerContext) -> None:
        with self._running_lock:
            for ref in refs:
                if any(not caller.is_active() for caller in self._running.get(ref.uid, ())):
                    raise Refused(
                        f"an earlier call for claim {ref}, which was given up, is still running",
                        remedy="the kubelet retries; the agent's log says what the call waits for",
                    )
            for ref in refs:
                self._running.setdefault(ref.uid, []).append(context)

    def _end(self, refs: Sequence[ClaimRef], context: grpc.ServicerContext) -> None:
        with self._running_lock:
            for ref in refs:
                callers = self._running[ref.uid]
                callers.remove(context)
                if not callers:
                    del self._running[ref.uid]


def _completed(
    found: Mapping[str, R | GcuError], refs: Sequence[ClaimRef]
) -> dict[str, R | GcuError]:
    """One result for each of `refs`, in their order. Each result is logged."""
    results = {ref.uid: found.get(ref.uid, GcuError(f"claim {ref} got no result")) for ref in refs}
    for ref in refs:
        result = results[ref.uid]
        if isinstance(result, GcuError):
            logger.error("claim %s (%s): %s", ref, ref.uid, result)
        else:
            logger.info("claim %s (%s): done", ref, ref.uid)
    return results
