"""An agent that starts while no API server answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster
from tests.kill.door import Door
from tests.kill.grants import Kind, wanted
from tests.kill.node import Node
from tests.kill.outside import await_published, check

pytestmark = pytest.mark.control_plane


@pytest.fixture
def door(node: Node, control_plane: Cluster, tmp_path: Path) -> Iterator[Door]:
    """Between the node's agents and the API server."""
    found = Door(control_plane.control_plane.server)
    node.kubeconfig = found.kubeconfig(node.kubeconfig, tmp_path / "kubeconfig")
    found.open()
    yield found
    node.down()
    found.shut()


@pytest.mark.parametrize("kind", Kind)
def test_what_runs_stays_and_can_end_without_the_api_server(
    node: Node, door: Door, kind: Kind
) -> None:
    node.serve_others()
    ref = node.add(wanted(kind))
    assert node.kubelet.prepare(ref) == ""
    await_published(node)
    node.down()
    door.shut()
    node.wipe_slices()
    node.up()
    check(node)
    assert node.kubelet.prepare(ref) == ""
    check(node)
    assert node.kubelet.unprepare(ref) == ""
    del node.held[ref]
    check(node)
    later = node.add(wanted(kind))
    assert "API server did not answer" in node.kubelet.prepare(later)
    assert not node.file_of(later).exists()
    assert node.slices() == ()
    door.open()
    await_published(node)
    assert node.kubelet.prepare(later) == ""
    check(node)
