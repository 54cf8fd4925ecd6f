"""The gRPC services `v1.DRAResourceHealth` and `v1alpha1.DRAResourceHealth`.

Both have the same messages, which do not name their package on the wire. The list is sent at once
when it changes, and again in time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import Final

import grpc
import msgspec

from dra_driver.kubelet_api.broadcaster import Broadcaster
from dra_driver.kubelet_api.generated import dra_health_v1_pb2 as api
from dra_driver.kubelet_api.rpc import RpcService

SERVICES: Final = tuple(
    RpcService(api.DESCRIPTOR, "DRAResourceHealth", package) for package in ("v1", "v1alpha1")
)
"""Their full names are those in the registration's list of supported versions."""

TIMEOUT: Final = 30
"""Seconds for which a list is valid. It is the kubelet's default (1.36.3,
``pkg/kubelet/cm/dra/healthinfo.go``, ``DefaultHealthTimeout``), sent all the same, so that another
default does not change it."""

RESEND: Final = TIMEOUT / 3
"""Seconds after which a list is sent again: two may get lost."""


# k8s.io/api/core/v1, ResourceHealthMessageMaxLength. The kubelet would cut within a character, and
# the API server would refuse that.
_LONGEST: Final = 1024


class Health(Enum):
    """The values of both versions of the API."""

    UNKNOWN = "UNKNOWN"
    HEALTHY = "HEALTHY"
    UNHEALTHY = "UNHEALTHY"


class DeviceHealth(msgspec.Struct, frozen=True):
    """The health of one published device.

    The kubelet finds a pod's devices by `pool` and `device`, as prepare returned them. It shows
    `message` in the pod's status. `updated` is the Unix time in seconds at which the health was
    read.
    """

    pool: str
    device: str
    health: Health
    updated: int
    message: str = ""

    @property
    def cut_message(self) -> str:
        """The message, cut to the length that the API allows."""
        raw = self.message.encode()
        if len(raw) <= _LONGEST:
            return self.message
        return raw[: _LONGEST - 3].decode(errors="ignore") + "..."


HealthSource = Callable[[], Sequence[DeviceHealth]]
"""The health of all devices of the driver on this node. Called by several threads at once;
neither raises nor waits."""


class HealthServicer:
    """Translates lists into messages; the names are the API's."""

    def __init__(self, broadcaster: Broadcaster[Sequence[DeviceHealth]]) -> None:
        self._broadcaster = broadcaster

    def NodeWatchResources(
        self, request: api.NodeWatchResourcesRequest, context: grpc.ServicerContext
    ) -> Iterator[api.NodeWatchResourcesResponse]:
        for devices in self._broadcaster.lists(context):
            yield api.NodeWatchResourcesResponse(devices=map(_message, devices))


def _message(device: DeviceHealth) -> api.DeviceHealth:
    return api.DeviceHealth(
        device=api.DeviceIdentifier(pool_name=device.pool, device_name=device.device),
        health=device.health.value,
        last_updated_time=device.updated,
        health_check_timeout_seconds=TIMEOUT,
        message=device.cut_message,
    )
