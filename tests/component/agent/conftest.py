"""A node whose agents are stopped with the test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.component.agent.old_cluster import Place
from tests.unit.agent.node import Node


@pytest.fixture
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    node = Node(tmp_path_factory.mktemp("n"))  # a short path, as sockets lie below it
    yield node
    for agent in node.agents:
        agent.stop()


@pytest.fixture
def place(node: Node) -> Iterator[Place]:
    """The same node in a cluster without DRA."""
    made = Place(node)
    yield made
    for agent in node.agents:  # before the kubelet
        agent.stop()
    made.kubelet.stop()
