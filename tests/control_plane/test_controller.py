"""The controller beside a real API server, kube-scheduler and kube-controller-manager."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dra_driver.kube.client import Client
from dra_driver.kube.resources import LEASES, PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import allocation, reserved_for, results
from dra_driver.model.names import FINALIZER
from tests.cluster.fixtures import DRIVER_NAMESPACE
from tests.cluster.waiting import PATIENCE, wait_until
from tests.control_plane.conftest import Eyes, Scene, events_about
from tests.control_plane.controller_process import ControllerProcess
from tests.control_plane.machines import Machines
from tests.control_plane.objects import TEMPLATES, claim, pod_with, template, whole, with_port

pytestmark = pytest.mark.control_plane

Start = Callable[..., ControllerProcess]
UNHEALTHY = {"key": "gcu.enflame.com/unhealthy", "value": "lost", "effect": "NoSchedule"}


def holder(api: Client) -> str:
    """The replica that leads; empty where the last one gave its lease back."""
    lease = api.get(LEASES, "gcu-dra-controller", namespace=DRIVER_NAMESPACE)
    return str(lease["spec"].get("holderIdentity") or "")


def test_a_pod_gets_a_whole_card(
    api: Client, namespace: str, machines: Machines, eyes: Eyes, controller: ControllerProcess
) -> None:
    node = machines.add([whole(0)])
    api.create(RESOURCE_CLAIMS, claim("one", namespace))
    api.create(PODS, pod_with("user", namespace, "one"))
    assert eyes.bound("user") == node
    found = eyes.allocated("one")
    [result] = results(found)
    assert (result.pool, result.device) == (f"gcu.enflame.com/{node}", "whole-0000-00-00-0")
    assert [each["name"] for each in reserved_for(found)] == ["user"]
    assert FINALIZER in found["metadata"]["finalizers"]
    assert (allocation(found) or {})["allocationTimestamp"]


def test_a_claim_of_a_template_and_its_end(
    api: Client, namespace: str, machines: Machines, eyes: Eyes, controller: ControllerProcess
) -> None:
    machines.add([whole(0)])
    api.create(TEMPLATES, template("cards", namespace))
    api.create(PODS, pod_with("user", namespace, template="cards"))
    eyes.bound("user")
    [made] = api.list(RESOURCE_CLAIMS, namespace=namespace).items
    eyes.end("user")
    eyes.gone(made["metadata"]["name"])


def test_unsatisfiable_is_told_on_pod_and_claim(
    api: Client, namespace: str, machines: Machines, eyes: Eyes, controller: ControllerProcess
) -> None:
    machines.add([whole(0, UNHEALTHY), whole(1, UNHEALTHY)])
    api.create(RESOURCE_CLAIMS, claim("one", namespace))
    api.create(PODS, pod_with("user", namespace, "one"))
    for name, kind in (("user", "Pod"), ("one", "ResourceClaim")):
        eyes.wait_for_event(
            name, f"Warning GcuAllocationFailed {kind}: 2 cards: 2 unhealthy; 1 requested"
        )


def test_a_selector_that_cannot_be_evaluated_is_told(
    api: Client, namespace: str, machines: Machines, eyes: Eyes, controller: ControllerProcess
) -> None:
    machines.add([whole(0)])
    selector = 'device.attributes["gcu.enflame.com"].speed > 1'
    api.create(RESOURCE_CLAIMS, claim("one", namespace, selector=selector))
    api.create(PODS, pod_with("user", namespace, "one"))
    eyes.wait_for_event("user", "no such key: speed")


def test_two_pods_and_one_card(
    api: Client, namespace: str, machines: Machines, eyes: Eyes, controller: ControllerProcess
) -> None:
    machines.add([whole(0)])
    for name in ("first", "second"):
        api.create(RESOURCE_CLAIMS, claim(name, namespace))
    api.create(PODS, pod_with("first", namespace, "first"))
    eyes.bound("first")
    api.create(PODS, pod_with("second", namespace, "second"))
    wait_until(
        lambda: events_about(api, namespace, "second"), PATIENCE, "an event about the second"
    )
    assert allocation(eyes.claim("second")) is None
    eyes.end("first")
    eyes.bound("second")
    assert [each.device for each in results(eyes.claim("second"))] == ["whole-0000-00-00-0"]


def test_an_allocation_whose_pod_vanished_is_released(
    api: Client, namespace: str, machines: Machines, eyes: Eyes, controller: ControllerProcess
) -> None:
    """Its scheduler does not exist: allocated, but never reserved nor bound."""
    machines.add([whole(0)])
    api.create(RESOURCE_CLAIMS, claim("one", namespace))
    api.create(PODS, pod_with("user", namespace, "one", schedulerName="nobody"))
    assert not reserved_for(eyes.allocated("one"))
    api.delete(PODS, "user", namespace=namespace)
    eyes.released("one")


def test_a_node_that_the_scheduler_refuses_is_left_for_another(
    api: Client, namespace: str, machines: Machines, eyes: Eyes, controller: ControllerProcess
) -> None:
    """What only the scheduler knows: the pod's port is taken on the node that packs best."""
    small = machines.add([whole(0)])
    large = machines.add([whole(0), whole(1)])
    api.create(PODS, with_port(pod_with("taker", namespace, nodeName=small)))
    api.create(RESOURCE_CLAIMS, claim("one", namespace))
    api.create(PODS, with_port(pod_with("user", namespace, "one")))
    assert eyes.bound("user") == large
    [result] = results(eyes.claim("one"))
    assert result.pool == f"gcu.enflame.com/{large}"


def test_a_bound_pod_is_served_on_its_node(
    api: Client, namespace: str, machines: Machines, eyes: Eyes, controller: ControllerProcess
) -> None:
    machines.add([whole(0)])
    node = machines.add([whole(0), whole(1)])
    api.create(RESOURCE_CLAIMS, claim("one", namespace))
    api.create(PODS, pod_with("user", namespace, "one", nodeName=node))
    [result] = results(eyes.allocated("one"))
    assert result.pool == f"gcu.enflame.com/{node}"


def test_claims_of_one_pod_come_together(scene: Scene, controller: ControllerProcess) -> None:
    """Never is one of them on the node that packs best and has no room for both."""
    scene.machines.add([whole(0)])
    node = scene.machines.add([whole(0), whole(1), whole(2)])
    listed = scene.api.list(RESOURCE_CLAIMS, namespace=scene.namespace)
    for name in ("one", "two"):
        scene.api.create(RESOURCE_CLAIMS, claim(name, scene.namespace))
    scene.api.create(PODS, pod_with("user", scene.namespace, "one", "two"))
    assert scene.eyes.bound("user") == node
    held = [results(each) for each in scene.writes_to_claims(listed.resource_version)]
    assert {each.pool for found in held for each in found} == {f"gcu.enflame.com/{node}"}


def test_a_pod_follows_its_node_selector(
    api: Client, namespace: str, machines: Machines, eyes: Eyes, controller: ControllerProcess
) -> None:
    machines.add([whole(0)])
    node = machines.add([whole(0), whole(1)])
    api.create(RESOURCE_CLAIMS, claim("one", namespace))
    api.create(PODS, pod_with("user", namespace, "one", nodeSelector={"machine": node}))
    assert eyes.bound("user") == node


def test_a_restart_goes_on_where_it_was(
    api: Client, namespace: str, machines: Machines, eyes: Eyes, start_controller: Start
) -> None:
    machines.add([whole(0), whole(1)])
    for name in ("first", "second"):
        api.create(RESOURCE_CLAIMS, claim(name, namespace))
    running = start_controller()
    running.wait_for_log("leads")
    api.create(PODS, pod_with("first", namespace, "first"))
    eyes.bound("first")
    assert running.stop() == 0
    assert not holder(api)
    api.create(PODS, pod_with("second", namespace, "second"))
    start_controller(name="replica-1").wait_for_log("leads")
    eyes.bound("second")
    devices = [results(eyes.claim(name))[0].device for name in ("first", "second")]
    assert sorted(devices) == ["whole-0000-00-00-0", "whole-0000-01-00-0"]


def test_only_one_replica_leads(api: Client, start_controller: Start) -> None:
    first = start_controller(name="replica-a")
    first.wait_for_log("replica-a leads")
    second = start_controller(name="replica-b")
    wait_until(
        lambda: second.probe("/readyz") == (200, "ok"),
        PATIENCE,
        "the second ready",
        retry_on=(AssertionError, OSError),
    )
    assert "leads" not in second.log()
    assert first.stop() == 0
    assert holder(api) != "replica-a"
    second.wait_for_log("replica-b leads")
    status, metrics = second.probe("/metrics")
    assert status == 200
    assert "gcu_controller_allocations_total" in metrics


def test_settings_that_are_wrong_end_it_with_a_sentence(start_controller: Start) -> None:
    process = start_controller("--lease-duration=1")
    assert process.wait() == 1
    assert "lease" in process.log()
    assert "Traceback" not in process.log()


def test_what_fits_nowhere_is_taken_back_and_tried_elsewhere(
    api: Client, namespace: str, machines: Machines, eyes: Eyes, controller: ControllerProcess
) -> None:
    """A second claim of the pod is another driver's and never allocated: kube-scheduler then
    clears nothing, and the controller gives the card back by itself."""
    machines.add([whole(0)])
    foreign = claim("theirs", namespace)
    foreign["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] = "gpu.example.com"
    api.create(RESOURCE_CLAIMS, claim("one", namespace))
    api.create(RESOURCE_CLAIMS, foreign)
    api.create(PODS, pod_with("user", namespace, "one", "theirs"))
    eyes.allocated("one")
    eyes.released("one")


def test_a_pod_that_needs_nothing_of_ours_is_left_alone(
    api: Client, namespace: str, machines: Machines, eyes: Eyes, controller: ControllerProcess
) -> None:
    machines.add([whole(0)])
    foreign = claim("theirs", namespace)
    foreign["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] = "gpu.example.com"
    api.create(RESOURCE_CLAIMS, foreign)
    api.create(PODS, pod_with("user", namespace, "theirs"))
    api.create(RESOURCE_CLAIMS, claim("one", namespace))
    api.create(PODS, pod_with("ours", namespace, "one"))
    eyes.bound("ours")
    assert allocation(eyes.claim("theirs")) is None
    assert not events_about(api, namespace, "user")


def test_every_card_once_in_a_burst(
    api: Client, namespace: str, machines: Machines, eyes: Eyes, controller: ControllerProcess
) -> None:
    for _ in range(2):
        machines.add([whole(bus) for bus in range(8)])
    names = [f"user-{number}" for number in range(16)]
    for name in names:
        api.create(RESOURCE_CLAIMS, claim(name, namespace))
        api.create(PODS, pod_with(name, namespace, name))
    for name in names:
        eyes.bound(name)
    held = [(each.pool, each.device) for name in names for each in results(eyes.claim(name))]
    assert len(held) == len(set(held)) == 16
