"""A device plugin as the vendor's gcushare has one, until it is killed: run on a node.

It gives out slices by IDs that are not ours, knows no rules, and leaves its socket behind.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import grpc

from dra_driver.kubelet_api.device_plugin.service import REGISTRATION, SERVICE
from dra_driver.kubelet_api.generated import deviceplugin_v1beta1_pb2 as pb
from dra_driver.kubelet_api.rpc import Stub
from dra_driver.model.names import ENV_VISIBLE_DEVICES, RESOURCE_SHARED

FOLDER: Final = Path("/var/lib/kubelet/device-plugins")
SOCKET: Final = "enflame-shared.sock"
SLICES: Final = 6


class Plugin:
    """Slices of one card, all of which are well."""

    def GetDevicePluginOptions(  # noqa: N802 (the API's name)
        self, request: pb.Empty, context: grpc.ServicerContext
    ) -> pb.DevicePluginOptions:
        return pb.DevicePluginOptions()

    def ListAndWatch(  # noqa: N802 (the API's name)
        self, request: pb.Empty, context: grpc.ServicerContext
    ) -> Iterator[pb.ListAndWatchResponse]:
        devices = [pb.Device(ID=f"0-{n}", health="Healthy") for n in range(SLICES)]
        yield pb.ListAndWatchResponse(devices=devices)
        threading.Event().wait()

    def Allocate(  # noqa: N802 (the API's name)
        self, request: pb.AllocateRequest, context: grpc.ServicerContext
    ) -> pb.AllocateResponse:
        given = [
            pb.ContainerAllocateResponse(envs={ENV_VISIBLE_DEVICES: "0"})
            for _ in request.container_requests
        ]
        return pb.AllocateResponse(container_responses=given)

    def GetPreferredAllocation(  # noqa: N802 (the API's name)
        self, request: pb.PreferredAllocationRequest, context: grpc.ServicerContext
    ) -> pb.PreferredAllocationResponse:
        return pb.PreferredAllocationResponse()


def main() -> None:
    """Serve, register, and stay."""
    server = grpc.server(ThreadPoolExecutor(4))
    SERVICE.add_to(server, Plugin())
    server.add_insecure_port(f"unix://{FOLDER / SOCKET}")
    server.start()
    with grpc.insecure_channel(f"unix://{FOLDER / 'kubelet.sock'}") as channel:
        Stub(channel, REGISTRATION).Register(
            pb.RegisterRequest(version="v1beta1", endpoint=SOCKET, resource_name=RESOURCE_SHARED)
        )
    server.wait_for_termination()


if __name__ == "__main__":
    main()
