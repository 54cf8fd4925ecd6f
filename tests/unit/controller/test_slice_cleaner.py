"""Whose hidden slices are deleted, and when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pytest

from controller.agents import RunningAgents
from controller.leaderelection.fence import Fence
from controller.slice_cleaner import SliceCleaner
from dra_driver.kube.api import Api, Change, Listing
from dra_driver.kube.decode import WHOLE, Decoder
from dra_driver.kube.resources import RESOURCE_SLICES, Resource
from dra_driver.model.claims.claim import Object
from dra_driver.model.devices.hidden_device import hidden_name
from dra_driver.model.names import DRIVER, pool_name


def hidden(node: str) -> Object:
    name = hidden_name(node)
    return {
        "metadata": {"name": name, "uid": f"uid of {name}"},
        "spec": {"driver": DRIVER, "pool": {"name": pool_name(node)}},
    }


def visible(node: str) -> Object:
    found = hidden(node)
    return found | {
        "metadata": {"name": f"{node}-{DRIVER}-000", "uid": "v"},
        "spec": found["spec"] | {"nodeName": node},
    }


def agent(node: str, *, running: bool = True, uid: str = "") -> Object:
    state = {"running": {}} if running else {"waiting": {"reason": "CrashLoopBackOff"}}
    return {
        "metadata": {"uid": uid or f"agent of {node}"},
        "spec": {"nodeName": node},
        "status": {"containerStatuses": [{"state": state}]},
    }


class Slices:
    """Plays `Api` with slices by name; a list is of one of them, or of all of the driver."""

    def __init__(self, *slices: Object) -> None:
        self.slices = {each["metadata"]["name"]: each for each in slices}

    def list(
        self, resource: Resource, *, field_selector: str = "", decoder: Decoder = WHOLE
    ) -> Listing:
        assert resource is RESOURCE_SLICES
        field, _, value = field_selector.partition("=")
        found = (
            [each for name, each in self.slices.items() if name == value]
            if field == "metadata.name"
            else self.slices.values()
        )
        return Listing(tuple(found), "1")

    def delete(self, resource: Resource, name: str, *, uid: str = "") -> None:
        assert self.slices.pop(name)["metadata"]["uid"] == uid


class Rig:
    """A cleaner whose time is the test's; its replica leads."""

    def __init__(self, slices: Slices, agents: Sequence[Object] = ()) -> None:
        self.now = 0.0
        self.fence = Fence(lambda: 0.0)
        self.fence.open_until(1.0, "term")
        api = cast("Api", slices)
        self.agents = RunningAgents()
        self.cleaner = SliceCleaner(api, self.fence, self.agents, clock=lambda: self.now)
        self.agents.on_replace(agents)

    def clean_at(self, now: float) -> None:
        self.now = now
        self.cleaner.clean()


def test_slices_of_a_node_without_an_agent_are_deleted_after_half_a_minute() -> None:
    slices = Slices(hidden("a"), hidden("b"), visible("c"))
    rig = Rig(slices, [agent("b")])
    rig.clean_at(0)
    rig.clean_at(29)
    assert len(slices.slices) == 3
    rig.clean_at(30)
    assert [*slices.slices] == [hidden_name("b"), f"c-{DRIVER}-000"]


@pytest.mark.parametrize("crashes", [True, False], ids=["crash loop", "deleted"])
def test_an_agent_that_ends_and_comes_back_in_time_keeps_its_slices(crashes: bool) -> None:
    slices = Slices(hidden("a"))
    rig = Rig(slices, [agent("a")])
    rig.clean_at(0)
    change = Change.MODIFIED if crashes else Change.DELETED
    rig.agents.on_event(change, agent("a", running=not crashes))
    rig.clean_at(10)
    rig.agents.on_event(Change.ADDED, agent("a", uid="new"))
    rig.clean_at(35)
    rig.agents.on_event(Change.DELETED, agent("a", uid="new"))
    rig.clean_at(40)
    rig.clean_at(69)
    assert slices.slices
    rig.clean_at(70)
    assert not slices.slices


def test_during_an_update_the_other_agent_of_the_node_counts() -> None:
    slices = Slices(hidden("a"))
    rig = Rig(slices, [agent("a"), agent("a", uid="new")])
    rig.clean_at(0)
    rig.agents.on_event(Change.DELETED, agent("a"))
    for now in (1, 100):
        rig.clean_at(now)
    assert slices.slices


def test_a_replica_that_does_not_lead_deletes_nothing_and_begins_anew() -> None:
    slices = Slices(hidden("a"))
    rig = Rig(slices)
    rig.clean_at(0)
    rig.fence.close()
    rig.clean_at(100)
    rig.fence.open_until(1.0, "term-2")
    rig.clean_at(101)
    assert slices.slices
    rig.clean_at(131)
    assert not slices.slices


def test_slices_that_come_later_are_known_by_their_agent() -> None:
    slices = Slices()
    rig = Rig(slices)
    rig.clean_at(0)
    rig.agents.on_event(Change.ADDED, agent("a"))
    slices.slices[hidden_name("a")] = hidden("a")
    rig.clean_at(1)
    rig.agents.on_event(Change.DELETED, agent("a"))
    rig.clean_at(2)
    rig.clean_at(32)
    assert not slices.slices
