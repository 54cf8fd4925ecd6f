"""What is left on nodes, as nodes and pods come and go."""

from __future__ import annotations

import pytest

from controller.allocator.nodes.node_set import NodeNumbers
from controller.cache.assigned_pods import AssignedPods
from dra_driver.model.claims.claim import Object

NOMINATED = {"nominatedNodeName": "a"}


def node(cpu: str = "4", pods: str = "10") -> Object:
    return {"status": {"allocatable": {"cpu": cpu, "memory": "1Gi", "pods": pods}}}


def pod(name: str, cpu: str, on: str = "", status: Object | None = None, **spec: object) -> Object:
    containers = [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]
    found: Object = {"containers": containers, **spec}
    if on:
        found["nodeName"] = on
    metadata = {"namespace": "default", "name": name}
    return {"metadata": metadata, "spec": found, "status": status or {}}


class Rooms:
    """Node a, with four cpus."""

    def __init__(self) -> None:
        self.numbers = NodeNumbers()
        self.pods = AssignedPods(self.numbers)
        self.pods.set_node("a", node())

    def put(self, found: Object, awaited_on: str = "") -> None:
        self.pods.set_pod(found["metadata"]["name"], found, awaited_on)

    def roomy(self, cpu: int, *, of_priority: int | None = None) -> set[str]:
        """The names of the nodes that have so many cpus left, and a place."""
        usage = self.pods.usage() if of_priority is None else self.pods.usage_from(of_priority)
        return set(self.numbers.names(usage.resources.nodes_with("cpu", cpu * 1000)))

    def left(self, name: str = "a") -> int:
        """The cpus that are left on the node; 0 also if it has none."""
        return max((cpu for cpu in range(1, 20) if name in self.roomy(cpu)), default=0)


@pytest.fixture
def rooms() -> Rooms:
    return Rooms()


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
def test_who_takes_room(rooms: Rooms, other: Object, awaited_on: str, left: int) -> None:
    rooms.put(other, awaited_on=awaited_on)
    assert rooms.left() == left


def test_a_pod_that_changes_is_counted_once(rooms: Rooms) -> None:
    for cpu in ("3", "2", "1"):
        rooms.put(pod("o", cpu, "a"))
    assert rooms.left() == 3
    rooms.pods.set_pod("o", None)
    rooms.pods.set_pod("o", None)
    assert rooms.left() == 4


def test_what_was_found_out_follows_the_nodes(rooms: Rooms) -> None:
    """More amounts are asked for than are kept, so that some are found out anew."""
    amounts = range(1000, 5000, 50)

    def most() -> int:
        having = rooms.pods.usage().resources.nodes_with
        return max((each for each in amounts if having("cpu", each)), default=0)

    assert most() == 4000
    rooms.put(pod("o", "1", "a"))
    assert most() == 3000
    rooms.put(pod("o", "2", "a"))
    assert most() == 2000
    rooms.pods.set_node("a", node("6"))
    assert most() == 4000
    rooms.pods.set_node("a", None)
    assert most() == 0


def test_places_for_pods(rooms: Rooms) -> None:
    rooms.pods.set_node("b", node(pods="1"))

    def places() -> set[str]:
        return set(rooms.numbers.names(rooms.pods.usage().resources.nodes_with("pods", 1)))

    assert places() == {"a", "b"}
    rooms.put(pod("o", "0", "b"))
    assert places() == {"a"}


def test_nodes_that_have_nothing_of_a_resource(rooms: Rooms) -> None:
    """A DeviceClass may serve it there."""
    having = rooms.pods.usage().resources.nodes_with
    assert having("example.com/rdma", 1, or_without=True) == rooms.numbers.bit("a")
    assert not having("example.com/rdma", 1)
    offering = node()
    offering["status"]["allocatable"]["example.com/rdma"] = "1"
    rooms.pods.set_node("a", offering)
    assert having("example.com/rdma", 1) == rooms.numbers.bit("a")
    assert not having("example.com/rdma", 2, or_without=True)
    rooms.pods.set_node("b", node())
    assert having("example.com/rdma", 2, or_without=True) == rooms.numbers.bit("b")


def test_pods_may_come_before_their_node_and_outlive_it(rooms: Rooms) -> None:
    rooms.put(pod("o", "3", "b"))
    assert rooms.left("b") == 0
    rooms.pods.set_node("b", node())
    assert rooms.left("b") == 1
    rooms.pods.set_node("b", None)
    assert rooms.left("b") == 0
    rooms.pods.set_node("b", node("8"))
    assert rooms.left("b") == 5


def test_nodes_that_do_not_exist_get_no_numbers(rooms: Rooms) -> None:
    """Whoever may create pods can name a new one with each."""
    assert rooms.roomy(1) == {"a"}
    for number in range(10):
        rooms.put(pod("o", "0", f"nowhere{number}"))
    assert not any(f"nowhere{number}" in rooms.numbers for number in range(10))
    assert rooms.roomy(1) == {"a"}


def test_a_list_says_which_pods_are_left(rooms: Rooms) -> None:
    rooms.put(pod("o", "2", "a"))
    rooms.put(pod("n", "1", "a"))
    rooms.pods.keep_pods({"n"})
    assert rooms.left() == 3


def test_what_would_be_left_after_preemption(rooms: Rooms) -> None:
    """Before and after it was asked for the first time."""
    rooms.put(pod("low", "1", "a"))
    rooms.put(pod("high", "1", "a", priority=10))
    assert rooms.left() == 2
    assert rooms.roomy(3, of_priority=10) == {"a"}
    assert not rooms.roomy(4, of_priority=10)
    rooms.put(pod("higher", "1", "a", priority=11))
    rooms.put(pod("lower", "1", "a", priority=9))
    assert rooms.roomy(2, of_priority=10) == {"a"}
    assert not rooms.roomy(3, of_priority=10)
    rooms.pods.set_node("b", node())
    assert rooms.roomy(4, of_priority=10) == {"b"}
    assert (rooms.pods.has_below(0), rooms.pods.has_below(1)) == (False, True)


def test_a_pod_may_be_looked_away_from(rooms: Rooms) -> None:
    rooms.put(pod("o", "3", "a"))
    rooms.pods.take_freed()
    with rooms.pods.without("o"):
        assert rooms.left() == 4
    assert rooms.left() == 1
    assert not rooms.pods.take_freed()


def test_nodes_on_which_pods_have_changed(rooms: Rooms) -> None:
    rooms.put(pod("o", "3", "a"))
    rooms.put(pod("n", "3", "nowhere"))
    assert rooms.pods.take_freed() == {"a"}
    rooms.put(pod("o", "3", "a"))
    assert not rooms.pods.take_freed()
    rooms.pods.set_pod("o", None)
    assert rooms.pods.take_freed() == {"a"}


@pytest.mark.parametrize(
    ("key", "freed"),
    [("kubernetes.io/hostname", {"a"}), ("topology.kubernetes.io/zone", {"a", "b"})],
)
def test_a_pod_that_keeps_others_away_frees_what_it_reaches(
    rooms: Rooms, key: str, freed: set[str]
) -> None:
    rooms.pods.set_node("b", node())
    term = {"topologyKey": key, "labelSelector": {}}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    rooms.put(pod("o", "1", "a", affinity={"podAntiAffinity": required}))
    rooms.pods.take_freed()
    rooms.pods.set_pod("o", None)
    assert rooms.pods.take_freed() == freed
    assert not rooms.pods.take_freed()
