"""Two agents side by side under calls, and one or the other killed again and again.

The kubelet is played by several threads, each with one claim at a time. A thread calls whichever
agent, and repeats what gets no answer. Nothing says where in its work an agent dies; `test_matrix`
has each place, with one agent. With `GCU_KILLS`, whatever it says, there are hundreds of kills.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Final

import pytest

from dra_driver.model.mode import Mode
from tests.cluster.waiting import wait_until
from tests.kill.grants import DIVIDED, FREE, SLICED, Grant
from tests.kill.kubelet import Kubelet, NoAnswer
from tests.kill.node import Node
from tests.kill.outside import await_published, check, shown
from tests.kill.starter import AgentProcess
from tests.seed import SEED

pytestmark = pytest.mark.control_plane

_KILLS: Final = 300 if os.environ.get("GCU_KILLS") else 5
_PAUSE: Final = 1.0  # seconds between two kills, at most
_PATIENCE: Final = 90.0
# What the claims of each thread have, in turn. All of it fits, beside what other pods have.
_LIVES: Final = (
    ((Mode.SHARED, SLICED, 2),),
    ((Mode.SHARED, SLICED, 1),),
    ((Mode.DRS, DIVIDED, 3),),
    ((Mode.DRS, DIVIDED, 1),),
    ((Mode.WHOLE, FREE), (Mode.DRS, FREE, 6)),
)


class Pair:
    """Two agents of a node, each of a pod of its own; `kill` ends one and starts it again."""

    def __init__(self, node: Node) -> None:
        self._node = node
        node.serve_others()
        self._agents: dict[str, AgentProcess] = {node.pod_uid: node.agent}
        self._kubelets: dict[str, Kubelet] = {node.pod_uid: node.kubelet}
        node.next_pod()
        self._start(node.pod_uid)
        self._kubelets[node.pod_uid] = node.kubelet

    @property
    def kubelets(self) -> Sequence[Kubelet]:
        return tuple(self._kubelets.values())

    def kill(self, chance: random.Random, *, is_early: bool) -> None:
        """One of them, at whatever it does. With `is_early` the next kill may come before it serves
        again."""
        pod = chance.choice(sorted(self._agents))
        self._agents[pod].end(signal.SIGKILL)
        self._start(pod)
        if not is_early:
            self._kubelets[pod].wait(_PATIENCE)

    def _start(self, pod: str) -> None:
        self._node.pod_uid = pod
        self._node.boot()
        self._agents[pod] = self._node.agent


def repeated(call: Callable[[Kubelet], str], pair: Pair, chance: random.Random) -> None:
    """Call whichever agent until one has done it, as a kubelet does."""
    errors: list[str] = []

    def is_done() -> bool:
        errors.append(call(chance.choice(pair.kubelets)))
        return not errors[-1]

    wait_until(
        is_done,
        _PATIENCE,
        "an agent that does it",
        seen=lambda: "; ".join(errors[-3:]),
        retry_on=(NoAnswer,),
        interval=0.02,
    )


def live(node: Node, pair: Pair, number: int, books: threading.Lock, end: threading.Event) -> int:
    """The claims of a thread come and go until the `end`; returns how many went. The last one
    stays."""
    chance = random.Random(f"{SEED} {number}")
    wanted = _LIVES[number]
    gone = 0
    while True:
        with books:
            ref = node.add(Grant(*wanted[gone % len(wanted)]))
        repeated(partial(Kubelet.prepare, ref=ref), pair, chance)
        assert shown(node, ref), "what was answered is not there"
        if end.is_set():
            return gone
        repeated(partial(Kubelet.unprepare, ref=ref), pair, chance)
        assert not shown(node, ref)
        with books:
            del node.held[ref]
        node.forget(ref)
        gone += 1


@contextmanager
def lives(node: Node, pair: Pair) -> Iterator[Sequence[Future[int]]]:
    """All threads live inside."""
    books, end = threading.Lock(), threading.Event()
    with ThreadPoolExecutor(len(_LIVES)) as pool:
        try:
            yield [pool.submit(live, node, pair, at, books, end) for at in range(len(_LIVES))]
        finally:
            end.set()


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_nothing_is_lost_or_given_twice(node: Node, tell: Callable[[str], None]) -> None:
    chance = random.Random(SEED)
    pair = Pair(node)
    with lives(node, pair) as threads:
        for number in range(_KILLS):
            time.sleep(chance.uniform(0, _PAUSE))
            pair.kill(chance, is_early=number % 4 == 3)
            for ended in (thread for thread in threads if thread.done()):
                ended.result()  # its error
        for kubelet in pair.kubelets:
            kubelet.wait(_PATIENCE)
    gone = [thread.result() for thread in threads]
    tell(f"{_KILLS} kills, claims that came and went, by thread: {gone}")
    assert all(gone)
    check(node)
    node.down()
    node.up()
    check(node)
    await_published(node)
    for ref in list(node.held):
        assert node.unprepare(ref) == ""
        del node.held[ref]
        check(node)
