"""What is told of a claim that was prepared."""

from __future__ import annotations

from pathlib import Path

from dra_driver.model.errors import GcuError
from tests.unit.node.world import World, claim, result


def test_a_claim_is_reported_when_it_is_prepared_for_the_first_time(tmp_path: Path) -> None:
    world = World(tmp_path)
    agent = world.start()
    one, bad = (world.api.add(claim("one", result(0))), world.api.add(claim("bad", result("x"))))
    for ref, fails in ((bad, True), (one, False), (one, False)):
        assert isinstance(agent.preparer.prepare([ref])[ref.uid], GcuError) is fails
    assert world.on_prepared == ["one"]
