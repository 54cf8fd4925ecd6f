"""Which questions an event asks, and in which order. What a whole controller does with the answers
is in test_scheduling_queue."""

from __future__ import annotations

from typing import cast

from controller.allocator.node_set import NodeNumbers, NodeSet
from controller.cache.cache import ClusterCache
from controller.cache.keys import Key, Subject
from controller.queue.backoff import KeyBackoff
from controller.queue.fair_queue import Namespaces
from controller.queue.queueing_hints import PodClass, QueueingHints
from controller.queue.scheduling_queue import SchedulingQueue
from controller.queue.starvation_guard import StarvationGuard
from dra_driver.model.claim import Object
from dra_driver.selector.selector import Selectors
from tests.unit.controller.queue.parts import Part, part_of


class Asked:
    """A queue; `able` are the shapes that the node can serve, and a question takes `takes`."""

    def __init__(self) -> None:
        self.now = 100.0
        self.takes = 0.0
        self.able: set[str] = set()
        self.questions: list[str] = []
        self.asked_for: set[str] = set()  # the nodes, last of all
        self.numbers = NodeNumbers()
        self.namespaces = Namespaces()
        self.pods: dict[Key, Object] = {}
        self.queue = SchedulingQueue(
            self.pods,
            self.numbers,
            cast("QueueingHints", self),
            StarvationGuard(ClusterCache(Selectors()).state(), patience=300.0),
            backoff=KeyBackoff(lambda: 0.0),
            namespaces=self.namespaces,
            clock=lambda: self.now,
        )

    def helps(self, pod_class: PodClass, _key: Key, nodes: NodeSet) -> bool:
        self.now += self.takes
        [shape] = pod_class.shape
        self.questions.append(str(shape))
        self.asked_for = set(self.numbers.names(nodes))
        return shape in self.able

    def wait(self, namespace: str, name: str, shape: str, age: str = "") -> Key:
        key = Key(Subject.POD, namespace, name)
        self.pods[key] = {
            "metadata": {"namespace": namespace, "name": name, "creationTimestamp": age},
            "spec": {},
        }
        self.queue.add_unschedulable(key, self.now, PodClass((shape,), (), self.pods[key], ()))
        return key

    def woken(self) -> Key | None:
        self.queue.move_to_active_or_backoff(self.now)
        due = self.queue.pop(self.now)
        return None if due is None else due.key


def test_a_class_is_asked_for_once_though_the_questions_take_long() -> None:
    asked = Asked()
    for shape in "xyz":
        for number in range(3):
            asked.wait("default", f"{shape}{number}", shape, shape)
    asked.takes = 0.2
    asked.queue.on_nodes_changed(["n"])
    for _ in range(4):
        assert asked.queue.next_wakeup() == float("-inf"), "the rest is still to be asked"
        assert asked.woken() is None
    assert asked.questions == ["x", "y", "z"]
    assert asked.queue.next_wakeup() is None


def test_the_pod_of_a_namespace_that_yields_is_woken_last() -> None:
    asked = Asked()
    asked.able = {"x", "y"}
    costly = asked.wait("costly", "p", "x", "1")
    neighbour = asked.wait("neighbour", "p", "y", "2")
    asked.namespaces.charge("costly", 1.0, asked.now)
    asked.queue.on_nodes_changed(["n"])
    assert [asked.woken(), asked.woken()] == [neighbour, costly]


def test_of_a_class_the_namespaces_are_woken_in_turn() -> None:
    asked = Asked()
    asked.able = {"x"}
    for number in range(3):
        asked.wait("crowd", f"p{number}", "x", "1")
    asked.wait("small", "p", "x", "2")
    asked.queue.on_nodes_changed(["n"])
    woken = [asked.woken() for _ in range(4)]
    assert [each and each.namespace for each in woken] == ["crowd", "small", "crowd", "crowd"]


def test_a_pod_that_was_woken_in_vain_stands_in_backoff_for_the_next_event() -> None:
    asked = Asked()
    asked.able = {"x"}
    key = asked.wait("default", "p", "x")
    asked.queue.on_nodes_changed(["n"])
    assert asked.woken() == key
    asked.wait("default", "p", "x")
    assert part_of(asked.queue, key) is Part.UNSCHEDULABLE
    asked.queue.on_nodes_changed(["n"])
    assert asked.woken() is None
    assert part_of(asked.queue, key) is Part.BACKOFF
    assert asked.queue.next_wakeup() == asked.now + 1.0
    asked.now += 1.0
    assert asked.woken() == key


def test_what_is_free_later_is_asked_for_then() -> None:
    asked = Asked()
    asked.able = {"x"}
    key = asked.wait("default", "p", "x")
    asked.queue.on_nodes_changed(["n"], asked.now + 30.0)
    assert asked.woken() is None
    assert asked.queue.next_wakeup() == asked.now + 30.0
    asked.now += 30.0
    assert asked.woken() == key


def test_it_does_not_grow_with_steps_of_the_same_keys() -> None:
    """As a pod that waits has a step with each release, and one in five minutes else."""
    asked = Asked()
    keys = [Key(Subject.POD, "default", f"p{number}") for number in range(10)]
    for _ in range(500):
        asked.now += 0.1
        for key in keys:
            asked.queue.add(key, asked.now + 300.0)
            asked.queue.add(key, asked.now)
            assert asked.woken() == key
            asked.queue.add(key, asked.now + 300.0)
    assert len(asked.queue._due_at) == len(keys)
    assert len(asked.queue._timers) < 2_000
    asked.now += 1000.0
    assert [asked.woken() for _ in range(11)] == [*keys, None]


def test_the_changed_nodes_are_the_same_after_all_were_numbered_anew() -> None:
    asked = Asked()
    asked.wait("default", "p", "x")
    asked.numbers.set_of([f"gone-{number}" for number in range(5_000)])
    asked.queue.on_nodes_changed(["n"])
    asked.numbers.trim({"m", "n"})
    assert asked.woken() is None
    assert asked.asked_for == {"n"}
