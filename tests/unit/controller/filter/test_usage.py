"""What containers may use together is refused before anything is allocated, or is allocated."""

from __future__ import annotations

import copy
import time

import pytest

from controller.filter.usage import check_requested
from dra_driver.kube.resources import PODS, RESOURCE_CLAIMS
from dra_driver.model.claims.claim import Object
from tests.unit.controller.allocator.build import claim, device, pool, request
from tests.unit.controller.world import World, pod, reserved

WHOLE, DRS = "gcu.enflame.com", "drs-gcu.enflame.com"


def either(name: str) -> Object:
    """A DRS instance, or a card."""
    subs = [{"name": "small", "deviceClassName": DRS}, {"name": "large", "deviceClassName": WHOLE}]
    return {"name": name, "firstAvailable": subs}


def used(name: str, *requests: str) -> Object:
    entries = [{"name": "c", "request": each} if each else {"name": "c"} for each in requests]
    return {"name": name, "resources": {"claims": entries}}


REFUSED = {
    "some in common": (
        [request("x"), request("y")],
        [used("all", ""), used("part", "x")],
        "containers 'all' and 'part' of pod default/p share some GCU requests but not all",
    ),
    "an init container counts": (
        [request("x"), request("y")],
        [used("init", "x"), used("main", "x", "y")],
        "containers 'init' and 'main' of pod default/p share some GCU requests but not all",
    ),
    "two instances by one request": (
        [request("x", cls=DRS, count=2)],
        [used("main", "")],
        "container 'main' of pod default/p would have 2 GCU devices, and one is a DRS instance",
    ),
    "an instance beside a card": (
        [request("x", cls=DRS), request("y")],
        [used("main", "")],
        "container 'main' of pod default/p would have 2 GCU devices, and one is a DRS instance",
    ),
    "an instance as it was chosen": (
        [either("x"), request("y")],
        [used("one", ""), used("two", "")],
        "containers 'one', 'two' of pod default/p would have 2 GCU devices",
    ),
}


@pytest.mark.parametrize(("requests", "containers", "words"), REFUSED.values(), ids=REFUSED)
def test_refused(requests: list[Object], containers: list[Object], words: str) -> None:
    world = served(requests, containers)
    assert world.api.writes == []
    told = next(each for each in world.recorder.notes if each.startswith("Pod p: "))
    assert words in told
    assert "let " in told  # the remedy


def test_refused_though_there_are_no_devices_yet() -> None:
    world = World([])
    world.put(RESOURCE_CLAIMS, claim("c", [request("x", cls=DRS, count=2)]))
    world.put(PODS, pod("p", "c"))
    world.run_until_idle()
    assert "container 'main' of pod default/p would have 2 GCU devices" in world.recorder.notes[0]


ALLOWED = {
    "the same in both": ([request("x"), request("y")], [used("one", ""), used("two", "y", "x")]),
    "nothing in common": ([request("x", cls=DRS), request("y")], [used("a", "x"), used("b", "y")]),
    "several cards": ([request("x", count=2)], [used("main", "")]),
    "instances apart": (
        [request("x", cls=DRS), request("y", cls=DRS)],
        [used("one", "x"), used("two", "y")],
    ),
    "no container names it": ([request("x", cls=DRS), request("y")], [{"name": "main"}]),
}


@pytest.mark.parametrize(("requests", "containers"), ALLOWED.values(), ids=ALLOWED)
def test_allowed(requests: list[Object], containers: list[Object]) -> None:
    assert served(requests, containers).node_of("c") == "a"


def test_claims_allocated_before_count_too() -> None:
    world = served([request("x", cls=DRS)], [used("main", "")])
    assert world.node_of("c") == "a"
    world.put(RESOURCE_CLAIMS, claim("d"))
    both = pod("q", "c", "d")
    world.put(PODS, both)
    world.run_until_idle()
    assert world.node_of("d") is None
    assert "container 'main' of pod default/q would have 2 GCU devices" in world.recorder.notes[0]


@pytest.mark.parametrize(
    ("containers", "told"),
    [
        pytest.param([used("other", "x"), used("name", "y")], False, id="the same sets"),
        pytest.param([used("main", "")], True, id="both together"),
    ],
)
def test_a_later_pod_that_uses_the_claim_differently_is_reported(
    containers: list[Object], told: bool
) -> None:
    world = served([request("x"), request("y")], [used("one", "x"), used("two", "y")])
    first = copy.deepcopy(world.api.live[PODS, "p"])
    first["spec"]["nodeName"] = "a"
    world.put(PODS, first)
    world.put(RESOURCE_CLAIMS, reserved(world.claim("c"), "p"))
    later = pod("q", "c")
    later["spec"]["containers"] = containers
    world.put(PODS, later)
    world.run_until_idle()
    assert (
        any("claim default/c ('c' here) is in use by pod p" in e for e in world.recorder.notes)
        is told
    )


def served(requests: list[Object], containers: list[Object]) -> World:
    cards = [device(kind, bus) for bus in range(3) for kind in ("whole", "drs")]
    world = World(pool("a", cards))
    world.put(RESOURCE_CLAIMS, claim("c", requests))
    using = pod("p", "c")
    first = [each for each in containers if each["name"] == "init"]
    using["spec"]["initContainers"] = first
    using["spec"]["containers"] = [each for each in containers if each not in first]
    world.put(PODS, using)
    world.run_until_idle()
    return world


def test_thousands_of_containers_are_checked_once_each() -> None:
    """As many as a pod of 1.5 MB has; compared with one another they took a minute."""
    names = [f"r{number}" for number in range(32)]
    ours = {f"c{n}": claim(f"c{n}", list(map(request, names))) for n in range(125)}
    for uid, each in ours.items():
        each["metadata"]["uid"] = uid
    spec = {
        "containers": [
            {"name": f"{c}-{r}", "resources": {"claims": [{"name": c, "request": r}]}}
            for c in ours
            for r in names
        ]
    }
    began = time.thread_time()
    check_requested({"metadata": {"namespace": "default", "name": "p"}, "spec": spec}, ours, ())
    assert time.thread_time() - began < 2.0
