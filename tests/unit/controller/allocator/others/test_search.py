"""The search for devices of ours and of other drivers."""

from __future__ import annotations

from controller.allocator.allocate import FitError, allocate
from controller.allocator.claim_request import parse_claim
from controller.allocator.packing.policy import SchedulerPolicy
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import ALLOCATOR_SCHEDULER
from tests.control_plane.cards import in_all_modes
from tests.control_plane.interfaces import (
    NET,
    SAME_ROOT,
    card_and_interface,
    device_class,
    interface,
    other_slice,
    request,
    root_of,
)
from tests.control_plane.objects import resource_slices
from tests.unit.controller.allocator.build import CLASSES, state

CLASSES_OF_BOTH = CLASSES | {NET: device_class(NET)}
NODES = ("a", "b", "c")


def published(node: str) -> list[Object]:
    """Cards, and interfaces of which no two are below one root."""
    cards = in_all_modes(0, allocator=ALLOCATOR_SCHEDULER, root=root_of)
    interfaces = [interface(bus, f"pci0000:{bus:02x}") for bus in range(20)]
    return [*resource_slices(node, cards), other_slice(node, interfaces)]


def test_nodes_that_were_not_searched_are_unknown() -> None:
    """The steps are spent on the first two."""
    known = state(
        [each for node in NODES for each in published(node)],
        classes=CLASSES_OF_BOTH,
        for_scheduler=True,
    )
    asked = card_and_interface(
        "c", "default", request(NET, 2), constraint=SAME_ROOT | {"requests": ["net"]}
    )
    asked["metadata"]["uid"] = "uid"
    wanted = [parse_claim(asked, CLASSES_OF_BOTH, others={"net"})]
    nodes = known.numbers.set_of(NODES)
    outcome = allocate(known, wanted, nodes, policy=SchedulerPolicy(), steps=20)
    assert isinstance(outcome, FitError)
    assert outcome.unknown == nodes
    assert not outcome.stopped
