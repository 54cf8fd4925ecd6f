"""DRS instances and DRS mode of somebody else: nothing of it is touched."""

from __future__ import annotations

from dra_driver.simulator.state import InstanceState
from tests.unit.node.drs_world import DrsWorld, errors, instance, whole
from tests.unit.node.world import CARDS, Agent

ONE = str(CARDS[0])
FOREIGN = InstanceState(1, "1g.6gb", "5b0c4c7e-6a0e-4a54-9d0b-0f3a3f2f6a11", (0,))


def test_a_foreign_instance_is_never_touched(world: DrsWorld, agent: Agent) -> None:
    world.tool.set_card(ONE, instances=(FOREIGN,), virtualization="DRS")
    [refused] = errors(agent, world.api.add(instance("a", 0, 1)))
    assert "no claim of this driver holds" in refused
    assert "efsmi -i INDEX --drs --destroy-instance ID" in refused
    found = world.reconcile(agent).foreign
    assert found[CARDS[0]].taint == "gcu.enflame.com/foreign"
    assert "1g.6gb 5b0c4c7e" in found[CARDS[0]].text
    world.cards.problems[CARDS[0]] = (found[CARDS[0]],)
    assert "not ours to use" in errors(agent, world.api.add(whole("b", 0)))[0]
    assert world.tool.instances(ONE) == (FOREIGN,)
    world.tool.set_card(ONE, instances=(), virtualization="Disable")
    assert world.reconcile(agent).foreign == {}
    assert world.tool.changes() == []


def test_a_foreign_instance_beside_ours(world: DrsWorld, agent: Agent) -> None:
    ref = world.api.add(instance("a", 0, 1))
    errors(agent, ref)
    ours = world.tool.instances(ONE)
    theirs = FOREIGN._replace(id=4, slots=(5,))
    world.tool.set_card(ONE, instances=(*ours, theirs))
    assert set(world.reconcile(agent).foreign) == {CARDS[0]}
    assert agent.preparer.unprepare([ref]) == {"uid-a": None}
    assert world.tool.instances(ONE) == (theirs,)
    assert world.tool.card(ONE).virtualization == "DRS"
    world.reconcile(agent)
    assert world.tool.instances(ONE) == (theirs,)


def test_drs_mode_of_somebody_else_is_told(world: DrsWorld, agent: Agent) -> None:
    world.tool.set_card(ONE, virtualization="DRS")
    found = world.reconcile(agent).foreign[CARDS[0]]
    assert (found.taint, found.value) == ("gcu.enflame.com/foreign", "")
    assert "switched DRS mode on" in found.text
    assert world.tool.changes() == []
    assert world.reconcile(agent, adopt=True).foreign == {}
    assert world.tool.card(ONE).virtualization == "Disable"


def test_where_the_mode_is_not_told_a_listing_shows_who_divides_a_card(
    world: DrsWorld, agent: Agent
) -> None:
    """As while another card hangs: the summary is of all cards."""
    assert world.reconcile(agent).foreign == {}
    assert world.tool.calls == [], "the modes are known"
    world.cards.modes_told = False
    assert world.reconcile(agent).foreign == {}
    world.tool.set_card(ONE, instances=(FOREIGN,), virtualization="DRS")
    assert set(world.reconcile(agent).foreign) == {CARDS[0]}
