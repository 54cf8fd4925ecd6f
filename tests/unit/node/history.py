"""One random history of a node: claims of all modes, kills, faults, reboots; reproducible by seed.

What is outside (the simulator's cards, the CDI directory) is compared with what the API server's
claims say after each step. While a fault is on, or a card lost, what the journal accounts for may
differ; once it is `calm` again, nothing may.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from dra_driver.model.card import Problem
from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.errors import GcuError
from dra_driver.model.mode import Mode
from dra_driver.model.pci import PciAddress
from dra_driver.node.claims.failures import TRIES
from dra_driver.node.preparer import Prepared
from dra_driver.simulator.drs import new_uuid, place, taken
from dra_driver.simulator.state import Instance
from tests.unit.memory_efsmi import MemoryEfsmi
from tests.unit.node.allocations import Allocations
from tests.unit.node.damage import damage
from tests.unit.node.drs_world import DrsWorld
from tests.unit.node.faults import FAULTS, MACHINES
from tests.unit.node.kubelet_memory import KubeletMemory
from tests.unit.node.outside import NODE_CARDS, SIZES, Outside
from tests.unit.node.rush import Asked, Rush
from tests.unit.node.turns import Moments, Turns
from tests.unit.node.world import Crash

_NO_KILL = 0


class History:
    """A node in `root`; `told` has its past, line by line."""

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

    def run(self, most: int) -> None:
        """Up to `most` steps, then rest: at the end nothing is left."""
        actions = {
            self._come: 8,
            self._go: 5,
            self._rush: 3,
            self._again: 2,
            self._reuse: 1,
            self._delete: 1,
            self._recreate: 1,
            self._renew: 2,
            self._restart: 1,
            self._restart_kubelet: 1,
            self._look: 1,
        }
        disasters = {
            self._reboot: 2,
            self._lose: 2,
            self._return: 1,
            self._meddle: 3,
            self._fault: 3,
            self._calm: 3,
            self._damage: 1,
        }
        for _ in range(self.random.randint(1, most)):
            chosen = actions if self.random.random() < 0.8 else disasters
            (action,) = self.random.choices(list(chosen), list(chosen.values()))
            action()
            self._check()
        self._calm()
        self._check()
        self._end()

    def _check(self) -> None:
        self.outside.check(disturbed=self.disturbed, held=self.agent.held())

    def _come(self) -> None:
        self._try(self._new(self.random.randrange(len(NODE_CARDS))))

    def _try(self, uid: str) -> None:
        fits = self.outside.fits(uid)
        done = self._prepare(uid)
        if None not in (done, fits) and not self.disturbed:
            assert done == fits, self.told[-1]

    def _rush(self) -> None:
        """Several calls at once, as of pods that start and end together."""
        old, card = list(self.outside.claims), self.random.randrange(len(NODE_CARDS))
        new = [self._new(card) for _ in range(self.random.choice((1, 2, 2, 3)))]
        rush = Rush.of(self.outside, self.random, new, old)
        self.told.append(f"at once: {', '.join(map(str, rush.calls))}")
        for call in rush.calls:
            if call.verb == "unprepare":
                self._kubelet.asks_back(call.uid)
        found = self._attempt(lambda: self._turns.play([self._made(call) for call in rush.calls]))
        if found is None:
            return
        done = [not isinstance(answer, GcuError) for answer in found]
        self.told.append(f"  done: {done}")
        if not self.disturbed:
            rush.judge(done)
        for call, ok in zip(rush.calls, done, strict=True):
            # Prepared again since, it stays: the kubelet knows of it.
            if ok and call.verb == "unprepare" and call.uid not in self.outside.prepared():
                self._forget(call.uid)

    def _made(self, call: Asked) -> Callable[[], object]:
        if call.verb == "look":
            return self._reconcile
        ref = ClaimRef.of(self.outside.claims[call.uid])
        work = self.agent.preparer
        if call.verb == "unprepare":
            return lambda: work.unprepare([ref])[call.uid]
        return lambda: work.prepare([ref])[call.uid]

    def _again(self) -> None:
        for uid in self._one():
            self.told.append(f"{uid}: prepare again")
            known = self.outside.is_answered(uid)
            done = self._prepare(uid)
            assert done is not False or not known or self.disturbed, self.told[-1]

    def _go(self) -> None:
        for uid in self._one():
            self._leave(uid)

    def _leave(self, uid: str) -> bool:
        """Whether the pod has ended; the kubelet asks again, perhaps only later."""
        refs = [ClaimRef.of(self.outside.claims[uid])]
        for _ in range(self.random.choice((1, 1, TRIES))):
            self.told.append(f"{uid}: unprepare")
            self._kubelet.asks_back(uid)
            if self._call(partial(self._unprepare, refs)):
                self._forget(uid)
                return True
        return False

    def _reuse(self) -> None:
        """A claim outlives its pod, and is allocated anew for the next one."""
        for uid in self._one():
            metadata = self.outside.claims[uid]["metadata"]
            if not self._leave(uid):
                return
            card = self.random.randrange(len(NODE_CARDS))
            made = self._allocations.make(metadata["name"], card)
            self._add({**made, "metadata": metadata})
            self.told.append(f"{uid}: allocated anew on {NODE_CARDS[card]}")
            self._try(uid)

    def _renew(self) -> None:
        """A claim is allocated anew, for a kubelet that has not had it unprepared."""
        for uid in self._one():
            former = self.outside.claims[uid]
            metadata = former["metadata"]
            made = self._allocations.like(former, self.random.randrange(len(NODE_CARDS)))
            if made is None or self.world.api.claims.get(("team", metadata["name"])) != former:
                return
            self.outside.former.setdefault(uid, []).append(former)
            self._kubelet.renew(uid)
            self._add({**made, "metadata": metadata})
            self.told.append(f"{uid}: renewed as {[r.device for r in self.outside.wanted(uid)]}")
            self._prepare(uid)

    def _damage(self) -> None:
        """All records of a claim are damaged, and the agent that runs reads the journal anew."""
        prepared = sorted(self.outside.prepared())
        if not prepared:
            return
        uid = self.random.choice(prepared)
        self.told.append(f"{uid}: records damaged")
        self.agent.journal.close()
        damage(self.world.root / "state" / "journal", f'"uid":"{uid}"')
        self.agent.journal.snapshot()
        what = self.random.choice(("again", "leave", "look"))
        if what == "again":
            # Of a claim that is gone only the file tells, which a look takes in.
            known = self.outside.is_answered(uid) and self.outside.exists(uid)
            done = self._prepare(uid)
            assert done is not False or not known or self.disturbed, self.told[-1]
        elif what == "leave":
            self._leave(uid)
        self._look()

    def _unprepare(self, refs: list[ClaimRef]) -> object:
        (answer,) = self.agent.preparer.unprepare(refs).values()
        return answer

    def _recreate(self) -> None:
        """A claim of the same name is another claim, while the former's pod has not ended."""
        for uid in self._one():
            self.told.append(f"{uid}: deleted and made anew")
            self._serial += 1
            former = self.outside.claims[uid]
            metadata = {**former["metadata"], "uid": f"uid-again-{self._serial}"}
            self._prepare(self._add({**former, "metadata": metadata}))

    def _delete(self) -> None:
        """A claim is gone from the API server, by force: its pod still runs."""
        for uid in self._one():
            self.told.append(f"{uid}: deleted")
            metadata = self.outside.claims[uid]["metadata"]
            self.world.api.claims.pop((metadata["namespace"], metadata["name"]), None)

    def _restart_kubelet(self) -> None:
        """It asks again for whatever its pods have, of which nothing may have changed."""
        self.told.append("kubelet restarts")
        for uid in sorted(self.outside.prepared()):
            known = self.outside.is_answered(uid)
            done = self._prepare(uid)
            assert done is not False or not known or self.disturbed, self.told[-1]

    def _restart(self) -> None:
        self.told.append("restart")
        self._start(0.3)

    def _look(self) -> None:
        self.told.append("look")
        self._call(self._reconcile)

    def _reboot(self) -> None:
        self.told.append("reboot")
        self.world.reboot()
        here = {one.uuid for card in NODE_CARDS for one in self.world.tool.instances(str(card))}
        self.outside.foreign = {
            uuid: card for uuid, card in self.outside.foreign.items() if uuid in here
        }
        self._start(0.3)

    def _lose(self) -> None:
        address = self.random.choice(NODE_CARDS)
        self.told.append(f"lose {address}")
        self.world.tool.set_card(str(address), lost=True)
        self.disturbed = True

    def _return(self) -> None:
        """A lost card is back; the agent may look."""
        for address in NODE_CARDS:
            if self.world.tool.card(str(address)).lost:
                self.told.append(f"{address} is back")
                self.world.tool.set_card(str(address), lost=False)
        if self.random.random() < 0.5:
            self._look()

    def _meddle(self) -> None:
        """Somebody makes an instance by hand, or takes it away again; the agent may look."""
        address = self.random.choice(NODE_CARDS)
        card = self.world.tool.card(str(address))
        if card.lost or self.disturbed:
            return
        mine = [one for one in card.instances if one.uuid in self.outside.foreign]
        slots = place(1, taken(card), SIZES, "any")
        left = [one for one in card.instances if one not in mine]
        if mine:
            self.told.append(f"foreign instance of {address} goes")
            mode = "DRS" if left else "Disable"
            self.world.tool.set_card(str(address), instances=tuple(left), virtualization=mode)
            del self.outside.foreign[mine[0].uuid]
        elif slots and not self.outside.given(address, Mode.WHOLE, Mode.SHARED):
            self.told.append(f"foreign instance on {address}")
            made = Instance(card.next_instance_id + 90, "1g.6gb", new_uuid(), slots)
            self.outside.foreign[made.uuid] = address
            there = (*card.instances, made)
            self.world.tool.set_card(str(address), instances=there, virtualization="DRS")
        if self.random.random() < 0.7:
            self._reconcile()

    def _fault(self) -> None:
        fault, times = self.random.choice(FAULTS), self.random.choice((1, 1, 2, None))
        self.told.append(f"fault {fault}, {times} times")
        self.world.tool.set_fault(fault, times=times)
        self.disturbed = True

    def _calm(self) -> None:
        """Faults end, lost cards are back, and the agent looks."""
        self.told.append("calm")
        self.world.tool.clear_faults()
        for address in NODE_CARDS:
            self.world.tool.set_card(str(address), lost=False)
        self._kill.n = _NO_KILL
        self._reconcile()
        self.disturbed = False

    def _end(self) -> None:
        """All pods end."""
        self.told.append("end")
        for uid, each in list(self.outside.claims.items()):
            assert self.agent.preparer.unprepare([ClaimRef.of(each)]) == {uid: None}
            self._forget(uid)
            self._check()
        self.agent.journal.close()

    def _new(self, card: int) -> str:
        """A claim, allocated by somebody who does not look at others."""
        self._serial += 1
        name = f"c{self._serial}"
        uid = self._add(self._allocations.make(name, card))
        given = [(r.device, dict(r.consumed)) for r in self.outside.results(uid)]
        self.told.append(f"{name}: {given}")
        return uid

    def _add(self, made: dict[str, Any]) -> str:
        ref = self.world.api.add(made)
        self.outside.claims[ref.uid] = made
        return ref.uid

    def _forget(self, uid: str) -> None:
        """The kubelet does."""
        del self.outside.claims[uid]
        self.outside.former.pop(uid, None)
        self._kubelet.forget(uid)

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
        self._kill.n = _NO_KILL
        return answers

    def _start(self, fatal: float) -> None:
        """A new agent, which may be killed while it recovers, and looks."""
        while True:
            self.agent.journal.close()
            n = self.random.randrange(1, 40) if self.random.random() < fatal else _NO_KILL
            self._kill = Moments(self._turns, n)
            try:
                self.agent = self.world.start(self._kill)
                self._reconcile()
            except Crash as crash:
                self.told.append(f"  killed again {crash}")
                continue
            self._kill.n = _NO_KILL
            return

    def _reconcile(self) -> None:
        found = self.world.reconcile(self.agent)
        known = self.world.cards.problems
        kept: dict[PciAddress, tuple[Problem, ...]] = {
            address: known.get(address, ()) for address in found.unknown
        }
        self.world.cards.problems = kept | {a: (p,) for a, p in found.foreign.items()}

    def _one(self) -> Iterator[str]:
        if self.outside.claims:
            yield self.random.choice(list(self.outside.claims))
