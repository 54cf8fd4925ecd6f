"""What a DRA call does: every claim gets a result, and no error escapes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

import grpc

from dra_driver.kubelet_api.handler import ClaimHandler, Prepared
from dra_driver.kubelet_api.room import Room
from dra_driver.kubelet_api.running import RunningCalls
from dra_driver.model.claim import ClaimRef
from dra_driver.model.effects import Effects, Point
from dra_driver.model.errors import GcuError, Refused
from dra_driver.telemetry.logs import new_call

logger = logging.getLogger(__name__)

R = TypeVar("R")


class Calls:
    """Asks the handler and makes sure of the contract that the kubelet relies on.

    The kubelet discards all results when a call fails as a whole, so that one claim would keep
    the pod's others back: here a failure of any kind is a result of the claims it concerns.
    """

    def __init__(self, handler: ClaimHandler, effects: Effects) -> None:
        self._handler = handler
        self._effects = effects
        self._running = RunningCalls()
        self._room = Room()

    def prepare(
        self, refs: Sequence[ClaimRef], context: grpc.ServicerContext
    ) -> dict[str, Prepared | GcuError]:
        """The claims' devices, or why there are none; by UID, one for each of `refs`."""
        if not refs:  # the agent's own check of its sockets, which asks for nothing
            return {}
        with new_call("prepare"):
            handle = partial(self._handler.prepare, awaited=context.is_active)
            results = self._each(refs, handle, context)
            self._before_reply(Point.REPLY_PREPARE, context)
            return results

    def unprepare(
        self, refs: Sequence[ClaimRef], context: grpc.ServicerContext
    ) -> dict[str, GcuError | None]:
        """None for each claim that is unprepared now, or why it is not; by UID."""
        with new_call("unprepare"):
            results = self._each(refs, self._handler.unprepare, context)
            self._before_reply(Point.REPLY_UNPREPARE, context)
            return results

    def _each(
        self,
        refs: Sequence[ClaimRef],
        handle: Callable[[Sequence[ClaimRef]], Mapping[str, R | GcuError]],
        context: grpc.ServicerContext,
    ) -> dict[str, R | GcuError]:
        with self._running.entered(refs, context) as given_up:
            if given_up is None:
                with self._room.entered():
                    return _each(refs, handle)
        error = Refused(
            f"an earlier call for claim {given_up}, which was given up, is still running",
            remedy="the kubelet retries; the agent's log says what the call waits for",
        )
        logger.warning("nothing is done: %s", error)
        return {ref.uid: error for ref in refs}

    def _before_reply(self, point: Point, context: grpc.ServicerContext) -> None:
        self._effects.before(point)
        context.add_callback(partial(self._effects.after, point))


def _each(
    refs: Sequence[ClaimRef],
    handle: Callable[[Sequence[ClaimRef]], Mapping[str, R | GcuError]],
) -> dict[str, R | GcuError]:
    # How a claim fared is told once, at its end: of a call that hangs, the hardware's limits tell.
    logger.debug("begun: %s", refs)
    found: Mapping[str, R | GcuError]
    try:
        found = handle(refs)
    except GcuError as error:
        found = {ref.uid: error for ref in refs}
    except Exception as error:
        logger.exception("the call failed")
        found = {ref.uid: _internal(error) for ref in refs}
    results = {
        ref.uid: found[ref.uid] if ref.uid in found else GcuError(f"claim {ref} got no result")
        for ref in refs
    }
    for ref in refs:
        result = results[ref.uid]
        if isinstance(result, GcuError):
            logger.error("claim %s (%s): %s", ref, ref.uid, result)
        else:
            logger.info("claim %s (%s): done", ref, ref.uid)
    return results


def _internal(error: Exception) -> GcuError:
    return GcuError(
        f"internal error of the agent: {error!r}",
        remedy="report it with the stack trace in its log",
    )
