"""Nodes are named for pods that ask for cards and for devices of other drivers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from controller.nominate import claim_reader
from dra_driver.kube.resources import DEVICE_CLASSES, PODS, RESOURCE_SLICES
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import ALLOCATOR_SCHEDULER, DRIVER, SCHEDULING_GATE
from tests.component.controller.conftest import Start
from tests.component.controller.replica import Replica
from tests.component.controller.stage import Stage
from tests.control_plane.cards import in_all_modes
from tests.control_plane.interfaces import (
    CPU,
    NET,
    PCIE_ROOT,
    card_and_interface,
    device_class,
    interface,
    other_slice,
    processor,
    request,
    root_of,
)
from tests.control_plane.objects import claim

cards = partial(in_all_modes, allocator=ALLOCATOR_SCHEDULER, root=root_of)
GATES = [{"name": SCHEDULING_GATE}]
Nominate = Callable[..., Replica]


@pytest.fixture
def nominate(stage: Stage, start_controller: Start) -> Nominate:
    """Starts a controller that names nodes, and lifts no pod that has no room."""
    for driver in (NET, CPU):
        stage.api.put(DEVICE_CLASSES, device_class(driver))
    return partial(start_controller, "replica-0", allocator="scheduler", nomination_waiting=0)


def publish(stage: Stage, node: str, *buses: int) -> None:
    """Interfaces on these buses."""
    stage.api.put(RESOURCE_SLICES, other_slice(node, [interface(bus) for bus in buses]))


def start(stage: Stage, *names: str) -> None:
    """Pods that each ask for a card and an interface below one root."""
    for name in names:
        stage.add_made_claim(card_and_interface(name, stage.namespace))
        stage.add_pod(name, name, schedulingGates=GATES)


def named(stage: Stage, pod: str) -> str:
    """The node that is named for the pod, once its gate is lifted."""
    stage.wait(lambda: not stage.gates(pod), f"gate of {pod} lifted", seen=lambda: stage.pod(pod))
    return str(stage.pod(pod)["status"].get("nominatedNodeName", ""))


def keeps_gate(stage: Stage, pod: str) -> None:
    """Return when an event has said that others' devices are what is missing."""
    stage.wait_for_event(pod, "with what is asked of other drivers", "GcuAllocationFailed")
    assert stage.gates(pod)


def schedule(stage: Stage, pod: str, node: str, card: int, net: int) -> None:
    """kube-scheduler allocates that card and that interface of the node, and binds the pod."""
    devices = [
        ("gcu", DRIVER, f"{DRIVER}/{node}", f"whole-0000-{card:02x}-00-0"),
        ("net", NET, node, f"pci-0000-{net:02x}-00-1"),
    ]
    results = [
        {"request": asked, "driver": driver, "pool": pool, "device": device}
        for asked, driver, pool, device in devices
    ]
    stage.allocate(pod, {"devices": {"results": results}}, pod)
    stage.bind_to(pod, node)


def lists_of_slices(stage: Stage, replica: Replica) -> int:
    return sum(
        call.verb in {"list", "watch"} and call.resource == RESOURCE_SLICES
        for call in stage.api.faults.calls
        if call.user == replica.user
    )


def test_where_an_interface_is_free_below_the_cards_root(stage: Stage, nominate: Nominate) -> None:
    stage.add_node(cards(0, 1))
    node = stage.add_node(cards(0, 1, 2, 3))
    publish(stage, node, 2)
    nominate()
    start(stage, "user")
    assert named(stage, "user") == node


def test_named_pods_count_with_their_interfaces(stage: Stage, nominate: Nominate) -> None:
    """Before kube-scheduler has allocated anything, and afterwards."""
    node = stage.add_node(cards(0, 1, 2, 3))
    publish(stage, node, 0, 2)
    nominate()
    start(stage, "first")
    assert named(stage, "first") == node
    start(stage, "second")
    assert named(stage, "second") == node
    start(stage, "third")
    keeps_gate(stage, "third")
    schedule(stage, "first", node, 0, 0)
    schedule(stage, "second", node, 2, 2)
    assert stage.gates("third")
    stage.end("first")
    assert named(stage, "third") == node


def test_a_pod_without_a_card_is_no_named_pod(stage: Stage, nominate: Nominate) -> None:
    """kube-scheduler writes the name, too, while it allocates an interface and binds the pod."""
    node = stage.add_node(cards(0))
    publish(stage, node, 0)
    made = claim("other", stage.namespace)
    made["spec"]["devices"]["requests"] = [request(NET)]
    stage.add_made_claim(made)
    stage.add_pod("other", "other")
    stage.set_status(PODS, "other", {"nominatedNodeName": node})
    replica = nominate()
    start(stage, "user")
    assert named(stage, "user") == node
    stage.bind_to("other", node)
    schedule(stage, "user", node, 0, 0)
    followed = partial(replica.metric, "gcu_controller_nominated_pods_bound_total")
    stage.wait(lambda: followed(followed="true") > 0, "the named pod counted")
    assert followed(followed="true") == 1


def test_an_interface_that_is_published_later(stage: Stage, nominate: Nominate) -> None:
    node = stage.add_node(cards(0))
    nominate()
    start(stage, "user")
    keeps_gate(stage, "user")
    publish(stage, node, 0)
    assert named(stage, "user") == node


def test_an_interface_that_another_pod_gives_back(stage: Stage, nominate: Nominate) -> None:
    """Its claim has no card."""
    node = stage.add_node(cards(0))
    publish(stage, node, 0)
    made = claim("net", stage.namespace)
    made["spec"]["devices"]["requests"] = [request(NET)]
    stage.add_made_claim(made)
    stage.add_pod("other", "net")
    result = {"request": "net", "driver": NET, "pool": node, "device": "pci-0000-00-00-1"}
    stage.allocate("net", {"devices": {"results": [result]}}, "other")
    nominate()
    start(stage, "user")
    keeps_gate(stage, "user")
    stage.end("other")
    assert named(stage, "user") == node


def test_another_interface_than_foreseen_counts_as_it_is(stage: Stage, nominate: Nominate) -> None:
    node = stage.add_node(cards(0, 1, 2, 3))
    publish(stage, node, 0, 2)
    nominate()
    for name in ("first", "second"):
        start(stage, name)
        assert named(stage, name) == node
    schedule(stage, "second", node, 0, 0)  # which the first would have had
    start(stage, "third")
    keeps_gate(stage, "third")
    stage.refuse("first")
    assert named(stage, "third") == node


def test_another_interface_beside_the_foreseen_card(stage: Stage, nominate: Nominate) -> None:
    """The next pod that was named gets the other one."""
    node = stage.add_node(cards(0, 1, 2))
    publish(stage, node, 0, 1)
    nominate()
    for name in ("first", "second"):
        start(stage, name)
        assert named(stage, name) == node
    schedule(stage, "first", node, 0, 1)
    anywhere = {"matchAttribute": PCIE_ROOT, "requests": ["gcu"]}
    stage.add_made_claim(card_and_interface("third", stage.namespace, constraint=anywhere))
    stage.add_pod("third", "third", schedulingGates=GATES)
    keeps_gate(stage, "third")


@pytest.mark.parametrize(
    ("asked", "published"),
    [
        pytest.param([request("unknown.example.com")], [interface(0)], id="no such class"),
        pytest.param([request(NET, 1, "device.unknown")], [interface(0)], id="its selector"),
        pytest.param([], [interface(0, newField=1)], id="a field of its device"),
        pytest.param([], None, id="its slices are incomplete"),
    ],
)
def test_what_is_not_known_of_others_keeps_no_pod(
    stage: Stage, nominate: Nominate, asked: list[Object], published: list[Object] | None
) -> None:
    node = stage.add_node(cards(0))
    slices = other_slice(node, published or [], count=1 if published else 2)
    stage.api.put(RESOURCE_SLICES, slices)
    nominate()
    stage.add_made_claim(card_and_interface("user", stage.namespace, *asked))
    stage.add_pod("user", "user", schedulingGates=GATES)
    assert named(stage, "user") == node


def test_claims_of_three_drivers(stage: Stage, nominate: Nominate) -> None:
    """Each claim is of one: the pod is named where all have devices."""
    stage.add_node(cards(0))
    node = stage.add_node(cards(0, 1))
    publish(stage, node, 0)
    stage.api.put(RESOURCE_SLICES, other_slice(node, [processor(n) for n in range(4)], CPU))
    nominate()
    stage.add_claim("gcu")
    for driver, number in ((NET, 1), (CPU, 4)):
        asked = request(driver, number)
        made = claim(asked["name"], stage.namespace)
        made["spec"]["devices"]["requests"] = [asked]
        stage.add_made_claim(made)
    stage.add_pod("user", "gcu", "net", "cpu", schedulingGates=GATES)
    assert named(stage, "user") == node


def test_a_node_is_kept_for_a_pod_that_waits_long(stage: Stage, nominate: Nominate) -> None:
    """It needs both cards and an interface; what is freed of the cards is kept for it."""
    node = stage.add_node(cards(0, 1))
    publish(stage, node, 0)
    nominate(fairness_patience=0.3)
    for number, name in enumerate(("small-0", "small-1")):
        stage.start(name, schedulingGates=GATES)
        assert named(stage, name) == node
        result = {
            "request": "gcu",
            "driver": DRIVER,
            "pool": f"{DRIVER}/{node}",
            "device": f"whole-0000-{number:02x}-00-0",
        }
        stage.allocate(name, {"devices": {"results": [result]}}, name)
        stage.bind_to(name, node)
    large = card_and_interface("large", stage.namespace)
    large["spec"]["devices"]["requests"][0]["exactly"]["count"] = 2
    stage.add_made_claim(large)
    stage.add_pod("large", "large", schedulingGates=GATES)
    stage.wait_for_event("large", "2 cards: 2 held")
    stage.stays(lambda: bool(stage.gates("large")), 0.4, "waiting")
    stage.start("small-2", schedulingGates=GATES)
    stage.wait_for_event("small-2", f"{stage.namespace}/large")
    stage.end("small-0")
    stage.stays(lambda: bool(stage.gates("small-2")), 0.3, "one card kept")
    stage.end("small-1")
    assert named(stage, "large") == node


def test_slices_of_others_are_read_once_they_are_needed(stage: Stage, nominate: Nominate) -> None:
    node = stage.add_node(cards(0, 1))
    publish(stage, node, 0)
    replica = nominate()
    stage.start("plain", schedulingGates=GATES)
    assert named(stage, "plain") == node
    before = lists_of_slices(stage, replica)
    start(stage, "user")
    assert named(stage, "user") == node
    assert lists_of_slices(stage, replica) > before


def test_a_list_that_does_not_come_keeps_no_pod(
    stage: Stage, nominate: Nominate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claim_reader, "_OTHERS_WITHIN", 0.5)
    node = stage.add_node(cards(0))
    replica = nominate()
    stage.wait(replica.leads, "a leader")
    with stage.api.faults.away(replica.user, RESOURCE_SLICES):
        start(stage, "user")
        assert named(stage, "user") == node
