"""The kubelet's half of the plugin protocol, over real sockets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import grpc

from dra_driver.kubelet_api.broadcaster import Broadcaster
from dra_driver.kubelet_api.dra import health_service, registration, service
from dra_driver.kubelet_api.generated import (
    dra_health_v1_pb2,
    dra_v1_pb2,
    pluginregistration_v1_pb2,
)
from dra_driver.kubelet_api.rpc import RpcService, connected
from dra_driver.model.claims.claim import ClaimRef
from tests.unit.kubelet_api.callers import claims_of

PATIENCE = 60.0
"""Seconds after which a test fails; nothing takes as long, on however busy a machine."""

T = TypeVar("T")


def get_info(path: Path) -> pluginregistration_v1_pb2.PluginInfo:
    with connected(path, registration.SERVICE) as stub:
        info: pluginregistration_v1_pb2.PluginInfo = stub.GetInfo(
            pluginregistration_v1_pb2.InfoRequest(), timeout=PATIENCE
        )
        return info


def notify(path: Path, *, registered: bool, error: str = "") -> None:
    with connected(path, registration.SERVICE) as stub:
        stub.NotifyRegistrationStatus(
            pluginregistration_v1_pb2.RegistrationStatus(plugin_registered=registered, error=error),
            timeout=PATIENCE,
        )


def prepare_v1(
    path: Path, *refs: ClaimRef, patience: float = PATIENCE
) -> dra_v1_pb2.NodePrepareResourcesResponse:
    with connected(path, service.SERVICE) as stub:
        request = dra_v1_pb2.NodePrepareResourcesRequest(claims=claims_of(refs))
        answer: dra_v1_pb2.NodePrepareResourcesResponse = stub.NodePrepareResources(
            request, timeout=patience
        )
        return answer


def unprepare_v1(path: Path, *refs: ClaimRef) -> dra_v1_pb2.NodeUnprepareResourcesResponse:
    with connected(path, service.SERVICE) as stub:
        request = dra_v1_pb2.NodeUnprepareResourcesRequest(claims=claims_of(refs))
        answer: dra_v1_pb2.NodeUnprepareResourcesResponse = stub.NodeUnprepareResources(
            request, timeout=PATIENCE
        )
        return answer


HealthLists = Iterator[dra_health_v1_pb2.NodeWatchResourcesResponse]


@contextmanager
def watch(path: Path, served: RpcService = health_service.SERVICES[1]) -> Iterator[HealthLists]:
    """The lists of a health stream, which the kubelet ends on leaving. The iterator ends with the
    stream, and raises grpc.RpcError where that was refused or broken."""
    with connected(path, served) as stub:
        request = dra_health_v1_pb2.NodeWatchResourcesRequest()
        call = stub.NodeWatchResources(request, timeout=PATIENCE)
        try:
            yield call
        finally:
            call.cancel()


def rest(lists: Iterator[T]) -> list[T]:
    """What still comes on a stream that the server ends.

    The server closes the connection right behind the end of its last stream. Who happens to
    write then, as gRPC does by itself, sees UNAVAILABLE before it has read that end, about once
    in a thousand: to the kubelet the stream is over either way, and it only logs the one (1.36.3,
    ``pkg/kubelet/cm/dra/manager.go``, `HandleWatchResourcesStream`).
    """
    found = []
    try:
        for each in lists:
            found.append(each)  # noqa: PERF402 (what came before an error counts)
    except grpc.RpcError as error:
        if error.code() is not grpc.StatusCode.UNAVAILABLE:
            raise
    return found


def until_nobody_listens(broadcaster: Broadcaster[Any]) -> None:
    """Wait until all its streams have ended."""
    with broadcaster._changed:
        assert broadcaster._changed.wait_for(lambda: not broadcaster.listeners, PATIENCE)
