"""Cards that fall off the bus at any moment, and what is there when they are back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from dra_driver.model.claims.claim import Object
from dra_driver.model.effects import Effects, Point
from tests.unit.node.card_changes import (
    ONE,
    at_rest,
    back_after_a_reset,
    back_as_it_was,
    back_at_another_index,
    lose,
    replaced,
)
from tests.unit.node.drs_world import DrsWorld, errors, instance, slices, tool, whole
from tests.unit.node.world import CARDS

# Their indexes run against their addresses: 2, 1, 0.
NEIGHBOUR, OURS, OTHER = map(str, CARDS[:3])
_MORE_THAN_ENOUGH = 40


@dataclass
class AtCall(Effects):
    """Does `what` once, before the call of efsmi with that number, counted from 0."""

    number: int
    what: Callable[[], None]
    seen: int = 0
    done: bool = False

    def before(self, point: Point) -> None:
        if point is not Point.EFSMI_CALL:
            return
        if self.seen == self.number and not self.done:
            self.done = True
            self.what()
        self.seen += 1


COMEBACKS = [back_as_it_was, back_at_another_index, back_after_a_reset, replaced]
comebacks = pytest.mark.parametrize("back", COMEBACKS, ids=lambda back: back.__name__)


@comebacks
@pytest.mark.parametrize("then", ["asked again", "pod gone", "pod gone before it is back"])
def test_lost_in_the_middle_of_a_prepare(
    tmp_path: Path, back: Callable[[DrsWorld], None], then: str
) -> None:
    """No pod waits for a card; what is on it is taken away when it is back."""
    for number in range(_MORE_THAN_ENOUGH):
        world = DrsWorld(tmp_path / f"call-{number}", tool=tool())
        effects = AtCall(number, lambda world=world: lose(world))  # type: ignore[misc]
        agent = world.start(effects)
        ref = world.api.add(instance("a", 0, 1))
        errors(agent, ref)
        if not effects.done:
            assert number > 5
            return
        if then == "pod gone before it is back":
            assert agent.preparer.unprepare([ref]) == {ref.uid: None}
        back(world)
        if then == "asked again":
            assert errors(agent, ref) == [""], f"lost at call {number}"
        elif then == "pod gone":
            assert agent.preparer.unprepare([ref]) == {ref.uid: None}
        world.reconcile(agent)
        at_rest(world, agent, held=then == "asked again")
    pytest.fail("a prepare has no end")


@comebacks
def test_lost_while_it_is_used(world: DrsWorld, back: Callable[[DrsWorld], None]) -> None:
    agent = world.start()
    ref = world.api.add(instance("a", 0, 1))
    assert errors(agent, ref) == [""]
    lose(world)
    world.reconcile(agent)
    assert agent.held() == {ref.uid: "prepared"}
    back(world)
    world.reconcile(agent)
    at_rest(world, agent, held=True)
    uuid = world.tool.instances(ONE)[0].uuid
    assert any(uuid in text for text in world.files().values()), "the CDI file tells the truth"
    assert agent.preparer.unprepare([ref]) == {ref.uid: None}
    at_rest(world, agent, held=False)


def test_the_kernel_driver_is_loaded_anew_while_cards_are_used(world: DrsWorld) -> None:
    """Instances are gone, minors and indexes are others; in between nothing works."""
    agent = world.start()
    refs = [world.api.add(instance("a", 0, 1)), world.api.add(whole("b", 1))]
    assert errors(agent, *refs) == ["", ""]
    before = world.tool.instances(ONE)
    world.tool.machine = world.tool.machine._replace(driver_loaded=False)
    world.reconcile(agent)
    assert set(agent.held()) == {ref.uid for ref in refs}
    world.tool.machine = world.tool.machine._replace(driver_loaded=True)
    for at, card in enumerate(CARDS[:2]):
        world.tool.set_card(
            str(card), instances=(), virtualization="Disable", efsmi_index=at + 5, minor=at + 5
        )
    world.reconcile(agent)
    [there] = world.tool.instances(ONE)
    assert there.uuid != before[0].uuid
    texts = world.files()
    assert there.uuid in texts["gcu.enflame.com-claim-uid-a.json"]
    assert '"ENFLAME_VISIBLE_DEVICES=6"' in texts["gcu.enflame.com-claim-uid-b.json"]
    assert agent.preparer.unprepare(refs) == {ref.uid: None for ref in refs}
    assert (world.tool.instances(ONE), agent.held()) == ((), {})


def goes(world: DrsWorld) -> None:
    """The neighbour has the index that was ours."""
    world.tool.set_card(OTHER, lost=True)
    world.tool.set_card(OURS, efsmi_index=0)
    world.tool.set_card(NEIGHBOUR, efsmi_index=1)


def comes(world: DrsWorld) -> None:
    """All move up, and nobody has it."""
    world.tool.set_card(OTHER, efsmi_index=7)
    world.tool.set_card(OURS, efsmi_index=8)
    world.tool.set_card(NEIGHBOUR, efsmi_index=9)


@pytest.mark.parametrize("move", [goes, comes], ids=lambda move: move.__name__)
@pytest.mark.parametrize(
    "neighbour",
    [None, whole("n", 0), slices("n", 0, 2), instance("n", 0, 3), instance("n", 0, 1)],
    ids=["empty", "whole", "slices", "drs", "drs of that size"],
)
def test_what_lands_on_another_card_as_indexes_move_is_foreign(
    tmp_path: Path, move: Callable[[DrsWorld], None], neighbour: Object | None
) -> None:
    """And what others have there stays."""
    landed = set()
    for number in range(_MORE_THAN_ENOUGH):
        world = DrsWorld(tmp_path / str(number), tool=tool(3))
        effects = AtCall(-1, lambda world=world: move(world))  # type: ignore[misc]
        agent = world.start(effects)
        if neighbour is not None:
            assert errors(agent, world.api.add(neighbour)) == [""]
        had = world.tool.instances(NEIGHBOUR)
        effects.number = effects.seen + number
        errors(agent, world.api.add(instance("a", 1, 1)))
        world.reconcile(agent)
        there = world.tool.instances(NEIGHBOUR)
        assert set(had) <= set(there), f"moved at call {number}"
        is_on = world.tool.card(NEIGHBOUR).virtualization == "DRS"
        foreign = there != had or (is_on and not had)
        landed.add(foreign)
        assert set(world.reconcile(agent).foreign) == ({CARDS[0]} if foreign else set())
        world.tool.set_card(OTHER, lost=False, efsmi_index=5)
        world.tool.set_card(OURS, efsmi_index=6)
        assert errors(agent, world.api.add(instance("a", 1, 1))) == [""]
        assert len(world.tool.instances(OURS)) == 1
        assert world.tool.instances(NEIGHBOUR) == there
        agent.journal.close()
        if not effects.done:
            assert landed == ({False, True} if move is goes else {False})
            return
    pytest.fail("a prepare has no end")
