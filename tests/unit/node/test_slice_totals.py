"""How many slices a card has for claims, when the rule has changed while some were held."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dra_driver.node.checkpoint import frames
from dra_driver.node.checkpoint.records import decode, encode
from tests.unit.node.drs_world import DrsWorld, errors, slices
from tests.unit.node.world import Agent


@pytest.fixture
def world(tmp_path: Path) -> DrsWorld:
    """Of a card that was cut into twelve, eight are held; the agent is down, and the rule says
    six."""
    world = DrsWorld(tmp_path, slices=12)
    agent = world.start()
    assert errors(agent, world.api.add(slices("a", 0, 8))) == [""]
    agent.journal.close()
    world.slices = 6
    return world


def test_before_it_is_known_what_is_published_they_are_as_was_promised(world: DrsWorld) -> None:
    agent = world.start()
    assert errors(agent, world.api.add(slices("b", 0, 4))) == [""]
    (error,) = errors(agent, world.api.add(slices("c", 0, 1)))
    assert "1 of the 12 slices of card 0000:0d:00.0, and 0 are left" in error


def test_a_promise_outlives_the_claim_that_had_it_first(world: DrsWorld, agent: Agent) -> None:
    last = world.api.add(slices("b", 0, 4))
    assert errors(agent, last) == [""]
    agent.preparer.unprepare([world.api.add(slices("a", 0, 8))])
    agent.journal.close()
    again = world.start()
    assert errors(again, world.api.add(slices("c", 0, 8))) == [""]


def test_a_card_that_nobody_holds_is_cut_by_the_rule(world: DrsWorld, agent: Agent) -> None:
    agent.preparer.unprepare([world.api.add(slices("a", 0, 8))])
    (error,) = errors(agent, world.api.add(slices("b", 0, 8)))
    assert "8 of the 6 slices" in error
    assert errors(agent, world.api.add(slices("c", 0, 6))) == [""]


def test_a_card_that_is_published_with_more_has_more(world: DrsWorld) -> None:
    """The first claim after a start can be recorded by a rule that is not published yet."""
    world.published = 16
    agent = world.start()
    assert errors(agent, world.api.add(slices("b", 0, 8))) == [""]


def test_a_promise_is_rebuilt_with_its_claim(world: DrsWorld) -> None:
    shutil.rmtree(world.root / "state")
    agent = world.start()
    assert agent.held() == {"uid-a": "prepared"}
    assert errors(agent, world.api.add(slices("b", 0, 4))) == [""]


def test_a_record_without_a_total_promises_nothing(world: DrsWorld) -> None:
    path = world.root / "state" / "journal"
    raws = [dict(decode(each).raw) for each in frames.scan(path.read_bytes()).payloads]
    for raw in raws:
        for hold in raw.get("holds", ()):
            del hold["total"]
    path.write_bytes(b"".join(frames.encode(encode(raw)) for raw in raws))
    agent = world.start()
    assert agent.held() == {"uid-a": "prepared"}
    assert "4 of the 6 slices" in errors(agent, world.api.add(slices("b", 0, 4)))[0]
    world.published = 12
    assert errors(agent, world.api.add(slices("c", 0, 4))) == [""]
