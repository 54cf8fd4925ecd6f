"""The service `v1alpha1.DRAResourceHealth` ."""

from __future__ import annotations

from collections.abc import Iterator

import grpc

from dra_driver.kubelet_api.dra.health import DeviceHealth
from dra_driver.kubelet_api.dra.health_broadcaster import TIMEOUT, HealthBroadcaster
from dra_driver.kubelet_api.generated import dra_health_v1alpha1_pb2 as api
from dra_driver.kubelet_api.generated import dra_health_v1alpha1_pb2_grpc as rpc

SERVICE = "v1alpha1.DRAResourceHealth"
"""The name in the registration's list of supported versions."""


class Servicer(rpc.DRAResourceHealthServicer):
    """Translates lists into messages; the names are the API's."""

    def __init__(self, broadcaster: HealthBroadcaster) -> None:
        self._broadcaster = broadcaster

    def NodeWatchResources(  # noqa: N802 (the API's name)
        self,
        request: api.NodeWatchResourcesRequest,  # noqa: ARG002 (the API's signature)
        context: grpc.ServicerContext,
    ) -> Iterator[api.NodeWatchResourcesResponse]:
        for devices in self._broadcaster.lists(context):
            yield api.NodeWatchResourcesResponse(devices=map(_message, devices))


def _message(device: DeviceHealth) -> api.DeviceHealth:
    return api.DeviceHealth(
        device=api.DeviceIdentifier(pool_name=device.pool, device_name=device.device),
        health=api.HealthStatus.Value(device.health.value),
        last_updated_time=device.updated,
        health_check_timeout_seconds=TIMEOUT,
        message=device.cut_message,
    )
