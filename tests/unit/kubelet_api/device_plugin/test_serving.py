"""Several resources of one agent, met by the kubelet's device manager."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dra_driver.kubelet_api.device_plugin.serving import ResourceServers, Served
from dra_driver.kubelet_api.errors import SocketError
from dra_driver.model.effects import Effects
from tests.unit.kubelet_api.device_plugin.device_manager import DeviceManager
from tests.unit.kubelet_api.device_plugin.test_resource import Handler

NAMES = {"one": "a.example/one", "two": "a.example/two"}


class Node:
    def __init__(self, root: Path) -> None:
        self.kubelet = DeviceManager(root)
        self.kubelet.start()
        self.handlers = {kind: Handler() for kind in NAMES}
        self.made: list[ResourceServers] = []

    def servers(self, patience: float | None = 0.0) -> ResourceServers:
        made = ResourceServers(
            [Served(kind, name, self.handlers[kind]) for kind, name in NAMES.items()],
            folders=self.kubelet.folders,
            pod_uid="",
            register_after=patience,
            effects=Effects(),
        )
        self.made.append(made)
        return made

    def registered(self) -> bool:
        return {*self.kubelet.endpoints} == {*NAMES.values()}

    def wait(self) -> None:
        self.kubelet.until(self.registered, "not registered")
        self.kubelet.until(
            lambda: all(each.lists for each in self.kubelet.endpoints.values()), "no lists"
        )


@pytest.fixture
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    made = Node(tmp_path_factory.mktemp("k"))  # a short path
    yield made
    for servers in made.made:
        servers.stop(0)
    made.kubelet.stop()


def test_each_has_its_own_devices(node: Node) -> None:
    servers = node.servers()
    assert "not registered with the kubelet yet" in (servers.problem or "")
    servers.start()
    node.wait()
    node.kubelet.admit("a", "main", NAMES["two"], 1)
    assert (node.handlers["one"].asked, node.handlers["two"].asked) == ([], [["a"]])
    assert servers.problem is None
    assert servers.is_alive()
    assert servers.notify()


@pytest.mark.parametrize("patience", [None, 600.0], ids=["as long as it takes", "for a while"])
def test_nothing_is_registered_before_it_is_announced(node: Node, patience: float | None) -> None:
    servers = node.servers(patience)
    servers.start()
    with node.kubelet.news:
        assert not node.kubelet.news.wait_for(lambda: bool(node.kubelet.registered), 0.3)
    assert not servers.notify()
    servers.announce()
    node.wait()


def test_where_one_cannot_be_served_none_is(node: Node) -> None:
    servers = node.servers()
    first, second = (node.kubelet.folders.socket(kind, "") for kind in NAMES)
    second.touch()
    with pytest.raises(SocketError, match="in the way"):
        servers.start()
    assert not first.exists()
    second.unlink()
    servers.start()
    node.wait()
