"""What `kubectl gcu explain` says about pods that wait, for each cause."""

from __future__ import annotations

import copy
import io
import json
from collections.abc import Sequence
from typing import Any

import pytest

from dra_driver.kube.api import Listing
from dra_driver.kube.errors import Forbidden, NotFound
from dra_driver.kube.resources import (
    DEVICE_CLASSES,
    EVENTS,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from dra_driver.model.claims.claim import Object
from dra_driver.model.names import RESOURCE_SHARED, SCHEDULING_GATE
from kubectl_gcu import main
from kubectl_gcu.explain import Explanation, explain_pod, lines
from kubectl_gcu.main import FAILED, WAITS
from kubectl_gcu.steps import Step, step_of
from tests.unit.controller.allocator.build import CLASSES, allocated, claim, device, pool, request
from tests.unit.controller.world import node, pod, reserved, unschedulable

HELD = allocated("held", "a", "whole-0000-01-00-0")
BOUND: dict[str, Any] = {"nodeName": "a"}
AWAITED = "GcuAllocationFailed"


def event(reason: str, note: str, about: str = "p") -> Object:
    return {"reason": reason, "note": note, "regarding": {"name": about}}


def prepared(found: Object, status: str, message: str = "") -> Object:
    condition = {"type": "Ready", "status": status, "message": message}
    entry = {"driver": "gcu.enflame.com", "device": "d", "conditions": [condition]}
    return found | {"status": found["status"] | {"devices": [entry]}}


def limited() -> Object:
    found = pod("p", status=unschedulable())
    found["status"]["conditions"][0]["message"] = "0/2 nodes are available: 2 have no room"
    found["spec"]["containers"][0]["resources"] = {"limits": {RESOURCE_SHARED: "2"}}
    return found


def templated() -> Object:
    found = pod("p")
    found["spec"]["resourceClaims"] = [{"name": "c", "resourceClaimTemplateName": "t"}]
    return found


def deleting() -> Object:
    found = pod("p", **BOUND)
    found["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return found


CAUSES: dict[str, tuple[Object, Object | None, Sequence[Object], str, str]] = {
    "no devices": (
        pod("p", "c"),
        claim("c"),
        [event(AWAITED, "old"), event(AWAITED, "1 card: 1 held as a whole")],
        "the allocator",
        "1 card: 1 held as a whole",
    ),
    "no such claim": (pod("p", "c"), None, [], "whoever creates the claim", "does not exist"),
    "no template": (
        templated(),
        None,
        [event("FailedResourceClaimCreation", "template t not found")],
        "kube-controller-manager",
        "ResourceClaimTemplate t: template t not found",
    ),
    "a gate of others": (
        pod("p", "c", schedulingGates=[{"name": "x.io/hold"}]),
        claim("c"),
        [],
        "whoever set the scheduling gate",
        "held back by x.io/hold",
    ),
    "our gate": (
        pod("p", "c", schedulingGates=[{"name": SCHEDULING_GATE}]),
        allocated("c", "a", "whole-0000-01-00-0"),
        [],
        "the controller",
        "the scheduling gate goes next",
    ),
    "kube-scheduler": (
        pod("p", "c", status=limited()["status"]),
        allocated("c", "a", "whole-0000-01-00-0"),
        [],
        "kube-scheduler",
        "2 have no room",
    ),
    "the extender": (limited(), None, [], "scheduler extender", "shared-gcu: 0/2 nodes"),
    "the agent fails": (
        pod("p", "c", **BOUND),
        allocated("c", "a", "whole-0000-01-00-0"),
        [event("FailedPrepareDynamicResources", "efsmi ended with 1")],
        "the agent of node a",
        "claim c is not prepared yet: efsmi ended with 1",
    ),
    "the card is unhealthy": (
        pod("p", "c", **BOUND),
        prepared(allocated("c", "a", "whole-0000-01-00-0"), "False", "card 1: lost"),
        [],
        "the agent of node a",
        "not prepared yet: card 1: lost",
    ),
    "the image": (
        pod(
            "p",
            "c",
            status={
                "containerStatuses": [
                    {"name": "main", "state": {"waiting": {"reason": "ImagePullBackOff"}}}
                ]
            },
            **BOUND,
        ),
        prepared(allocated("c", "a", "whole-0000-01-00-0"), "True"),
        [],
        "the kubelet",
        "main: ImagePullBackOff",
    ),
    "admission": (
        pod("p", status={"reason": "UnexpectedAdmissionError", "message": "no device"}, **BOUND),
        None,
        [],
        "the kubelet",
        "UnexpectedAdmissionError: no device",
    ),
    "its end": (deleting(), claim("c"), [], "the kubelet", "is being deleted"),
    "nothing: it runs": (
        pod("p", "c", status={"phase": "Running"}, **BOUND),
        prepared(allocated("c", "a", "whole-0000-01-00-0"), "True"),
        [],
        "",
        "runs on node a",
    ),
    "nothing: it has ended": (pod("p", "c", status={"phase": "Failed"}), None, [], "", "has ended"),
}


@pytest.mark.parametrize(("found", "its", "events", "who", "text"), CAUSES.values(), ids=CAUSES)
def test_a_step(
    found: Object, its: Object | None, events: Sequence[Object], who: str, text: str
) -> None:
    names = [each["name"] for each in found["spec"]["resourceClaims"]]
    step = step_of(found, dict.fromkeys(names, its), events)
    assert step.who.endswith(who)
    assert bool(step.who) == bool(who)
    assert text in step.text
    assert step.waits_for_devices == (who == "the allocator")


class Server:
    """What it has; `forbidden` may not be listed by this user."""

    def __init__(self, *objects: tuple[Resource, Object], forbidden: Sequence[Resource] = ()):
        self._forbidden = forbidden
        self._objects: dict[Resource, list[Object]] = {}
        for number, (resource, each) in enumerate(objects):
            stored = copy.deepcopy(each)
            stored["metadata"].setdefault("uid", f"uid-{stored['metadata']['name']}")
            stored["metadata"]["resourceVersion"] = str(number + 1)
            self._objects.setdefault(resource, []).append(stored)

    def get(self, resource: Resource, name: str, *, namespace: str = "") -> Object:
        for each in self.list(resource, forbids=False).items:
            if (each["metadata"]["name"], each["metadata"].get("namespace", "")) == (
                name,
                namespace,
            ):
                return each
        raise NotFound(f"no {resource.kind} {name}", status=404)

    def list(self, resource: Resource, *, namespace: str = "", forbids: bool = True) -> Listing:
        if forbids and resource in self._forbidden and not namespace:
            raise Forbidden("no", status=403)
        return Listing(tuple(self._objects.get(resource, ())), "1")

    def close(self) -> None:
        """Nothing is open."""


def cluster(*more: tuple[Resource, Object], forbidden: Sequence[Resource] = ()) -> Any:
    """Two nodes with a card each; that of node a is held by claim `held`, that of b by `other`."""
    slices = [
        *pool("a", [device(mode, 1) for mode in ("whole", "shared")]),
        *pool("b", [device(mode, 2) for mode in ("whole", "shared")]),
    ]
    return Server(
        *((RESOURCE_SLICES, each) for each in slices),
        *((DEVICE_CLASSES, each) for each in CLASSES.values()),
        *((NODES, node(name)) for name in ("a", "b")),
        (RESOURCE_CLAIMS, reserved(HELD, "holder")),
        (RESOURCE_CLAIMS, allocated("other", "b", "shared-0000-02-00-0", consumed={"slices": "2"})),
        *more,
        forbidden=forbidden,
    )


def explained(server: Any, name: str = "p") -> Explanation:
    return explain_pod(server, "default", name)


def test_the_allocator_says_what_each_node_lacks_and_which_claims_would_help() -> None:
    server = cluster((RESOURCE_CLAIMS, claim("c")), (PODS, pod("p", "c")))
    found = explained(server)
    assert found.verdict is not None
    assert found.verdict.helps == ("default/held", "default/other")
    assert list(lines(found)) == [
        "pod default/p",
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
    assert found.verdict.never
    assert "no card has more than 6" in found.verdict.reason
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


def test_what_fits_now_and_a_claim_that_cannot_be_read() -> None:
    two = claim("c", [request(cls="shared-gcu.enflame.com", capacity={"slices": "2"})])
    found = explained(cluster((RESOURCE_CLAIMS, two), (PODS, pod("p", "c"))))
    assert list(lines(found))[-1] == "  help:   none is needed: node b has what it asks for"
    broken = claim("c", [request(cls="nobody.example.com"), request("gcu-1")])
    found = explained(cluster((RESOURCE_CLAIMS, broken), (PODS, pod("p", "c"))))
    assert found.verdict is not None
    assert "mixes devices of gcu.enflame.com with another driver's" in found.verdict.reason
    assert found.verdict.never


def test_more_urgent_pods_are_counted() -> None:
    urgent = pod("urgent", "u", priority=5)
    server = cluster(
        *((RESOURCE_CLAIMS, claim(name)) for name in ("c", "u")),
        *((PODS, each) for each in (pod("p", "c"), urgent)),
    )
    assert (explained(server).before, explained(server, "urgent").before) == (1, 0)


def test_without_rights_it_is_the_controllers_event_and_no_other_tenant() -> None:
    said = event(AWAITED, "1 card: 1 held; 1 requested") | {"metadata": {"name": "e"}}
    server = cluster(
        (RESOURCE_CLAIMS, claim("c")),
        (PODS, pod("p", "c")),
        (EVENTS, said),
        forbidden=[RESOURCE_CLAIMS],
    )
    found = explained(server)
    assert (found.verdict, found.step.text) == (None, "1 card: 1 held; 1 requested")
    assert found.missing.startswith("you may not list resourceclaims in the whole cluster")
    assert "default/held" not in "\n".join(lines(found))


def test_a_pod_without_gcus() -> None:
    found = explained(cluster((PODS, pod("p"))))
    assert found.step == Step("", "it asks for no GCU by claims or limits")


def test_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    server = cluster(
        *((RESOURCE_CLAIMS, claim(name)) for name in ("c", "unused")), (PODS, pod("p", "c"))
    )
    monkeypatch.setattr(main, "connect", lambda *_, **__: server)

    def run(*arguments: str) -> tuple[int, str, str]:
        out, errors = io.StringIO(), io.StringIO()
        code = main.run(["explain", *arguments, "--namespace=default"], {}, out, errors)
        return code, out.getvalue(), errors.getvalue()

    code, out, _ = run("pod", "p")
    assert (code, out.splitlines()[0]) == (WAITS, "pod default/p")
    code, out, _ = run("claim", "c", "--output=json")
    [found] = json.loads(out)
    assert (code, found["step"]["who"], found["verdict"]["node"]) == (WAITS, "the allocator", "")
    assert run("claim", "unused")[:2] == (
        0,
        "no pod uses the claim; it is allocated for the first pod that does\n",
    )
    code, _, errors = run("pod", "nobody")
    assert (code, errors.startswith("error: no Pod nobody")) == (FAILED, True)
