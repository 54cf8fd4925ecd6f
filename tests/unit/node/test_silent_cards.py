"""An agent that starts while a card hangs: each call of that card takes its whole limit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dra_driver.hardware.breaker import HungCardBreaker
from dra_driver.hardware.efsmi.runner import EfsmiHung
from dra_driver.model.claims.claim import ClaimRef
from dra_driver.node.claims.belongings import Outcome
from dra_driver.node.claims.failures import TRIES
from tests.unit.node.drs_world import DrsWorld, errors, instance, tool
from tests.unit.node.world import CARDS

ONE, TWO = map(str, CARDS[:2])
CLAIMS = 3
COOLDOWN = 20.0


def node(root: Path, **keys: Any) -> DrsWorld:
    """Its breaker has the clock of the world."""
    world = DrsWorld(root, tool=tool(**keys))
    world.breaker = HungCardBreaker(COOLDOWN, clock=lambda: world.now)
    return world


def answer(world: DrsWorld) -> None:
    """The card does so again, some time later."""
    world.tool.clear_faults()
    world.now += COOLDOWN


def prepared(root: Path, **keys: Any) -> tuple[DrsWorld, list[ClaimRef], list[ClaimRef]]:
    """A node whose agent is down; claims on each of two cards."""
    world = node(root, **keys)
    agent = world.start()
    on_one, on_two = (
        [world.api.add(instance(f"{name}{at}", card, 1)) for at in range(CLAIMS)]
        for card, name in enumerate("ab")
    )
    assert set(errors(agent, *on_one, *on_two)) == {""}
    agent.journal.close()
    return world, on_one, on_two


def hang(world: DrsWorld) -> None:
    """The first card does. An agent that starts then knows the index of the other one only."""
    world.indexes = {CARDS[1]: world.tool.card(TWO).efsmi_index}.get
    world.tool.set_fault("card-hangs", card=ONE)
    world.tool.calls.clear()


def hung(world: DrsWorld) -> int:
    """How many calls asked the card that hangs, alone or among all."""
    other = ("-i", str(world.tool.card(TWO).efsmi_index))
    return sum(call[:2] != other for call in world.tool.calls)


@pytest.mark.parametrize("known", [False, True], ids=["in the recovery", "in the inventory"])
def test_a_card_that_answers_is_recovered_beside_one_that_hangs(
    tmp_path: Path, known: bool
) -> None:
    """An agent serves nothing before inventory and recovery are over: it waits for the card once
    in both."""
    world, on_one, on_two = prepared(tmp_path)
    kept = world.tool.instances(TWO)[0]
    world.tool.set_card(TWO, instances=(kept,))
    world.tool.set_card(ONE, instances=())
    hang(world)
    if known:
        error = EfsmiHung("`efsmi -q` did not end within 20 s")
        world.breaker.on_hung(CARDS[0], error)
        world.breaker.on_hung(None, error)
    agent = world.boot()
    report = agent.recover()
    assert hung(world) == (not known)
    assert report.recovered == {ref.uid: Outcome.RECREATED for ref in on_two[1:]}
    assert report.failed == {}
    answer(world)
    findings = world.reconcile(agent)
    assert findings.recovered == {ref.uid: Outcome.RECREATED for ref in on_one}
    assert hung(world) > 0


def test_the_first_instance_is_made_beside_a_card_that_hangs(tmp_path: Path) -> None:
    """No instance was ever listed, so it is not known yet how the tool lists them."""
    world = node(tmp_path)
    hang(world)
    agent = world.start()
    ref = world.api.add(instance("b", 1, 3))
    assert errors(agent, ref) == [""]
    assert hung(world) == 1
    assert agent.preparer.unprepare([ref]) == {ref.uid: None}
    assert hung(world) == 1
    assert world.tool.card(TWO).virtualization == "Disable"


def test_what_was_unfinished_stays_on_record_until_the_card_answers(tmp_path: Path) -> None:
    world, on_one, on_two = prepared(tmp_path)
    world.tool.set_fault("destroy-fails", card=ONE)
    agent = world.start()
    agent.preparer.unprepare(on_one)
    agent.journal.close()
    world.tool.clear_faults()
    hang(world)
    agent = world.boot()
    report = agent.recover()
    assert hung(world) == 1
    assert report.failed.keys() == {ref.uid for ref in on_one}
    assert all(agent.held()[ref.uid] == "unpreparing" for ref in on_one)
    answer(world)
    world.reconcile(agent)
    assert agent.held().keys() == {ref.uid for ref in on_two}
    assert world.tool.instances(ONE) == ()


def test_a_card_that_was_never_read_is_not_one_that_is_gone(tmp_path: Path) -> None:
    """Its pod waits for some tries, as with every card that is there; then it is an orphan."""
    world, [ref, *_], _ = prepared(tmp_path)
    hang(world)
    world.cards.unread = (CARDS[0],)
    agent = world.boot()
    agent.recover()
    tries = 0
    while agent.preparer.unprepare([ref])[ref.uid] is not None:
        tries += 1
        assert agent.held()[ref.uid] == "unpreparing"
        world.now += COOLDOWN
    assert tries == TRIES - 1


@pytest.mark.parametrize("rows", [True, False], ids=["today's tool", "a tool without uuids"])
def test_a_call_of_all_cards_that_hangs_is_not_repeated(tmp_path: Path, rows: bool) -> None:
    """Where the tool shows no instance in a card's own listings, all cards are asked; that hangs,
    and then the listings must do."""
    world, on_one, on_two = prepared(tmp_path, efsmi={"instanceRows": rows})
    world.reboot()
    hang(world)
    agent = world.boot()
    report = agent.recover()
    assert hung(world) == 1
    assert report.failed.keys() == {ref.uid for ref in on_one}
    assert report.recovered == {ref.uid: Outcome.RECREATED for ref in on_two}
    assert world.files().keys() == {f"gcu.enflame.com-claim-{ref.uid}.json" for ref in on_two}
    answer(world)
    world.reconcile(agent)
    assert set(errors(agent, *on_one, *on_two)) == {""}
