"""kube-scheduler allocates, and the controller names all members of a group, on a server that has
PodGroups."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from dra_driver.kube.resources import POD_GROUPS, PODS
from dra_driver.model.names import ALLOCATOR_SCHEDULER, SCHEDULING_GATE
from tests.component.controller.conftest import Start
from tests.component.controller.replica import Replica
from tests.component.controller.stage import Stage
from tests.control_plane.cards import in_all_modes
from tests.fake_api.api import KNOWN, FakeApi
from tests.fake_api.store import Key

cards = partial(in_all_modes, allocator=ALLOCATOR_SCHEDULER)
GANG = [f"pod-{number}" for number in range(4)]
Nominate = Callable[..., Replica]


@pytest.fixture
def stage() -> Stage:
    return Stage(FakeApi(served=KNOWN))


@pytest.fixture
def nominate(start_controller: Start) -> Nominate:
    return partial(start_controller, allocator="scheduler", nomination_waiting=0)


def make(stage: Stage, name: str, least: int, *members: str) -> None:
    policy = {"gang": {"minCount": least}}
    metadata = {"name": name, "namespace": stage.namespace}
    stage.api.put(POD_GROUPS, {"metadata": metadata, "spec": {"schedulingPolicy": policy}})
    for each in members:
        group = {"podGroupName": name}
        gates = [{"name": SCHEDULING_GATE}]
        stage.start(each, schedulingGates=gates, schedulingGroup=group)


def lifted(stage: Stage) -> None:
    stage.wait(lambda: not any(map(stage.gates, GANG)), "all gates lifted")


def names(stage: Stage) -> list[str]:
    return [str(stage.pod(each)["status"].get("nominatedNodeName") or "") for each in GANG]


def test_no_gate_is_lifted_before_all_names_are_there(stage: Stage, nominate: Nominate) -> None:
    for _ in range(3):
        stage.add_node(cards(0, 1))
    make(stage, "gang", 4, *GANG)
    nominate()
    lifted(stage)
    assert len(set(names(stage))) == 2
    keys = {Key(PODS, stage.namespace, each) for each in GANG}
    writes = [
        bool(change.new["spec"]["schedulingGates"])
        for change in stage.api.store.after(stage.api.store.oldest)
        if change.key in keys
        and change.new is not None
        and change.new["status"].get("nominatedNodeName")
    ]
    assert writes == [True] * 4 + [False] * 4


def test_what_a_group_is_short_of_is_an_event_about_it(stage: Stage, nominate: Nominate) -> None:
    stage.add_node(cards(0, 1))
    make(stage, "gang", 4, *GANG)
    nominate()
    stage.wait_for_event("gang", "2 of 4 pods fit together", "GcuAllocationFailed PodGroup")
    assert names(stage) == [""] * 4
    stage.add_node(cards(0, 1))
    lifted(stage)


def test_the_next_leader_goes_on(stage: Stage, nominate: Nominate) -> None:
    """The first one ended after some of its names and before any gate."""
    nodes = [stage.add_node(cards(0, 1)) for _ in range(2)]
    make(stage, "gang", 4, *GANG)
    for each in GANG[:2]:
        stage.set_status(PODS, each, {"nominatedNodeName": nodes[1]})
    nominate("replica-1")
    lifted(stage)
    assert sorted(names(stage)) == sorted([*nodes, *nodes])
