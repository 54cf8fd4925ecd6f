"""The Node is told when something changed, and again when the server did not listen."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, cast

import pytest

from dra_driver.device_plugin.inventory import NodeDevices
from dra_driver.device_plugin.node_annotations import node_metadata
from dra_driver.kube.api import Api, PatchType
from dra_driver.kube.errors import Unavailable
from dra_driver.kube.node_metadata import NodeMetadataWriter
from dra_driver.kube.resources import NODES, Resource
from dra_driver.kubelet_api.device_plugin.record import Recorded
from dra_driver.model.claims.claim import Object
from dra_driver.model.devices.node_cards import Hold, NodeCard, parse_cards
from dra_driver.model.errors import JournalError
from dra_driver.model.names import FIELD_MANAGER
from tests.unit.device_plugin.test_node_annotations import TWO, granted, recorded, view


class World:
    """`view` is None where it cannot be read."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.view: NodeDevices | None = view()
        self.checkpoint: Collection[Recorded] = ()
        self.kubelet = 1
        self.away = False
        self.patches: list[Object] = []
        self.pauses: list[float] = []
        self.reporter = NodeMetadataWriter(
            "node-annotator",
            cast("Api", self),
            "node-1",
            wanted=lambda: node_metadata(self.read(), self.checkpoint),
            field_manager=FIELD_MANAGER,
            kubelet=lambda: self.kubelet,
            clock=lambda: self.now,
            wait=self.wait,
        )

    def patch(self, resource: Resource, name: str, body: Object, **more: Any) -> None:
        assert (resource, name, more["subresource"]) == (NODES, "node-1", "status")
        assert more["patch_type"] is PatchType.APPLY
        if self.away:
            raise Unavailable("the API server did not answer")
        self.patches.append(body)

    def read(self) -> NodeDevices:
        if self.view is None:
            raise JournalError("the journal cannot be read")
        return self.view

    def wait(self, seconds: float) -> bool:
        self.pauses.append(seconds)
        self.reporter.stop(0)
        return True

    def problem(self) -> str | None:
        return self.reporter.problem

    def card(self) -> NodeCard:
        text = self.patches[-1]["metadata"]["annotations"]["gcu.enflame.com/cards"]
        (found,) = parse_cards(text)
        return found


@pytest.fixture
def world() -> World:
    return World()


def test_what_has_not_changed_is_not_written_again(world: World) -> None:
    assert world.problem() == "nothing has been written on the Node yet"
    world.reporter.run_once()
    world.reporter.run_once()
    assert len(world.patches) == 1
    assert world.problem() is None
    world.view = view(granted(TWO))
    world.reporter.run_once()
    assert world.card().held == (Hold("", "", 2),)
    world.checkpoint = [recorded(TWO, "pod-a")]
    world.reporter.run_once()
    assert world.card().held == (Hold("pod-a", "main", 2),)


def test_nobody_is_told_of_cards_that_were_not_read(world: World) -> None:
    world.view = NodeDevices(None, view().ledger, view().offer, view().table)
    world.reporter.run_once()
    assert world.patches == []


def test_what_is_not_so_any_more_is_not_applied(world: World) -> None:
    world.reporter.run_once()
    assert world.patches[-1]["metadata"]["labels"] == {"enflame.com/gcushare": "true"}
    world.view = view(cards=())
    world.reporter.run_once()
    assert world.patches[-1]["metadata"]["labels"] == {}


def test_it_is_written_anew_from_time_to_time(world: World) -> None:
    world.reporter.run_once()
    world.now += 301
    world.reporter.run_once()
    assert len(world.patches) == 2


def test_a_node_that_joined_again_is_told_at_once(world: World) -> None:
    """Who deletes a Node starts its kubelet anew to have it back, and the agent may run on."""
    world.reporter.run_once()
    world.kubelet, world.away = 2, True
    with pytest.raises(Unavailable):  # it may not be there yet
        world.reporter.run_once()
    world.away = False
    world.reporter.run_once()
    world.reporter.run_once()
    assert len(world.patches) == 2


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        pytest.param("away", True, "the API server did not answer", id="server"),
        pytest.param("view", None, "the journal cannot be read", id="journal"),
    ],
)
def test_what_fails_is_told_and_tried_again_later(
    world: World, name: str, value: object, problem: str
) -> None:
    setattr(world, name, value)
    world.reporter.run()
    assert world.pauses
    assert world.problem() == problem
    world.view, world.away = view(), False
    world.reporter.run_once()
    assert len(world.patches) == 1
    assert world.problem() is None


def test_a_write_that_may_have_been_made_is_not_trusted(world: World) -> None:
    world.reporter.run_once()
    world.view, world.away = view(granted(TWO)), True
    with pytest.raises(Unavailable):
        world.reporter.run_once()
    world.view, world.away = view(), False  # as before, while the Node may say otherwise
    world.reporter.run_once()
    assert len(world.patches) == 2
    assert world.card().held == ()
