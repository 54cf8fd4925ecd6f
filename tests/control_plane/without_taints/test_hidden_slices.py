"""Servers that drop device taints: slices that are offered to no node, and the controller beside a
real API server and kube-scheduler of such a version (1.34.4, or 1.35.4 where that is chosen)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from dra_driver.agent.slices.slices import SliceForm, desired_slices
from dra_driver.config.device_config import amount_entry
from dra_driver.kube.api import ServerVersion
from dra_driver.kube.client import Client, connect
from dra_driver.kube.preflight import OLDEST_VISIBLE
from dra_driver.kube.resources import NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from dra_driver.model.claims.claim import Object, allocation, reserved_for, results
from dra_driver.model.devices.hidden_device import hidden_name
from dra_driver.model.effects import Effects
from dra_driver.model.names import CLASS_SHARED, DRIVER
from tests.cluster.cluster import Cluster
from tests.cluster.waiting import PATIENCE, wait_until
from tests.control_plane.conftest import Eyes, Scene, Start
from tests.control_plane.controller_process import ControllerProcess
from tests.control_plane.driver import Driver
from tests.control_plane.machines import Machines
from tests.control_plane.objects import claim, pod_with, resource_slice, shared, whole
from tests.control_plane.publishing import Rig, publishing_node

pytestmark = pytest.mark.control_plane

UNHEALTHY = {"key": "gcu.enflame.com/unhealthy", "value": "lost", "effect": "NoSchedule"}


class HiddenMachines(Machines):
    """Nodes without kubelets, and the hidden slices that their agents would have published."""

    def publish(self, name: str, devices: Sequence[Object]) -> None:
        node = self._api.get(NODES, name)
        for each in desired_slices(node, devices, 1, SliceForm.HIDDEN):
            self._api.create(RESOURCE_SLICES, each)

    def withdraw(self, name: str) -> None:
        self._api.delete(RESOURCE_SLICES, hidden_name(name))


@pytest.fixture
def machines(control_plane: Cluster, api: Client) -> Iterator[Machines]:
    found = HiddenMachines(control_plane, api)
    yield found
    found.remove_all()


def shares(name: str, namespace: str, amount: int) -> Object:
    """A claim for slices of a card, in the form that every server stores."""
    wanted = claim(name, namespace)
    devices = wanted["spec"]["devices"]
    devices["requests"][0]["exactly"] = {"deviceClassName": CLASS_SHARED}
    devices["config"] = [amount_entry(["gcu"], {"slices": amount})]
    return wanted


def use(scene: Scene, *claims: Object) -> None:
    """Create the claims, and a pod of the same name for each."""
    for each in claims:
        scene.api.create(RESOURCE_CLAIMS, each)
        name = each["metadata"]["name"]
        scene.api.create(PODS, pod_with(name, scene.namespace, name))


def test_kube_scheduler_allocates_nothing(
    api: Client, driver: Driver, namespace: str, machines: Machines, eyes: Eyes
) -> None:
    machines.add([whole(0)])
    api.create(RESOURCE_CLAIMS, claim("one", namespace))
    api.create(PODS, pod_with("user", namespace, "one"))

    def verdict() -> str:
        conditions = (eyes.pod("user").get("status") or {}).get("conditions") or ()
        return next((each.get("message", "") for each in conditions), "")

    wait_until(lambda: "cannot allocate all claims" in verdict(), PATIENCE, "a verdict")
    assert allocation(eyes.claim("one")) is None


def test_an_allocation_of_ours_is_scheduled_and_reserved(
    scene: Scene, controller: ControllerProcess
) -> None:
    node = scene.machines.add([whole(0)])
    use(scene, claim("one", scene.namespace))
    assert scene.eyes.bound("one") == node
    found = scene.eyes.allocated("one")
    [result] = results(found)
    assert (result.pool, result.device) == (f"gcu.enflame.com/{node}", "whole-0000-00-00-0")
    assert [each["name"] for each in reserved_for(found)] == ["one"]
    fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    selector = (allocation(found) or {})["nodeSelector"]
    assert selector == {"nodeSelectorTerms": [{"matchFields": fields}]}


def test_amounts_are_counted_packed_and_known_to_the_next_leader(
    scene: Scene, start_controller: Start
) -> None:
    first = start_controller()
    first.wait_for_log("leads")
    scene.machines.add([shared(0), shared(1)])
    for name, amount in (("a", 2), ("b", 3)):
        use(scene, shares(name, scene.namespace, amount))
        scene.eyes.bound(name)
    first.end()
    start_controller(name="replica-1").wait_for_log("leads")
    for name, amount in (("c", 1), ("d", 6)):
        use(scene, shares(name, scene.namespace, amount))
        scene.eyes.bound(name)
    granted = {}
    for name in "abcd":
        [result] = results(scene.eyes.claim(name))
        granted[name] = (result.device, result.consumed)
    assert granted == {
        "a": ("shared-0000-00-00-0", {"slices": "2"}),
        "b": ("shared-0000-00-00-0", {"slices": "3"}),
        "c": ("shared-0000-00-00-0", {"slices": "1"}),
        "d": ("shared-0000-01-00-0", {"slices": "6"}),
    }
    use(scene, shares("e", scene.namespace, 1))
    scene.wait_for_event("e", "GcuAllocationFailed")


def test_modes_of_a_card_exclude_each_other(scene: Scene, controller: ControllerProcess) -> None:
    scene.machines.add([whole(0), shared(0)])
    use(scene, shares("some", scene.namespace, 1))
    scene.eyes.bound("some")
    use(scene, claim("all", scene.namespace))
    scene.wait_for_event("all", "in shared mode")
    scene.eyes.end("some")
    scene.api.delete(RESOURCE_CLAIMS, "some", namespace=scene.namespace)
    scene.eyes.bound("all")


def test_what_is_wrong_with_a_card_reaches_the_controller(
    scene: Scene, controller: ControllerProcess
) -> None:
    scene.machines.add([whole(0, UNHEALTHY)])
    use(scene, claim("one", scene.namespace))
    scene.wait_for_event("one", "1 card: 1 unhealthy; 1 requested")


@pytest.fixture
def rig(driver: Driver, control_plane: Cluster, api: Client, tmp_path: Path) -> Iterator[Rig]:
    """A publisher with the rights of an agent's pod."""
    control_plane.add_node_object("publishing")
    kubeconfig = driver.kubeconfig("agent", tmp_path / "agent", node="publishing")
    client = connect(kubeconfig, effects=Effects(), user_agent="tests/1")
    found = Rig(client, api, "publishing", [whole(1), shared(2)], form=SliceForm.HIDDEN)
    yield found
    found.stop()
    client.close()
    for each in found.slices():
        api.delete(RESOURCE_SLICES, each["metadata"]["name"])
    api.delete(NODES, "publishing")


def test_an_agent_publishes_once_and_again_what_somebody_deletes(rig: Rig, api: Client) -> None:
    publisher = rig.start()
    [published] = rig.wait((1, 2))
    rig.stop()
    publisher = rig.start()
    wait_until(lambda: publisher.problem is None, PATIENCE, "the second publisher content")
    assert rig.slices() == (published,)
    api.delete(RESOURCE_SLICES, published["metadata"]["name"])
    wait_until(lambda: _uids(rig.slices()) - _uids((published,)), PATIENCE, "another slice")


def test_an_agent_refuses_to_publish_visible_slices(rig: Rig) -> None:
    visible = Rig(rig.client, rig.admin, rig.node, [whole(1)])
    visible.wait_problem(visible.start(), "which drops device taints")
    visible.stop()
    assert visible.slices() == ()


def test_a_server_whose_gate_is_off_is_refused_and_keeps_nothing(
    control_plane: Cluster, api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its version it has taints, and drops them all the same: its kube-scheduler would allocate
    what the controller allocates, too."""
    with publishing_node(control_plane, api) as node:
        rig = Rig(api, api, node, [whole(1), whole(2)])
        newer = ServerVersion(*OLDEST_VISIBLE)
        monkeypatch.setattr(rig.tapped, "server_version", lambda: newer, raising=False)
        rig.wait_problem(
            rig.start(),
            "the API server drops spec.devices[0].taints, spec.devices[1].taints from "
            "ResourceSlices; enable the feature gate DRADeviceTaints on the API server",
        )
        rig.stop()
        assert "create resourceslices" in rig.tapped.requests  # the dry run
        assert rig.slices() == ()
        # One that somebody made without taints is not kept either.
        bare = resource_slice(node, [whole(1)])
        bare["metadata"]["name"] = f"{node}-{DRIVER}-000"
        api.create(RESOURCE_SLICES, bare)
        rig.wait_problem(rig.start(), "DRADeviceTaints")
        wait_until(lambda: rig.slices() == (), PATIENCE, "nothing left")
        rig.stop()


def _uids(slices: Sequence[Mapping[str, Object]]) -> set[object]:
    return {each["metadata"]["uid"] for each in slices}
