"""Another card goes or comes in the middle of a prepare, and efsmi's indexes move."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from dra_driver.model.card import Problem
from dra_driver.model.claim import ClaimRef
from dra_driver.model.names import TAINT_FOREIGN
from dra_driver.simulator.drs import new_uuid
from dra_driver.simulator.state import Instance
from tests.unit.node.drs_world import DrsWorld, errors, instance, slices, tool, whole
from tests.unit.node.test_cards_that_go import AtCall
from tests.unit.node.world import CARDS, Agent

# Their indexes run against their addresses: 2, 1, 0.
NEIGHBOUR, OURS, OTHER = map(str, CARDS[:3])
_MORE_THAN_ENOUGH = 40
Move = Callable[[DrsWorld], None]


def goes(world: DrsWorld) -> None:
    """The neighbour has the index that was ours."""
    world.tool.set_card(OTHER, lost=True)
    world.tool.set_card(OURS, efsmi_index=0)
    world.tool.set_card(NEIGHBOUR, efsmi_index=1)


def goes_itself(world: DrsWorld) -> None:
    """So does it where ours goes."""
    world.tool.set_card(OURS, lost=True)
    world.tool.set_card(NEIGHBOUR, efsmi_index=1)


def comes(world: DrsWorld) -> None:
    """All move up, and nobody has it."""
    world.tool.set_card(OTHER, efsmi_index=7)
    world.tool.set_card(OURS, efsmi_index=8)
    world.tool.set_card(NEIGHBOUR, efsmi_index=9)


MOVES = [goes, goes_itself, comes]
moves = pytest.mark.parametrize("move", MOVES, ids=lambda move: move.__name__)

NEIGHBOURS = {
    "empty": None,
    "whole": whole("n", 0),
    "slices": slices("n", 0, 2),
    "drs": instance("n", 0, 3),
    "drs of that size": instance("n", 0, 1),
}
neighbours = pytest.mark.parametrize("neighbour", NEIGHBOURS.values(), ids=NEIGHBOURS)


@dataclass
class Moved:
    """A node on which the indexes moved before that call of efsmi of a prepare."""

    world: DrsWorld
    agent: Agent
    had: tuple[Instance, ...]
    struck: bool

    @classmethod
    def at(cls, number: int, root: Path, move: Move, neighbour: dict[str, object] | None) -> Moved:
        world = DrsWorld(root, tool=tool(3))
        effects = AtCall(-1, lambda: move(world))
        agent = world.start(effects)
        if neighbour is not None:
            assert errors(agent, world.api.add(neighbour)) == [""]
        had = world.tool.instances(NEIGHBOUR)
        effects.number = effects.seen + number
        errors(agent, world.api.add(instance("a", 1, 1)))
        return cls(world, agent, had, effects.done)


@moves
@neighbours
def test_nothing_stays_on_another_card(
    tmp_path: Path, move: Move, neighbour: dict[str, object] | None
) -> None:
    for number in range(_MORE_THAN_ENOUGH):
        moved = Moved.at(number, tmp_path / str(number), move, neighbour)
        world, agent = moved.world, moved.agent
        if not moved.struck:
            assert number > 6
            return
        assert world.reconcile(agent).foreign == {}, f"moved at call {number}"
        assert world.tool.instances(NEIGHBOUR) == moved.had
        mode = "DRS" if moved.had else "Disable"
        assert world.tool.card(NEIGHBOUR).virtualization == mode, f"moved at call {number}"
        for card in (OURS, OTHER):
            world.tool.set_card(card, lost=False)
        world.tool.set_card(OTHER, efsmi_index=5)
        world.tool.set_card(OURS, efsmi_index=6)
        assert errors(agent, world.api.add(instance("a", 1, 1))) == [""]
        assert len(world.tool.instances(OURS)) == 1
        held = {"uid-a": "prepared"} | ({"uid-n": "prepared"} if neighbour else {})
        assert agent.held() == held
        assert world.reconcile(agent).foreign == {}
        assert world.tool.instances(NEIGHBOUR) == moved.had
        agent.journal.close()
    pytest.fail("a prepare has no end")


@pytest.mark.parametrize("known", [True, False])
def test_what_somebody_else_made_there_is_left(tmp_path: Path, known: bool) -> None:
    """Where two may be ours, or the card was tainted before, a person has to know."""
    for number in range(_MORE_THAN_ENOUGH):
        world = DrsWorld(tmp_path / str(number), tool=tool(3))
        effects = AtCall(number, lambda world=world: goes(world))  # type: ignore[misc]
        agent = world.start(effects)
        if known:
            # So theirs is the only one that may be ours.
            world.tool.set_fault("create-reports-success-but-makes-nothing")
        foreign = Instance(90, "1g.6gb", new_uuid(), (0,))
        world.tool.set_card(NEIGHBOUR, instances=(foreign,), virtualization="DRS")
        if known:
            problem = Problem(TAINT_FOREIGN, "", "somebody's")
            world.cards.problems[CARDS[0]] = (problem,)
        errors(agent, world.api.add(instance("a", 1, 1)))
        world.reconcile(agent)
        assert foreign in world.tool.instances(NEIGHBOUR)
        assert set(world.reconcile(agent).foreign) == {CARDS[0]}
        agent.journal.close()
        if not effects.done:
            return
    pytest.fail("a prepare has no end")


def test_a_remade_instance_on_another_card_goes_too(tmp_path: Path) -> None:
    for number in range(_MORE_THAN_ENOUGH):
        world = DrsWorld(tmp_path / str(number), tool=tool(3))
        effects = AtCall(-1, lambda world=world: goes(world))  # type: ignore[misc]
        agent = world.start(effects)
        assert errors(agent, world.api.add(instance("a", 1, 1))) == [""]
        world.tool.set_card(OURS, instances=())
        effects.number = effects.seen + number
        world.reconcile(agent)
        world.reconcile(agent)
        assert world.reconcile(agent).foreign == {}
        assert world.tool.instances(NEIGHBOUR) == ()
        assert world.tool.card(NEIGHBOUR).virtualization == "Disable"
        assert len(world.tool.instances(OURS)) == 1
        agent.journal.close()
        if not effects.done:
            return
    pytest.fail("a look has no end")


def test_what_is_left_excludes_others_until_it_is_gone(tmp_path: Path) -> None:
    """The card that it is on stays in DRS mode."""
    for number in range(_MORE_THAN_ENOUGH):
        moved = Moved.at(number, tmp_path / str(number), goes, instance("n", 0, 3))
        world, agent = moved.world, moved.agent
        if world.tool.instances(NEIGHBOUR) != moved.had:
            assert agent.preparer.unprepare([ClaimRef("team", "n", "uid-n")]) == {"uid-n": None}
            other = world.api.add(whole("b", 0))
            assert "what claim team/a left" in errors(agent, other)[0]
            world.reconcile(agent)
            assert errors(agent, other) == [""]
            return
    pytest.fail("it never landed there")
