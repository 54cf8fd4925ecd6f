"""How many pods our gate holds back although nobody has decided about them."""

from __future__ import annotations

from typing import Any

import pytest

from controller.cache import pods
from controller.cache.keys import Key
from controller.nominate.gated_pods import GatedPods
from dra_driver.kube.api import Change
from dra_driver.kube.resources import PODS
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import SCHEDULING_GATE
from tests.unit.controller.informers.decoded import decoded
from tests.unit.controller.world import pod

GATE = {"name": SCHEDULING_GATE}


def gated(name: str = "p", *, uid: str = "1", **spec: Any) -> Object:
    found = pod(name, "c", **{"schedulingGates": [GATE], **spec})
    found["metadata"] |= {"uid": uid, "resourceVersion": "1"}
    return found


class World:
    """This replica leads, and knows no pod that waits."""

    def __init__(self) -> None:
        self.time = 0.0
        self.leads = self.has_leader = True
        self.waiting: set[Key] = set()
        self._pods = GatedPods(
            is_waiting=lambda key: key in self.waiting,
            leads=lambda: self.leads,
            has_leader=lambda: self.has_leader,
            clock=lambda: self.time,
        )

    def seen(self, found: Object, change: Change = Change.MODIFIED) -> None:
        self._pods.on_event(change, decoded(PODS, found))

    def listed(self, *found: Object) -> None:
        self._pods.on_replace([decoded(PODS, each) for each in found])

    def undecided(self, after: float = 61.0) -> float:
        """So many seconds later."""
        self.time += after
        [family] = self._pods.collect()
        [sample] = family.samples
        return float(sample.value)


def test_a_decision_may_take_a_minute() -> None:
    world = World()
    world.seen(gated())
    assert world.undecided(60.0) == 0
    world.seen(gated())  # a change of it is no new pod
    assert world.undecided(1.0) == 1


def test_pods_that_wait_for_room_are_decided() -> None:
    world = World()
    world.listed(gated("p"), gated("q"))
    world.waiting.add(pods.key_of(gated("p")))
    assert world.undecided() == 1


@pytest.mark.parametrize(
    ("leads", "has_leader", "count"), [(False, True, 0), (False, False, 1), (True, True, 0)]
)
def test_without_a_leader_nobody_decides(leads: bool, has_leader: bool, count: int) -> None:
    """What this replica decided when it led is not true any more."""
    world = World()
    world.seen(gated())
    world.waiting.add(pods.key_of(gated()))
    world.leads, world.has_leader = leads, has_leader
    assert world.undecided() == count


@pytest.mark.parametrize(
    "after",
    [
        pytest.param(gated(schedulingGates=[]), id="lifted"),
        pytest.param(gated(schedulingGates=[GATE, {"name": "x.io/hold"}]), id="held by others"),
    ],
)
def test_pods_that_the_gate_does_not_hold_back(after: Object) -> None:
    world = World()
    world.seen(gated())
    world.seen(after)
    assert world.undecided() == 0


def test_pods_go_and_others_take_their_names() -> None:
    world = World()
    world.listed(gated("p"), gated("q"))
    world.seen(gated("p"), Change.DELETED)
    assert world.undecided(50.0) == 0
    world.listed(gated("p", uid="2"), gated("q"))
    assert world.undecided(11.0) == 1


def test_a_pod_that_differs_from_its_model_ends_no_watch() -> None:
    world = World()
    world.seen(gated("odd", schedulingGates=[{}]))
    world.seen(gated())
    assert world.undecided() == 1
