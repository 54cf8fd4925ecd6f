"""Which hints an event asks for, in which order, and which pod becomes active. A whole controller
does the same in test_scheduling_queue."""

from __future__ import annotations

from typing import cast

from controller.allocator.nodes.node_set import NodeNumbers, NodeSet
from controller.cache.cache import ClusterCache
from controller.cache.keys import Key, Subject
from controller.queue.arrival_order import ArrivalOrder
from controller.queue.backoff import KeyBackoff
from controller.queue.fair_queue import Namespaces
from controller.queue.queueing_hints import PodClass, QueueingHints
from controller.queue.scheduling_queue import SchedulingQueue
from controller.queue.starvation_guard import StarvationGuard
from dra_driver.model.claims.claim import Object
from dra_driver.selector.selector import Selectors
from tests.unit.controller.queue.parts import Part, part_of


class HintedQueue:
    """A queue with hints: the node can serve the shapes `able`, and a hint takes `hint_seconds`."""

    def __init__(self) -> None:
        self.now = 100.0
        self.hint_seconds = 0.0
        self.able: set[str] = set()
        self.hints: list[str] = []
        self.hinted_nodes: set[str] = set()  # of the last hint
        self.numbers = NodeNumbers()
        self.namespaces = Namespaces()
        self.pods: dict[Key, Object] = {}
        order = ArrivalOrder()
        self.queue = SchedulingQueue(
            self.pods,
            self.numbers,
            cast("QueueingHints", self),
            StarvationGuard(ClusterCache(Selectors()).state(), order, patience=300.0),
            order,
            backoff=KeyBackoff(lambda: 0.0),
            namespaces=self.namespaces,
            clock=lambda: self.now,
        )

    def helps(self, pod_class: PodClass, _key: Key, nodes: NodeSet) -> bool:
        self.now += self.hint_seconds
        [shape] = pod_class.shape
        self.hints.append(str(shape))
        self.hinted_nodes = set(self.numbers.names(nodes))
        return shape in self.able and bool(nodes)

    def wait(self, namespace: str, name: str, shape: str, age: str = "") -> Key:
        key = Key(Subject.POD, namespace, name)
        self.pods[key] = {
            "metadata": {"namespace": namespace, "name": name, "creationTimestamp": age},
            "spec": {},
        }
        self.queue.add_unschedulable(key, self.now, PodClass((shape,), (), self.pods[key], ()))
        return key

    def pop(self) -> Key | None:
        self.queue.move_to_active_or_backoff(self.now)
        queued = self.queue.pop(self.now)
        return None if queued is None else queued.key


def test_one_hint_for_each_class_even_if_hints_take_long() -> None:
    hinted = HintedQueue()
    for shape in "xyz":
        for number in range(3):
            hinted.wait("default", f"{shape}{number}", shape, shape)
    hinted.hint_seconds = 0.2
    hinted.queue.on_nodes_changed(["n"])
    for _ in range(4):
        assert hinted.queue.next_wakeup() == float("-inf"), "other classes need a hint"
        assert hinted.pop() is None
    assert hinted.hints == ["x", "y", "z"]
    assert hinted.queue.next_wakeup() is None


def test_the_pod_of_a_costly_namespace_becomes_active_last() -> None:
    hinted = HintedQueue()
    hinted.able = {"x", "y"}
    costly = hinted.wait("costly", "p", "x", "1")
    neighbour = hinted.wait("neighbour", "p", "y", "2")
    hinted.namespaces.charge("costly", 1.0, hinted.now)
    hinted.queue.on_nodes_changed(["n"])
    assert [hinted.pop(), hinted.pop()] == [neighbour, costly]


def test_pods_of_a_class_become_active_by_namespaces_in_turn() -> None:
    hinted = HintedQueue()
    hinted.able = {"x"}
    for number in range(3):
        hinted.wait("crowd", f"p{number}", "x", "1")
    hinted.wait("small", "p", "x", "2")
    hinted.queue.on_nodes_changed(["n"])
    popped = [hinted.pop() for _ in range(4)]
    assert [each and each.namespace for each in popped] == ["crowd", "small", "crowd", "crowd"]


def test_a_pod_that_was_not_served_backs_off_before_the_next_event() -> None:
    hinted = HintedQueue()
    hinted.able = {"x"}
    key = hinted.wait("default", "p", "x")
    hinted.queue.on_nodes_changed(["n"])
    assert hinted.pop() == key
    hinted.wait("default", "p", "x")
    assert part_of(hinted.queue, key) is Part.UNSCHEDULABLE
    hinted.queue.on_nodes_changed(["n"])
    assert hinted.pop() is None
    assert part_of(hinted.queue, key) is Part.BACKOFF
    assert hinted.queue.next_wakeup() == hinted.now + 1.0
    hinted.now += 1.0
    assert hinted.pop() == key


def test_pods_of_an_age_that_were_not_served_keep_their_order() -> None:
    hinted = HintedQueue()
    hinted.able = {"x"}
    keys = [hinted.wait("default", f"p{number}", "x") for number in range(12)]
    hinted.queue.on_nodes_changed(["n"])
    assert [hinted.pop() for _ in keys] == keys
    for key in keys:
        hinted.wait("default", key.name, "x")
    hinted.queue.on_nodes_changed(["n"])
    hinted.now += 1.0
    assert [hinted.pop() for _ in keys] == keys


def test_of_several_classes_the_pod_that_came_first_becomes_active_first() -> None:
    hinted = HintedQueue()
    hinted.able = {"x", "y"}
    keys = [hinted.wait("default", "z", "x"), hinted.wait("default", "a", "y")]
    hinted.queue.on_nodes_changed(["n"])
    assert [hinted.pop(), hinted.pop()] == keys


def reserving(hinted: HintedQueue, key: Key) -> None:
    """The pod has waited for so long that node ``n`` is reserved for it."""
    hinted.now += 300.0
    pod = hinted.pods[key]
    hinted.queue._guard.reserve_set(pod, hinted.now - 300.0, hinted.now, lambda: ("n",))


def test_a_reserved_node_is_asked_for_whoever_may_use_it() -> None:
    """The first pod of the class, whose namespace's turn it is, must leave the node to the second;
    the third is older than that."""
    hinted = HintedQueue()
    hinted.able = {"x"}
    hinted.wait("idle", "p", "x", "3")
    second, third = (hinted.wait(each, "p", "x", age) for each, age in (("b", "2"), ("c", "1")))
    for namespace in "bcc":
        hinted.namespaces.begin_step(namespace)
    reserving(hinted, second)
    hinted.queue.on_nodes_changed(["n"])
    assert [hinted.pop() for _ in range(3)] == [second, third, None]


def test_a_reservation_is_for_a_pod_in_the_order_of_the_queue() -> None:
    """Of one second the pod that came first comes first, also where a node is reserved for the
    other one."""
    hinted = HintedQueue()
    hinted.able = {"x"}
    keys = [hinted.wait("default", name, "x") for name in ("first", "second", "third")]
    reserving(hinted, keys[1])
    reserved = [hinted.queue._guard.reserved_against(hinted.pods[each]) for each in keys]
    assert [each is not None for each in reserved] == [False, False, True]
    hinted.queue.on_nodes_changed(["n"])
    assert [hinted.pop() for _ in range(3)] == [*keys[:2], None]


def test_nothing_is_kept_of_pods_that_are_bound() -> None:
    hinted = HintedQueue()
    key = hinted.wait("default", "p", "x")
    hinted.pods[key]["spec"]["nodeName"] = "n"
    hinted.queue.add(key, hinted.now)
    assert hinted.pop() == key
    assert not len(hinted.queue._order)


def test_nodes_that_change_later_get_a_hint_then() -> None:
    hinted = HintedQueue()
    hinted.able = {"x"}
    key = hinted.wait("default", "p", "x")
    hinted.queue.on_nodes_changed(["n"], hinted.now + 30.0)
    assert hinted.pop() is None
    assert hinted.queue.next_wakeup() == hinted.now + 30.0
    hinted.now += 30.0
    assert hinted.pop() == key


def test_it_does_not_grow_with_steps_of_the_same_keys() -> None:
    """As a pod that waits has a step with each release, and one in five minutes else."""
    hinted = HintedQueue()
    keys = [Key(Subject.POD, "default", f"p{number}") for number in range(10)]
    for _ in range(500):
        hinted.now += 0.1
        for key in keys:
            hinted.queue.add(key, hinted.now + 300.0)
            hinted.queue.add(key, hinted.now)
            assert hinted.pop() == key
            hinted.queue.add(key, hinted.now + 300.0)
    assert len(hinted.queue._due_at) == len(keys)
    assert len(hinted.queue._timers) < 2_000
    hinted.now += 1000.0
    assert [hinted.pop() for _ in range(11)] == [*keys, None]


def test_the_changed_nodes_are_the_same_after_all_were_numbered_anew() -> None:
    hinted = HintedQueue()
    hinted.wait("default", "p", "x")
    hinted.numbers.set_of([f"gone-{number}" for number in range(5_000)])
    hinted.queue.on_nodes_changed(["n"])
    hinted.numbers.trim({"m", "n"})
    assert hinted.pop() is None
    assert hinted.hinted_nodes == {"n"}
