"""A device plugin of somebody else, which serves the kubelet of a node from outside."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import grpc

from dra_driver.kubelet_api.device_plugin.service import REGISTRATION, SERVICE
from dra_driver.kubelet_api.generated import deviceplugin_v1beta1_pb2 as api
from dra_driver.kubelet_api.rpc import Stub
from tests.cluster.node import Node
from tests.cluster.waiting import PATIENCE

_FOLDER = "/var/lib/kubelet/device-plugins"


class _OtherPlugin:
    """Offers two devices, with IDs as the vendor's plugin may give them."""

    def __init__(self) -> None:
        self.ended = threading.Event()

    def GetDevicePluginOptions(  # noqa: N802 (the API's name)
        self, request: api.Empty, context: grpc.ServicerContext
    ) -> api.DevicePluginOptions:
        return api.DevicePluginOptions()

    def ListAndWatch(  # noqa: N802 (the API's name)
        self, request: api.Empty, context: grpc.ServicerContext
    ) -> Iterator[api.ListAndWatchResponse]:
        devices = [api.Device(ID=each, health="Healthy") for each in ("gcu-0", "gcu-1")]
        yield api.ListAndWatchResponse(devices=devices)
        self.ended.wait()

    def Allocate(  # noqa: N802 (the API's name)
        self, request: api.AllocateRequest, context: grpc.ServicerContext
    ) -> api.AllocateResponse:
        answers = [api.ContainerAllocateResponse() for _ in request.container_requests]
        return api.AllocateResponse(container_responses=answers)

    def GetPreferredAllocation(  # noqa: N802 (the API's name)
        self, request: api.PreferredAllocationRequest, context: grpc.ServicerContext
    ) -> api.PreferredAllocationResponse:
        raise NotImplementedError  # its options say so


@contextmanager
def other_plugin(node: Node, resource: str) -> Iterator[None]:
    """Within it the plugin serves `resource`; afterwards it is gone, as after an uninstall."""
    folder = node.host_path(_FOLDER)
    socket = folder / "other.sock"
    plugin, server = _OtherPlugin(), grpc.server(ThreadPoolExecutor(4))
    SERVICE.add_to(server, plugin)
    server.add_insecure_port(f"unix:{socket}")
    server.start()
    try:
        with grpc.insecure_channel(f"unix:{folder / 'kubelet.sock'}") as channel:
            request = api.RegisterRequest(
                version="v1beta1", endpoint=socket.name, resource_name=resource
            )
            kubelet = Stub(channel, REGISTRATION)
            kubelet.Register(request, timeout=PATIENCE)
        yield
    finally:
        plugin.ended.set()
        server.stop(0).wait()
        socket.unlink(missing_ok=True)
