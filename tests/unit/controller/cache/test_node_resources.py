"""What is left on nodes, as nodes and pods come and go."""

from __future__ import annotations

import pytest

from controller.allocator.nodes.node_set import NodeNumbers
from controller.cache.node_resources import NodeResources
from dra_driver.model.claims.claim import Object

NOMINATED = {"nominatedNodeName": "a"}


def node(cpu: str = "4", pods: str = "10") -> Object:
    return {"status": {"allocatable": {"cpu": cpu, "memory": "1Gi", "pods": pods}}}


def pod(name: str, cpu: str, on: str = "", status: Object | None = None) -> Object:
    spec: Object = {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]}
    if on:
        spec["nodeName"] = on
    metadata = {"namespace": "default", "name": name}
    return {"metadata": metadata, "spec": spec, "status": status or {}}


def put(rooms: NodeResources, found: Object, awaited_on: str = "") -> None:
    rooms.set_pod(found["metadata"]["name"], found, awaited_on)


def roomy(rooms: NodeResources, asking: Object) -> set[str]:
    """The names of the nodes that have room for the pod."""
    return set(rooms.numbers.names(rooms.nodes_with_capacity(asking)))


@pytest.fixture
def rooms() -> NodeResources:
    found = NodeResources(NodeNumbers())
    found.set_node("a", node())
    return found


@pytest.mark.parametrize(
    ("other", "awaited_on", "left"),
    [
        pytest.param(pod("o", "3", "a"), "", 1, id="bound"),
        pytest.param(pod("o", "3", "b"), "", 4, id="bound elsewhere"),
        pytest.param(pod("o", "3", "b", NOMINATED), "a", 4, id="bound elsewhere after all"),
        pytest.param(pod("o", "3"), "", 4, id="waits for nothing"),
        pytest.param(pod("o", "3", status=NOMINATED), "", 1, id="nominated"),
        pytest.param(pod("o", "3"), "a", 1, id="has a device there"),
        pytest.param(pod("o", "3", "a", {"phase": "Succeeded"}), "", 4, id="has ended"),
        pytest.param(pod("o", "3", "a", {"phase": "Failed"}), "", 4, id="has failed"),
        pytest.param(pod("o", "3", "a", {"phase": "Running"}), "", 1, id="runs"),
    ],
)
def test_who_takes_room(rooms: NodeResources, other: Object, awaited_on: str, left: int) -> None:
    put(rooms, other, awaited_on=awaited_on)
    assert "a" in roomy(rooms, pod("p", str(left)))
    assert "a" not in roomy(rooms, pod("p", str(left + 1)))


def test_a_pod_that_changes_is_counted_once(rooms: NodeResources) -> None:
    for cpu in ("3", "2", "1"):
        put(rooms, pod("o", cpu, "a"))
    assert "a" in roomy(rooms, pod("p", "3"))
    rooms.set_pod("o", None)
    rooms.set_pod("o", None)
    assert "a" in roomy(rooms, pod("p", "4"))
    assert "a" not in roomy(rooms, pod("p", "5"))


def test_what_was_found_out_follows_the_nodes(rooms: NodeResources) -> None:
    """More amounts are asked for than are kept, so that some are found out anew."""
    amounts = [f"{milli}m" for milli in range(1000, 5000, 50)]

    def fitting() -> list[str]:
        return [cpu for cpu in amounts if "a" in roomy(rooms, pod("p", cpu))]

    assert fitting()[-1] == "4000m"
    put(rooms, pod("o", "1", "a"))
    assert fitting()[-1] == "3000m"
    put(rooms, pod("o", "2", "a"))
    assert fitting()[-1] == "2000m"
    rooms.set_node("a", node("6"))
    assert fitting()[-1] == "4000m"
    rooms.set_node("a", None)
    assert fitting() == []


def test_places_for_pods(rooms: NodeResources) -> None:
    rooms.set_node("b", node(pods="1"))
    assert "b" in roomy(rooms, pod("p", "1"))
    put(rooms, pod("o", "0", "b"))
    assert "b" not in roomy(rooms, pod("p", "0"))


def test_pods_may_be_told_before_their_node_and_outlive_it(rooms: NodeResources) -> None:
    put(rooms, pod("o", "3", "b"))
    assert "b" not in roomy(rooms, pod("p", "1"))
    rooms.set_node("b", node())
    assert "b" in roomy(rooms, pod("p", "1"))
    assert "b" not in roomy(rooms, pod("p", "2"))
    rooms.set_node("b", None)
    assert "b" not in roomy(rooms, pod("p", "1"))
    rooms.set_node("b", node("8"))
    assert "b" in roomy(rooms, pod("p", "5"))
    assert "b" not in roomy(rooms, pod("p", "6"))


def test_nodes_that_do_not_exist_get_no_numbers(rooms: NodeResources) -> None:
    """Whoever may create pods can name a new one with each."""
    assert roomy(rooms, pod("p", "1")) == {"a"}
    for number in range(10):
        put(rooms, pod("o", "0", f"nowhere{number}"))
    assert not any(f"nowhere{number}" in rooms.numbers for number in range(10))
    assert roomy(rooms, pod("p", "1")) == {"a"}


def test_a_list_tells_which_pods_are_left(rooms: NodeResources) -> None:
    put(rooms, pod("o", "2", "a"))
    put(rooms, pod("n", "1", "a"))
    rooms.keep_pods({"n"})
    assert "a" in roomy(rooms, pod("p", "3"))
    assert "a" not in roomy(rooms, pod("p", "4"))
