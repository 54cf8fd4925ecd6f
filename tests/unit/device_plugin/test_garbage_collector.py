"""When a grant ends, by what the kubelet has on record."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dra_driver.model.mode import Mode
from tests.unit.device_plugin.plugin_world import PluginWorld, ids
from tests.unit.node.drs_world import errors, whole
from tests.unit.node.world import CARDS

ONE = str(CARDS[0])
SHARED, DRS = Mode.SHARED, Mode.DRS


class Node:
    """One container has an instance."""

    def __init__(self, root: Path) -> None:
        self.world = PluginWorld(root)
        self.restart()
        self.world.learn(self.agent)
        self.allocate()

    def restart(self) -> None:
        self.agent = self.world.start()
        self.garbage_collector = self.world.garbage_collector(self.agent)

    def allocate(self) -> None:
        self.world.allocator(self.agent).allocate(DRS, ids(0, DRS, 0, 1, 2))

    def record(self, *sets: list[str]) -> None:
        self.world.recorded = [frozenset(each) for each in sets]

    def profiles(self) -> list[str]:
        return [one.profile for one in self.world.tool.instances(ONE)]


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def look(node: Node) -> None:
    node.garbage_collector.run_once()


def is_recorded(node: Node) -> None:
    node.record(ids(0, DRS, 0, 1, 2))
    node.garbage_collector.run_once()
    node.record()


def is_asked_for_again(node: Node) -> None:
    node.allocate()


def kubelet_is_away(node: Node) -> None:
    node.world.recorded = None
    node.garbage_collector.run_once()
    node.record()


def restart(node: Node) -> None:
    node.restart()


def other_devices(node: Node) -> None:
    node.record(ids(0, DRS, 0), ids(0, DRS, 0, 1, 2, 3))
    node.garbage_collector.run_once()


@pytest.mark.parametrize(
    ("events", "ended"),
    [
        ([look], False),
        ([look, look], True),
        ([look, is_recorded, look], False),
        ([look, is_recorded, look, look], True),
        ([look, is_asked_for_again, look], False),
        ([look, is_asked_for_again, look, look], True),
        ([kubelet_is_away, kubelet_is_away, kubelet_is_away], False),
        ([look, kubelet_is_away, look], True),
        ([look, restart, look], False),
        ([restart, look, look], True),
        ([look, other_devices], True),
    ],
    ids=lambda value: ", ".join(each.__name__ for each in value) if isinstance(value, list) else "",
)
def test_two_looks_that_miss_it(
    node: Node, events: list[Callable[[Node], None]], ended: bool
) -> None:
    for event in events:
        event(node)
    assert node.profiles() == ([] if ended else ["3g.20gb"])
    assert bool(node.agent.held()) is not ended
    assert bool(node.world.files()) is not ended
    assert (node.world.tool.card(ONE).virtualization == "Disable") is ended


def test_what_is_asked_for_between_the_decision_and_the_deed(node: Node) -> None:
    [seen] = node.agent.journal.snapshot().claims.values()
    node.allocate()
    assert not node.agent.preparer.claim_manager.release(seen)
    assert node.profiles() == ["3g.20gb"]
    [seen] = node.agent.journal.snapshot().claims.values()
    assert node.agent.preparer.claim_manager.release(seen)
    assert node.profiles() == []


def test_why_nothing_is_released(node: Node) -> None:
    node.world.recorded = None
    node.garbage_collector.run_once()
    assert node.garbage_collector.problem == "the kubelet does not answer"
    node.record()
    node.garbage_collector.run_once()
    assert node.garbage_collector.problem is None


def test_without_grants_the_kubelet_is_not_asked(node: Node) -> None:
    node.garbage_collector.run_once()
    node.garbage_collector.run_once()
    node.world.recorded = None
    node.garbage_collector.run_once()
    assert node.garbage_collector.problem is None


def test_claims_are_none_of_its_concern(node: Node) -> None:
    assert errors(node.agent, node.world.api.add(whole("a", 1))) == [""]
    node.garbage_collector.run_once()
    node.garbage_collector.run_once()
    assert node.agent.held() == {"uid-a": "prepared"}


def test_a_card_that_hangs_holds_up_no_other(node: Node) -> None:
    node.world.allocator(node.agent).allocate(SHARED, ids(1, SHARED, 0))
    node.world.tool.set_fault("destroy-fails", card=ONE)
    node.garbage_collector.run_once()
    node.garbage_collector.run_once()
    assert list(node.agent.held().values()) == ["unpreparing"]
    node.world.tool.clear_faults()
    node.world.reconcile(node.agent)
    assert (node.agent.held(), node.profiles()) == ({}, [])
