"""Another device plugin serves the node, and its pods outlive it; the kubelet answers over its
socket."""

from __future__ import annotations

import grpc
import pytest

from dra_driver.agent.agent import Agent
from dra_driver.agent.lifecycle.serving_mode import ModeSetting
from dra_driver.kubelet_api.device_plugin.service import SERVICE
from dra_driver.kubelet_api.generated import deviceplugin_v1beta1_pb2 as api
from dra_driver.kubelet_api.rpc import Stub
from dra_driver.model.devices.plugin_device import RESOURCES
from tests.component.agent.old_cluster import Place
from tests.unit.agent.node import CARDS
from tests.unit.kubelet_api.device_plugin.device_manager import DeviceManager, Endpoint, Entry

THEIRS = "enflame.com/vgcu"
ID = "0-3"  # as gcushare's: a minor and a slice, of whichever card its scheduler chose


@pytest.mark.parametrize("mode", ["dra", "device-plugin"])
def test_its_pods_count_until_they_end(place: Place, mode: ModeSetting) -> None:
    place.node.mode, kubelet = mode, place.kubelet
    agent = place.node.started() if mode == "dra" else place.start()
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
    kubelet.entries += [Entry(pod, "main", THEIRS, frozenset({ID})) for pod in "ab"]
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


def state(agent: Agent) -> tuple[float | None, list[str]]:
    """How many pods of the other plugin metrics count, and which cards are its."""
    count = agent.registry.get_sample_value("gcu_agent_foreign_pods")
    return count, sorted(map(str, agent._cards.foreign))


def offered(kubelet: DeviceManager) -> list[str]:
    """The healthy devices of this driver's device plugin; none with DRA."""
    return [device for resource in RESOURCES.values() for device in kubelet.ids(resource)]
