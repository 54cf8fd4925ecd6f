"""What `kubectl gcu explain` says about pods that wait, for devices."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from dra_driver.config.device_config import API_VERSION, KIND
from dra_driver.kube.api import ServerVersion
from dra_driver.kube.resources import (
    DEVICE_CLASSES,
    EVENTS,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
)
from dra_driver.model.names import RESOURCE_SHARED
from kubectl_gcu.main import FAILED, WAITS
from kubectl_gcu.scheduling import decision
from kubectl_gcu.scheduling.explanation import lines
from kubectl_gcu.scheduling.steps import Step
from tests.unit.controller.allocator.build import CLASSES, allocated, claim, device, pool, request
from tests.unit.controller.world import node, pod
from tests.unit.kubectl_gcu.command import gcu
from tests.unit.kubectl_gcu.explained import explained
from tests.unit.kubectl_gcu.server import Server, cluster, event


def test_the_allocator_says_what_each_node_lacks_and_which_claims_would_help() -> None:
    server = cluster((RESOURCE_CLAIMS, claim("c")), (PODS, pod("p", "c")))
    found = explained(server)
    assert found.verdict is not None
    assert found.verdict.helps == ("default/held", "default/other")
    assert list(lines(found)) == [
        "pod default/p",
        "  asks:   1 of gcu.enflame.com",
        "  next:   the allocator",
        "  why:    2 cards: 1 held, 1 in shared mode; 1 requested",
        "  node:   a: 1 card: 1 held; 1 requested",
        "  node:   b: 1 card: 1 in shared mode; 1 requested",
        "  help:   it fits when any one of these claims ends: default/held, default/other",
    ]


def test_what_never_fits_and_what_needs_several_ends() -> None:
    eight = claim("c", [request(cls="shared-gcu.enflame.com", capacity={"slices": "8"})])
    found = explained(cluster((RESOURCE_CLAIMS, eight), (PODS, pod("p", "c"))))
    assert found.verdict is not None
    assert "no card has more than 6" in found.verdict.reason
    assert (
        found.step.who
        == "the pod's author or an administrator: the end of other claims would not help"
    )
    assert "ask for less" in list(lines(found))[-1]
    more = allocated("more", "b", "shared-0000-02-00-0", consumed={"slices": "1"})
    pinned = pod("p", "c", nodeSelector={"kubernetes.io/hostname": "b"})
    named = node("b")
    named["metadata"]["labels"] = {"kubernetes.io/hostname": "b"}
    server = Server(
        *((RESOURCE_SLICES, each) for each in pool("b", [device("whole", 2), device("shared", 2)])),
        *((DEVICE_CLASSES, each) for each in CLASSES.values()),
        (NODES, named),
        (RESOURCE_CLAIMS, more),
        (RESOURCE_CLAIMS, allocated("other", "b", "shared-0000-02-00-0", consumed={"slices": "2"})),
        (RESOURCE_CLAIMS, claim("c")),
        (PODS, pinned),
    )
    found = explained(server)
    assert "several claims" in list(lines(found))[-1]


def test_the_end_of_a_pod_frees_what_none_of_its_claims_does() -> None:
    shared = [
        allocated(name, "b", "shared-0000-02-00-0", consumed={"slices": "2"}) for name in "xy"
    ]
    for each in shared:
        each["status"]["reservedFor"] = [{"resource": "pods", "name": "user", "uid": "u"}]
    server = Server(
        *((RESOURCE_SLICES, each) for each in pool("b", [device("whole", 2), device("shared", 2)])),
        *((DEVICE_CLASSES, each) for each in CLASSES.values()),
        (NODES, node("b")),
        *((RESOURCE_CLAIMS, each) for each in (*shared, claim("c"))),
        (PODS, pod("p", "c")),
    )
    assert list(lines(explained(server)))[-1] == (
        "  help:   it fits when any one of these pods ends: default/user"
    )


def test_what_fits_now_and_a_claim_that_cannot_be_read() -> None:
    two = claim("c", [request(cls="shared-gcu.enflame.com", capacity={"slices": "2"})])
    found = explained(cluster((RESOURCE_CLAIMS, two), (PODS, pod("p", "c"))))
    assert list(lines(found))[-1] == "  help:   none is needed: node b has what it asks for"
    broken = claim("c", [request(cls="nobody.example.com"), request("gcu-1")])
    found = explained(cluster((RESOURCE_CLAIMS, broken), (PODS, pod("p", "c"))))
    assert found.verdict is not None
    assert "mixes devices of gcu.enflame.com with another driver's" in found.verdict.reason
    assert "split it into one claim for each driver" in found.verdict.reason
    assert not [line for line in lines(found) if line.startswith("  help:")]


def test_a_configuration_that_is_refused() -> None:
    wrong = claim("c")
    parameters = {"apiVersion": API_VERSION, "kind": KIND, "cores": 120}
    opaque = {"driver": "gcu.enflame.com", "parameters": parameters}
    wrong["spec"]["devices"]["config"] = [{"opaque": opaque}]
    found = explained(cluster((RESOURCE_CLAIMS, wrong), (PODS, pod("p", "c"))))
    _, _, next_, why, help_ = lines(found)
    assert (
        next_
        == "  next:   the pod's author or an administrator: the end of other claims would not help"
    )
    assert "of claim default/c is not understood: cores: it is 1 to 99" in why
    assert help_.startswith("  help:   correct the field: in a DeviceClass in place; else in a new")


def test_no_node_fits_the_pod() -> None:
    pinned = pod("p", "c", nodeSelector={"kubernetes.io/hostname": "nowhere"})
    found = explained(cluster((RESOURCE_CLAIMS, claim("c")), (PODS, pinned)))
    assert found.verdict is not None
    assert (
        "2 excluded by the pod's nodeSelector kubernetes.io/hostname=nowhere"
        in found.verdict.reason
    )
    assert found.verdict.remedy.startswith("no claim's end helps: change what keeps the pod")


def test_kube_scheduler_would_refuse_every_node() -> None:
    waiting = pod("p", "c")
    waiting["spec"]["containers"][0]["resources"]["requests"] = {"example.com/rdma": "1"}
    found = explained(cluster((RESOURCE_CLAIMS, claim("c")), (PODS, waiting)))
    assert found.verdict is not None
    assert "2 without free example.com/rdma" in found.verdict.reason
    assert found.verdict.remedy.startswith("no claim's end helps: the pod waits until other pods")
    assert not found.verdict.needs_person


def test_claims_on_nodes_that_do_not_fit_the_pod_cannot_help() -> None:
    labelled = node("b")
    labelled["metadata"]["labels"] = {"kubernetes.io/hostname": "b"}
    pinned = pod("p", "c", nodeSelector={"kubernetes.io/hostname": "b"})
    server = cluster((RESOURCE_CLAIMS, claim("c")), (PODS, pinned), (NODES, labelled))
    found = explained(server)
    assert found.verdict is not None
    assert found.verdict.helps == ("default/other",)


def test_of_very_many_claims_the_first_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decision, "_MOST_TRIED", 1)
    found = explained(cluster((RESOURCE_CLAIMS, claim("c")), (PODS, pod("p", "c"))))
    assert list(lines(found))[-2:] == [
        "  help:   it fits when any one of these claims ends: default/held",
        "  help:   1 of 2 claims were not tried",
    ]


def test_a_claim_that_this_driver_does_not_allocate() -> None:
    wanted = claim("c", [request(cls="nobody.example.com")])
    found = explained(cluster((RESOURCE_CLAIMS, wanted), (PODS, pod("p", "c"))))
    assert (found.verdict, found.step.who, found.step.text) == (
        None,
        "whoever creates DeviceClasses, or the pod's author",
        (
            "the DeviceClass nobody.example.com does not exist; there are drs-gcu.enflame.com, "
            "gcu.enflame.com, part-gcu.enflame.com, shared-gcu.enflame.com"
        ),
    )
    theirs = {"metadata": {"name": "nobody.example.com"}, "spec": {}}
    server = cluster((RESOURCE_CLAIMS, wanted), (PODS, pod("p", "c")), (DEVICE_CLASSES, theirs))
    found = explained(server)
    assert (found.verdict, found.step.who) == (None, "the allocator of another driver")


def test_without_rights_it_is_the_controllers_event_and_no_other_tenant() -> None:
    last = event("GcuAllocationFailed", "1 card: 1 held; 1 requested") | {"metadata": {"name": "e"}}
    server = cluster(
        (RESOURCE_CLAIMS, claim("c")),
        (PODS, pod("p", "c")),
        (EVENTS, last),
        forbidden=[RESOURCE_CLAIMS],
    )
    found = explained(server)
    assert (found.verdict, found.step.text) == (None, "1 card: 1 held; 1 requested")
    assert found.missing.startswith("you may not list resourceclaims in the whole cluster")
    assert "default/held" not in "\n".join(lines(found))


def test_a_pod_without_gcus() -> None:
    found = explained(cluster((PODS, pod("p"))))
    assert found.step == Step("", "it asks for no GCU by claims or limits")


def limited() -> Any:
    found = pod("p", schedulerName="gcushare-scheduler")
    found["spec"]["containers"][0]["resources"] = {"limits": {RESOURCE_SHARED: "2"}}
    return found


def without_dra() -> Any:
    server = Server((PODS, limited()))
    server.version = ServerVersion(1, 30, "v1.30.14")
    return server


EXTENDER = "kube-scheduler, which asks the driver's scheduler extender"
GCUSHARE = "the scheduler gcushare-scheduler, which is not this driver's"


@pytest.mark.parametrize(
    ("server", "who"),
    [
        pytest.param(cluster((PODS, limited())), GCUSHARE, id="claims"),
        pytest.param(
            cluster((PODS, limited()), forbidden=[DEVICE_CLASSES]), GCUSHARE, id="a tenant"
        ),
        pytest.param(Server((PODS, limited())), EXTENDER, id="claims are not served"),
        pytest.param(without_dra(), EXTENDER, id="no DRA"),
    ],
)
def test_who_schedules_limits(server: Any, who: str) -> None:
    assert explained(server).step.who == who


def test_the_command() -> None:
    server = cluster(
        *((RESOURCE_CLAIMS, claim(name)) for name in ("c", "unused")), (PODS, pod("p", "c"))
    )
    run = partial(gcu, server, "explain")
    code, out, _ = run("pod", "p")
    assert (code, out.splitlines()[0]) == (WAITS, "pod default/p")
    code, out, _ = run("claim", "c", "--output=json")
    [found] = json.loads(out)
    assert (code, found["step"]["who"], found["verdict"]["node"]) == (WAITS, "the allocator", "")
    assert found["step"]["waitsForDevices"] is True
    assert found["verdict"]["byNode"].keys() == {"a", "b"}
    assert run("claim", "unused")[:2] == (
        0,
        "no pod uses the claim; it is allocated for the first pod that does\n",
    )
    assert run("claim", "unused", "--output=json")[:2] == (0, "[]\n")
    code, _, errors = run("pod", "nobody")
    assert (code, errors.startswith("error: no Pod nobody")) == (FAILED, True)


def test_an_event_moves_no_cursor_and_adds_no_line() -> None:
    forged = event("GcuAllocationFailed", "\x1b[2J\nall is well") | {"metadata": {"name": "e"}}
    server = cluster(
        (RESOURCE_CLAIMS, claim("c")),
        (PODS, pod("p", "c")),
        (EVENTS, forged),
        forbidden=[RESOURCE_CLAIMS],
    )
    _, out, _ = gcu(server, "explain", "pod", "p")
    assert "  why:    \ufffd[2J all is well\n" in out
    assert "\x1b" not in out
