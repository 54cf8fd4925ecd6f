"""The kubelet's half of the plugin protocol, over real sockets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import grpc

from dra_driver.kubelet_api.dra import health_service, registration, service
from dra_driver.kubelet_api.generated import (
    dra_health_v1_pb2,
    dra_v1_pb2,
    pluginregistration_v1_pb2,
)
from dra_driver.kubelet_api.rpc import RpcService, Stub
from dra_driver.model.claims.claim import ClaimRef
from tests.unit.kubelet_api.callers import claims_of

PATIENCE = 60.0
"""Seconds after which a test fails; nothing takes as long, on however busy a machine."""

T = TypeVar("T")


@contextmanager
def dial(path: Path) -> Iterator[grpc.Channel]:
    """A channel to the socket, closed afterwards."""
    with grpc.insecure_channel(f"unix:{path}") as channel:
        yield channel


def get_info(path: Path) -> pluginregistration_v1_pb2.PluginInfo:
    with dial(path) as channel:
        stub = Stub(channel, registration.SERVICE)
        info: pluginregistration_v1_pb2.PluginInfo = stub.GetInfo(
            pluginregistration_v1_pb2.InfoRequest(), timeout=PATIENCE
        )
        return info


def notify(path: Path, *, registered: bool, error: str = "") -> None:
    with dial(path) as channel:
        stub = Stub(channel, registration.SERVICE)
        stub.NotifyRegistrationStatus(
            pluginregistration_v1_pb2.RegistrationStatus(plugin_registered=registered, error=error),
            timeout=PATIENCE,
        )


def prepare_v1(
    path: Path, *refs: ClaimRef, patience: float = PATIENCE
) -> dra_v1_pb2.NodePrepareResourcesResponse:
    with dial(path) as channel:
        stub = Stub(channel, service.SERVICE)
        request = dra_v1_pb2.NodePrepareResourcesRequest(claims=claims_of(refs))
        answer: dra_v1_pb2.NodePrepareResourcesResponse = stub.NodePrepareResources(
            request, timeout=patience
        )
        return answer


def unprepare_v1(path: Path, *refs: ClaimRef) -> dra_v1_pb2.NodeUnprepareResourcesResponse:
    with dial(path) as channel:
        stub = Stub(channel, service.SERVICE)
        request = dra_v1_pb2.NodeUnprepareResourcesRequest(claims=claims_of(refs))
        answer: dra_v1_pb2.NodeUnprepareResourcesResponse = stub.NodeUnprepareResources(
            request, timeout=PATIENCE
        )
        return answer


HealthLists = Iterator[dra_health_v1_pb2.NodeWatchResourcesResponse]


@contextmanager
def watch_v1(path: Path) -> Iterator[HealthLists]:
    """The lists of a health stream, which the kubelet ends on leaving. The iterator ends with the
    stream, and raises grpc.RpcError where that was refused or broken."""
    with _watch(path, health_service.SERVICES[0]) as lists:
        yield lists


@contextmanager
def watch_v1alpha1(path: Path) -> Iterator[HealthLists]:
    with _watch(path, health_service.SERVICES[1]) as lists:
        yield lists


@contextmanager
def _watch(path: Path, served: RpcService) -> Iterator[HealthLists]:
    with dial(path) as channel:
        request = dra_health_v1_pb2.NodeWatchResourcesRequest()
        call = Stub(channel, served).NodeWatchResources(request, timeout=PATIENCE)
        with _ended(call.cancel):
            yield call


@contextmanager
def _ended(cancel: Callable[[], object]) -> Iterator[None]:
    try:
        yield
    finally:
        cancel()


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
