"""Two agents side by side under calls, and one or the other killed again and again.

The kubelet is played by several threads, each with one claim at a time. A thread calls whichever
agent, or both at once, and repeats what gets no answer. Nothing says where in its work an agent
dies; `test_matrix` has each place, with one agent. With `GCU_KILLS`, whatever it says, there are
hundreds of kills.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import pytest

from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.mode import Mode
from tests.cluster.waiting import wait_until
from tests.kill.grants import DIVIDED, FREE, SLICED, TAKEN, Grant
from tests.kill.kubelet import Kubelet, NoAnswer
from tests.kill.node import Node
from tests.kill.outside import await_published, check, is_whole, shown
from tests.kill.starter import AgentProcess
from tests.seed import DAY
from tests.unit.node.ledger_file import read_ledger

pytestmark = pytest.mark.control_plane

_KILLS: Final = 300 if os.environ.get("GCU_KILLS") else 6
_PAUSE: Final = 1.0  # seconds between two kills, at most
_PATIENCE: Final = 90.0
_BOTH: Final = 0.2  # the share of calls that go to both agents

# What the claims of each thread have, in turn. All of it fits, beside what other pods have.
_LIVES: Final = (
    (partial(Grant, Mode.SHARED, SLICED, 2),),
    (partial(Grant, Mode.SHARED, SLICED, 1),),
    (partial(Grant, Mode.DRS, DIVIDED, 3),),
    (partial(Grant, Mode.DRS, DIVIDED, 1),),
    (partial(Grant, Mode.WHOLE, FREE), partial(Grant, Mode.DRS, FREE, 6)),
)
_WITHOUT_ROOM: Final = (
    partial(Grant, Mode.WHOLE, TAKEN),
    partial(Grant, Mode.SHARED, TAKEN, 1),
    partial(Grant, Mode.DRS, TAKEN, 1),
)

Call = Callable[[Kubelet, ClaimRef], str]


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

    def kill(self, number: int) -> None:
        """Each in its turn, at whatever it does. Each fourth time the next kill may come before it
        serves again."""
        pod = sorted(self._agents)[number % 2]
        self._agents[pod].end(signal.SIGKILL)
        self._start(pod)
        if number % 4 < 3:
            self._kubelets[pod].wait(_PATIENCE)

    def _start(self, pod: str) -> None:
        self._node.pod_uid = pod
        self._node.boot()
        self._agents[pod] = self._node.agent


@dataclass(eq=False)
class Lives:
    """The claims that come and go on `node`; `end` lets each thread keep its last one."""

    node: Node
    pair: Pair
    errors: Counter[str] = field(default_factory=Counter)
    end: threading.Event = field(default_factory=threading.Event)
    _books: threading.Lock = field(default_factory=threading.Lock)

    def live(self, number: int) -> int:
        """Returns how many claims of the thread came and went."""
        chance = random.Random(f"{DAY} {number}")
        gone = 0
        while True:
            wanted = _LIVES[number][gone % len(_LIVES[number])]
            with self._books:
                ref = self.node.add(wanted())
            self._repeat(Kubelet.prepare, ref, chance)
            assert is_whole(self.node, ref), "what was answered is not there"
            if self.end.is_set():
                return gone
            self._repeat(Kubelet.unprepare, ref, chance)
            assert not shown(self.node, ref)
            with self._books:
                del self.node.held[ref]
            self.node.forget(ref)
            gone += 1

    def fail(self) -> int:
        """Claims whose card another one has are refused; returns how often."""
        chance = random.Random(f"{DAY} refused")
        [holder] = [ref for ref, grant in self.node.held.items() if grant.card == TAKEN]
        refused = 0
        while not self.end.is_set():
            grant = _WITHOUT_ROOM[refused % len(_WITHOUT_ROOM)]()
            ref = self.node.claims.add(f"refused-{refused}", grant)
            with suppress(NoAnswer):
                error = chance.choice(self.pair.kubelets).prepare(ref)
                assert str(holder) in error, f"{error!r} does not name the holder"
                refused += 1
            self.node.forget(ref)
        return refused

    def _repeat(self, call: Call, ref: ClaimRef, chance: random.Random) -> None:
        """Call whichever agent, or both at once, until one has done it, as a kubelet does."""

        def is_done() -> bool:
            callees = list(self.pair.kubelets)
            if chance.random() >= _BOTH:
                callees = [chance.choice(callees)]
            with ThreadPoolExecutor(len(callees)) as pool:
                errors = list(pool.map(lambda each: call(each, ref), callees))
            self.errors.update(error.replace(ref.uid, "UID") for error in errors if error)
            return "" in errors

        wait_until(is_done, _PATIENCE, f"{call} of {ref}", retry_on=(NoAnswer,), interval=0.02)


@contextmanager
def living(lives: Lives) -> Iterator[Sequence[Future[int]]]:
    """All threads live inside."""
    with ThreadPoolExecutor(len(_LIVES) + 1) as pool:
        try:
            comers = [pool.submit(lives.live, number) for number in range(len(_LIVES))]
            yield [*comers, pool.submit(lives.fail)]
        finally:
            lives.end.set()


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_nothing_is_lost_or_given_twice(node: Node, tell: Callable[[str], None]) -> None:
    chance = random.Random(DAY)
    pair = Pair(node)
    lives = Lives(node, pair)
    with living(lives) as threads:
        for number in range(_KILLS):
            time.sleep(chance.uniform(0, _PAUSE))
            pair.kill(number)
            for ended in (thread for thread in threads if thread.done()):
                ended.result()  # its error
        for kubelet in pair.kubelets:
            kubelet.wait(_PATIENCE)
    gone = [thread.result() for thread in threads]
    tell(f"{_KILLS} kills; claims that came and went, by thread, and were refused: {gone}")
    for error, times in lives.errors.items():
        tell(f"{times} times: {error}")
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
    assert not read_ledger(node.state).claims
