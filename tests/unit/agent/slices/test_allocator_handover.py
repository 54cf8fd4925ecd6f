"""The change from one allocator to the other: who allocates a card, and when it loses counters."""

from __future__ import annotations

from typing import cast

import pytest

from dra_driver.agent.slices.allocator_handover import AllocatorHandover
from dra_driver.agent.slices.device_layout import by_name, with_layouts_in_use
from dra_driver.kube.api import Api
from dra_driver.kube.errors import NotFound, TooManyRequests, Unavailable
from dra_driver.kube.resources import LEASES, Resource
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import (
    ALLOCATOR_CONTROLLER,
    ALLOCATOR_SCHEDULER,
    ANNOTATION_ALLOCATOR,
    TAINT_ALLOCATED_BY,
    TAINT_CHANGING,
)
from tests.unit.agent.slices.test_device_layout import ADDRESS, HELD, devices

LEASE = ("gcu", "gcu-dra-controller")


class Rig:
    """`lease` is what the API server answers."""

    def __init__(self, allocator: str) -> None:
        self.time = 1000.0
        self.lease: Object | Exception = NotFound("no lease", status=404)
        self.reads = 0
        self.published: list[Object] = []
        self.handover = AllocatorHandover(
            cast("Api", self),
            LEASE,
            allocator,
            published=lambda: self.published,
            clock=lambda: self.time,
        )

    def get(self, resource: Resource, name: str, *, namespace: str = "") -> Object:
        assert (resource, namespace, name) == (LEASES, *LEASE)
        self.reads += 1
        if isinstance(self.lease, Exception):
            raise self.lease
        return self.lease

    def publish(self, wanted: list[Object], *, held: bool = False) -> None:
        """As the publisher does it."""
        cards = HELD if held else frozenset()
        retained = cards | self.handover.cards_to_retain()
        self.published = with_layouts_in_use({ADDRESS: wanted}, self.published, retained)

    def shown(self) -> tuple[bool, set[str]]:
        """Whether the devices have counters, and the keys of their taints. All devices have the
        same, apart from that for administrators."""
        [(counters, keys)] = {
            (bool(each.get("consumesCounters")), frozenset(t["key"] for t in each["taints"]))
            for _, _, each in by_name(self.published)
        }
        return counters, set(keys)


@pytest.fixture
def rig() -> Rig:
    return Rig(ALLOCATOR_SCHEDULER)


def lease(**annotations: str) -> Object:
    return {"metadata": {"annotations": annotations} if annotations else {}}


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(NotFound("no lease", status=404), id="no lease yet"),
        pytest.param(Unavailable("no answer"), id="no answer"),
        pytest.param(lease(), id="a lease of a controller that allocates"),
        pytest.param(lease(other="scheduler"), id="another annotation"),
    ],
)
def test_without_an_acknowledgement_the_controller_allocates(
    rig: Rig, answer: Object | Exception
) -> None:
    rig.published = devices()
    rig.lease = answer
    assert rig.handover.allocator() == ALLOCATOR_CONTROLLER
    rig.lease = lease(**{ANNOTATION_ALLOCATOR: ALLOCATOR_SCHEDULER})
    assert rig.handover.allocator() == ALLOCATOR_SCHEDULER
    assert rig.reads == 2
    rig.lease = Unavailable("no answer")
    assert rig.handover.allocator() == ALLOCATOR_SCHEDULER
    assert rig.reads == 2


def test_a_node_whose_slices_were_deleted_waits_for_an_answer(rig: Rig) -> None:
    """A card in use would be published without counters, and be closed until its claims end."""
    rig.lease = TooManyRequests("too many requests")
    with pytest.raises(TooManyRequests):
        rig.handover.allocator()
    rig.lease = lease(**{ANNOTATION_ALLOCATOR: ALLOCATOR_SCHEDULER})
    rig.publish(devices(allocator=rig.handover.allocator()), held=True)
    assert rig.shown() == (True, set())


def test_published_counters_are_as_good_as_an_acknowledgement(rig: Rig) -> None:
    rig.lease = Unavailable("no answer")
    rig.published = devices(allocator=ALLOCATOR_SCHEDULER)
    assert rig.handover.allocator() == ALLOCATOR_SCHEDULER
    assert rig.reads == 0


def test_counters_from_before_the_controller_allocated_are_no_acknowledgement(rig: Rig) -> None:
    """The controller may still grant free cards of the node: it is only being changed back."""
    before = Rig(ALLOCATOR_CONTROLLER)
    before.published = devices(allocator=ALLOCATOR_SCHEDULER)
    for _ in range(2):
        before.publish(devices(), held=True)
        before.time += 3600
    assert before.shown() == (True, {TAINT_ALLOCATED_BY, TAINT_CHANGING})
    rig.published = before.published
    assert rig.handover.allocator() == ALLOCATOR_CONTROLLER
    assert rig.reads == 1
    rig.lease = lease(**{ANNOTATION_ALLOCATOR: ALLOCATOR_SCHEDULER})
    assert rig.handover.allocator() == ALLOCATOR_SCHEDULER


def test_a_card_in_use_keeps_the_taint_until_its_last_claim_ends(rig: Rig) -> None:
    rig.published = devices()
    rig.publish(devices(allocator=ALLOCATOR_SCHEDULER), held=True)
    assert rig.shown() == (False, {TAINT_ALLOCATED_BY, TAINT_CHANGING})
    rig.publish(devices(allocator=ALLOCATOR_SCHEDULER))
    assert rig.shown() == (True, set())


def test_counters_go_a_minute_after_the_taint_was_seen() -> None:
    rig = Rig(ALLOCATOR_CONTROLLER)
    assert rig.handover.allocator() == ALLOCATOR_CONTROLLER
    rig.published = devices(allocator=ALLOCATOR_SCHEDULER)
    rig.time += 3600
    for seconds in (0, 0, 59):  # the taint is written, seen, and old enough
        rig.time += seconds
        rig.publish(devices())
        assert rig.shown() == (True, {TAINT_ALLOCATED_BY, TAINT_CHANGING})
    rig.time += 1
    rig.publish(devices(), held=True)
    assert rig.shown() == (True, {TAINT_ALLOCATED_BY, TAINT_CHANGING})
    rig.publish(devices())
    assert rig.shown() == (False, {TAINT_ALLOCATED_BY})


def test_a_card_that_is_offered_no_more_goes_a_minute_later() -> None:
    """It is published with its taints until then: `dra_cards` has what is retained."""
    rig = Rig(ALLOCATOR_CONTROLLER)
    rig.published = devices(allocator=ALLOCATOR_SCHEDULER)
    for _ in range(7):
        wanted = {ADDRESS: devices()} if rig.handover.cards_to_retain() else {}
        retained = rig.handover.cards_to_retain()
        rig.published = with_layouts_in_use(wanted, rig.published, retained)
        assert rig.shown() == (True, {TAINT_ALLOCATED_BY, TAINT_CHANGING})
        rig.time += 10
    assert not rig.handover.cards_to_retain()


def test_devices_of_another_version_of_the_driver_are_not_retained() -> None:
    """Otherwise nothing could be published after a rollback."""
    rig = Rig(ALLOCATOR_CONTROLLER)
    rig.published = [{"name": "newer-7", "consumesCounters": [{"counterSet": "newer"}]}]
    rig.publish(devices())
    assert rig.shown() == (False, {TAINT_ALLOCATED_BY})
