"""An API server that does not answer, is slow, or refuses."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dra_driver.model.claims.claim import Object
from tests.cluster.cluster import Cluster
from tests.cluster.waiting import wait_until
from tests.kill.door import Door
from tests.kill.grants import CARDS, Kind, wanted
from tests.kill.node import Node
from tests.kill.outside import await_published, check

pytestmark = pytest.mark.control_plane

_AWAY_SECONDS = 10.0
_SLOW_SECONDS = 0.3
_REFUSED_SECONDS = 60.0


@pytest.fixture
def door(node: Node, control_plane: Cluster, tmp_path: Path) -> Iterator[Door]:
    """Between the node's agents and the API server."""
    found = Door(control_plane.control_plane.server)
    node.kubeconfig = found.kubeconfig(node.kubeconfig, tmp_path / "kubeconfig")
    found.open()
    yield found
    node.down()
    found.shut()


def test_what_runs_stays_and_can_end_without_the_api_server(node: Node, door: Door) -> None:
    node.serve_others()
    # A whole card is among what others have; these fit the node together.
    kinds = (Kind.SHARED, Kind.DRS, Kind.DRS_BESIDE)
    refs = [node.add(wanted(kind)) for kind in kinds]
    for ref in refs:
        assert node.kubelet.prepare(ref) == ""
    await_published(node)
    node.down()
    door.shut()
    node.wipe_slices()
    node.up()
    check(node)
    for ref in refs:
        assert node.kubelet.prepare(ref) == ""
        check(node)
        assert node.kubelet.unprepare(ref) == ""
        del node.held[ref]
        check(node)
    later = [node.add(wanted(kind)) for kind in kinds]
    for ref in later:
        assert "API server did not answer" in node.kubelet.prepare(ref)
        assert not node.file_of(ref).exists()
    assert node.slices() == ()
    door.open()
    await_published(node)
    for ref in later:
        assert node.kubelet.prepare(ref) == ""
    check(node)


def test_a_server_that_is_away_is_not_stormed(node: Node, door: Door) -> None:
    """One watch, slices that changed, statuses and events of claims, each tried ever more
    rarely."""
    node.serve_others()
    await_published(node)
    door.shut_and_count()
    node.machine.set_card(str(CARDS[0]), health=False)
    ref = node.add(wanted(Kind.WHOLE))
    node.down()
    node.up({"presence-interval": 0.5, "inventory-interval": 1})
    time.sleep(_AWAY_SECONDS)
    # 1, 2, 4 … seconds for each of the watch, the slices and the statuses; an event each once.
    assert 3 < door.knocks < 30, door.knocks
    assert node.kubelet.unprepare(ref) == ""
    del node.held[ref]
    door.shut()
    door.open()
    await_published(node)
    check(node)


def test_a_server_that_is_slow_is_waited_for(node: Node, door: Door) -> None:
    node.serve_others()
    await_published(node)
    door.delay = _SLOW_SECONDS
    for kind in (Kind.SHARED, Kind.DRS):
        ref = node.add(wanted(kind))
        assert node.kubelet.prepare(ref) == ""
        check(node)
        assert node.kubelet.unprepare(ref) == ""
        del node.held[ref]
        check(node)
    node.wipe_slices()
    await_published(node)


def without_rights(of: Path, path: Path) -> Path:
    """Write to `path` the kubeconfig `of`, for somebody who does not say who he is."""
    content: Object = json.loads(of.read_text())
    for each in content["users"]:
        each["user"] = {}
    path.write_text(json.dumps(content))
    return path


def test_a_server_that_refuses_everything(node: Node, tmp_path: Path) -> None:
    """Pods that run stay and can end, and no request is repeated at once."""
    node.serve_others()
    ref = node.add(wanted(Kind.DRS))
    assert node.kubelet.prepare(ref) == ""
    node.down()
    node.kubeconfig = without_rights(node.kubeconfig, tmp_path / "kubeconfig")
    node.up()
    check(node)
    assert node.kubelet.prepare(ref) == ""
    later = node.add(wanted(Kind.WHOLE))
    assert re.search("forbidden|[Uu]nauthorized", node.kubelet.prepare(later))
    assert node.kubelet.unprepare(ref) == ""
    del node.held[ref], node.held[later]
    check(node)

    def refusals() -> int:
        return node.log().count("cannot follow resourceslices")

    wait_until(refusals, _REFUSED_SECONDS, "the watch to be refused", seen=node.log)
    assert refusals() < 15
