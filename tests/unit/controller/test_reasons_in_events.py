"""What events on a waiting pod and its claims say."""

from __future__ import annotations

import pytest

from dra_driver.config.device_config import API_VERSION, KIND
from dra_driver.kube.resources import (
    NODES,
    PODS,
    RESOURCE_CLAIMS,
)
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import DRIVER
from tests.unit.controller.allocator.build import (
    UNHEALTHY,
    claim,
    device,
    pool,
    request,
    resource_slice,
)
from tests.unit.controller.world import SETTINGS, World, node, pod

TOLD = {
    "unhealthy": (
        [*pool("a", [device("whole", 0, taints=[UNHEALTHY])])],
        [request()],
        "1 card: 1 unhealthy; 1 requested",
    ),
    "mixed drivers": (
        [],
        [request("ours"), request("theirs", cls="gpu.example.com")],
        (
            "claim default/c mixes devices of gcu.enflame.com with another driver's "
            "(request theirs); split it into one claim for each driver"
        ),
    ),
    "unsupported form": (
        [],
        [request(selectors=[{"jsonPath": "x"}])],
        (
            "claim default/c, request gcu, a selector: the field jsonPath is not supported; create "
            "the claim again without it; or, to ignore it in the whole cluster, add jsonPath to "
            "controller.ignoredClaimFields of the chart"
        ),
    ),
    "incomplete pool": (
        [resource_slice("a", [], count=2)],
        [request()],
        "pool gcu.enflame.com/a is incomplete: 1 of 2 slices of generation 1",
    ),
}


@pytest.mark.parametrize(("slices", "requests", "words"), TOLD.values(), ids=TOLD)
def test_events_on_pod_and_claim(slices: list[Object], requests: list[Object], words: str) -> None:
    world = World(slices)
    world.put(RESOURCE_CLAIMS, claim("c", requests))
    world.put(PODS, pod("p", "c"))
    assert world.run_until_idle() == []
    assert world.recorder.notes == [f"Pod p: {words}", f"ResourceClaim c: {words}"]


def test_an_event_that_came_too_soon_is_sent_later() -> None:
    world = World([])
    world.recorder.blocked_for = 20.0
    world.ask("p", "c")
    world.run_until_idle()
    assert world.recorder.notes == []
    world.recorder.blocked_for = 0.0
    world.after(20.0)
    assert world.recorder.notes[0] == "Pod p: no ResourceSlice of gcu.enflame.com is published"


def test_the_event_says_why_no_node_fits() -> None:
    world = World()
    world.put(NODES, node("b") | {"status": {}})
    world.ask("p", "c", nodeSelector={"zone": "x"})
    world.run_until_idle()
    assert world.recorder.notes[0] == (
        "Pod p: no node fits the pod: 2 nodes: 1 excluded by the pod's nodeSelector zone=x, 1 not "
        "ready"
    )


def test_containers_that_share_some_requests_are_refused() -> None:
    world = World()
    world.put(RESOURCE_CLAIMS, claim("c", [request("x"), request("y")]))
    overlapping = pod("p", "c")
    overlapping["spec"]["containers"] = [
        {"name": "all", "resources": {"claims": [{"name": "c"}]}},
        {"name": "part", "resources": {"claims": [{"name": "c", "request": "x"}]}},
    ]
    world.put(PODS, overlapping)
    assert world.run_until_idle() == []
    assert "containers 'all' and 'part'" in world.recorder.notes[0]


def test_invalid_configuration_is_reported_and_nothing_is_written() -> None:
    world = World()
    parameters = {"apiVersion": API_VERSION, "kind": KIND, "packing": {"node": "spread"}}
    config = [{"opaque": {"driver": DRIVER, "parameters": parameters}}]
    world.put(RESOURCE_CLAIMS, claim("c", config=config))
    world.put(PODS, pod("p", "c"))
    assert world.run_until_idle() == []
    assert [each.partition(":")[0] for each in world.recorder.notes] == ["Pod p", "ResourceClaim c"]
    assert all("the field packing.node is unknown" in each for each in world.recorder.notes)


def test_a_field_that_the_setting_names_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    ignoring = SETTINGS.model_copy(update={"ignored_claim_fields": "score, weight"})
    monkeypatch.setattr("tests.unit.controller.world.SETTINGS", ignoring)
    world = World()
    world.put(RESOURCE_CLAIMS, claim("c", [request(weight=1)]))
    world.put(PODS, pod("p", "c"))
    assert world.run_until_idle() == ["c", "c status"]
