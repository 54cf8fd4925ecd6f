from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from dra_driver.model.card import Problem
from dra_driver.simulator.state import InstanceState
from tests.unit.node.drs_world import DrsWorld, errors, instance, tool, whole
from tests.unit.node.world import CARDS, Agent

ONE = str(CARDS[0])
QUESTION = ["on", "off"]


def switched(world: DrsWorld) -> list[str]:
    return [change.partition(" ")[2] for change in world.tool.changes()]


def test_one_card_of_a_kind_is_asked_and_left_as_it_was(world: DrsWorld, agent: Agent) -> None:
    profile_prober = world.profile_prober(agent)
    one, two = world.cards.all()
    assert "unknown until such a card is free" in str(profile_prober.reason(one))
    assert profile_prober.run([one, two])
    assert switched(world) == QUESTION
    assert profile_prober.reason(two) is None
    table = world.tables.table(two)
    assert table is not None
    assert table.text == "1g.6gb,3g.20gb,6g.40gb"
    assert world.tool.card(ONE).virtualization == "Disable"
    assert agent.journal.snapshot().switched == frozenset()
    assert not profile_prober.run([one, two])
    assert switched(world) == QUESTION


def test_each_kind_is_asked(world: DrsWorld) -> None:
    world.tool.set_card(ONE, ecc_current="Disable")
    profile_prober = world.profile_prober(world.start())
    assert profile_prober.run(world.cards.all())
    assert switched(world) == QUESTION * 2
    texts = [world.tables.table(card) for card in world.cards.all()]
    assert [text.text if text else "" for text in texts] == [
        "1g.7gb,3g.23gb,6g.46gb",
        "1g.6gb,3g.20gb,6g.40gb",
    ]


def claimed(world: DrsWorld, agent: Agent) -> None:
    assert errors(agent, world.api.add(whole("a", 0))) == [""]


def divided(world: DrsWorld, agent: Agent) -> None:
    there = InstanceState(1, "1g.6gb", "theirs", (0,))
    world.tool.set_card(ONE, instances=(there,), virtualization="DRS")


def unhealthy(world: DrsWorld, agent: Agent) -> None:
    world.cards.problems[CARDS[0]] = (Problem("gcu.enflame.com/unhealthy", "health", "ill"),)


@pytest.mark.parametrize("use", [claimed, divided, unhealthy], ids=lambda f: f.__name__)
def test_a_card_that_somebody_may_use_is_left_alone(
    world: DrsWorld, agent: Agent, use: Any
) -> None:
    use(world, agent)
    before = world.tool.card(ONE)
    assert not world.profile_prober(agent).run(world.cards.all()[:1])
    assert world.tool.card(ONE) == before
    assert switched(world) == []


def test_a_card_without_drs_is_tried_again_ever_more_rarely(tmp_path: Path) -> None:
    world = DrsWorld(tmp_path, tool=tool(1, card={"model": "T20"}))
    profile_prober = world.profile_prober(world.start())
    (card,) = world.cards.all()
    tries = []
    for minute in range(600):
        world.now = 60.0 * minute
        world.tool.calls.clear()
        assert not profile_prober.run([card])
        tries += [minute] if "0 on" in world.tool.changes() else []
    assert tries[:7] == [0, 1, 3, 7, 15, 31, 63]
    assert {later - one for one, later in itertools.pairwise(tries[7:])} == {60}
    assert "does not support DRS" in str(profile_prober.reason(card))


@pytest.mark.parametrize("fault", ["efsmi-garbage", "efsmi-exit"])
def test_a_card_whose_profiles_cannot_be_read(world: DrsWorld, agent: Agent, fault: str) -> None:
    world.tool.set_fault(fault, command="list-profile", times=1)
    profile_prober = world.profile_prober(agent)
    cards = world.cards.all()[:1]
    assert not profile_prober.run(cards)
    assert profile_prober.reason(cards[0])
    assert world.tool.card(ONE).virtualization == "Disable"
    world.now = 61.0
    assert profile_prober.run(cards)
    assert profile_prober.reason(cards[0]) is None


def test_drs_mode_that_does_not_end_is_ended_by_the_next_look(
    world: DrsWorld, agent: Agent
) -> None:
    world.tool.set_fault("drs-off-refused", times=1)
    profile_prober = world.profile_prober(agent)
    assert not profile_prober.run(world.cards.all()[:1])
    assert world.tool.card(ONE).virtualization == "DRS"
    assert world.reconcile(agent).foreign == {}
    assert world.tool.card(ONE).virtualization == "Disable"


def test_a_prepare_that_comes_first_teaches_the_table(world: DrsWorld, agent: Agent) -> None:
    errors(agent, world.api.add(instance("a", 0, 1)))
    profile_prober = world.profile_prober(agent)
    assert profile_prober.reason(world.cards.all()[1]) is None
    assert not profile_prober.run(world.cards.all())
