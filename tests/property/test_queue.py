"""Any history of the scheduling queue, beside a model of it: nothing is lost, nobody starves."""

from __future__ import annotations

import random
from collections.abc import Set as AbstractSet
from typing import Final, cast

import pytest

from controller.allocator.nodes.node_set import NodeNumbers, NodeSet
from controller.cache.cache import ClusterCache
from controller.cache.keys import Key, Subject
from controller.queue.arrival_order import ArrivalOrder
from controller.queue.backoff import BackoffReason, KeyBackoff
from controller.queue.fair_queue import Namespaces
from controller.queue.queueing_hints import PodClass, QueueingHints
from controller.queue.scheduling_queue import SchedulingQueue
from controller.queue.starvation_guard import StarvationGuard
from dra_driver.model.claims.claim import Object
from dra_driver.selector.selector import Selectors
from tests.seed import Sample, told
from tests.unit.controller.queue.parts import Part, part_of

NODES = [f"n{number}" for number in range(4)]
NAMESPACES = ("a", "b", "c")
LONGEST_BACKOFF = 10.0  # seconds
PATIENCE = 5.0  # seconds after which a node is reserved
HISTORIES: Final = Sample(always=100, of_the_day=100, soak=10_000)


class Model:
    """Nodes with free cards, and pods that ask for so many cards of one node out of some. The
    model serves at once whom it looks at, if it can. Who has waited for long has a node reserved;
    nobody has a step for that alone, so what an event makes possible is not done by the clock."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.now = 0.0
        self.free = dict.fromkeys(NODES, 0)
        self.pods: dict[Key, Object] = {}
        self.steps = 0
        self.questions = 0
        self.numbers = NodeNumbers()
        self.refused: set[Key] = set()
        order = ArrivalOrder()
        state = ClusterCache(Selectors()).state()
        self.guard = StarvationGuard(state, order, patience=PATIENCE)
        self.queue = SchedulingQueue(
            self.pods,
            self.numbers,
            cast("QueueingHints", self),
            self.guard,
            order,
            backoff=KeyBackoff(lambda: 0.0),
            namespaces=Namespaces(),
            clock=lambda: self.now,
        )

    def helps(self, pod_class: PodClass, key: Key, nodes: NodeSet) -> bool:
        self.questions += 1
        assert key in self.pods, "a pod that is gone is asked for"
        return self.serving(self.pods[key], set(self.numbers.names(nodes))) is not None

    def may_use(self, pod: Object) -> AbstractSet[str]:
        """The pod's nodes that are not reserved for a pod before it."""
        reservation = self.guard.reserved_against(pod)
        nodes: frozenset[str] = pod["nodes"]
        return nodes if reservation is None else nodes - set(reservation.nodes)

    def serving(self, pod: Object, nodes: AbstractSet[str]) -> str | None:
        able = [n for n in sorted(nodes & pod["nodes"]) if self.free[n] >= pod["count"]]
        return able[0] if able else None

    def create(self) -> None:
        number = len(self.pods) + self.steps
        key = Key(Subject.POD, self.draw.choice(NAMESPACES), f"p{number}")
        if key in self.pods:
            return
        self.pods[key] = {
            "metadata": {
                "namespace": key.namespace,
                "name": key.name,
                "creationTimestamp": f"{self.now:09.1f}",
            },
            "spec": {"priority": self.draw.choice((0, 0, 5))},
            "count": self.draw.choice((1, 2, 3)),
            "nodes": frozenset(self.draw.sample(NODES, self.draw.choice((1, 4)))),
            "is_refused": self.draw.random() < 0.1,
        }
        self.queue.add(key, self.now)

    def delete(self) -> None:
        if self.pods:
            key = self.draw.choice(sorted(self.pods))
            del self.pods[key]
            self.queue.remove_waiting(key)
            self.queue.add(key, self.now)

    def change(self) -> None:
        if self.pods:
            self.queue.add(self.draw.choice(sorted(self.pods)), self.now)

    def release(self) -> None:
        node = self.draw.choice(NODES)
        self.free[node] += 1
        self.queue.on_nodes_changed([node])

    def take(self) -> None:
        """Somebody else takes what is free; nobody is woken."""
        self.free[self.draw.choice(NODES)] = 0

    def stop(self) -> None:
        """A decision was stopped."""
        if self.pods:
            self.queue.backoff.begin(
                self.draw.choice(sorted(self.pods)), BackoffReason.DECISION_STOPPED, self.now
            )

    def wait_a_while(self) -> None:
        self.now += self.draw.choice((0.1, 1.0, 5.0))

    def step(self) -> bool:
        """Whether there was one."""
        self.queue.move_to_active_or_backoff(self.now)
        due = self.queue.pop(self.now)
        if due is None:
            return False
        self.steps += 1
        key = due.key
        assert part_of(self.queue, key) is None
        pod = self.pods.get(key)
        if pod is None:
            self.queue.remove_waiting(key)
            return True
        self.queue.backoff.forget(key, BackoffReason.DECISION_STOPPED)
        if pod["is_refused"]:
            self.queue.add_refused(key, self.now, None)
            return True
        node = self.serving(pod, self.may_use(pod))
        if node is None:
            pod_class = PodClass((pod["count"],), (tuple(sorted(pod["nodes"])),), pod, ())
            since = self.queue.add_unschedulable(key, self.now, pod_class)
            kept = self.draw.choice(sorted(pod["nodes"]))
            self.queue.on_nodes_changed(
                self.guard.reserve_set(pod, since, self.now, lambda: (kept,))
            )
        else:
            self.free[node] -= pod["count"]
            del self.pods[key]
            self.queue.remove_waiting(key)
        return True

    def check(self) -> None:
        """Every pod stands in exactly one part."""
        queue = self.queue
        in_classes = [key for each in queue._classes.values() for key in each._entries]
        assert len(in_classes) == len(set(in_classes))
        for key in self.pods:
            part = part_of(queue, key)
            assert part is not None, f"{key} is lost"
            assert (key in queue._active) + (key in queue._unschedulable) <= 1
            assert (key in in_classes) <= (part is Part.UNSCHEDULABLE)
        assert queue._unschedulable.isdisjoint(queue._active._entries)

    def rest(self) -> None:
        before = self.steps
        while self.step() or self.queue.next_wakeup() == float("-inf"):
            assert self.steps - before < 20 * (len(self.pods) + 20), "it never comes to rest"


@pytest.mark.parametrize("seeds", HISTORIES.blocks(50))
def test_no_pod_is_lost_and_each_that_can_be_served_is(seeds: range) -> None:
    for seed in seeds:
        with told(seed):
            play(Model(seed))


def play(model: Model) -> None:
    happenings = (
        *(model.create, model.create, model.delete, model.change, model.release, model.release),
        *(model.take, model.stop, model.wait_a_while),
    )
    for _ in range(150):
        model.draw.choice(happenings)()
        if model.draw.random() < 0.5:
            model.step()
        model.check()
    model.rest()
    model.now += 2 * LONGEST_BACKOFF
    model.rest()
    model.now += 1000.0  # whoever was stopped
    model.rest()
    model.check()
    left = {key: pod for key, pod in model.pods.items() if not pod["is_refused"]}
    assert [key for key, pod in left.items() if model.serving(pod, model.may_use(pod))] == []
    questions, steps = model.questions, model.steps
    for node in NODES:
        model.free[node] = 0
        model.queue.on_nodes_changed([node])
        model.rest()
    assert model.steps == steps, "an event that helps nobody costs a step"
    assert model.questions - questions <= len(NODES) * len(model.queue._class_heads(model.now))
