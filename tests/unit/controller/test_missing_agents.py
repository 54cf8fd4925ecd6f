"""When it is reported that no node runs an agent."""

from __future__ import annotations

from typing import cast

import pytest

from controller.agents import RunningAgents
from controller.leaderelection.fence import Fence
from controller.missing_agents import MissingAgentsReporter, missing_note
from controller.own_pod import OwnPod
from dra_driver.kube.api import Api, Change
from dra_driver.kube.errors import Unavailable
from dra_driver.model.claims.claim import Object
from tests.unit.agent.recorder import ListRecorder
from tests.unit.controller.test_slice_cleaner import agent


class NoPods:
    """Plays `Api`, and does not answer."""

    def get(self, *_: object, **__: object) -> Object:
        raise Unavailable("the API server did not answer")


class Rig:
    """A reporter whose time is the test's; its replica leads."""

    def __init__(self) -> None:
        self.now = 0.0
        self.fence = Fence(lambda: 0.0)
        self.fence.open_until(1.0, "term")
        self.agents = RunningAgents()
        self.recorder = ListRecorder()
        self.reporter = MissingAgentsReporter(
            self.agents,
            self.fence,
            OwnPod(cast("Api", NoPods()), self.recorder, namespace="gcu", name="controller-1"),
            labels="enflame.com/gcushare=true",
            clock=lambda: self.now,
        )

    def run(self, *, until: float) -> int:
        """How many events there are in all."""
        while self.now < until:
            self.reporter.run_once()
            self.now += 5
        return len(self.recorder.lines)


def test_after_a_minute_and_every_hour() -> None:
    rig = Rig()
    rig.agents.on_replace([])
    assert [rig.run(until=each) for each in (60, 65, 3600, 3700)] == [0, 1, 1, 2]
    assert rig.recorder.lines[0].startswith("GcuNoAgents no node runs an agent")
    assert "kubectl label nodes NODE enflame.com/gcushare=true" in rig.recorder.lines[0]


def test_not_before_the_pods_are_listed() -> None:
    assert Rig().run(until=600) == 0


def test_one_agent_is_enough() -> None:
    rig = Rig()
    rig.agents.on_replace([agent("a"), agent("b")])
    rig.agents.on_event(Change.DELETED, agent("b"))
    assert rig.run(until=600) == 0
    rig.agents.on_event(Change.MODIFIED, agent("a", running=False))
    assert rig.run(until=655) == 0
    assert rig.run(until=670) == 1


def test_agents_that_are_replaced_in_time() -> None:
    rig = Rig()
    rig.agents.on_replace([])
    rig.run(until=50)
    rig.agents.on_event(Change.ADDED, agent("a"))
    rig.run(until=100)
    rig.agents.on_event(Change.DELETED, agent("a"))
    assert rig.run(until=155) == 0


def test_a_replica_that_does_not_lead_says_nothing() -> None:
    rig = Rig()
    rig.agents.on_replace([])
    rig.fence.close()
    assert rig.run(until=600) == 0


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ("a=b", "`kubectl label nodes NODE a=b`"),
        ("", "agent.nodeSelector and agent.affinity select"),
    ],
)
def test_the_remedy(labels: str, words: str) -> None:
    assert words in missing_note(labels)
    assert len(missing_note(labels)) < 1024
