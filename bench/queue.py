"""What a release costs with 10,000 waiting pods of which none can be served, against ten.

``python -m bench.queue`` fills the scheduling queue of 1,000 nodes and lets claims end. The pods
ask for more cards than a node has, in four shapes and from twenty namespaces. Times are those
of the thread.
"""

from __future__ import annotations

import time
from typing import cast

from bench import fleet
from bench.allocator import made
from bench.report import percentile, result, table
from controller.allocator.allocate import can_serve
from controller.allocator.claim_request import parse_claim
from controller.allocator.nodes.node_set import NodeSet
from controller.cache.cache import ClusterCache
from controller.cache.keys import Key, Subject
from controller.queue.arrival_order import ArrivalOrder
from controller.queue.backoff import KeyBackoff
from controller.queue.fair_queue import Namespaces
from controller.queue.queueing_hints import PodClass, QueueingHints
from controller.queue.scheduling_queue import SchedulingQueue
from controller.queue.starvation_guard import StarvationGuard
from dra_driver.model.claims.claim import Object, results
from dra_driver.selector.selector import Selectors

NODES = 1_000
RELEASES = 500
WARM_UP = 50
NAMESPACES = 20
SHAPES = 4


class Waiting:
    """A cluster, and so many pods that no device fits."""

    def __init__(self, pods: int) -> None:
        self._cluster = made("uniform", NODES, 1)
        self._pods: dict[Key, Object] = {}
        self.questions = 0
        order = ArrivalOrder()
        self.queue = SchedulingQueue(
            self._pods,
            self._cluster.state.numbers,
            cast("QueueingHints", self),
            StarvationGuard(ClusterCache(Selectors()).state(), order, patience=300.0),
            order,
            backoff=KeyBackoff(lambda: 0.0),
            namespaces=Namespaces(),
            clock=time.monotonic,
        )
        state = self._cluster.state
        wanted = [
            (parse_claim(fleet.claim([fleet.request("whole", cards=9 + n)]), state.classes),)
            for n in range(SHAPES)
        ]
        for number in range(pods):
            key = self.add(number)
            asked = wanted[number % SHAPES]
            shape = tuple(each.shape for each in asked)
            pod_class = PodClass(shape, (), self._pods[key], asked)
            assert self.queue.pop(0.0) is not None
            self.queue.add_unschedulable(key, 0.0, pod_class)

    def helps(self, pod_class: PodClass, _key: Key, nodes: NodeSet) -> bool:
        self.questions += 1
        return can_serve(self._cluster.state, pod_class.wanted, nodes)

    def add(self, number: int) -> Key:
        key = Key(Subject.POD, f"namespace-{number % NAMESPACES}", f"p{number}")
        created = {"creationTimestamp": f"{number:06}"}
        self._pods[key] = {"metadata": created, "spec": {}}
        self.queue.add(key, 0.0)
        return key

    def release(self) -> None:
        """A claim ends, and its node is asked for."""
        pools = [result.pool for result in results(self._cluster.release())]
        self.queue.on_nodes_changed([pool.rpartition("/")[2] for pool in pools])
        self.queue.move_to_active_or_backoff(time.monotonic())
        assert self.queue.pop(0.0) is None


def measure(pods: int) -> dict[str, float]:
    waiting = Waiting(pods)
    times = []
    for number in range(WARM_UP + RELEASES):
        if number == WARM_UP:
            waiting.questions = 0
        start = time.thread_time()
        waiting.release()
        times.append((time.thread_time() - start) * 1e6)
    kept = times[WARM_UP:]
    return {
        "p50_us": percentile(kept, 0.5),
        "p99_us": percentile(kept, 0.99),
        "questions": waiting.questions / RELEASES,
    }


def main() -> None:
    figures = {pods: measure(pods) for pods in (10, 10_000)}
    ratio = figures[10_000]["p50_us"] / figures[10]["p50_us"]
    rows = [[f"{pods:,}", *each.values()] for pods, each in figures.items()]
    table("a release that helps nobody", ["pods", "p50 µs", "p99 µs", "questions"], rows)
    result({"pods": {str(pods): each for pods, each in figures.items()}, "ratio": ratio})


if __name__ == "__main__":
    main()
