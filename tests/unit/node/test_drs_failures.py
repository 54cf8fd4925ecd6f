"""DRS instances after a call of the tool failed, and after a card, instance or journal was lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from dra_driver.model.effects import Point
from dra_driver.model.errors import GcuError
from tests.unit.node.drs_world import DrsWorld, edits, errors, instance, tool
from tests.unit.node.effects import Failing
from tests.unit.node.world import CARDS, Agent

ONE = str(CARDS[0])


@pytest.mark.parametrize(
    "fault",
    [
        "create-fails",
        "create-hangs",
        "create-hangs-after-making",
        "create-reports-failure-but-makes",
        "create-reports-success-but-makes-nothing",
        "drs-on-refused",
    ],
)
def test_a_create_that_fails_leaves_nothing(world: DrsWorld, agent: Agent, fault: str) -> None:
    ref = world.api.add(instance("a", 0, 3))
    world.tool.set_fault(fault, times=1)
    assert errors(agent, ref) != [""]
    assert (world.tool.instances(ONE), world.files(), agent.held()) == ((), {}, {})
    assert world.tool.card(ONE).virtualization == "Disable"
    assert errors(agent, ref) == [""]
    assert len(world.tool.instances(ONE)) == 1


def test_an_instance_outlives_a_file_that_cannot_be_removed(world: DrsWorld) -> None:
    """No container may start with an instance that is gone."""
    disk = Failing(Point.CDI_REMOVE, lambda: OSError(5, "Input/output error"))
    agent = world.start(disk)
    ref = world.api.add(instance("a", 0, 1))
    assert errors(agent, ref) == [""]
    assert isinstance(agent.preparer.unprepare([ref])["uid-a"], GcuError)
    assert len(world.tool.instances(ONE)) == 1

    disk.on = False
    world.api.add(instance("a", 1, 1))
    assert errors(agent, ref) == [""]
    assert [len(world.tool.instances(str(card))) for card in CARDS[:2]] == [0, 1]


def test_what_cannot_be_undone_holds_the_card_until_it_is(world: DrsWorld, agent: Agent) -> None:
    ref, other = world.api.add(instance("a", 0, 1)), world.api.add(instance("b", 0, 1))
    world.tool.set_fault("create-reports-failure-but-makes", times=1)
    world.tool.set_fault("destroy-fails", times=2)
    assert errors(agent, ref) != [""]
    assert agent.held() == {"uid-a": "intent"}
    assert "no claim of this driver holds" in errors(agent, other)[0]
    found = world.reconcile(agent)
    assert set(found.failed) == {"uid-a"}
    assert found.foreign == {}, "it may be what we made"
    assert world.reconcile(agent).recovered.keys() == {"uid-a"}
    assert (world.tool.instances(ONE), agent.held()) == ((), {})
    assert errors(agent, other) == [""]


def test_reconcile_ends_drs_mode_after_a_restart(world: DrsWorld, agent: Agent) -> None:
    ref = world.api.add(instance("a", 0, 1))
    errors(agent, ref)
    world.tool.set_fault("drs-off-refused", times=2)
    agent.preparer.unprepare([ref])
    again = world.start()
    assert CARDS[0] in world.reconcile(again).unknown
    assert world.reconcile(again).unknown == {}
    assert world.tool.card(ONE).virtualization == "Disable"
    assert again.journal.snapshot().switched == frozenset()


@pytest.mark.parametrize("fault", ["", "efsmi-exit", "efsmi-garbage"], ids=lambda f: f or "efsmi")
def test_a_lost_card_keeps_no_pod_waiting(world: DrsWorld, agent: Agent, fault: str) -> None:
    """Also where efsmi fails altogether when cards are lost."""
    ref = world.api.add(instance("a", 0, 1))
    errors(agent, ref)
    world.tool.set_card(ONE, lost=True)
    if fault:
        world.tool.set_fault(fault)
    assert errors(agent, ref) == [""]
    assert agent.preparer.unprepare([ref]) == {"uid-a": None}
    assert (world.files(), list(agent.held().values())) == ({}, ["unpreparing"])
    assert len(world.tool.instances(ONE)) == 1
    world.tool.clear_faults()
    world.tool.set_card(ONE, lost=False, efsmi_index=9)
    world.reconcile(agent)
    assert (world.tool.instances(ONE), agent.held()) == ((), {})


@pytest.mark.parametrize("survive", [False, True], ids=["forgotten", "kept"])
def test_a_reboot(tmp_path: Path, survive: bool) -> None:
    world = DrsWorld(tmp_path, tool=tool(instancesSurviveReboot=survive))
    refs = [world.api.add(instance("a", 0, 1)), world.api.add(instance("b", 0, 3))]
    errors(world.start(), *refs)
    before = world.tool.instances(ONE)
    world.reboot()
    agent = world.start()
    after = world.tool.instances(ONE)
    assert [i.profile for i in after] == ["1g.6gb", "3g.20gb"]
    assert (after == before) is survive
    for name, there in zip("ab", after, strict=True):
        assert f"TOPS_VISIBLE_DEVICES=DRS-{there.uuid}" in edits(world, name)[0]["env"]
    assert errors(agent, *refs) == ["", ""]
    assert world.tool.instances(ONE) == after
