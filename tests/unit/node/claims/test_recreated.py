"""Which instances are told to have been made anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dra_driver.model.claims.claim import ClaimRef
from dra_driver.model.instance import Instance
from dra_driver.model.mode import Mode
from dra_driver.node.claims.device_ops import RecreatedInstance
from tests.unit.node.drs_world import DrsWorld, errors, instance, share, tool
from tests.unit.node.world import CARDS, Agent, claim, pod

ONE = str(CARDS[0])
A = ClaimRef("team", "a", "uid-a")
NEW = Instance(1, "1g.6gb", "new")


def test_an_old_one_that_is_not_known_is_not_named() -> None:
    text = RecreatedInstance(A, CARDS[0], None, NEW).text
    assert text.startswith(f"claim team/a: its DRS instance on card {ONE} was gone, and 1g.6gb new")


@pytest.mark.parametrize(
    ("reboot", "told"), [pytest.param(False, 1, id="pods run"), pytest.param(True, 0, id="reboot")]
)
def test_a_start_tells_what_went_while_no_agent_ran(
    tmp_path: Path, reboot: bool, told: int
) -> None:
    """A container runs with its CDI file's old content, but none outlives a reboot."""
    world = DrsWorld(tmp_path, tool=tool(1))
    agent = world.start()
    ref = world.api.add(instance("a", 0, 1))
    assert errors(agent, ref) == [""]
    agent.journal.close()
    [gone] = world.tool.instances(ONE)
    if reboot:
        world.reboot()
    else:
        world.tool.set_card(ONE, instances=())
    world.boot().recover()
    [made] = world.tool.instances(ONE)
    assert made.uuid != gone.uuid
    assert [str(each.after) for each in world.on_recreated] == [f"1g.6gb {made.uuid}"] * told


def test_what_was_made_before_another_one_failed_is_told(tmp_path: Path) -> None:
    world = DrsWorld(tmp_path, tool=tool(2))
    agent = world.start()
    results = (share(at, Mode.DRS, 1, name, name) for at, name in enumerate(["left", "right"]))
    ref = world.api.add(claim("a", *results))
    world.api.pods["team", "pod"] = pod({"gcu": "a"}, ("gcu/left",), ("gcu/right",))
    assert errors(agent, ref) == [""]
    for card in CARDS[:2]:
        world.tool.set_card(str(card), instances=())
    world.tool.set_fault("create-fails", card=str(CARDS[1]))
    findings = world.reconcile(agent)
    assert list(findings.failed) == [ref.uid]
    assert [each.card for each in world.on_recreated] == [CARDS[0]]
    world.tool.clear_faults()
    world.reconcile(agent)
    assert [each.card for each in world.on_recreated] == list(CARDS[:2])
    assert [each.before is None for each in world.on_recreated] == [False, True]


def looks(world: DrsWorld, agent: Agent, ref: ClaimRef) -> None:
    world.reconcile(agent)


def asks_again(world: DrsWorld, agent: Agent, ref: ClaimRef) -> None:
    assert errors(agent, ref) == [""]


@pytest.mark.parametrize("notices", [looks, asks_again], ids=["a look", "the kubelet"])
def test_whoever_notices_it_is_told_once(
    tmp_path: Path, notices: Callable[[DrsWorld, Agent, ClaimRef], None]
) -> None:
    world = DrsWorld(tmp_path, tool=tool(1))
    agent = world.start()
    ref = world.api.add(instance("a", 0, 1))
    assert errors(agent, ref) == [""]
    [gone] = world.tool.instances(ONE)
    world.tool.set_card(ONE, instances=())
    for _ in range(2):
        notices(world, agent, ref)
    [made] = world.tool.instances(ONE)
    [told] = world.on_recreated
    assert (told.owner, told.before, told.after) == (
        ref,
        Instance(gone.id, gone.profile, gone.uuid),
        Instance(made.id, made.profile, made.uuid),
    )
