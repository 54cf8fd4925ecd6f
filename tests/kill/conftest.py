"""Fixtures of the kill tests: a control plane, nodes as objects, agents as processes."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import pytest

from dra_driver.kube.client import Client, connect
from dra_driver.kube.resources import NODES
from dra_driver.model.effects import Effects
from tests.cluster.cluster import Cluster
from tests.kill.node import Node
from tests.kill.plugin_node import PluginNode
from tests.kill.quick_efsmi import QuickEfsmi


class NewNode(Protocol):
    """Makes a node, with a Node object; where it is told so, one whose agents serve their cards as
    a device plugin, or whose ``efsmi`` is `efsmi`."""

    def __call__(self, plugin: bool = False, efsmi: QuickEfsmi | None = None) -> Node: ...


@pytest.fixture(scope="session")
def api(control_plane: Cluster) -> Iterator[Client]:
    """Our client, as administrator."""
    client = connect(control_plane.kubeconfig, effects=Effects(), user_agent="tests/1")
    yield client
    client.close()


@pytest.fixture(scope="session")
def quick_efsmi(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QuickEfsmi]:
    found = QuickEfsmi(tmp_path_factory.mktemp("efsmi"))
    yield found
    found.close()


@pytest.fixture
def new_node(
    control_plane: Cluster,
    api: Client,
    namespace: str,
    short_folder: Path,
) -> Iterator[NewNode]:
    """Makes nodes; nothing is left of them afterwards."""
    made: list[Node] = []

    def make(plugin: bool = False, efsmi: QuickEfsmi | None = None) -> Node:
        name = f"n-{secrets.token_hex(3)}"
        control_plane.add_node_object(name)
        root = short_folder / name
        root.mkdir()
        kubeconfig = control_plane.kubeconfig
        kind = PluginNode if plugin else Node
        node = kind(
            name,
            root,
            api=api,
            namespace=namespace,
            kubeconfig=kubeconfig,
            efsmi=efsmi,
        )
        made.append(node)
        return node

    yield make
    for node in made:
        node.close()
        api.delete(NODES, node.name)


@pytest.fixture
def tell(cluster_report: Callable[[str], None]) -> Callable[[str], None]:
    """Prints a line past pytest's capture."""
    return cluster_report


@pytest.fixture
def node(new_node: NewNode) -> Node:
    return new_node()
