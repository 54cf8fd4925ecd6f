"""What the kubelet's pod-resources API says of the containers and device plugins of this node."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, Final

import grpc
import msgspec
from google.protobuf.message import Message

from dra_driver.kubelet_api.generated import podresources_v1_pb2 as api
from dra_driver.kubelet_api.rpc import RpcService, connected, reason
from dra_driver.model.errors import GcuError
from dra_driver.model.names import DRIVER
from dra_driver.util.hooks import Clock

logger = logging.getLogger(__name__)

SERVICE: Final = RpcService(api.DESCRIPTOR, "PodResourcesLister")

_LARGEST: Final = ("grpc.max_receive_message_length", 16 * 1024 * 1024)


class KubeletError(GcuError):
    """The kubelet does not answer, or its answer or checkpoint cannot be read."""


class ContainerResources(msgspec.Struct, frozen=True):
    """What one container may use: IDs of devices by resource, and names of claims with devices of
    this driver, which are in the pod's namespace."""

    namespace: str
    pod: str
    container: str
    devices: Mapping[str, frozenset[str]] = msgspec.field(default_factory=dict)
    claims: frozenset[str] = frozenset()


class PodResources:
    """The API on its `socket`. A call raises KubeletError if the kubelet does not answer within
    `timeout` seconds."""

    def __init__(self, socket: Path, timeout: float) -> None:
        self._socket = socket
        self._timeout = timeout

    def containers(self) -> tuple[ContainerResources, ...]:
        """All containers of the pods that run or are about to, but init containers that end before
        the others start.

        The call makes the kubelet drop the devices of ended pods (1.36.3,
        ``UpdateAllocatedDevices``).
        """
        answer: api.ListPodResourcesResponse = self._call("List", api.ListPodResourcesRequest())
        return tuple(
            ContainerResources(
                pod.namespace,
                pod.name,
                each.name,
                _by_resource(each.devices),
                frozenset(used.claim_name for used in each.dynamic_resources if _is_ours(used)),
            )
            for pod in answer.pod_resources
            for each in pod.containers
        )

    def offered(self) -> Mapping[str, frozenset[str]]:
        """By resource, the IDs of the healthy devices of all plugins that serve this kubelet, in
        use or not."""
        return _by_resource(self._allocatable().devices)

    def has_exclusive_cpus(self) -> bool:
        """Whether the kubelet's CPU manager has the policy static, which gives containers CPUs of
        their own. With the policy none it lists no CPUs (1.36.3, ``policy_none.go``)."""
        return bool(self._allocatable().cpu_ids)

    def _allocatable(self) -> api.AllocatableResourcesResponse:
        request = api.AllocatableResourcesRequest()
        answer: api.AllocatableResourcesResponse = self._call("GetAllocatableResources", request)
        return answer

    def _call(self, method: str, request: Message) -> Any:
        try:
            with connected(self._socket, SERVICE, _LARGEST) as kubelet:
                return getattr(kubelet, method)(request, timeout=self._timeout)
        except grpc.RpcError as error:
            raise KubeletError(
                f"the kubelet does not answer on {self._socket}: {reason(error)}",
                remedy="check that the kubelet's --root-dir is the chart's kubeletRootDir",
            ) from error


def _is_ours(claim: api.DynamicResource) -> bool:
    return any(each.driver_name == DRIVER for each in claim.claim_resources)


def _by_resource(listed: Iterable[api.ContainerDevices]) -> dict[str, frozenset[str]]:
    """The kubelet lists each device separately, with its NUMA nodes."""
    found: dict[str, set[str]] = {}
    for devices in listed:
        found.setdefault(devices.resource_name, set()).update(devices.device_ids)
    return {resource: frozenset(devices) for resource, devices in found.items()}


@dataclass(eq=False)
class ContainerList:
    """The list of containers that metrics show; nothing else uses it. Thread-safe.

    The kubelet is asked once in `max_age` seconds at most, however often metrics are scraped.
    """

    kubelet: PodResources
    _: KW_ONLY
    max_age: float = 5.0
    clock: Clock = time.monotonic

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._latest: tuple[ContainerResources, ...] = ()
        self._expires: float | None = None
        self._problem = ""

    def read(self) -> tuple[ContainerResources, ...]:
        """Empty if the kubelet does not answer, which is logged once."""
        with self._lock:
            if self._expires is None or self.clock() >= self._expires:
                self._latest = self._list()
                self._expires = self.clock() + self.max_age
            return self._latest

    def _list(self) -> tuple[ContainerResources, ...]:
        try:
            found = self.kubelet.containers()
        except KubeletError as error:
            if str(error) != self._problem:
                logger.warning("metrics name no pods and containers: %s", error)
            self._problem = str(error)
            return ()
        self._problem = ""
        return found
