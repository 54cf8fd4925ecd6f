"""Several resources of one agent, met by the kubelet's device manager."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from dra_driver.kubelet_api.device_plugin.serving import ResourceServers
from dra_driver.kubelet_api.sockets import SocketError
from dra_driver.model.effects import Effects
from tests.unit.kubelet_api.device_plugin.device_manager import DeviceManager
from tests.unit.kubelet_api.device_plugin.test_resource import Handler

ONE, TWO = NAMES = ("a.example/one", "a.example/two")


class Node:
    def __init__(self, root: Path) -> None:
        self.kubelet = DeviceManager(root)
        self.kubelet.start()
        self.handlers = {name: Handler() for name in NAMES}
        self.made: list[ResourceServers] = []

    def servers(self, patience: float | None = 0.0) -> ResourceServers:
        made = ResourceServers(
            self.handlers,
            folders=self.kubelet.folders,
            register_after=patience,
            effects=Effects(),
        )
        self.made.append(made)
        return made

    def registered(self) -> bool:
        return {*self.kubelet.endpoints} == {*NAMES}

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
    assert "not registered with the kubelet yet" in (servers.problem() or "")
    servers.serve()
    node.wait()
    node.kubelet.admit("a", "main", TWO, 1)
    assert (node.handlers[ONE].asked, node.handlers[TWO].asked) == ([], [["a"]])
    assert servers.problem() is None
    assert servers.is_alive()
    assert servers.notify()


@pytest.mark.parametrize("patience", [None, 600.0], ids=["as long as it takes", "for a while"])
def test_nothing_is_registered_before_it_is_announced(node: Node, patience: float | None) -> None:
    servers = node.servers(patience)
    servers.serve()
    with node.kubelet.news:
        assert not node.kubelet.news.wait_for(lambda: bool(node.kubelet.registered), 0.3)
    assert not servers.notify()
    servers.announce()
    node.wait()


def test_a_start_that_fails_can_be_tried_again(node: Node) -> None:
    servers = node.servers()
    in_the_way = node.kubelet.folders.socket(TWO)
    in_the_way.touch()
    with pytest.raises(SocketError, match="in the way"):
        servers.serve()
    in_the_way.unlink()
    for _ in range(2):
        servers.serve()
    node.wait()


def test_the_sockets_of_a_dead_agent_go(node: Node) -> None:
    """Whatever resource it served, and not those of others."""
    folder = node.kubelet.folders.plugins
    others = replace(node.kubelet.folders, pod_uid="dead")
    dead = [others.socket(name) for name in (ONE, "enflame.com/gcu-count")]
    other = folder / "gpu.example.com.sock"
    for path in (*dead, other):
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(path))
    servers = node.servers()
    servers.serve()
    node.wait()
    for _ in range(2):
        servers._siblings.run_once()
    assert not any(path.exists() for path in dead)
    assert other.exists()
    assert all(node.kubelet.folders.socket(name).exists() for name in NAMES)


def test_after_the_end_no_socket_is_made_anew(node: Node) -> None:
    servers = node.servers()
    servers.serve()
    node.wait()
    servers.stop(60)
    servers.run()
    assert not any(node.kubelet.folders.socket(name).exists() for name in NAMES)
    assert not servers.is_alive()
