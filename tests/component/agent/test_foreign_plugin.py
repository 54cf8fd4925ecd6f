"""Another device plugin serves the node, and its pods outlive it; the kubelet answers over its
socket."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import grpc
import pytest

from dra_driver.agent.agent import Agent
from dra_driver.kubelet_api.device_plugin.service import SERVICE
from dra_driver.kubelet_api.generated import deviceplugin_v1beta1_pb2 as api
from dra_driver.kubelet_api.rpc import Stub
from dra_driver.model.devices.plugin_device import RESOURCES
from tests.component.agent.old_cluster import Place
from tests.unit.agent.node import CARDS, Node
from tests.unit.kubelet_api.device_plugin.device_manager import DeviceManager, Endpoint, Entry

THEIRS = "enflame.com/vgcu"
ID = "0-3"  # as gcushare's: a minor and a slice, of whichever card its scheduler chose
World = tuple[Agent, DeviceManager]


def with_dra(root: Path) -> Iterator[World]:
    node = Node(root)
    kubelet = DeviceManager(node.kubelet)
    kubelet.start()
    yield node.started(), kubelet
    for agent in node.agents:
        agent.stop()
    kubelet.stop()


def without_dra(root: Path) -> Iterator[World]:
    place = Place(Node(root))
    yield place.start(), place.kubelet
    for agent in place.node.agents:
        agent.stop()
    place.kubelet.stop()


@pytest.fixture(params=[with_dra, without_dra])
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    make = cast("Callable[[Path], Iterator[World]]", request.param)
    yield from make(tmp_path_factory.mktemp("n"))  # a short path


def test_its_pods_count_until_they_end(world: World) -> None:
    agent, kubelet = world
    assert state(agent) == (0, [])
    before = offered(kubelet)
    channel = grpc.insecure_channel("unix:none")
    plugin = Endpoint(
        channel, Stub(channel, SERVICE), devices={ID: api.Device(ID=ID, health="Healthy")}
    )
    kubelet.endpoints[THEIRS] = plugin
    agent._reconcile_loop.run_once()
    assert state(agent) == (0, list(CARDS))
    kubelet.until(lambda: not offered(kubelet), "no device of ours for new pods")
    kubelet.active |= {"a", "b"}
    answer = api.ContainerAllocateResponse()
    kubelet.entries += [Entry(pod, "main", THEIRS, frozenset({ID}), answer) for pod in "ab"]
    kubelet.endpoints.pop(THEIRS).channel.close()
    agent._reconcile_loop.run_once()
    assert state(agent) == (2, list(CARDS))
    kubelet.end("a")
    agent._reconcile_loop.run_once()
    assert state(agent) == (1, list(CARDS))
    kubelet.end("b")
    agent._reconcile_loop.run_once()
    assert state(agent) == (0, [])
    kubelet.until(lambda: offered(kubelet) == before, "the devices from before")


def test_without_an_answer_the_taint_stays(world: World) -> None:
    agent, kubelet = world
    kubelet.active.add("a")
    kubelet.entries.append(
        Entry("a", "main", THEIRS, frozenset({ID}), api.ContainerAllocateResponse())
    )
    agent._reconcile_loop.run_once()
    kubelet.stop()
    agent._reconcile_loop.run_once()
    assert state(agent) == (1, list(CARDS))


def state(agent: Agent) -> tuple[float | None, list[str]]:
    """How many pods of the other plugin metrics count, and which cards are its."""
    count = agent.registry.get_sample_value("gcu_agent_foreign_pods")
    return count, sorted(map(str, agent._cards.foreign))


def offered(kubelet: DeviceManager) -> list[str]:
    """The healthy devices of this driver's device plugin; none with DRA."""
    return [device for resource in RESOURCES.values() for device in kubelet.ids(resource)]
