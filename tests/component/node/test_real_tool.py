"""All modes with the simulator's executable, a process for each call.

What the tests in memory play is real here; the record of the machine is the judge.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from dra_driver.hardware.breaker import HungCardBreaker
from dra_driver.hardware.drs.drs import Drs
from dra_driver.hardware.drs.profiles import ProfileTables
from dra_driver.hardware.efsmi.runner import Efsmi, EfsmiHung
from dra_driver.hardware.known_nodes import KnownNodes
from dra_driver.hardware.machine import Machine
from dra_driver.hardware.sysfs import Sysfs
from dra_driver.model.card import Card
from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.effects import Effects
from dra_driver.model.errors import GcuError
from dra_driver.model.pci import PciAddress
from dra_driver.node.checkpoint.journal import Journal
from dra_driver.node.claims.drs_card import DrsCard
from dra_driver.simulator.machine import SimulatedMachine
from tests.unit.hanging import first_create_once_made, time_is_up_when
from tests.unit.memory_efsmi import MemoryEfsmi
from tests.unit.node.drs_world import DrsWorld, errors, instance, slices, tool, whole
from tests.unit.node.world import CARDS, Agent, World, pod


@dataclass
class RealWorld(World):
    """A node whose cards are read as in production."""

    timeout: float = 60.0

    def __post_init__(self) -> None:
        described = [
            {"bdf": str(address), "model": "S60", "index": 1 - at}
            for at, address in enumerate(CARDS[:2])
        ]
        self.simulated = SimulatedMachine.create(
            {"cards": described}, self.root / "node", plain_device_files=True
        )
        self.efsmi = Efsmi(self.simulated.efsmi_path, timeout=self.timeout, effects=Effects())

    def hardware(self) -> Cards:
        known_nodes = KnownNodes(self.root / "state")
        return Cards(Machine(Sysfs(self.simulated.root), self.efsmi, known_nodes=known_nodes))

    def drs_card(self, journal: Journal, _effects: Effects) -> DrsCard:
        drs = Drs(self.efsmi, self.root / "locks", breaker=HungCardBreaker(0))
        return DrsCard(drs, ProfileTables(self.root / "state"), journal.snapshot)

    def changes(self) -> list[str]:
        """What changed the cards, and was not refused."""
        return [
            f"{entry.card} {entry.command}"
            for entry in self.simulated.record()
            if entry.changed and entry.card is not None
        ]


class Cards:
    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._cards = {card.address: card for card in machine.inventory().cards}

    def is_on_bus(self, address: PciAddress) -> bool:
        return address in self._cards

    def card(self, address: PciAddress) -> Card:
        return self._machine.card(self._cards[address])


def test_all_modes(tmp_path: Path) -> None:
    world = RealWorld(tmp_path)
    agent = world.start()
    claims = (instance("one", 0, 1), instance("three", 0, 3), slices("two", 1, 2))
    one, three, two = map(world.api.add, claims)
    assert errors(agent, one, three, two) == ["", "", ""]
    uuids = {each.profile: each.uuid for each in world.simulated.instances(str(CARDS[0]))}
    files = world.files()
    for ref, profile in ((one, "1g.6gb"), (three, "3g.20gb")):
        assert f"DRS-{uuids[profile]}" in files[f"gcu.enflame.com-claim-{ref.uid}.json"]
    again = world.start()
    assert errors(again, one, three, two) == ["", "", ""]
    assert world.files() == files
    assert set(again.preparer.unprepare([one, three, two]).values()) == {None}
    assert errors(again, world.api.add(whole("all", 0))) == [""]
    creates, destroys = ["create-instance"] * 2, ["destroy-instance"] * 2
    commands = ["drs-on", *creates, *destroys, "drs-off"]
    assert world.changes() == [f"{CARDS[0]} {command}" for command in commands]


def test_a_create_that_hangs_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = RealWorld(tmp_path, timeout=3.0)
    time_is_up_when(monkeypatch, first_create_once_made(world.simulated))
    agent = world.start()
    world.simulated.set_fault("create-hangs-after-making", times=1)
    ref = world.api.add(instance("one", 0, 1))
    (error,) = errors(agent, ref)
    assert "did not end within 3 s" in error
    assert (world.simulated.instances(), agent.held(), world.files()) == ((), {}, {})
    assert world.simulated.card(str(CARDS[0])).virtualization == "Disable"
    assert errors(agent, ref) == [""]


class Together(MemoryEfsmi):
    """A tool whose creates and destroys end only when two are running."""

    barrier: threading.Barrier

    def run(self, *arguments: str, inherit: Sequence[int] = ()) -> str:
        if {"--create-instance", "--destroy-instance"} & set(arguments):
            self.barrier.wait(timeout=60)
        return super().run(*arguments, inherit=inherit)


def prepare_in_one_call(agent: Agent, refs: list[ClaimRef]) -> dict[str, object]:
    return dict(agent.preparer.prepare(refs))


def prepare_in_calls_of_their_own(agent: Agent, refs: list[ClaimRef]) -> dict[str, object]:
    with ThreadPoolExecutor(len(refs)) as pool:
        answers = list(pool.map(lambda ref: agent.preparer.prepare([ref]), refs))
    return {uid: answer for each in answers for uid, answer in each.items()}


@pytest.mark.parametrize(
    "prepare",
    [prepare_in_one_call, prepare_in_calls_of_their_own],
    ids=["one call", "a call for each"],
)
def test_cards_do_not_wait_for_each_other(
    tmp_path: Path, prepare: Callable[[Agent, list[ClaimRef]], dict[str, object]]
) -> None:
    both = Together(tool().machine)
    both.barrier = threading.Barrier(2)
    world = DrsWorld(tmp_path, tool=both)
    agent = world.start()
    world.api.pods["team", "pod"] = pod({"x": "a", "y": "b"}, ("x",), ("y",))
    refs = [world.api.add(instance("a", 0, 1)), world.api.add(instance("b", 1, 1))]
    answers = prepare(agent, refs)
    assert [answer for answer in answers.values() if isinstance(answer, GcuError)] == []
    assert set(answers) == {"uid-a", "uid-b"}
    assert agent.preparer.unprepare(refs) == {"uid-a": None, "uid-b": None}


def test_what_a_running_call_may_make_is_not_forgotten(tmp_path: Path) -> None:
    """A create was given up and still runs: the intent stays until it is through."""
    outliving = Outliving(tool().machine)
    world = DrsWorld(tmp_path, tool=outliving)
    agent = world.start()
    ref = world.api.add(instance("a", 0, 1))
    world.tool.set_fault("create-hangs-after-making", times=1)
    assert "did not end" in errors(agent, ref)[0]
    assert agent.held() == {"uid-a": "intent"}
    assert world.start().held() == {"uid-a": "unpreparing"}
    os.close(outliving.left.pop())
    assert world.start().held() == {}
    assert world.tool.instances(str(CARDS[0])) == ()


class Outliving(MemoryEfsmi):
    """A tool whose calls keep what they inherited when they hang."""

    left: list[int]

    def run(self, *arguments: str, inherit: Sequence[int] = ()) -> str:
        try:
            return super().run(*arguments, inherit=inherit)
        except EfsmiHung:
            self.left = [os.dup(each) for each in inherit]
            raise
