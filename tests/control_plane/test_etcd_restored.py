"""etcd restored from a backup that is older than what agents and controller know."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from dra_driver.agent.slices.slices import own_slices
from dra_driver.kube.client import Client, connect
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.effects import Effects
from tests.cluster.cluster import Cluster
from tests.cluster.fixtures import DRIVER_NAMESPACE
from tests.cluster.settings import Settings
from tests.cluster.state import own_process
from tests.cluster.waiting import PATIENCE, wait_until
from tests.control_plane.agent_node import Place, register
from tests.control_plane.conftest import Eyes
from tests.control_plane.controller_process import ControllerProcess
from tests.control_plane.driver import Driver
from tests.control_plane.etcd_backup import EtcdBackup
from tests.control_plane.hands import Hands
from tests.control_plane.objects import claim, pod_with
from tests.unit.kubelet_api import fake_kubelet

pytestmark = [pytest.mark.control_plane, pytest.mark.matrix]

CARDS = tuple(f"0000:{bus:02x}:00.0" for bus in (0x0D, 0x0E, 0x1D, 0x1E))
_NAMESPACE = "restored"
_CARD = re.compile(r"/dev/gcu\d+")


@dataclass(frozen=True)
class Node:
    """One node with four cards and its played kubelet, and the controller that allocates them."""

    place: Place
    api: Client
    eyes: Eyes
    hands: Hands
    controller_kubeconfig: Path

    def controller(self) -> ControllerProcess:
        return ControllerProcess(
            self.controller_kubeconfig,
            self.place.root / "controller.log",
            f"--lease-namespace={DRIVER_NAMESPACE}",
            "--quiet-time=1",
        )

    def bound(self, name: str) -> ClaimRef:
        """The pod's claim, once the pod is bound."""
        self.eyes.bound(name)
        return ClaimRef.of(self.eyes.claim(name))

    def prepare(self, ref: ClaimRef) -> str:
        """The error; empty for success."""
        answer = fake_kubelet.prepare_v1(self.place.sockets.service, ref)
        return str(answer.claims[ref.uid].error)

    def unprepare(self, ref: ClaimRef) -> None:
        answer = fake_kubelet.unprepare_v1(self.place.sockets.service, ref)
        assert answer.claims[ref.uid].error == ""

    def given(self) -> list[str]:
        """The cards in containers, by the CDI files: one entry for each claim that has one."""
        files = [path.read_text() for path in (self.place.root / "cdi").glob("*.json")]
        return sorted(card for text in files for card in set(_CARD.findall(json.dumps(text))))

    def unhealthy(self) -> bool:
        """Whether a device is tainted so on the API server."""
        found = self.api.list(RESOURCE_SLICES, field_selector=own_slices(self.place.node)).items
        return "unhealthy" in str(found)


@pytest.fixture
def restorable() -> Iterator[Cluster]:
    settings = Settings(f"restored-{os.getpid()}", keep_nodes_ready=True)
    found = Cluster.up(settings, owner=own_process())
    yield found
    found.down()


@pytest.fixture
def node(restorable: Cluster, short_folder: Path, tmp_path: Path) -> Iterator[Node]:
    driver = Driver.install(restorable)
    place = Place.make(restorable, driver, short_folder, CARDS)
    restorable.kubectl("create", "namespace", _NAMESPACE)
    api = connect(restorable.kubeconfig, effects=Effects(), user_agent="tests/1")
    yield Node(
        place,
        api,
        Eyes(restorable, api, _NAMESPACE),
        Hands(restorable, api, _NAMESPACE),
        driver.kubeconfig("controller", tmp_path / "controller-kubeconfig"),
    )
    api.close()


def test_no_card_is_given_twice(restorable: Cluster, node: Node, tmp_path: Path) -> None:
    agent = node.place.process(inventory_interval=1, presence_interval=1)
    controller = node.controller()
    try:
        register(node.place, agent)
        controller.wait_for_log("leads")
        before_the_backup = {name: start(node, name) for name in ("stays", "ended", "late")}
        for name in ("stays", "ended"):
            assert node.prepare(before_the_backup[name]) == ""
        node.api.create(RESOURCE_CLAIMS, claim("again", _NAMESPACE))
        backup = EtcdBackup(restorable, tmp_path / "backup")

        assert node.prepare(before_the_backup["late"]) == ""
        node.unprepare(before_the_backup["ended"])
        node.hands.end("ended")
        node.api.delete(RESOURCE_CLAIMS, "ended", namespace=_NAMESPACE)
        node.eyes.gone("ended")
        new = start(node, "new")
        node.api.create(PODS, pod_with("again", _NAMESPACE, "again"))
        again = node.bound("again")
        assert (node.prepare(new), node.prepare(again)) == ("", "")
        assert len(set(node.given())) == len(node.given()) == 4
        node.place.machine.set_card(CARDS[0], health=False)
        wait_until(node.unhealthy, PATIENCE, "the taint", seen=agent.log)

        backup.restore(away_for=10.0)

        # The controller knows newer objects than the server has: it ends, to be started anew.
        assert controller.wait() == 0
        assert "etcd was restored from a backup" in controller.log()
        # The agent goes on, and publishes what the backup has not got.
        wait_until(node.unhealthy, PATIENCE, "the taint again", seen=agent.log)
        controller = node.controller()
        given = node.given()
        # The pod of a claim that has ended is there again, and its card has gone to another claim.
        refusal = node.prepare(before_the_backup["ended"])
        assert any(f"{_NAMESPACE}/{name}" in refusal for name in ("new", "again")), refusal
        # A card is free for the controller and held on the node by a claim that nobody knows.
        following = start(node, "following")
        refusal = node.prepare(following)
        assert any(f"{_NAMESPACE}/{name}" in refusal for name in ("new", "again")), refusal
        assert node.prepare(before_the_backup["late"]) == ""  # as it was
        assert node.given() == given
        # The pods are not on the API server: kubelets end them, and tell the driver.
        for ref in (new, again):
            node.unprepare(ref)
        for ref in (before_the_backup["ended"], following):
            assert node.prepare(ref) == ""
        assert len(set(node.given())) == len(node.given()) == 4
        # A claim of the same UID can come once more, with another card.
        node.unprepare(following)
        node.hands.end("following")
        node.api.create(PODS, pod_with("again", _NAMESPACE, "again"))
        assert node.bound("again") == again
        assert node.prepare(again) == ""
        assert len(set(node.given())) == len(node.given()) == 4
    finally:
        for process in (agent, controller):
            process.end()
            print(process.log())  # shown by pytest when the test failed


def start(node: Node, name: str) -> ClaimRef:
    """A pod with a card of its own, once it is bound."""
    node.hands.start(name)
    return node.bound(name)
