"""The gRPC services `v1.DRAResourceHealth` and `v1alpha1.DRAResourceHealth`.

The messages of both are the same, in two packages. The list is sent at once when it changes, and
again in time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import grpc

from dra_driver.kubelet_api.broadcaster import Broadcaster
from dra_driver.kubelet_api.dra.health import DeviceHealth, HealthSource
from dra_driver.kubelet_api.generated import dra_health_v1_pb2, dra_health_v1alpha1_pb2
from dra_driver.kubelet_api.rpc import add_service

SERVICES: Final = ("v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth")
"""The names in the registration's list of supported versions."""

TIMEOUT: Final = 30
"""Seconds for which a list is valid. It is the kubelet's default (1.36.3,
``pkg/kubelet/cm/dra/healthinfo.go``, ``DefaultHealthTimeout``), sent all the same, so that another
default does not change it."""


class HealthBroadcaster(Broadcaster[Sequence[DeviceHealth]]):
    """The lists of `source`."""

    def __init__(self, source: HealthSource, *, resend: float = TIMEOUT / 3) -> None:
        """A list is sent again after `resend` seconds: two may get lost."""
        super().__init__(source, what="the devices' health", resend=resend)


def add_health_services(broadcaster: HealthBroadcaster, server: grpc.Server) -> None:
    """Let the server serve both versions."""
    for api in (dra_health_v1_pb2, dra_health_v1alpha1_pb2):
        add_service(server, api.DESCRIPTOR, "DRAResourceHealth", _Servicer(broadcaster, api))


class _Servicer:
    """Translates lists into the messages of one version; the names are the API's."""

    def __init__(self, broadcaster: HealthBroadcaster, api: Any) -> None:
        """`api` is the module of the version's messages."""
        self._broadcaster = broadcaster
        self._api = api

    def NodeWatchResources(  # noqa: N802 (the API's name)
        self,
        request: object,  # noqa: ARG002 (the API's signature)
        context: grpc.ServicerContext,
    ) -> Iterator[object]:
        for devices in self._broadcaster.lists(context):
            yield self._api.NodeWatchResourcesResponse(devices=map(self._message, devices))

    def _message(self, device: DeviceHealth) -> object:
        return self._api.DeviceHealth(
            device=self._api.DeviceIdentifier(pool_name=device.pool, device_name=device.device),
            health=self._api.HealthStatus.Value(device.health.value),
            last_updated_time=device.updated,
            health_check_timeout_seconds=TIMEOUT,
            message=device.cut_message,
        )
