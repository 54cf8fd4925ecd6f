"""A node with claims whose agent may be killed in any call, and is started anew."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dra_driver.model.card import Problem
from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.claims.claim_device import Prepared
from dra_driver.model.errors import GcuError
from dra_driver.model.pci import PciAddress
from tests.unit.memory_efsmi import MemoryEfsmi
from tests.unit.node.allocations import Allocations
from tests.unit.node.drs_world import DrsWorld
from tests.unit.node.effects import Crash
from tests.unit.node.faults import MACHINES
from tests.unit.node.kubelet_memory import KubeletMemory
from tests.unit.node.outside import Outside
from tests.unit.node.turns import Moments, Turns

NO_KILL = 0


class KilledNode:
    """A node in `root`. Its machine, and when its agent is killed, are drawn by `seed`.

    `told` has its past, line by line. While it is `disturbed`, by a fault or a lost card, the
    journal may account for something else than there is.
    """

    def __init__(self, root: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self._turns = Turns(self.random)
        machine = self.random.choice(MACHINES)
        self.world = DrsWorld(root, tool=MemoryEfsmi(machine), take=self._turns.take_lock)
        self._allocations = Allocations(self.random, self.world)
        self.outside = Outside(self.world)
        self.disturbed = False
        self.told: list[str] = [f"seed {seed}"]
        self._kubelet = KubeletMemory(self.world)
        self._serial = 0
        self._kill = Moments(self._turns)
        self.agent = self.world.start(self._kill)

    def _add(self, made: dict[str, Any]) -> str:
        ref = self.world.api.add(made)
        self.outside.claims[ref.uid] = made
        return ref.uid

    def _prepare(self, uid: str) -> bool | None:
        ref = ClaimRef.of(self.outside.claims[uid])
        return self._call(lambda: self._answered(uid, self.agent.preparer.prepare([ref])[uid]))

    def _answered(self, uid: str, answer: Prepared | GcuError) -> object:
        if not isinstance(answer, GcuError):
            self._kubelet.take(uid, answer)
        return answer

    def _call(self, call: Callable[[], object]) -> bool | None:
        """Whether the call succeeded; None where the agent was killed in it, and started anew."""
        answers = self._attempt(lambda: [call()])
        if answers is None:
            return None
        (answer,) = answers
        if isinstance(answer, GcuError):
            self.told.append(f"  {answer}")
        return not isinstance(answer, GcuError)

    def _attempt(self, call: Callable[[], list[object]]) -> list[object] | None:
        """What the call gives; None where the agent was killed in it, and started anew."""
        if self.random.random() < 0.25:
            self._kill.n = len(self._kill.moments) + self.random.randrange(1, 40)
        try:
            answers = call()
        except Crash as crash:
            self.told.append(f"  killed {crash}")
            self._start(0.3)
            return None
        self._kill.n = NO_KILL
        return answers

    def _start(self, fatal: float) -> None:
        """A new agent, which may be killed while it recovers, and looks."""
        while True:
            self.agent.journal.close()
            n = self.random.randrange(1, 40) if self.random.random() < fatal else NO_KILL
            self._kill = Moments(self._turns, n)
            try:
                self.agent = self.world.start(self._kill)
                self._reconcile()
            except Crash as crash:
                self.told.append(f"  killed again {crash}")
                continue
            self._kill.n = NO_KILL
            return

    def _reconcile(self) -> None:
        found = self.world.reconcile(self.agent)
        known = self.world.cards.problems
        kept: dict[PciAddress, tuple[Problem, ...]] = {
            address: known.get(address, ()) for address in found.unknown
        }
        self.world.cards.problems = kept | {a: (p,) for a, p in found.foreign.items()}
