"""The kubelet's device manager, as far as a device plugin meets it, over real unix sockets.

It follows upstream's (1.36.3, ``pkg/kubelet/cm/devicemanager``): what it counts as allocated, which
devices an init container hands on, when it asks for a preference, when it writes its checkpoint,
what a failed call and a lost stream do. One thing at a time, as the kubelet admits pods.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import grpc

from dra_driver.kubelet_api import pod_resources
from dra_driver.kubelet_api.device_plugin.service import REGISTRATION, SERVICE
from dra_driver.kubelet_api.generated import deviceplugin_v1beta1_pb2 as api
from dra_driver.kubelet_api.generated import podresources_v1_pb2 as pods_api
from dra_driver.kubelet_api.rpc import Stub
from dra_driver.kubelet_api.sockets import Folders
from tests.unit.kubelet_api.fake_kubelet import PATIENCE


class AdmissionError(Exception):
    """What ends in the status of a pod that failed with UnexpectedAdmissionError."""


@dataclass
class Endpoint:
    """A plugin that is connected, and what it told: now, and in its `first` list."""

    channel: grpc.Channel
    stub: Stub
    devices: dict[str, api.Device] = field(default_factory=dict)
    first: dict[str, api.Device] = field(default_factory=dict)
    lists: int = 0
    lost: bool = False


@dataclass(frozen=True)
class Entry:
    """What a container has of a resource."""

    pod: str
    container: str
    resource: str
    devices: frozenset[str]
    answer: api.ContainerAllocateResponse = field(default_factory=api.ContainerAllocateResponse)
    init: bool = False


class DeviceManager:
    """`active` are the pods that have not ended; a test ends one by taking it out. They are in
    `namespace`, and have the UIDs of `uids`, or ``uid-`` and their name.

    With `keeps_last` the pod that was admitted last stays on record until another one is admitted,
    whatever becomes of it (1.30.14, ``pendingAdmissionPod``).
    """

    def __init__(self, root: Path, *, namespace: str = "team", keeps_last: bool = False) -> None:
        self.namespace = namespace
        self.uids: dict[str, str] = {}
        self._keeps_last = keeps_last
        self._last = ""
        self.folders = Folders.of(root)
        self.active: set[str] = set()
        self.entries: list[Entry] = []
        self.endpoints: dict[str, Endpoint] = {}
        self.registered: list[api.RegisterRequest] = []
        self.news = threading.Condition(threading.RLock())
        self._servers: list[grpc.Server] = []
        self._followers: list[threading.Thread] = []
        for folder in (self.folders.plugins, self.folders.pod_resources.parent):
            folder.mkdir(parents=True, exist_ok=True)

    def forget_plugins(self) -> None:
        """As a kubelet that starts: no plugin is known, and no socket stays."""
        for path in self.folders.plugins.iterdir():
            if path.is_socket():
                path.unlink()
        self.endpoints = {}

    def start(self) -> None:
        self.forget_plugins()
        for path in (self.folders.kubelet, self.folders.pod_resources):
            path.unlink(missing_ok=True)
            server = grpc.server(ThreadPoolExecutor(8))
            if path == self.folders.kubelet:
                REGISTRATION.add_to(server, self)
            else:
                pod_resources.SERVICE.add_to(server, self)
            server.add_insecure_port(f"unix:{path}")
            server.start()
            self._servers.append(server)

    def stop(self) -> None:
        for server in self._servers:
            server.stop(0).wait()
        self._servers = []
        for endpoint in self.endpoints.values():
            endpoint.channel.close()
        for follower in self._followers:
            follower.join(PATIENCE)
        self._followers = []

    def Register(  # noqa: N802 (the API's name)
        self, request: api.RegisterRequest, context: grpc.ServicerContext
    ) -> api.Empty:
        channel = grpc.insecure_channel(f"unix:{self.folders.plugins / request.endpoint}")
        stub = Stub(channel, SERVICE)
        options = stub.GetDevicePluginOptions(api.Empty(), timeout=PATIENCE)
        assert options.get_preferred_allocation_available
        assert not options.pre_start_required
        endpoint = Endpoint(channel, stub)
        with self.news:
            self.registered.append(request)
            self.endpoints[request.resource_name] = endpoint
            self.news.notify_all()
        follower = threading.Thread(
            target=self._follow, args=(request.resource_name, endpoint), daemon=True
        )
        self._followers.append(follower)
        follower.start()
        return api.Empty()

    def List(  # noqa: N802 (the API's name)
        self, request: pods_api.ListPodResourcesRequest, context: grpc.ServicerContext
    ) -> pods_api.ListPodResourcesResponse:
        with self.news:
            self._drop_ended()
            return pods_api.ListPodResourcesResponse(
                pod_resources=[
                    pods_api.PodResources(
                        namespace=self.namespace, name=pod, containers=list(self._containers(pod))
                    )
                    for pod in sorted(self.active)
                ]
            )

    def GetAllocatableResources(  # noqa: N802 (the API's name)
        self, request: pods_api.AllocatableResourcesRequest, context: grpc.ServicerContext
    ) -> pods_api.AllocatableResourcesResponse:
        with self.news:
            return pods_api.AllocatableResourcesResponse(
                devices=[
                    pods_api.ContainerDevices(resource_name=resource, device_ids=[device.ID])
                    for resource, endpoint in self.endpoints.items()
                    for device in endpoint.devices.values()
                    if device.health == "Healthy"
                ]
            )

    def admit(
        self, pod: str, container: str, resource: str, count: int, *, init: bool = False
    ) -> api.ContainerAllocateResponse:
        """Admit one container of a pod; raises AdmissionError."""
        self.active.add(pod)
        self._last = pod
        with self.news:
            self._drop_ended()
            chosen = self.choose(pod, resource, count)
            stub = self.endpoints[resource].stub
        request = api.AllocateRequest(
            container_requests=[api.ContainerAllocateRequest(devices_ids=sorted(chosen))]
        )
        answer: api.ContainerAllocateResponse
        try:
            [answer] = stub.Allocate(request, timeout=PATIENCE).container_responses
        except grpc.RpcError as error:
            raise AdmissionError(f"{error.code().name}: {error.details()}") from error
        with self.news:
            self.entries.append(Entry(pod, container, resource, chosen, answer, init))
            self.write_checkpoint()
        return answer

    def readmit(self, pod: str) -> None:
        """As a kubelet that has started admits the pods that run: containers that run need nothing,
        and an ended init container must find its devices healthy (``devicesToAllocate``, 1.37.2).
        Raises AdmissionError; then the kubelet ends the pod."""
        for each in self.entries:
            if each.pod == pod and each.init and not self.ids(each.resource):
                self.end(pod)
                raise AdmissionError(
                    "Allocate failed due to no healthy devices present; cannot allocate unhealthy "
                    f"devices {each.resource}, which is unexpected"
                )

    def choose(self, pod: str, resource: str, count: int) -> frozenset[str]:
        """The devices for a container; raises AdmissionError where there are too few."""
        reusable = {
            device
            for each in self.entries
            if each.init and each.pod == pod and each.resource == resource
            for device in each.devices
        }
        kept = sorted(reusable)[:count]
        if len(kept) == count:
            return frozenset(kept)
        in_use = {d for each in self.entries if each.resource == resource for d in each.devices}
        available = set(self.ids(resource)) - in_use
        needed = count - len(kept)
        if len(available) < needed:
            raise AdmissionError(
                f"requested number of devices unavailable for {resource}. Requested: {needed}, "
                f"Available: {len(available)}"
            )
        preferred: set[str] = set()
        if needed < len(available):
            preferred = set(self._preferred(resource, available, kept, count)) & available
        ordered = [*sorted(preferred), *sorted(available - preferred, reverse=True)]
        return frozenset([*kept, *ordered[:needed]])

    def end(self, pod: str) -> None:
        self.active.discard(pod)

    def until(self, met: Callable[[], bool], what: str) -> None:
        """Wait for something that the plugin does."""
        with self.news:
            assert self.news.wait_for(met, PATIENCE), what

    def ids(self, resource: str, *, healthy: bool = True) -> list[str]:
        """The devices of now."""
        with self.news:
            endpoint = self.endpoints.get(resource)
            found = dict(endpoint.devices) if endpoint and not endpoint.lost else {}
        wanted = "Healthy" if healthy else "Unhealthy"
        return sorted(name for name, device in found.items() if device.health == wanted)

    def write_checkpoint(self) -> None:
        data = {
            "Data": {
                "PodDeviceEntries": [
                    {
                        "PodUID": self.uids.get(each.pod, f"uid-{each.pod}"),
                        "ContainerName": each.container,
                        "ResourceName": each.resource,
                        "DeviceIDs": {"-1": sorted(each.devices)},
                        "AllocResp": "",
                    }
                    for each in self.entries
                ],
                "RegisteredDevices": {},
            },
            "Checksum": 1,
        }
        new = self.folders.checkpoint.with_suffix(".new")
        new.write_text(json.dumps(data))
        new.replace(self.folders.checkpoint)

    def _preferred(
        self, resource: str, available: set[str], kept: list[str], count: int
    ) -> list[str]:
        request = api.PreferredAllocationRequest(
            container_requests=[
                api.ContainerPreferredAllocationRequest(
                    available_deviceIDs=sorted(available | set(kept)),
                    must_include_deviceIDs=kept,
                    allocation_size=count,
                )
            ]
        )
        stub = self.endpoints[resource].stub
        answer = stub.GetPreferredAllocation(request, timeout=PATIENCE)
        return list(answer.container_responses[0].deviceIDs)

    def _drop_ended(self) -> None:
        kept = self.active | ({self._last} if self._keeps_last else set())
        self.entries = [each for each in self.entries if each.pod in kept]

    def _containers(self, pod: str) -> Iterator[pods_api.ContainerResources]:
        for each in self.entries:
            if each.pod == pod and not each.init:
                yield pods_api.ContainerResources(
                    name=each.container,
                    devices=[
                        pods_api.ContainerDevices(resource_name=each.resource, device_ids=[device])
                        for device in sorted(each.devices)
                    ],
                )

    def _follow(self, resource: str, endpoint: Endpoint) -> None:
        with suppress(grpc.RpcError, ValueError):
            for answer in endpoint.stub.ListAndWatch(api.Empty()):
                with self.news:
                    endpoint.devices = {device.ID: device for device in answer.devices}
                    if not endpoint.lists:
                        endpoint.first = endpoint.devices
                    endpoint.lists += 1
                    self.write_checkpoint()
                    self.news.notify_all()
        with self.news:
            # Whoever is registered by now, as in upstream's `runClient`.
            if resource in self.endpoints:
                self.endpoints[resource].lost = True
            self.news.notify_all()
