"""A card that falls off the bus and comes back, and the state after it."""

from __future__ import annotations

from tests.unit.node.drs_world import DrsWorld
from tests.unit.node.world import CARDS, Agent

ONE = str(CARDS[0])


def lose(world: DrsWorld) -> None:
    world.tool.set_card(ONE, lost=True)


def back_as_it_was(world: DrsWorld) -> None:
    world.tool.set_card(ONE, lost=False)


def back_at_another_index(world: DrsWorld) -> None:
    world.tool.set_card(ONE, lost=False, efsmi_index=9, minor=9)


def back_after_a_reset(world: DrsWorld) -> None:
    world.tool.set_card(ONE, lost=False, instances=(), virtualization="Disable")


def replaced(world: DrsWorld) -> None:
    """By another card in the same slot."""
    back_after_a_reset(world)
    world.tool.set_card(ONE, uuid="TPU-OTHER", serial="OTHER")


def at_rest(world: DrsWorld, agent: Agent, held: bool) -> None:
    """An instance exists if and only if the claim is prepared, and nothing is in between."""
    assert agent.held() == ({"uid-a": "prepared"} if held else {})
    assert len(world.tool.instances(ONE)) == held
    assert bool(world.files()) == held
    assert world.tool.card(ONE).virtualization == ("DRS" if held else "Disable")
    assert world.reconcile(agent).foreign == {}
