"""What the allocator of `kubectl gcu explain` and `plan` leaves behind after an error."""

from __future__ import annotations

import pytest

from dra_driver.kube.resources import DEVICE_CLASSES, NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from kubectl_gcu.scheduling.decision import LiveAllocator
from tests.unit.controller.allocator.build import CLASSES, allocated, claim, device, pool
from tests.unit.controller.world import node, pod
from tests.unit.kubectl_gcu.server import Server

KINDS = (RESOURCE_SLICES, DEVICE_CLASSES, NODES, RESOURCE_CLAIMS, PODS)


def test_claims_that_were_set_aside_are_back_after_an_error() -> None:
    """The only card is held, also after a pod without metadata was tried as if it were free."""
    server = Server(
        *((RESOURCE_SLICES, each) for each in pool("a", [device("whole", 1)])),
        *((DEVICE_CLASSES, each) for each in CLASSES.values()),
        (NODES, node("a")),
        (RESOURCE_CLAIMS, allocated("held", "a", "whole-0000-01-00-0")),
        (RESOURCE_CLAIMS, claim("c")),
        (PODS, pod("p", "c")),
    )
    allocator = LiveAllocator({kind: server.list(kind).items for kind in KINDS})
    claims = {"c": server.get(RESOURCE_CLAIMS, "c", namespace="default")}
    with pytest.raises(KeyError):
        allocator.servable([({}, claims)])
    verdict = allocator.decide(pod("p", "c"), claims)
    assert verdict is not None
    assert verdict.node == ""
