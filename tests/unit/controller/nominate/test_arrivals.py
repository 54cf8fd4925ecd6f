"""How many new pods came with our gate, and how many without it."""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from controller.allocator.claim_request import parse_claim
from controller.cache import pods
from controller.nominate.arrivals import Arrivals
from controller.nominate.metrics import NominationMetrics
from controller.placer.pod_claims import PodClaims
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import SCHEDULING_GATE
from tests.unit.controller.allocator.build import CLASSES, claim, request
from tests.unit.controller.webhook.test_gate import ON_ONE_NODE
from tests.unit.controller.world import pod

GATES = [{"name": SCHEDULING_GATE}]


class World:
    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.arrivals = Arrivals(NominationMetrics(self._registry).arrived)

    def step(self, found: Object, *requests: Object) -> None:
        """A step of the unbound pod; its claim has no devices."""
        self.arrivals.see(found)
        wanted = parse_claim(claim("c", requests), CLASSES)
        self.arrivals.count(PodClaims(found, [wanted]))

    def counted(self) -> tuple[float | None, ...]:
        """With the gate, and without it."""
        name = "gcu_controller_arrived_pods_total"
        return tuple(
            self._registry.get_sample_value(name, {"gated": each}) for each in ("true", "false")
        )


def made(name: str = "p", *, uid: str = "1", gated: bool = False, **spec: Any) -> Object:
    found = pod(name, "c")
    found["metadata"]["uid"] = uid
    found["spec"] |= spec | ({"schedulingGates": GATES} if gated else {})
    return found


def test_each_pod_counts_once_as_it_came() -> None:
    world = World()
    for _ in range(2):
        world.step(made("with", gated=True))
        world.step(made("without"))
    world.step(made("with"))  # its gate was lifted
    assert world.counted() == (1, 1)
    world.step(made("without", uid="2", gated=True))  # another pod of that name
    assert world.counted() == (2, 1)


def test_the_first_step_may_be_before_the_claim_is_made() -> None:
    world = World()
    world.arrivals.see(made(gated=True))
    world.step(made())
    assert world.counted() == (1, 0)


def test_pods_of_a_former_leader_do_not_count() -> None:
    world = World()
    world.arrivals.begin([made("old")])
    world.step(made("old"))
    world.step(made("new"))
    assert world.counted() == (0, 1)


def test_a_bound_pod_is_forgotten() -> None:
    world = World()
    world.step(made(gated=True))
    world.arrivals.forget(pods.key_of(made()))
    world.arrivals.count(PodClaims(made(), [parse_claim(claim("c"), CLASSES)]))
    assert world.counted() == (1, 0)


@pytest.mark.parametrize(
    ("spec", "asked"),
    [
        pytest.param({"affinity": ON_ONE_NODE}, request(), id="tied to a node"),
        pytest.param({}, request(adminAccess=True), id="administrative access"),
    ],
)
def test_what_the_webhook_leaves_alone(spec: Object, asked: Object) -> None:
    world = World()
    world.step(made(**spec), asked)
    assert world.counted() == (0, 0)
