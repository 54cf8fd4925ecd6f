"""A record that is damaged on the disk while agents run: the CDI file tells what it said."""

from __future__ import annotations

import pytest

from dra_driver.model.claims.claim import ClaimRef
from dra_driver.node.claims.belongings import Outcome
from tests.unit.node.card_changes import ONE, at_rest
from tests.unit.node.damage import damage
from tests.unit.node.drs_world import DrsWorld, errors, instance, whole
from tests.unit.node.world import Agent

ALL = '"uid":"uid-a"'
LAST = '"kind":"prepared"'


def two_agents(world: DrsWorld, words: str) -> tuple[Agent, Agent, ClaimRef]:
    """One has prepared claim a, and the other has read of it what is not damaged."""
    first, second = world.start(), world.start()
    ref = world.api.add(instance("a", 0, 1))
    assert errors(first, ref) == [""]
    damage(world.root / "state" / "journal", words)
    second.journal.snapshot()
    assert not second.journal.is_complete
    return first, second, ref


lost = pytest.mark.parametrize("words", [ALL, LAST], ids=["all records", "the last record"])
either = pytest.mark.parametrize("which", [0, 1], ids=["who wrote it", "who found it"])


@lost
@either
def test_unprepare_takes_back_what_the_file_tells(world: DrsWorld, words: str, which: int) -> None:
    *agents, ref = two_agents(world, words)
    assert agents[which].preparer.unprepare([ref]) == {ref.uid: None}
    at_rest(world, agents[which], held=False)


@lost
@either
def test_a_pod_keeps_what_it_has(world: DrsWorld, words: str, which: int) -> None:
    """Whoever asks for it, and whoever looks."""
    *agents, ref = two_agents(world, words)
    there, files = world.tool.instances(ONE), world.files()
    assert errors(agents[which], ref) == [""]
    assert world.reconcile(agents[which]).foreign == {}
    assert (world.tool.instances(ONE), world.files()) == (there, files)
    assert [agent.held() for agent in agents] == [{ref.uid: "prepared"}] * 2
    [refused] = errors(agents[which], world.api.add(whole("b", 0)))
    assert "team/a" in refused


@lost
@either
def test_a_look_takes_it_in(world: DrsWorld, words: str, which: int) -> None:
    *agents, ref = two_agents(world, words)
    there, files = world.tool.instances(ONE), world.files()
    found = world.reconcile(agents[which])
    assert found.recovered == {ref.uid: Outcome.ADOPTED if words == ALL else Outcome.FINISHED}
    assert (found.foreign, found.failed) == ({}, {})
    assert (world.tool.instances(ONE), world.files()) == (there, files)
    assert [agent.held() for agent in agents] == [{ref.uid: "prepared"}] * 2
    assert world.reconcile(agents[which]).recovered == {}


def test_a_file_that_goes_before_it_is_taken_in_is_not(world: DrsWorld, agent: Agent) -> None:
    """Another agent unprepares its claim meanwhile."""
    ref = world.api.add(whole("a", 0))
    assert errors(agent, ref) == [""]
    assert agent.preparer.unprepare([ref]) == {ref.uid: None}
    assert agent.preparer.claim_manager.adopt_from_cdi(ref.uid) is Outcome.UNCHANGED
    assert agent.held() == {}


def test_a_look_that_cannot_take_it_in_says_so(world: DrsWorld) -> None:
    first, second, ref = two_agents(world, ALL)
    other = world.api.add(whole("b", 0))
    world.tool.set_card(ONE, instances=(), virtualization="Disable")
    (world.root / "cdi" / f"gcu.enflame.com-claim-{ref.uid}.json").rename(world.root / "aside")
    assert errors(second, other) == [""]
    (world.root / "aside").rename(world.root / "cdi" / f"gcu.enflame.com-claim-{ref.uid}.json")
    [(uid, error)] = world.reconcile(second).failed.items()
    assert uid == ref.uid
    assert "team/b" in str(error)
    assert first.preparer.unprepare([ref]) == {ref.uid: None}
    assert first.held() == {other.uid: "prepared"}
