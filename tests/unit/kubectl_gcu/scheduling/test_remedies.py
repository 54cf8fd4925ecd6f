"""What `kubectl gcu explain` says that helps, where the end of no single claim does."""

from __future__ import annotations

from typing import Any

import pytest

from dra_driver.asks.templates import devices_named
from dra_driver.kube.resources import (
    DEVICE_CLASSES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
)
from dra_driver.model.claims.claim import Object
from kubectl_gcu.scheduling import remedies
from kubectl_gcu.scheduling.explanation import lines
from tests.generated_docs import CHECKOUT
from tests.unit.controller.allocator.build import (
    CLASSES,
    UNHEALTHY,
    allocated,
    claim,
    device,
    pool,
    request,
)
from tests.unit.controller.world import node, pod
from tests.unit.kubectl_gcu.explained import explained
from tests.unit.kubectl_gcu.server import Server, cluster

HEALTH = "docs/user/health.md#what-to-do-with-an-unhealthy-card"
UNUSABLE = "neither the end of claims nor a smaller request would help: of the cards that the "
ONE_NODE = "ask for less: all devices of a pod come from one node, and the largest has"
ADMINISTRATOR = "the node's administrator can end that"
FAILING = {"key": "gcu.enflame.com/failing", "effect": "NoSchedule"}
OF_WHOLE = 'device.attributes["gcu.enflame.com"].type == "whole"'
SELECTED = 'device.attributes["gcu.enflame.com"].card == "{}"'


@pytest.mark.parametrize(
    ("taints", "wanted", "remedy"),
    [
        pytest.param(
            [[UNHEALTHY]],
            request(),
            f"{UNUSABLE}request selects, 1 unhealthy ({HEALTH}); {ADMINISTRATOR}",
            id="unhealthy",
        ),
        pytest.param(
            [[FAILING]],
            request(),
            (
                f"{UNUSABLE}request selects, 1 tainted gcu.enflame.com/failing "
                f"(docs/user/health.md#when-a-device-cannot-be-prepared); {ADMINISTRATOR}"
            ),
            id="failing",
        ),
        pytest.param(
            [[UNHEALTHY], []],
            request(selector=SELECTED.format("0000:01:00.0")),
            f"{UNUSABLE}request selects, 1 unhealthy ({HEALTH}); {ADMINISTRATOR}",
            id="the one that it names",
        ),
        pytest.param(
            [[UNHEALTHY], []],
            request(count=2),
            (
                "ask for less, as the end of all claims would not help; or let the node's "
                "administrator end what keeps cards from being used: 1 unhealthy "
                "(docs/user/health.md#what-to-do-with-an-unhealthy-card)"
            ),
            id="too few",
        ),
        pytest.param(
            [[], []],
            request(count=3),
            f"{ONE_NODE} 2 cards that the request selects",
            id="too many",
        ),
        pytest.param(
            [[UNHEALTHY]],
            request(count=3),
            f"{ONE_NODE} 1 card that the request selects",
            id="too many, and an administrator cannot help",
        ),
        pytest.param(
            [[], []],
            request(cls="shared-gcu.enflame.com", count=1, capacity={"slices": "7"}),
            "ask for less: the end of all claims would not help",
            id="too much of a card",
        ),
        pytest.param(
            [[]],
            request(selector=SELECTED.format("0000:77:00.0")),
            (
                "the end of all claims would not help: correct the DeviceClass, or the selector "
                f"{SELECTED.format('0000:77:00.0')}, which no device meets: card is 0000:01:00.0 "
                "on all"
            ),
            id="none",
        ),
        pytest.param(
            [[], [], [], []],
            request(selector=SELECTED.format("0000:77:00.0")),
            (
                "the end of all claims would not help: correct the DeviceClass, or the selector "
                f"{SELECTED.format('0000:77:00.0')}, which no device meets: card is 0000:01:00.0, "
                "0000:02:00.0, 0000:03:00.0 and 1 other"
            ),
            id="none of several values",
        ),
        pytest.param(
            [[]],
            request(selector='"S60G" in [device.attributes["gcu.enflame.com"].model]'),
            (
                "the end of all claims would not help: correct the DeviceClass, or the selector "
                '"S60G" in [device.attributes["gcu.enflame.com"].model], which no device meets'
            ),
            id="an expression of another form",
        ),
        pytest.param(
            [[]],
            request(cls="drs-gcu.enflame.com"),
            (
                "the end of all claims would not help: correct the DeviceClass, or the selector "
                'device.driver == "gcu.enflame.com" && '
                'device.attributes["gcu.enflame.com"].type in ["drs"], which no device meets'
            ),
            id="none, by the DeviceClass",
        ),
        pytest.param(
            [],
            request(),
            (
                "the end of all claims would not help: correct the DeviceClass or the selectors of "
                "the request, which select no device"
            ),
            id="no device at all",
        ),
        pytest.param(
            [[]],
            request(cls="shared-gcu.enflame.com", selector=OF_WHOLE),
            (
                "the end of all claims would not help: correct the DeviceClass or the selectors of "
                "the request, which select no device"
            ),
            id="none, by two selectors",
        ),
    ],
)
def test_what_helps_where_no_claims_end_does(
    taints: list[list[Object]], wanted: Object, remedy: str
) -> None:
    cards = [
        device(mode, bus, taints=each)
        for bus, each in enumerate(taints, start=1)
        for mode in ("whole", "shared")
    ]
    held = [
        (RESOURCE_CLAIMS, allocated(f"held-{bus}", "a", f"whole-0000-{bus:02}-00-0"))
        for bus, _ in enumerate(taints, start=1)
    ]
    server: Any = Server(
        *((RESOURCE_SLICES, each) for each in pool("a", cards)),
        *((DEVICE_CLASSES, each) for each in CLASSES.values()),
        *held,
        (NODES, node("a")),
        (RESOURCE_CLAIMS, claim("c", [wanted])),
        (PODS, pod("p", "c")),
    )
    verdict = explained(server).verdict
    assert verdict is not None
    assert verdict.remedy == remedy


def test_a_limit_for_an_instance_of_a_size_that_no_profile_has() -> None:
    wanted = claim("c")
    wanted["spec"]["devices"] = devices_named("enflame-drs-gcu-2")
    server: Any = Server(
        *((RESOURCE_SLICES, each) for each in pool("a", [device("drs", 1)])),
        *((DEVICE_CLASSES, each) for each in CLASSES.values()),
        (NODES, node("a")),
        (RESOURCE_CLAIMS, wanted),
        (PODS, pod("p", "c")),
    )
    verdict = explained(server).verdict
    assert verdict is not None
    assert verdict.remedy == (
        "no profile has size 2; the card's profiles are 1g.6gb,3g.20gb,6g.40gb"
    )


AFFINITY = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "use", "operator": "In", "values": ["a"]}]}
            ]
        }
    }
}


@pytest.mark.parametrize(
    ("spec", "help_"),
    [
        pytest.param(
            {"nodeSelector": {"use": "a"}},
            "1 other node that the pod's nodeSelector excludes has what it asks for: c",
            id="nodeSelector",
        ),
        pytest.param(
            {"affinity": AFFINITY},
            "1 other node that the pod's node affinity excludes has what it asks for: c",
            id="affinity",
        ),
        pytest.param(
            {"nodeSelector": {"use": "nothing"}},
            (
                "no claim's end helps: change what keeps the pod from every node; 1 other node "
                "that the pod's nodeSelector excludes has what it asks for: c"
            ),
            id="no node",
        ),
        pytest.param({"affinity": {"podAffinity": {}}}, "", id="none of nodes"),
    ],
)
def test_nodes_that_the_pods_own_constraints_exclude(spec: Object, help_: str) -> None:
    """Node c has a free card, node a has none, and node d has an unhealthy one."""
    labelled = node("a")
    labelled["metadata"]["labels"] = {"use": "a"}
    server = cluster(
        (NODES, labelled),
        *((NODES, node(name)) for name in "cd"),
        *((RESOURCE_SLICES, each) for each in pool("c", [device("whole", 3)])),
        *((RESOURCE_SLICES, each) for each in pool("d", [device("whole", 4, taints=[UNHEALTHY])])),
        (RESOURCE_CLAIMS, claim("c")),
        (PODS, pod("p", "c", **spec)),
    )
    verdict = explained(server).verdict
    assert verdict is not None
    assert verdict.remedy == help_


def waiting(*taints: list[Object], **more: Any) -> Any:
    """A pod waits for one card of node a, whose cards have these taints."""
    cards = [
        device(mode, bus, taints=each)
        for bus, each in enumerate(taints, start=1)
        for mode in ("shared", "drs")
    ]
    return Server(
        *((RESOURCE_SLICES, each) for each in pool("a", cards)),
        *((DEVICE_CLASSES, each) for each in CLASSES.values()),
        (NODES, node("a")),
        (RESOURCE_CLAIMS, claim("c", [request(cls="part-gcu.enflame.com", **more)])),
        (PODS, pod("p", "c")),
    )


def test_the_cards_that_only_taints_keep_from_the_pod_are_named() -> None:
    found = explained(waiting([UNHEALTHY], [UNHEALTHY, FAILING]))
    assert [line for line in lines(found) if line.startswith("  taint:")] == [
        "  taint:  node a, card 0000:01:00.0: gcu.enflame.com/unhealthy=lost:NoSchedule",
        (
            "  taint:  node a, card 0000:02:00.0: gcu.enflame.com/unhealthy=lost:NoSchedule, "
            "gcu.enflame.com/failing:NoSchedule"
        ),
    ]


def test_no_card_is_named_where_more_is_asked_than_a_node_has() -> None:
    server: Any = Server(
        *((RESOURCE_SLICES, each) for each in pool("a", [device("whole", 1, taints=[UNHEALTHY])])),
        *((DEVICE_CLASSES, each) for each in CLASSES.values()),
        (NODES, node("a")),
        (RESOURCE_CLAIMS, claim("c", [request(count=2)])),
        (PODS, pod("p", "c")),
    )
    assert not [line for line in lines(explained(server)) if line.startswith("  taint:")]


def test_of_very_many_tainted_cards_the_first_are_shown() -> None:
    found = explained(waiting(*[[UNHEALTHY]] * 21))
    first, *others = (line for line in lines(found) if line.startswith("  taint:"))
    assert (first, len(others)) == ("  taint:  of 21 cards the first 20 are:", 20)


def test_a_card_whose_taint_the_pod_tolerates_is_not_named() -> None:
    tolerates = [{"key": UNHEALTHY["key"], "operator": "Exists"}]
    server = waiting([UNHEALTHY], [FAILING], tolerations=tolerates, count=2)
    verdict = explained(server).verdict
    assert verdict is not None
    assert verdict.tainted == ("node a, card 0000:02:00.0: gcu.enflame.com/failing:NoSchedule",)


def test_the_pages_that_are_named_exist() -> None:
    for page in remedies.PAGES.values():
        path, _, anchor = page.partition("#")
        text = (CHECKOUT / path).read_text(encoding="utf-8")
        headings = {line.lstrip("# ").lower().replace(" ", "-") for line in text.splitlines()}
        assert not anchor or anchor in headings
