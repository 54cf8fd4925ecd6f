"""Administrative access: a container sees the card, nothing of it is held, nothing is changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from dra_driver.model.card import Problem
from dra_driver.model.names import TAINT_FOREIGN
from tests.unit.node.drs_world import (
    DrsWorld,
    errors,
    instance,
    overseer,
    slices,
    whole,
)
from tests.unit.node.world import CARDS, Agent, claim, result

CARD = str(CARDS[0])
Made = Callable[[str], dict[str, Any]]


HOLDERS: dict[str, Made] = {
    "nobody": lambda name: overseer(name, 1),
    "a whole card": lambda name: whole(name, 0),
    "a share": lambda name: slices(name, 0, 2),
    "an instance": lambda name: instance(name, 0, 3),
    "another overseer": lambda name: overseer(name, 0),
}


@pytest.mark.parametrize("first", ["holder", "overseer"])
@pytest.mark.parametrize("held", HOLDERS.values(), ids=HOLDERS)
def test_beside_any_holder_in_either_order(
    world: DrsWorld, agent: Agent, held: Made, first: str
) -> None:
    holder, looking = world.api.add(held("holder")), world.api.add(overseer("admin", 0))
    order = [holder, looking] if first == "holder" else [looking, holder]
    assert errors(agent, *order) == ["", ""]
    (device,) = json.loads(world.files()["gcu.enflame.com-claim-uid-admin.json"])["devices"]
    assert device["containerEdits"] == {
        "env": ["ENFLAME_VISIBLE_DEVICES=0"],
        "deviceNodes": [{"path": "/dev/gcu0", "permissions": "rw"}],
    }
    for ref in order:
        assert agent.preparer.unprepare([ref]) == {ref.uid: None}
    assert (world.files(), agent.held()) == ({}, {})
    assert world.tool.card(CARD).virtualization == "Disable"


@pytest.mark.parametrize("ended", [False, True], ids=["in use", "that could not be left"])
def test_the_hardware_is_left_as_it_is(world: DrsWorld, agent: Agent, ended: bool) -> None:
    holder, looking = world.api.add(instance("holder", 0, 3)), world.api.add(overseer("admin", 0))
    assert errors(agent, holder) == [""]
    if ended:
        world.tool.set_fault("drs-off-refused", times=1)
        agent.preparer.unprepare([holder])
    before = world.tool.changes()
    assert errors(agent, looking) == [""]
    agent.preparer.unprepare([looking])
    assert world.tool.changes() == before
    assert world.tool.card(CARD).virtualization == "DRS"


def test_who_looks_does_not_keep_the_card_in_drs_mode(world: DrsWorld, agent: Agent) -> None:
    holder, looking = world.api.add(instance("holder", 0, 3)), world.api.add(overseer("admin", 0))
    assert errors(agent, holder, looking) == ["", ""]
    agent.preparer.unprepare([holder])
    assert world.tool.card(CARD).virtualization == "Disable"
    assert errors(agent, world.api.add(whole("next", 0))) == [""]


def test_somebody_elses_card_can_be_seen(world: DrsWorld, agent: Agent) -> None:
    world.cards.problems[CARDS[0]] = (
        Problem(TAINT_FOREIGN, "", "DRS instances without a record of this agent"),
    )
    looking, user = world.api.add(overseer("admin", 0)), world.api.add(whole("user", 0))
    told = errors(agent, looking, user)
    assert told[0] == ""
    assert "is not ours to use" in told[1]


@pytest.mark.parametrize("lost", ["nothing", "journal"])
def test_it_is_still_no_hold_after_a_restart(world: DrsWorld, agent: Agent, lost: str) -> None:
    looking = world.api.add(overseer("admin", 0))
    assert errors(agent, looking) == [""]
    if lost == "journal":
        (world.root / "state" / "journal").unlink()
    again = world.start()
    assert again.held() == {"uid-admin": "prepared"}
    assert errors(again, world.api.add(whole("user", 0))) == [""]


def test_one_device_twice_in_a_claim_is_refused(world: DrsWorld, agent: Agent) -> None:
    """Its two entries in the CDI file would have one name."""
    both = claim("both", result(0, adminAccess=True), result(0))
    (told,) = errors(agent, world.api.add(both))
    assert "was allocated card 0000:0d:00.0 twice" in told
