"""The gRPC service `v1.DRAPlugin`: every claim gets a result, and no error escapes."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import KW_ONLY, InitVar, dataclass
from functools import partial
from typing import Final, Protocol, TypeVar

import grpc

from dra_driver.kubelet_api.generated import dra_v1_pb2 as api
from dra_driver.kubelet_api.rpc import RpcService
from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.claims.claim_device import Prepared
from dra_driver.model.effects import Effects, Point
from dra_driver.model.errors import GcuError, Refused, internal_error
from dra_driver.telemetry.logs import new_call

logger = logging.getLogger(__name__)

R = TypeVar("R")

SERVICE: Final = RpcService(api.DESCRIPTOR, "DRAPlugin")


class ClaimHandler(Protocol):
    """Prepares claims. Both methods are called by several threads at once, must be idempotent
    by claim UID, and give a result for each claim, by UID; a claim's failure is its result."""

    def prepare(
        self, refs: Sequence[ClaimRef], *, is_cancelled: Callable[[], bool]
    ) -> Mapping[str, Prepared | GcuError]:
        """Make the claims of one pod usable on this node.

        A call that `is_cancelled` creates nothing: its claims may have been unprepared since."""

    def unprepare(self, refs: Sequence[ClaimRef]) -> Mapping[str, GcuError | None]:
        """Undo prepare; a claim that is not prepared is a success."""


ObserveCalls = Callable[[str], AbstractContextManager[list[GcuError]]]
"""What surrounds each call for claims; the operation is prepare or unprepare. At the end the list
has one error for each claim that failed. Neither raises nor waits."""


@dataclass(eq=False)
class DraServicer:
    """Lets `handler` prepare and unprepare claims, by the kubelet's contract.

    If a call fails as a whole, the kubelet discards all its results, and one claim would block the
    other claims of the pod. So every failure is a result of the claims that it concerns.

    `at_a_time` calls run at once, and the others wait: the interpreter runs one thread at a time,
    so calls that all run at once would all end last. A call that has waited for `patience` seconds
    runs all the same: those before it wait for a card or for the API server.
    """

    handler: ClaimHandler
    observe: ObserveCalls
    effects: Effects
    _: KW_ONLY
    at_a_time: InitVar[int] = 8
    patience: float = 0.5

    def __post_init__(self, at_a_time: int) -> None:
        self._places = threading.BoundedSemaphore(at_a_time)
        self._running: list[tuple[frozenset[str], grpc.ServicerContext]] = []
        self._running_lock = threading.Lock()

    def NodePrepareResources(
        self, request: api.NodePrepareResourcesRequest, context: grpc.ServicerContext
    ) -> api.NodePrepareResourcesResponse:
        prepare = partial(self.handler.prepare, is_cancelled=lambda: not context.is_active())
        results = self._answered("prepare", request.claims, context, Point.REPLY_PREPARE, prepare)
        return api.NodePrepareResourcesResponse(
            claims={uid: _prepared(result) for uid, result in results.items()}
        )

    def NodeUnprepareResources(
        self, request: api.NodeUnprepareResourcesRequest, context: grpc.ServicerContext
    ) -> api.NodeUnprepareResourcesResponse:
        results = self._answered(
            "unprepare", request.claims, context, Point.REPLY_UNPREPARE, self.handler.unprepare
        )
        return api.NodeUnprepareResourcesResponse(
            claims={
                uid: api.NodeUnprepareResourceResponse(error=str(result or ""))
                for uid, result in results.items()
            }
        )

    def _answered(
        self,
        operation: str,
        claims: Iterable[api.Claim],
        context: grpc.ServicerContext,
        reply: Point,
        call: Callable[[Sequence[ClaimRef]], Mapping[str, R | GcuError]],
    ) -> dict[str, R | GcuError]:
        """One result for each of `claims`, which are logged and counted. An error of the call
        becomes the result of all of them."""
        refs = [ClaimRef(claim.namespace, claim.name, claim.uid) for claim in claims]
        if not refs:  # `SelfCheck`
            return {}
        with new_call(operation):
            # Not at level info: the result is logged, and a call that hangs is logged by the
            # time limits of the hardware.
            logger.debug("begun: %s", refs)
            with self.observe(operation) as errors:
                try:
                    with self._admitted(refs, context):
                        found = call(refs)
                except GcuError as error:
                    found = {ref.uid: error for ref in refs}
                except Exception as error:
                    logger.exception("the call failed")
                    found = {ref.uid: internal_error(error) for ref in refs}
                results: dict[str, R | GcuError] = {}
                for ref in refs:
                    result = found.get(ref.uid, GcuError(f"claim {ref} got no result"))
                    results[ref.uid] = result
                    if isinstance(result, GcuError):
                        errors.append(result)
                        logger.error("claim %s (%s): %s", ref, ref.uid, result)
                    else:
                        logger.info("claim %s (%s): done", ref, ref.uid)
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
        call = frozenset(ref.uid for ref in refs), context
        with self._running_lock:
            for uids, caller in self._running:
                shared = [ref for ref in refs if ref.uid in uids]
                if shared and not caller.is_active():
                    raise Refused(
                        f"an earlier call for claim {shared[0]}, which was given up, is still "
                        "running",
                        remedy="the kubelet retries; the agent's log says what the call waits for",
                    )
            self._running.append(call)
        placed = self._places.acquire(timeout=self.patience)
        try:
            yield
        finally:
            if placed:
                self._places.release()
            with self._running_lock:
                self._running.remove(call)


def _prepared(result: Prepared | GcuError) -> api.NodePrepareResourceResponse:
    if isinstance(result, GcuError):
        return api.NodePrepareResourceResponse(error=str(result))
    return api.NodePrepareResourceResponse(
        devices=[
            api.Device(
                request_names=[device.request],
                pool_name=device.pool,
                device_name=device.device,
                cdi_device_ids=device.cdi_ids,
                share_id=device.share_id,
            )
            for device in result
        ]
    )
