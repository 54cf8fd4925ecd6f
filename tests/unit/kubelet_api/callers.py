"""Calls of the servicer of claims: what it is given, what it answers, and whom it tells of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import cast

import grpc

from dra_driver.kubelet_api.dra.service import DraServicer
from dra_driver.kubelet_api.generated import dra_v1_pb2 as api
from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.effects import Effects, Point
from dra_driver.model.errors import GcuError


class Caller:
    """A call's context: active until it gives up."""

    def __init__(self) -> None:
        self.active = True

    def is_active(self) -> bool:
        return self.active

    def add_callback(self, _: Callable[[], None]) -> bool:
        return self.active

    @property
    def context(self) -> grpc.ServicerContext:
        return cast("grpc.ServicerContext", self)


def prepare(
    servicer: DraServicer, refs: Sequence[ClaimRef], caller: Caller | None = None
) -> dict[str, str]:
    """The error of each claim by UID, empty for success."""
    request = api.NodePrepareResourcesRequest(claims=claims_of(refs))
    answer = servicer.NodePrepareResources(request, (caller or Caller()).context)
    return {uid: claim.error for uid, claim in answer.claims.items()}


def unprepare(
    servicer: DraServicer, refs: Sequence[ClaimRef], caller: Caller | None = None
) -> dict[str, str]:
    """The error of each claim by UID, empty for success."""
    request = api.NodeUnprepareResourcesRequest(claims=claims_of(refs))
    answer = servicer.NodeUnprepareResources(request, (caller or Caller()).context)
    return {uid: claim.error for uid, claim in answer.claims.items()}


def claims_of(refs: Sequence[ClaimRef]) -> list[api.Claim]:
    return [api.Claim(namespace=ref.namespace, name=ref.name, uid=ref.uid) for ref in refs]


class Observer:
    """Remembers which operations began, and with how many errors they ended."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended: list[tuple[str, int]] = []

    @contextmanager
    def __call__(self, operation: str) -> Iterator[list[GcuError]]:
        self.begun.append(operation)
        errors: list[GcuError] = []
        yield errors
        self.ended.append((operation, len(errors)))


class Passing(Effects):
    """Remembers each effect, and calls `look` before it."""

    def __init__(self, look: Callable[[Point], None] = lambda _: None) -> None:
        self.seen: list[Point] = []
        self._look = look

    def before(self, point: Point) -> None:
        self.seen.append(point)
        self._look(point)
