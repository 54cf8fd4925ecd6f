"""The gRPC service v1beta1.DevicePlugin for one resource."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

import grpc
import msgspec

from dra_driver.kubelet_api.broadcaster import Broadcaster
from dra_driver.kubelet_api.generated import deviceplugin_v1beta1_pb2 as api
from dra_driver.kubelet_api.rpc import RpcService
from dra_driver.model.card import DeviceNode
from dra_driver.model.effects import Effects, Point
from dra_driver.model.errors import GcuError
from dra_driver.telemetry.logs import new_call

logger = logging.getLogger(__name__)

SERVICE: Final = RpcService(api.DESCRIPTOR, "DevicePlugin")
REGISTRATION: Final = RpcService(api.DESCRIPTOR, "Registration")
"""Served by the kubelet."""

OPTIONS = api.DevicePluginOptions(get_preferred_allocation_available=True)


class ListedDevice(msgspec.Struct, frozen=True):
    """One device in the list for the kubelet. `numa_node` is None if it is unknown."""

    id: str
    healthy: bool = True
    numa_node: int | None = None


class ContainerEdits(msgspec.Struct, frozen=True):
    """What the kubelet adds to a container; `cdi_names` are fully qualified."""

    variables: Mapping[str, str] = msgspec.field(default_factory=dict)
    nodes: tuple[DeviceNode, ...] = ()
    cdi_names: tuple[str, ...] = ()


class DeviceHandler(Protocol):
    """Lists and allocates the devices of one resource. All methods are called by several threads at
    once."""

    def devices(self) -> Sequence[ListedDevice]:
        """All devices of the resource. Neither raises nor waits."""

    def prefer(self, available: Sequence[str], included: Sequence[str], size: int) -> Sequence[str]:
        """`size` of the `available` devices, with the `included` ones; empty if there is no
        preference. Does not raise, and waits for a few seconds at most."""

    def allocate(self, ids: Sequence[str]) -> ContainerEdits:
        """Give a container these devices; idempotent. Raises GcuError; then it gets none."""


@dataclass(frozen=True, slots=True)
class DevicePluginServicer:
    """The names are the API's."""

    handler: DeviceHandler
    broadcaster: Broadcaster[Sequence[ListedDevice]]
    effects: Effects

    def GetDevicePluginOptions(
        self, request: api.Empty, context: grpc.ServicerContext
    ) -> api.DevicePluginOptions:
        return OPTIONS

    def ListAndWatch(
        self, request: api.Empty, context: grpc.ServicerContext
    ) -> Iterator[api.ListAndWatchResponse]:
        for devices in self.broadcaster.lists(context):
            yield api.ListAndWatchResponse(devices=map(_device, devices))

    def GetPreferredAllocation(
        self, request: api.PreferredAllocationRequest, context: grpc.ServicerContext
    ) -> api.PreferredAllocationResponse:
        return api.PreferredAllocationResponse(
            container_responses=[
                api.ContainerPreferredAllocationResponse(
                    deviceIDs=self.handler.prefer(
                        each.available_deviceIDs, each.must_include_deviceIDs, each.allocation_size
                    )
                )
                for each in request.container_requests
            ]
        )

    def Allocate(
        self, request: api.AllocateRequest, context: grpc.ServicerContext
    ) -> api.AllocateResponse:
        """The kubelet requests devices for one container at a time. If one of several containers
        fails, the call fails, and the garbage collector releases the devices of the others."""
        with new_call("allocate"):
            try:
                answers = [self._allocate(each.devices_ids) for each in request.container_requests]
            except GcuError as error:
                logger.warning("refused: %s", error)
                # The kubelet puts the text into the pod's status.
                context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))
            self.effects.before(Point.REPLY_ALLOCATE)
            context.add_callback(partial(self.effects.after, Point.REPLY_ALLOCATE))
            return api.AllocateResponse(container_responses=answers)

    def _allocate(self, ids: Sequence[str]) -> api.ContainerAllocateResponse:
        logger.info("devices %s", ", ".join(sorted(ids)))
        return _edits(self.handler.allocate(list(ids)))


def _device(device: ListedDevice) -> api.Device:
    topology = None
    if device.numa_node is not None:
        topology = api.TopologyInfo(nodes=[api.NUMANode(ID=device.numa_node)])
    # k8s.io/kubelet, package deviceplugin/v1beta1, constants.
    health = "Healthy" if device.healthy else "Unhealthy"
    return api.Device(ID=device.id, health=health, topology=topology)


def _edits(edits: ContainerEdits) -> api.ContainerAllocateResponse:
    return api.ContainerAllocateResponse(
        envs=edits.variables,
        devices=[
            # Not "m": a container need not make device nodes.
            api.DeviceSpec(container_path=node.path, host_path=node.host_path, permissions="rw")
            for node in edits.nodes
        ],
        cdi_devices=[api.CDIDevice(name=name) for name in edits.cdi_names],
    )
