"""With ``allocator: scheduler``, a real kube-scheduler goes where the controller names a node for
cards and for devices of other drivers, of which half are in use."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import yaml

from dra_driver.kube.errors import AlreadyExists
from dra_driver.kube.resources import (
    DEVICE_CLASSES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from dra_driver.model.claims.claim import Object, all_results
from dra_driver.model.names import ALLOCATOR_SCHEDULER, DRIVER
from tests.control_plane.cards import in_all_modes
from tests.control_plane.conftest import Scene
from tests.control_plane.controller_process import ControllerProcess
from tests.control_plane.interfaces import (
    CPU,
    NET,
    card_and_interface,
    device_class,
    interface,
    other_slice,
    processor,
    request,
    root_of,
)
from tests.control_plane.nominating import (
    GATES,
    bound,
    controller,
    followed,
    nominating,
    start,
    verdicts,
)
from tests.control_plane.objects import TEMPLATES, claim, pod_with

pytestmark = pytest.mark.control_plane

__all__ = ["controller", "nominating"]  # fixtures

BUSES: Final = range(8)
"""Of eight cards and eight interfaces; two of each are below one root."""
IN_USE: Final = (0, 1, 2, 4)
"""Interfaces: both of one root, one of two roots each, none of the last one."""
NODES: Final = 3
FREE: Final = NODES * (len(BUSES) - len(IN_USE))
ROUNDS: Final = 4
EXAMPLE: Final = Path(__file__).parents[2] / "examples" / "card-and-network-interface"


@pytest.fixture(autouse=True)
def classes(scene: Scene) -> Iterator[None]:
    """The DeviceClasses of the two other drivers."""
    for driver in (NET, CPU):
        scene.api.create(DEVICE_CLASSES, device_class(driver))
    yield
    for driver in (NET, CPU):
        scene.api.delete(DEVICE_CLASSES, driver)


def machine(scene: Scene) -> str:
    """A node with cards, and beside them interfaces as another driver publishes them."""
    cards = in_all_modes(*BUSES, allocator=ALLOCATOR_SCHEDULER, root=root_of)
    node = scene.machines.add(cards)
    interfaces = other_slice(node, [interface(bus) for bus in BUSES])
    scene.api.create(RESOURCE_SLICES, interfaces)
    return node


def use(scene: Scene, node: str) -> None:
    """A pod on the node uses half of its interfaces, and no card."""
    names = ", ".join(f'"eth{bus}"' for bus in IN_USE)
    asked = request(NET, len(IN_USE), f'device.attributes["{NET}"].ifName in [{names}]')
    made = claim(f"holder-{node}", scene.namespace)
    made["spec"]["devices"]["requests"] = [asked]
    scene.api.create(RESOURCE_CLAIMS, made)
    name = made["metadata"]["name"]
    selector = {"kubernetes.io/hostname": node}
    scene.api.create(PODS, pod_with(name, scene.namespace, name, nodeSelector=selector))
    assert bound(scene, name) == [node]


def start_both(scene: Scene, *names: str) -> None:
    """Pods that each ask for a card and an interface below one root."""
    for name in names:
        scene.api.create(RESOURCE_CLAIMS, card_and_interface(name, scene.namespace))
        scene.api.create(PODS, pod_with(name, scene.namespace, name, schedulingGates=GATES))


def end(scene: Scene, name: str) -> None:
    scene.hands.end(name)
    scene.api.delete(RESOURCE_CLAIMS, name, namespace=scene.namespace)
    scene.eyes.gone(name)


def given(scene: Scene, name: str) -> dict[str, set[int]]:
    """By driver, the buses of the cards and interfaces that the claim has."""
    found: dict[str, set[int]] = {}
    for each in all_results(scene.eyes.claim(name)):
        found.setdefault(each.driver, set()).add(int(each.device.split("-")[2], 16))
    return found


def test_names_are_followed_where_half_of_the_interfaces_are_in_use(
    scene: Scene, controller: ControllerProcess
) -> None:
    for node in [machine(scene) for _ in range(NODES)]:
        use(scene, node)
    running = [f"both-{number}" for number in range(FREE)]
    start_both(scene, *running)
    bound(scene, *running)
    for number in range(NODES):  # what is left of the cards is of no use beside an interface
        start(scene, f"card-{number}")
        bound(scene, f"card-{number}")
    draw, number = random.Random(1), len(running)
    for _ in range(ROUNDS):
        draw.shuffle(running)
        running, ended = running[FREE // 2 :], running[: FREE // 2]
        for name in ended:
            end(scene, name)
        new = [f"both-{number + nth}" for nth in range(len(ended))]
        start_both(scene, *new)
        bound(scene, *new)
        running, number = running + new, number + len(new)
        for name in running:
            devices = given(scene, name)
            [card], [net] = devices[DRIVER], devices[NET]
            assert root_of(card) == root_of(net)
    names = number + NODES
    assert names == FREE + ROUNDS * FREE // 2 + NODES
    assert followed(controller, names) >= 0.95 * names


def test_a_pod_without_an_interface_waits_for_one(
    scene: Scene, controller: ControllerProcess
) -> None:
    node = machine(scene)
    use(scene, node)
    running = [f"both-{number}" for number in range(len(BUSES) - len(IN_USE))]
    start_both(scene, *running)
    bound(scene, *running)
    # The first that waits is lifted, for autoscalers.
    start_both(scene, "first", "second")
    scene.wait_for_event("second", "not on one node with what is asked of other drivers")
    for name in running[:2]:
        end(scene, name)
    assert bound(scene, "first", "second") == [node, node]


def test_a_pod_with_claims_of_three_drivers(scene: Scene, controller: ControllerProcess) -> None:
    """Of which one is ours: it is named, and bound in its first attempt, where all of them are."""
    cards = in_all_modes(0, allocator=ALLOCATOR_SCHEDULER)
    scene.machines.add(cards)
    node = machine(scene)
    scene.api.create(RESOURCE_SLICES, other_slice(node, [processor(n) for n in range(16)], CPU))
    scene.api.create(RESOURCE_CLAIMS, claim("gcu", scene.namespace))
    for asked in (request(NET), request(CPU, 4)):
        made = claim(asked["name"], scene.namespace)
        made["spec"]["devices"]["requests"] = [asked]
        scene.api.create(RESOURCE_CLAIMS, made)
    names = ("gcu", "net", "cpu")
    scene.api.create(PODS, pod_with("user", scene.namespace, *names, schedulingGates=GATES))
    assert bound(scene, "user") == [node]
    assert verdicts(scene, "user") == ["Scheduled"]
    found = [result for name in names for result in all_results(scene.eyes.claim(name))]
    assert Counter(result.driver for result in found) == {DRIVER: 1, NET: 1, CPU: 4}
    assert followed(controller, 1) == 1


def test_the_example(scene: Scene, controller: ControllerProcess) -> None:
    """Its pod, which comes with the gate, as the webhook sets it, is named and bound."""
    scene.machines.add(in_all_modes(0, allocator=ALLOCATOR_SCHEDULER))
    node = machine(scene)
    kinds = {each.kind: each for each in (DEVICE_CLASSES, TEMPLATES, PODS)}
    for made in yaml.safe_load_all((EXAMPLE / f"{EXAMPLE.name}.yaml").read_text(encoding="utf-8")):
        _create(scene, kinds[made["kind"]], made)
    assert bound(scene, EXAMPLE.name) == [node]
    [name] = [
        each["resourceClaimName"]
        for each in scene.eyes.pod(EXAMPLE.name)["status"]["resourceClaimStatuses"]
    ]
    devices = given(scene, name)
    [card], [net] = devices[DRIVER], devices[NET]
    assert root_of(card) == root_of(net)
    assert followed(controller, 1) == 1


def _create(scene: Scene, resource: Resource, made: Object) -> None:
    if resource is PODS:
        made["spec"]["schedulingGates"] = GATES
    if resource.namespaced:
        made["metadata"]["namespace"] = scene.namespace
    try:
        scene.api.create(resource, made)
    except AlreadyExists:
        assert resource is DEVICE_CLASSES  # the tests have the same class
