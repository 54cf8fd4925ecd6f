"""One random history of a node: claims of all modes, kills, faults, reboots; reproducible by seed.

What is outside (the simulator's cards, the CDI directory) is compared with what the API server's
claims say after each step. While a fault is on, or a card lost, what the journal accounts for may
differ; once it is `calm` again, nothing may.
"""

from __future__ import annotations

import logging
import random
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from dra_driver.model.card import Problem
from dra_driver.model.claim import ClaimRef
from dra_driver.model.errors import GcuError
from dra_driver.model.mode import Mode
from dra_driver.model.pci import PciAddress
from dra_driver.simulator.drs import new_uuid, place, taken
from dra_driver.simulator.state import Instance, Machine
from tests.unit.memory_efsmi import MemoryEfsmi
from tests.unit.node.drs_world import DrsWorld, instance, overseer, share, slices, tool, whole
from tests.unit.node.folders import fast_folder
from tests.unit.node.outside import NODE_CARDS, SIZES, Outside
from tests.unit.node.world import Crash, Kill, claim, pod

FAULTS = (
    "create-fails",
    "create-hangs",
    "create-hangs-after-making",
    "create-reports-failure-but-makes",
    "create-reports-success-but-makes-nothing",
    "destroy-fails",
    "destroy-hangs",
    "drs-on-refused",
    "drs-off-refused",
    "efsmi-exit",
    "efsmi-garbage",
)
_NO_KILL = 0


def _machines() -> tuple[Machine, ...]:
    kinds: tuple[dict[str, Any], ...] = (
        {},
        {"placement": "aligned", "instanceIds": "increasing"},
        {"instancesSurviveReboot": True},
    )
    return tuple(tool(len(NODE_CARDS), **kind).machine for kind in kinds)


_MACHINES = _machines()


_MOST_STEPS = 10


def play(seeds: Iterable[int]) -> None:
    """Play the history of each seed; raises AssertionError, with its past, for one that goes
    wrong."""
    with fast_folder() as folder, _quiet():
        for seed in seeds:
            history = History(folder / str(seed), seed)
            try:
                history.run(_MOST_STEPS)
            except Exception as error:
                past = "\n".join(history.told)
                raise AssertionError(f"{error!r} after\n{past}") from error
            shutil.rmtree(folder / str(seed))


@contextmanager
def _quiet() -> Iterator[None]:
    """What the driver warns of is what is done to it here."""
    logger = logging.getLogger("dra_driver")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


class History:
    """A node in `root`; `told` has its past, line by line."""

    def __init__(self, root: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.world = DrsWorld(root, tool=MemoryEfsmi(self.random.choice(_MACHINES)))
        self.outside = Outside(self.world)
        self.disturbed = False
        self.told: list[str] = [f"seed {seed}"]
        self._serial = 0
        self._kill = Kill()
        self.agent = self.world.start(self._kill)

    def run(self, most: int) -> None:
        """Up to `most` steps, then rest: at the end nothing is left."""
        actions = (self._come, self._go, self._again, self._recreate, self._restart, self._look)
        disasters = (self._reboot, self._lose, self._meddle, self._fault, self._calm)
        for _ in range(self.random.randint(1, most)):
            often = self.random.random() < 0.8
            weights = (8, 5, 2, 1, 1, 1) if often else (2, 2, 3, 3, 3)
            (action,) = self.random.choices(actions if often else disasters, weights)
            action()
            self._check()
        self._calm()
        self._check()
        self._end()

    def _check(self) -> None:
        self.outside.check(disturbed=self.disturbed, held=self.agent.held())

    def _come(self) -> None:
        """A claim, allocated by somebody who does not look at others."""
        self._serial += 1
        name = f"c{self._serial}"
        card = self.random.randrange(len(NODE_CARDS))
        kinds = (self._whole, self._slices, self._instance, self._pair, self._overseer)
        made = self.random.choice(kinds)(name, card)
        uid = self._add(made)
        fits = self.outside.fits(uid)
        self.told.append(
            f"{name}: {[(r.device, dict(r.consumed)) for r in self.outside.results(uid)]}"
        )
        done = self._prepare(uid)
        if None not in (done, fits) and not self.disturbed:
            assert done == fits, self.told[-1]

    def _again(self) -> None:
        for uid in self._one():
            self.told.append(f"{uid}: prepare again")
            known = uid in self.outside.prepared()
            done = self._prepare(uid)
            assert done is not False or not known or self.disturbed, self.told[-1]

    def _go(self) -> None:
        for uid in self._one():
            self.told.append(f"{uid}: unprepare")
            refs = [ClaimRef.of(self.outside.claims[uid])]
            if self._call(partial(self._unprepare, refs)):
                del self.outside.claims[uid]

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
            del self.outside.claims[uid]
            self._check()
        self.agent.journal.close()

    def _whole(self, name: str, card: int) -> dict[str, Any]:
        return whole(name, card)

    def _overseer(self, name: str, card: int) -> dict[str, Any]:
        return overseer(name, card)

    def _slices(self, name: str, card: int) -> dict[str, Any]:
        return slices(name, card, self.random.choice((1, 1, 2, 2, 3, 6)))

    def _instance(self, name: str, card: int) -> dict[str, Any]:
        return instance(name, card, self.random.choice((1, 1, 1, 3, 3, 6)))

    def _pair(self, name: str, card: int) -> dict[str, Any]:
        """Two requests for two containers."""
        self.world.api.pods["team", f"pod-{name}"] = pod(
            {"x": name}, ("x/l",), ("x/r",), name=f"pod-{name}"
        )
        sizes = self.random.choice(((1, 1), (1, 3), (3, 3)))
        shares = [
            share(card, Mode.DRS, size, f"{name}-{side}", side)
            for size, side in zip(sizes, "lr", strict=True)
        ]
        return claim(name, *shares, pods=(f"pod-{name}",))

    def _add(self, made: dict[str, Any]) -> str:
        ref = self.world.api.add(made)
        self.outside.claims[ref.uid] = made
        return ref.uid

    def _prepare(self, uid: str) -> bool | None:
        ref = ClaimRef.of(self.outside.claims[uid])
        return self._call(lambda: self.agent.preparer.prepare([ref])[uid])

    def _call(self, call: Callable[[], object]) -> bool | None:
        """Whether the call succeeded; None where the agent was killed in it, and started anew."""
        if self.random.random() < 0.25:
            self._kill.n = len(self._kill.moments) + self.random.randrange(1, 40)
        try:
            answer = call()
        except Crash as crash:
            self.told.append(f"  killed {crash}")
            self._start(0.3)
            return None
        self._kill.n = _NO_KILL
        if isinstance(answer, GcuError):
            self.told.append(f"  {answer}")
        return not isinstance(answer, GcuError)

    def _start(self, fatal: float) -> None:
        """A new agent, which may be killed while it recovers, and looks."""
        while True:
            self.agent.journal.close()
            n = self.random.randrange(1, 40) if self.random.random() < fatal else _NO_KILL
            self._kill = Kill(n)
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
