"""What people are told of a card, once: who else uses it, and why it is not offered in DRS mode."""

from __future__ import annotations

from dra_driver.kubelet_api.pod_resources import ContainerResources
from dra_driver.model.card import Problem
from dra_driver.model.names import TAINT_FOREIGN
from dra_driver.simulator.state import InstanceState
from tests.unit.agent.reconcile_rig import ASKED, ONE, Rig, lose
from tests.unit.node.drs_world import DrsWorld, whole
from tests.unit.node.world import CARDS

THEIRS = InstanceState(9, "1g.6gb", "theirs", (0,))
FOREIGN = (
    f"GcuCardForeign card {ONE}: DRS instances without a record of this agent: 1g.6gb theirs; if "
    "no program and no pod uses it, free it: `efsmi -i 0 -L` has the ids, `efsmi -i 0 --drs "
    "--destroy-instance ID` for each, then `efsmi -i 0 --drs off`"
)
WITHOUT = f"GcuCardWithoutDrs card {ONE} is not offered in DRS mode: "


def divide(world: DrsWorld, *instances: InstanceState) -> None:
    """Somebody makes instances, or destroys all and switches DRS mode off."""
    mode = "DRS" if instances else "Disable"
    world.tool.set_card(ONE, instances=instances, virtualization=mode)


def test_foreign_instances_are_told_once_until_they_are_gone(world: DrsWorld, rig: Rig) -> None:
    rig.look()
    divide(world, THEIRS)
    for _ in range(3):
        rig.look()
        assert list(rig.cards.foreign) == [CARDS[0]]
    lose(world)
    rig.look()
    assert list(rig.cards.foreign) == [CARDS[0]]
    lose(world, lost=False)
    rig.look()
    assert rig.recorder.lines == [FOREIGN]
    divide(world)
    rig.look()
    assert rig.cards.foreign == {}
    divide(world, THEIRS)
    rig.look()
    assert rig.recorder.lines == [FOREIGN, FOREIGN]
    assert world.tool.changes() == ASKED


def test_another_foreign_instance_is_told(world: DrsWorld, rig: Rig) -> None:
    rig.look()
    divide(world, THEIRS)
    rig.look()
    divide(world, THEIRS, InstanceState(8, "1g.6gb", "theirs-too", (1,)))
    rig.look()
    assert len(rig.recorder.lines) == 2


def test_why_a_card_has_no_drs_is_told_once(world: DrsWorld, rig: Rig) -> None:
    world.tool.set_fault("drs-on-refused")
    for minute in range(5):
        world.now = 60.0 * minute
        rig.look()
    [line] = rig.recorder.lines
    assert line.startswith(f"{WITHOUT}card {ONE} cannot be switched to DRS mode")
    world.tool.clear_faults()
    world.now = 3600.0
    rig.look()
    assert len(rig.recorder.lines) == 1
    assert rig.changes == 1


def test_each_reason_is_told(world: DrsWorld, rig: Rig) -> None:
    held = rig.prepared(whole("a", 0))
    rig.look()
    rig.look()
    rig.agent.preparer.unprepare([held])
    world.tool.set_fault("drs-on-refused")
    rig.look()
    unknown, refused = (line.removeprefix(WITHOUT) for line in rig.recorder.lines)
    assert unknown.endswith("unknown until such a card is free")
    assert refused.startswith(f"card {ONE} cannot be switched to DRS mode")


def test_cards_that_a_device_plugin_gives_out_are_tainted_while_it_does(rig: Rig) -> None:
    rig.kubelet.plugins = {"enflame.com/gcu": {"0"}, "enflame.com/gcu-count": {"any"}}
    rig.look()
    text = (
        "another device plugin gives the cards of this node to pods as enflame.com/gcu, and no "
        "claim gets these cards meanwhile; remove it, or keep this driver off the node"
    )
    assert rig.cards.foreign == {CARDS[0]: Problem(TAINT_FOREIGN, "", text)}
    rig.look()
    assert [line for line in rig.recorder.lines if "plugin" in line] == [f"GcuCardForeign {text}"]
    rig.kubelet.pods = [
        ContainerResources("team", "p", "main", {"enflame.com/gcu": frozenset("0")})
    ]
    rig.look()
    rig.kubelet.away = True
    rig.look()
    assert (set(rig.cards.foreign), rig.reconcile_loop.foreign_pods) == ({CARDS[0]}, 1)
    rig.kubelet.away, rig.kubelet.plugins, rig.kubelet.pods = False, {"enflame.com/gcu": set()}, []
    rig.look()
    assert (rig.cards.foreign, rig.reconcile_loop.foreign_pods) == ({}, 0)


def test_what_somebody_made_on_a_card_is_the_better_reason(world: DrsWorld, rig: Rig) -> None:
    rig.kubelet.plugins = {"enflame.com/drs-gcu": {"0"}}
    world.tool.set_card(ONE, virtualization="DRS", instances=(THEIRS,))
    rig.look()
    assert "DRS instances without a record" in rig.cards.foreign[CARDS[0]].text
