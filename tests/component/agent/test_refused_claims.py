"""Claims that the agent refuses: for want of slices, and on a device that takes none."""

from __future__ import annotations

from pathlib import Path

import pytest

from dra_driver.agent.events import DEVICE_FAILING
from dra_driver.model.claims.claim import Object
from dra_driver.node.claims.failures import TRIES
from tests.unit.agent.node import Node
from tests.unit.node.drs_world import instance, slices


def prepare(node: Node, claim: Object) -> str:
    """The error, empty for success."""
    return node.prepare(node.api.put(claim)).error


def test_a_device_on_which_nothing_can_be_made_is_told_on_the_node(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = node.started()
    told: list[str] = []

    def record(_: Object, *, reason: str, note: str, **__: object) -> float:
        if reason == DEVICE_FAILING:  # on a slow machine the node is told to serve nothing, too
            told.append(note)
        return 0.0

    monkeypatch.setattr(agent._context.recorder, "record", record)
    node.machine.set_fault("create-fails")
    failing = instance("one", 0, 1)
    for _ in range(TRIES):
        assert told == []
        assert "create-fails" in prepare(node, failing)
    [line] = told
    assert line.startswith("device drs-0000-0d-00-0 takes no new claim for now: ")
    assert "create-fails" in line


def test_by_what_slices_are_counted(node: Node, tmp_path: Path) -> None:
    """By the rule, by what stands published, and after a start, when that is not known yet, by
    what was promised: a card that is held keeps the number that its claims were given of."""
    rules = tmp_path / "rules.json"
    rules.write_text('{"sliceCount": 12}')
    agent = node.started(card_rules=rules)
    assert "of the 12 slices" in prepare(node, slices("one", 0, 16))
    shared = {"name": "shared-0000-0d-00-0", "capacity": {"slices": {"value": "16"}}}
    spec = {"nodeName": "n1", "pool": {"generation": 1}, "devices": [shared]}
    published = {"metadata": {"name": "s", "uid": "u"}, "spec": spec}
    agent._dra._publisher.published.on_replace([published])
    assert prepare(node, slices("one", 0, 16)) == ""
    node.stop()
    node.started(card_rules=rules)
    assert "of the 16 slices" in prepare(node, slices("two", 0, 1))
