"""The list of containers, from a kubelet over its unix socket."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

from dra_driver.kubelet_api.generated import podresources_v1_pb2 as api
from dra_driver.kubelet_api.pod_resources import (
    SERVICE,
    ContainerList,
    ContainerResources,
    KubeletError,
    PodResources,
)

FOUND = (
    ContainerResources("team", "p", "one", claims=frozenset({"a", "b"})),
    ContainerResources("team", "p", "two", {"enflame.com/gcu": frozenset({"0", "1"})}),
)


class Kubelet:
    def __init__(self, socket: Path) -> None:
        self.socket = socket
        self.calls = 0
        self.cpus: list[int] = []
        self.server: grpc.Server | None = None

    def start(self) -> None:
        self.server = grpc.server(ThreadPoolExecutor(1))
        SERVICE.add_to(self.server, self)
        self.server.add_insecure_port(f"unix:{self.socket}")
        self.server.start()

    def stop(self) -> None:
        if self.server is not None:
            self.server.stop(0).wait()
        self.server = None

    def List(  # noqa: N802 (the API's name)
        self, request: api.ListPodResourcesRequest, context: grpc.ServicerContext
    ) -> api.ListPodResourcesResponse:
        self.calls += 1
        drivers = {"a": ["gcu.enflame.com", "x.io"], "b": ["gcu.enflame.com"], "c": ["x.io"]}
        claims = [
            api.DynamicResource(
                claim_name=name,
                claim_namespace="team",
                claim_resources=[api.ClaimResource(driver_name=each) for each in of],
            )
            for name, of in drivers.items()
        ]
        devices = [
            api.ContainerDevices(resource_name="enflame.com/gcu", device_ids=[each])
            for each in "01"
        ]
        containers = [
            api.ContainerResources(name="one", dynamic_resources=claims),
            api.ContainerResources(name="two", devices=devices),
        ]
        pod = api.PodResources(namespace="team", name="p", containers=containers)
        return api.ListPodResourcesResponse(pod_resources=[pod])

    def GetAllocatableResources(  # noqa: N802 (the API's name)
        self, request: api.AllocatableResourcesRequest, context: grpc.ServicerContext
    ) -> api.AllocatableResourcesResponse:
        offered = {"enflame.com/gcu": ["0"], "enflame.com/shared-gcu": ["0", "1"]}
        devices = [
            api.ContainerDevices(resource_name=name, device_ids=[each])
            for name, ids in offered.items()
            for each in ids
        ]
        return api.AllocatableResourcesResponse(devices=devices, cpu_ids=self.cpus)


@pytest.fixture
def kubelet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubelet]:
    made = Kubelet(tmp_path_factory.mktemp("k") / "kubelet.sock")
    yield made
    made.stop()


def test_the_kubelet_is_asked_once_in_a_while(kubelet: Kubelet) -> None:
    now = [100.0]
    containers = ContainerList(PodResources(kubelet.socket, 60), max_age=5, clock=lambda: now[0])
    kubelet.start()
    assert containers.read() == FOUND
    now[0] += 4.9
    assert containers.read() == FOUND
    assert kubelet.calls == 1
    now[0] += 0.1
    assert containers.read() == FOUND
    assert kubelet.calls == 2


def test_a_kubelet_that_does_not_answer(kubelet: Kubelet, caplog: pytest.LogCaptureFixture) -> None:
    now = [100.0]
    containers = ContainerList(PodResources(kubelet.socket, 60), max_age=5, clock=lambda: now[0])
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert containers.read() == ()
            now[0] += 5
    assert [str(kubelet.socket) in each.message for each in caplog.records] == [True]
    kubelet.start()
    assert containers.read() == FOUND


def test_what_all_plugins_offer(kubelet: Kubelet) -> None:
    pod_resources = PodResources(kubelet.socket, 60)
    with pytest.raises(KubeletError, match=r"UNAVAILABLE.*kubeletRootDir"):
        pod_resources.offered()
    kubelet.start()
    assert pod_resources.offered() == {
        "enflame.com/gcu": frozenset({"0"}),
        "enflame.com/shared-gcu": frozenset({"0", "1"}),
    }


def test_whether_the_cpu_manager_is_static(kubelet: Kubelet) -> None:
    pod_resources = PodResources(kubelet.socket, 60)
    kubelet.start()
    assert not pod_resources.has_exclusive_cpus()
    kubelet.cpus = [2, 3]
    assert pod_resources.has_exclusive_cpus()
