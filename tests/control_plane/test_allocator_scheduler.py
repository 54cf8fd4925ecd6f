"""With ``allocator: scheduler``, kube-scheduler allocates by counters. While the allocator changes,
no card is granted twice.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dra_driver.agent.slices.allocator_handover import AllocatorHandover
from dra_driver.agent.slices.device_layout import with_layouts_in_use
from dra_driver.kube.resources import DEVICE_CLASSES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from dra_driver.model.claims.claim import Object, allocation, results
from dra_driver.model.names import (
    ALLOCATOR_CONTROLLER,
    ALLOCATOR_SCHEDULER,
    CLASS_DRS,
    CLASS_SHARED,
)
from dra_driver.model.pci import PciAddress
from tests.cluster.build import build
from tests.cluster.cluster import Cluster
from tests.cluster.fixtures import DRIVER_NAMESPACE
from tests.cluster.versions import SCHEDULER_THAT_FORGETS
from tests.cluster.waiting import PATIENCE, wait_until
from tests.control_plane.cards import in_all_modes
from tests.control_plane.components import replaced
from tests.control_plane.conftest import Scene
from tests.control_plane.controller_process import ControllerProcess
from tests.control_plane.objects import claim, pod_with, resource_slice
from tests.control_plane.test_controller_fence import SHORT_LEASE, armed, start_old

pytestmark = [pytest.mark.control_plane, pytest.mark.usefixtures("driver")]

Start = Callable[..., ControllerProcess]
SCHEDULER = "--allocator=scheduler"

__all__ = ["armed"]  # a fixture


def start_share(scene: Scene, name: str, device_class: str, **amount: int) -> None:
    """A claim for so many slices, or an instance of that size, and a pod that uses it."""
    [(capacity, number)] = amount.items()
    exactly: Object = {
        "deviceClassName": device_class,
        "capacity": {"requests": {capacity: str(number)}},
    }
    made = claim(name, scene.namespace)
    made["spec"] = {"devices": {"requests": [{"name": "gcu", "exactly": exactly}]}}
    scene.api.create(RESOURCE_CLAIMS, made)
    scene.api.create(PODS, pod_with(name, scene.namespace, name))


def devices(scene: Scene, *names: str) -> list[str]:
    """Of these claims, without their addresses."""
    found = [each.device for name in names for each in results(scene.eyes.claim(name))]
    return [name.partition("-")[0] for name in found]


def waits(scene: Scene, *names: str) -> None:
    """None of the pods is bound for a while."""
    scene.eyes.stays(
        lambda: not any(allocation(scene.eyes.claim(name)) for name in names), 3.0, "unallocated"
    )


def test_a_card_is_in_one_mode_at_a_time(scene: Scene, start_controller: Start) -> None:
    controller = start_controller(SCHEDULER)
    controller.wait_for_log("begins")
    scene.machines.add(in_all_modes(0, allocator=ALLOCATOR_SCHEDULER))
    for name, slices in (("one", 2), ("two", 3)):
        start_share(scene, name, CLASS_SHARED, slices=slices)
        scene.eyes.bound(name)
    scene.hands.start("whole")
    start_share(scene, "instance", CLASS_DRS, size=3)
    start_share(scene, "too-many", CLASS_SHARED, slices=2)
    waits(scene, "whole", "instance", "too-many")
    assert devices(scene, "one", "two") == ["shared", "shared"]
    # Who waits ends first: if a pod is deleted while kube-scheduler writes its allocation, the pods
    # that this allocation kept waiting are tried again after five minutes only.
    for name in ("too-many", "whole", "one", "two"):
        scene.hands.end(name)
        scene.api.delete(RESOURCE_CLAIMS, name, namespace=scene.namespace)
    scene.eyes.bound("instance")
    assert devices(scene, "instance") == ["drs"]
    assert "write.writer" not in controller.log()


@pytest.fixture
def scheduler_that_forgets(
    control_plane: Cluster, cluster_report: Callable[[str], None]
) -> Iterator[None]:
    program = build(SCHEDULER_THAT_FORGETS, cluster_report) / SCHEDULER_THAT_FORGETS.name
    with replaced(control_plane, program):
        yield


@pytest.mark.kubernetes(below="1.37")  # 1.36.1 serves beside 1.36.3, in `make test-matrix`
@pytest.mark.usefixtures("scheduler_that_forgets")
def test_why_an_older_kube_scheduler_is_refused(scene: Scene, start_controller: Start) -> None:
    """It forgets shares that it has allocated (kubernetes#139034). The controller reports it."""
    start_controller(SCHEDULER).wait_for_log("begins")
    scene.machines.add(in_all_modes(0, allocator=ALLOCATOR_SCHEDULER))
    start_share(scene, "slices", CLASS_SHARED, slices=2)
    scene.eyes.bound("slices")
    scene.hands.start("whole")
    scene.eyes.bound("whole")
    assert devices(scene, "slices", "whole") == ["shared", "whole"]
    scene.wait_for_event("whole", "Delete this claim and its pod")


def handover(scene: Scene) -> AllocatorHandover:
    """As an agent has it whose chart says `allocator: scheduler`."""
    lease = (DRIVER_NAMESPACE, "gcu-dra-controller")
    return AllocatorHandover(scene.api, lease, ALLOCATOR_SCHEDULER, published=tuple)


def test_a_write_of_the_controller_that_arrives_after_the_switch(
    scene: Scene, start_controller: Start, armed: Path
) -> None:
    """Its leader is about to allocate a card, on a cache from before the switch, when it is
    stopped. When it goes on, kube-scheduler has allocated the card."""
    node = scene.machines.add(in_all_modes(0))
    old = start_old(start_controller, armed)
    scene.api.create(RESOURCE_CLAIMS, claim("in-hand", scene.namespace))
    first = pod_with("first", scene.namespace, "in-hand", schedulerName="nobody")
    scene.api.create(PODS, first)
    old.wait_stopped()
    agent = handover(scene)
    assert agent.allocator() == ALLOCATOR_CONTROLLER
    start_controller(*SHORT_LEASE, SCHEDULER, name="replica-new")
    wait_until(lambda: agent.allocator() == ALLOCATOR_SCHEDULER, PATIENCE, "acknowledged")
    scene.machines.withdraw(node)
    scene.machines.publish(node, in_all_modes(0, allocator=ALLOCATOR_SCHEDULER))
    scene.hands.start("second")
    scene.eyes.bound("second")
    old.signal(signal.SIGCONT)
    old.wait_for_log("409 Conflict")
    assert allocation(scene.eyes.claim("in-hand")) is None
    assert devices(scene, "second") == ["whole"]


def test_the_controller_refuses_cards_that_kube_scheduler_allocates(
    scene: Scene, start_controller: Start
) -> None:
    """After a switch back a card has its counters until kube-scheduler has seen its taint."""
    tainted = in_all_modes(0)
    counted = in_all_modes(0, allocator=ALLOCATOR_SCHEDULER)
    address = PciAddress(0, 0, 0, 0)
    both = with_layouts_in_use({address: tainted}, counted, frozenset({address}))
    node = scene.machines.add(both)
    controller = start_controller()
    controller.wait_for_log("begins")
    scene.hands.start("user")
    scene.wait_for_event("user", "with counters, which only kube-scheduler allocates")
    waits(scene, "user")
    scene.machines.withdraw(node)
    scene.machines.publish(node, tainted)
    scene.eyes.bound("user")
    agent = handover(scene)
    assert agent.allocator() == ALLOCATOR_CONTROLLER


OTHERS_DRIVER = "nic.example.com"


@pytest.fixture
def nic(scene: Scene) -> Iterator[Callable[[str], None]]:
    """Publishes a device of another driver on a node; its DeviceClass exists."""
    selector = {"cel": {"expression": f"device.driver == '{OTHERS_DRIVER}'"}}
    made: Object = {
        "apiVersion": DEVICE_CLASSES.api_version,
        "kind": DEVICE_CLASSES.kind,
        "metadata": {"name": OTHERS_DRIVER},
        "spec": {"selectors": [selector]},
    }
    scene.api.create(DEVICE_CLASSES, made)

    def publish(node: str) -> None:
        body = resource_slice(node, [{"name": "nic-0"}])
        body["metadata"]["name"] = f"{node}-nic"
        pool = body["spec"]["pool"] | {"name": node}
        body["spec"] |= {"driver": OTHERS_DRIVER, "pool": pool}
        scene.api.create(RESOURCE_SLICES, body)

    yield publish
    scene.api.delete(DEVICE_CLASSES, OTHERS_DRIVER)


def test_a_claim_mixes_devices_of_two_drivers(scene: Scene, nic: Callable[[str], None]) -> None:
    cards = in_all_modes(0, allocator=ALLOCATOR_SCHEDULER)
    scene.machines.add(cards)
    node = scene.machines.add(cards)
    nic(node)
    made = claim("mixed", scene.namespace)
    made["spec"]["devices"]["requests"].append(
        {"name": "nic", "exactly": {"deviceClassName": OTHERS_DRIVER}}
    )
    scene.api.create(RESOURCE_CLAIMS, made)
    scene.api.create(PODS, pod_with("mixed", scene.namespace, "mixed"))
    assert scene.eyes.bound("mixed") == node
    given = scene.eyes.claim("mixed")["status"]["allocation"]["devices"]["results"]
    assert sorted(each["device"] for each in given) == ["nic-0", "whole-0000-00-00-0"]


def test_a_copy_of_a_node_and_its_slices_serves_pods(scene: Scene) -> None:
    """cluster-autoscaler asks kube-scheduler's framework about a node that would come: a copy of
    one that is there, with its slices under other names of slice and pool
    (autoscaler, `SanitizedNodeResourceSlices`)."""
    node = scene.machines.add(in_all_modes(0, allocator=ALLOCATOR_SCHEDULER))
    scene.hands.start("first")
    assert scene.eyes.bound("first") == node
    scene.hands.start("second")
    waits(scene, "second")
    copy = scene.machines.add_copy(node)
    assert scene.eyes.bound("second") == copy
    start_share(scene, "slices", CLASS_SHARED, slices=2)
    waits(scene, "slices")


def test_nobody_is_preempted_for_a_card(scene: Scene) -> None:
    """Upstream's plugin says of each node that preemption does not help (`statusUnschedulable`,
    1.34.4 to 1.37.1), and docs/user/which-allocator.md says so, too."""
    scene.machines.add(in_all_modes(0, allocator=ALLOCATOR_SCHEDULER))
    scene.hands.start("low")
    scene.eyes.bound("low")
    scene.hands.start("high", priorityClassName="system-cluster-critical")
    wait_until(
        lambda: "Preemption is not helpful" in str(scene.eyes.pod("high")["status"]),
        PATIENCE,
        "kube-scheduler's verdict",
    )
    assert "deletionTimestamp" not in scene.eyes.pod("low")["metadata"]
    scene.hands.end("low")
    scene.eyes.bound("high")
