"""Cards that offer other profiles than before: ECC was switched, or the firmware updated."""

from __future__ import annotations

from pathlib import Path

from dra_driver.node.claims.failures import TRIES
from dra_driver.simulator.boot import with_ecc
from tests.unit.node.card_changes import ONE, at_rest, back_after_a_reset
from tests.unit.node.drs_world import DrsWorld, errors, instance, tool
from tests.unit.node.world import Agent


def switch_ecc(world: DrsWorld, state: str) -> None:
    """With the reset that it takes."""
    machine = world.tool.machine
    world.tool.machine = machine.with_card(with_ecc(machine.card(ONE), state))


def test_ecc_is_switched_while_the_card_is_used(world: DrsWorld, agent: Agent) -> None:
    """Instances are made anew from the card's other profiles, of the sizes that were granted."""
    refs = [world.api.add(instance("a", 0, 1)), world.api.add(instance("b", 0, 3))]
    assert errors(agent, *refs) == ["", ""]
    switch_ecc(world, "Disable")
    world.reconcile(agent)
    there = world.tool.instances(ONE)
    assert [one.profile for one in there] == ["1g.7gb", "3g.23gb"]
    for ref, one in zip(refs, there, strict=True):
        assert one.uuid in world.files()[f"gcu.enflame.com-claim-{ref.uid}.json"]
    assert errors(agent, *refs) == ["", ""]
    assert world.tool.instances(ONE) == there
    assert agent.preparer.unprepare(refs) == {ref.uid: None for ref in refs}
    at_rest(world, agent, held=False)


def test_ecc_is_switched_and_what_was_granted_is_no_size_any_more(tmp_path: Path) -> None:
    """The claim cannot be kept; neighbours can, and its end leaves nothing."""
    world = DrsWorld(tmp_path, tool=tool(card={"ecc": "Disable", "profileTable": "s60-four-way"}))
    switch_ecc(world, "Enable")
    agent = world.start()
    kept, refused = world.api.add(instance("a", 0, 1)), world.api.add(instance("b", 0, 3))
    assert errors(agent, kept, refused) == ["", ""]
    switch_ecc(world, "Disable")
    assert set(world.reconcile(agent).failed) == {refused.uid}
    [there] = world.tool.instances(ONE)
    assert there.profile == "1g.11gb"
    assert all("no profile has size 3" in text for text in errors(agent, *[refused] * TRIES))
    assert world.failures.tripped() == {"drs-0000-0d-00-0"}
    assert errors(agent, kept) == [""]
    assert agent.preparer.unprepare([refused]) == {refused.uid: None}
    assert world.tool.instances(ONE) == (there,)
    at_rest(world, agent, held=True)


def turn_profiles(world: DrsWorld, ids: tuple[int, int, int]) -> None:
    """As an update of the card's firmware may, of which the driver's version does not tell."""
    card = world.tool.card(ONE)
    form = card.forms["Enable"]
    turned = tuple(one._replace(id=new) for one, new in zip(form.profiles, ids, strict=True))
    world.tool.set_card(ONE, forms={**card.forms, "Enable": form._replace(profiles=turned)})


def test_an_empty_card_is_asked_again_for_its_profiles(world: DrsWorld, agent: Agent) -> None:
    first, later = world.api.add(instance("b", 0, 1)), world.api.add(instance("a", 0, 1))
    assert errors(agent, first) == [""]
    agent.preparer.unprepare([first])
    turn_profiles(world, (2, 1, 0))
    assert errors(agent, later) == [""]
    assert [one.profile for one in world.tool.instances(ONE)] == ["1g.6gb"]
    at_rest(world, agent, held=True)


def test_an_instance_of_another_profile_than_asked_is_taken_back(world: DrsWorld) -> None:
    """On a card that is divided, and so was not asked again; the next create knows better."""
    agent = world.start()
    neighbour, later = world.api.add(instance("b", 0, 1)), world.api.add(instance("a", 0, 1))
    assert errors(agent, neighbour) == [""]
    there = world.tool.instances(ONE)
    turn_profiles(world, (1, 0, 2))
    [told] = errors(agent, later)
    assert "made DRS instance 3g.20gb" in told
    assert world.tool.instances(ONE) == there
    assert world.reconcile(agent).foreign == {}
    assert errors(agent, later) == [""]
    assert [one.profile for one in world.tool.instances(ONE)] == ["1g.6gb", "1g.6gb"]
    agent.preparer.unprepare([neighbour])
    at_rest(world, agent, held=True)


def test_a_card_that_was_reset_is_asked_again_before_its_instances_are_remade(
    world: DrsWorld, agent: Agent
) -> None:
    refs = [world.api.add(instance("a", 0, 1)), world.api.add(instance("b", 0, 3))]
    assert errors(agent, *refs) == ["", ""]
    turn_profiles(world, (2, 0, 1))
    back_after_a_reset(world)
    assert world.reconcile(agent).failed == {}
    assert [one.profile for one in world.tool.instances(ONE)] == ["1g.6gb", "3g.20gb"]
    agent.preparer.unprepare(refs[1:])
    at_rest(world, agent, held=True)
